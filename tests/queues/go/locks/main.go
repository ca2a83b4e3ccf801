// Locks and rate limiters of Go's libraries, as they are: each is a script or two.
//
//	locks HOST PORT
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func want(is bool, format string, values ...any) {
	if !is {
		panic(fmt.Sprintf(format, values...))
	}
}

func connect() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: os.Args[1] + ":" + os.Args[2]})
}

// As many as the limit has, then none until the next is due.
func limits() {
	limiter, limit := redis_rate.NewLimiter(connect()), redis_rate.PerHour(10)
	for n := 0; n < 10; n++ {
		it, err := limiter.Allow(ctx, "me", limit)
		check(err)
		want(it.Allowed == 1 && it.Remaining == 9-n, "%d: %+v", n, it)
	}
	it, err := limiter.Allow(ctx, "me", limit)
	check(err)
	want(it.Allowed == 0 && it.RetryAfter > time.Minute && it.ResetAfter > 30*time.Minute, "%+v", it)
	it, err = limiter.AllowN(ctx, "other", limit, 8)
	check(err)
	want(it.Allowed == 8, "%+v", it)
	it, err = limiter.AllowN(ctx, "other", limit, 8)
	check(err)
	want(it.Allowed == 0, "%+v", it)
	it, err = limiter.AllowAtMost(ctx, "other", limit, 8)
	check(err)
	want(it.Allowed == 2, "%+v", it)
	check(limiter.Reset(ctx, "me"))
	it, err = limiter.Allow(ctx, "me", limit)
	check(err)
	want(it.Allowed == 1, "%+v", it)
}

// Runs it in so many goroutines.
func together(count int, work func()) {
	var all sync.WaitGroup
	for n := 0; n < count; n++ {
		all.Add(1)
		go func() {
			defer all.Done()
			work()
		}()
	}
	all.Wait()
}

func limitsOfMany() {
	var turn sync.Mutex
	allowed := 0
	together(4, func() {
		limiter := redis_rate.NewLimiter(connect())
		for n := 0; n < 25; n++ {
			it, err := limiter.Allow(ctx, "many", redis_rate.PerHour(50))
			check(err)
			turn.Lock()
			allowed += it.Allowed
			turn.Unlock()
		}
	})
	want(allowed == 50, "%d of 50 were allowed", allowed)
}

func locks() {
	client := connect()
	of := func() *redsync.Mutex {
		return redsync.New(goredis.NewPool(client)).NewMutex("lock", redsync.WithExpiry(time.Hour), redsync.WithTries(1))
	}
	mine, stranger := of(), of()
	check(mine.Lock())
	want(stranger.Lock() != nil, "two have the lock")
	is, err := stranger.Unlock()
	want(!is && err != nil, "a stranger has let it go")
	check(client.PExpire(ctx, "lock", time.Minute).Err())
	is, err = mine.Extend()
	check(err)
	left := client.PTTL(ctx, "lock").Val()
	want(is && left > 30*time.Minute, "extended to %v", left)
	is, err = mine.Unlock()
	check(err)
	want(is && client.Exists(ctx, "lock").Val() == 0, "it is there after it was let go")
	check(stranger.Lock())
	check(client.Del(ctx, "lock").Err())
	is, err = stranger.Extend()
	want(!is && err != nil, "a lock that is gone was extended")
}

func guardedCounter() {
	client := connect()
	together(4, func() {
		mutex := redsync.New(goredis.NewPool(connect())).NewMutex("guard", redsync.WithExpiry(time.Hour),
			redsync.WithTries(1_000_000), redsync.WithRetryDelay(time.Millisecond))
		for n := 0; n < 20; n++ {
			check(mutex.Lock())
			seen, err := client.Get(ctx, "counted:go").Int()
			want(err == nil || err == redis.Nil, "%v", err)
			check(client.Set(ctx, "counted:go", seen+1, 0).Err())
			_, err = mutex.Unlock()
			check(err)
		}
	})
	count, err := client.Get(ctx, "counted:go").Int()
	check(err)
	want(count == 80, "%d of 80 were counted", count)
}

func main() {
	tests := []struct {
		name string
		run  func()
	}{
		{"redis_rate allows as many as its limit has", limits},
		{"redis_rate counts what four clients take at once", limitsOfMany},
		{"redsync keeps others out, extends, and lets go", locks},
		{"redsync guards a counter", guardedCounter},
	}
	for _, test := range tests {
		test.run()
		fmt.Println("ok", test.name)
	}
}
