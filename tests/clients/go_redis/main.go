// go-redis used in anger: what Go services do with it, against a server that starts empty.
//
//	go_redis PORT
//
// PORT is of 127.0.0.1. With a folder in the variable CERTIFICATES (ca.crt, client.crt, client.key) it is for TLS. It
// passes on a real redis-server too. The first test that fails ends it.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

const patience = 60 * time.Second

func fail(what string, args ...any) {
	_, file, line, _ := runtime.Caller(2)
	fmt.Fprintf(os.Stderr, "%s:%d: %s\n", filepath.Base(file), line, fmt.Sprintf(what, args...))
	os.Exit(1)
}

func must(err error) {
	if err != nil {
		fail("%v", err)
	}
}

func same(got, expected any) {
	if !reflect.DeepEqual(got, expected) {
		fail("%#v, and not %#v", got, expected)
	}
}

func says(err error, text string) {
	if err == nil || !strings.Contains(err.Error(), text) {
		fail("%v does not say %q", err, text)
	}
}

// Looks again and again at what another connection brings about.
func until(condition func() bool) {
	for end := time.Now().Add(patience); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			fail("it does not come")
		}
	}
}

func options() *redis.Options {
	o := &redis.Options{Addr: "127.0.0.1:" + os.Args[1], MaxRetries: -1, ReadTimeout: patience, DisableIdentity: true}
	if folder := os.Getenv("CERTIFICATES"); folder != "" {
		authority, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
		must(err)
		own, err := tls.LoadX509KeyPair(filepath.Join(folder, "client.crt"), filepath.Join(folder, "client.key"))
		must(err)
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(authority)
		o.TLSConfig = &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}, ServerName: "localhost"}
	}
	return o
}

func connect(change func(*redis.Options)) *redis.Client {
	o := options()
	change(o)
	return redis.NewClient(o)
}

// Starts a call on a connection of its own, and returns when the server lists it as waiting.
func wait[T any](r *redis.Client, protocol int, call func(*redis.Conn) (T, error)) func() (T, error) {
	client := connect(func(o *redis.Options) { o.Protocol = protocol })
	conn := client.Conn()
	id, err := conn.ClientID(ctx).Result()
	must(err)
	var value T
	var failed error
	done := make(chan bool)
	go func() {
		value, failed = call(conn)
		close(done)
	}()
	until(func() bool {
		line := r.Do(ctx, "CLIENT", "LIST", "ID", id).Val().(string)
		_, flags, _ := strings.Cut(line, " flags=")
		flags, _, _ = strings.Cut(flags, " ")
		return strings.Contains(flags, "b")
	})
	return func() (T, error) {
		<-done
		conn.Close()
		client.Close()
		return value, failed
	}
}

func ended[T any](get func() (T, error)) T {
	value, err := get()
	must(err)
	return value
}

func values(r *redis.Client) {
	same(r.Set(ctx, "k", "v", time.Minute).Val(), "OK")
	same(r.Get(ctx, "none").Err(), redis.Nil)
	same(r.SetNX(ctx, "k", "w", 0).Val(), false)
	same(r.IncrBy(ctx, "n", 41).Val(), int64(41))
	same(r.RPush(ctx, "l", "a", "b", "c").Val(), int64(3))
	same(r.LRange(ctx, "l", 0, -1).Val(), []string{"a", "b", "c"})
	same(r.HSet(ctx, "h", "f", 1, "g", 2).Val(), int64(2))
	same(r.HGetAll(ctx, "h").Val(), map[string]string{"f": "1", "g": "2"})
	same(r.ZAdd(ctx, "z", redis.Z{Score: 1.5, Member: "a"}, redis.Z{Score: 2, Member: "b"}).Val(), int64(2))
	same(r.ZRangeWithScores(ctx, "z", 0, -1).Val(), []redis.Z{{Score: 1.5, Member: "a"}, {Score: 2, Member: "b"}})
	same(r.SAdd(ctx, "s", 1, 2).Val(), int64(2))
	same(r.XAdd(ctx, &redis.XAddArgs{Stream: "x", ID: "1-1", Values: []string{"f", "v"}}).Val(), "1-1")
	same(r.XRange(ctx, "x", "-", "+").Val(), []redis.XMessage{{ID: "1-1", Values: map[string]any{"f": "v"}}})
	says(r.Incr(ctx, "l").Err(), "WRONGTYPE Operation against a key")
	seen := r.Scan(ctx, 0, "", 100).Iterator()
	var keys []string
	for seen.Next(ctx) {
		keys = append(keys, seen.Val())
	}
	sort.Strings(keys)
	same(keys, []string{"h", "k", "l", "n", "s", "x", "z"})
}

func pipelines(r *redis.Client) {
	commands, err := r.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for n := 0; n < 10000; n++ {
			pipe.RPush(ctx, "l", n)
			pipe.LIndex(ctx, "l", -1)
		}
		return nil
	})
	must(err)
	for n := 0; n < 10000; n++ {
		same(commands[2*n].(*redis.IntCmd).Val(), int64(n+1))
		same(commands[2*n+1].(*redis.StringCmd).Val(), strconv.Itoa(n))
	}
	value := strings.Repeat("0123456789", 500000)
	must(r.Set(ctx, "big", value, 0).Err())
	same(r.Get(ctx, "big").Val() == value, true)
}

func transactions(r *redis.Client) {
	commands, err := r.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, "t", "x", 0)
		pipe.Incr(ctx, "t")
		pipe.Get(ctx, "t")
		return nil
	})
	says(err, "ERR value is not an integer")
	same(commands[2].(*redis.StringCmd).Val(), "x")
	_, err = r.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, "t", "y", 0)
		pipe.Do(ctx, "GET")
		return nil
	})
	says(err, "EXECABORT Transaction discarded")
	same(r.Get(ctx, "t").Val(), "x")
	err = r.Watch(ctx, func(tx *redis.Tx) error {
		must(r.Set(ctx, "t", "theirs", 0).Err())
		_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Set(ctx, "t", "mine", 0).Err() })
		return err
	}, "t")
	same(err, redis.TxFailedErr)
	// Those who are late try again.
	var all sync.WaitGroup
	for worker := 0; worker < 4; worker++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for done := 0; done < 100; {
				err := r.Watch(ctx, func(tx *redis.Tx) error {
					n, err := tx.Get(ctx, "n").Int()
					if err != nil && err != redis.Nil {
						return err
					}
					_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Set(ctx, "n", n+1, 0).Err() })
					return err
				}, "n")
				if err == nil {
					done++
				} else if !errors.Is(err, redis.TxFailedErr) {
					fail("%v", err)
				}
			}
		}()
	}
	all.Wait()
	same(r.Get(ctx, "n").Val(), "400")
}

func waiting(r *redis.Client) {
	for _, protocol := range []int{2, 3} {
		first := wait(r, protocol, func(c *redis.Conn) ([]string, error) { return c.BLPop(ctx, 0, "none", "l").Result() })
		second := wait(r, protocol, func(c *redis.Conn) ([]string, error) { return c.BRPop(ctx, 0, "l").Result() })
		same(r.RPush(ctx, "l", "a", "b").Val(), int64(2))
		same(ended(first), []string{"l", "a"})
		same(ended(second), []string{"l", "b"})
		move := wait(r, protocol, func(c *redis.Conn) (string, error) {
			return c.BLMove(ctx, "from", "over", "LEFT", "RIGHT", 0).Result()
		})
		push := wait(r, protocol, func(c *redis.Conn) (string, error) { return c.BRPopLPush(ctx, "over", "to", 0).Result() })
		must(r.RPush(ctx, "from", "x").Err())
		same([]string{ended(move), ended(push)}, []string{"x", "x"})
		least := wait(r, protocol, func(c *redis.Conn) (*redis.ZWithKey, error) { return c.BZPopMin(ctx, 0, "z").Result() })
		must(r.ZAdd(ctx, "z", redis.Z{Score: 2.5, Member: "a"}).Err())
		same(ended(least), &redis.ZWithKey{Key: "z", Z: redis.Z{Score: 2.5, Member: "a"}})
		read := wait(r, protocol, func(c *redis.Conn) ([]redis.XStream, error) {
			return c.XRead(ctx, &redis.XReadArgs{Streams: []string{"x", "$"}, Block: 0}).Result()
		})
		must(r.XAdd(ctx, &redis.XAddArgs{Stream: "x", ID: "1-1", Values: []string{"f", "v"}}).Err())
		messages := []redis.XMessage{{ID: "1-1", Values: map[string]any{"f": "v"}}}
		streams := ended(read)
		same(len(streams), 1)
		same(streams[0].Stream, "x")
		same(streams[0].Messages[0].Values, messages[0].Values)
		same(r.FlushAll(ctx).Val(), "OK")
	}
	started := time.Now()
	same(r.BLPop(ctx, time.Second, "none").Err(), redis.Nil)
	same(time.Since(started) >= time.Second, true)
	killed := wait(r, 3, func(c *redis.Conn) ([]string, error) { return c.BLPop(ctx, 0, "l").Result() })
	_, line, _ := strings.Cut(r.ClientList(ctx).Val(), "cmd=blpop")
	same(line != "", true)
	for _, line := range strings.Split(r.ClientList(ctx).Val(), "\n") {
		if strings.Contains(line, " cmd=blpop ") {
			id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
			same(r.Do(ctx, "CLIENT", "UNBLOCK", id, "ERROR").Val(), int64(1))
		}
	}
	_, err := killed()
	says(err, "UNBLOCKED client unblocked via CLIENT UNBLOCK")
}

func messages(r *redis.Client) {
	for _, protocol := range []int{2, 3} {
		listener := connect(func(o *redis.Options) { o.Protocol = protocol })
		talk := listener.Subscribe(ctx, "news", "many")
		must(talk.PSubscribe(ctx, "n?ws*"))
		for n := 0; n < 3; n++ {
			message, err := talk.Receive(ctx)
			must(err)
			same(message.(*redis.Subscription).Count, n+1)
		}
		same(r.Publish(ctx, "news", "one").Val(), int64(2))
		same(r.Publish(ctx, "newsletter", "two").Val(), int64(1))
		hear := func(pattern, channel, text string) {
			message, err := talk.ReceiveMessage(ctx)
			must(err)
			same([]string{message.Pattern, message.Channel, message.Payload}, []string{pattern, channel, text})
		}
		hear("", "news", "one")
		hear("n?ws*", "news", "one")
		hear("n?ws*", "newsletter", "two")
		shards := listener.SSubscribe(ctx, "shard")
		_, err := shards.Receive(ctx)
		must(err)
		same(r.SPublish(ctx, "shard", "three").Val(), int64(1))
		message, err := shards.ReceiveMessage(ctx)
		must(err)
		same(message.Payload, "three")
		same(r.PubSubNumSub(ctx, "news", "none").Val(), map[string]int64{"news": 1, "none": 0})
		same(r.PubSubNumPat(ctx).Val(), int64(1))
		go func() {
			for n := 0; n < 3000; n++ {
				r.Publish(ctx, "many", n)
			}
		}()
		for n := 0; n < 3000; n++ {
			hear("", "many", strconv.Itoa(n))
		}
		must(r.ConfigSet(ctx, "notify-keyspace-events", "KEA").Err())
		must(talk.PSubscribe(ctx, "__key*@0__:*"))
		_, err = talk.Receive(ctx)
		must(err)
		must(r.Set(ctx, "k", 1, 0).Err())
		must(r.Del(ctx, "k").Err())
		for _, event := range []string{"set", "del"} {
			hear("__key*@0__:*", "__keyspace@0__:k", event)
			hear("__key*@0__:*", "__keyevent@0__:"+event, "k")
		}
		must(r.ConfigSet(ctx, "notify-keyspace-events", "").Err())
		talk.Close()
		shards.Close()
		listener.Close()
		until(func() bool { return r.Publish(ctx, "news", "nobody").Val() == 0 })
	}
}

func users(r *redis.Client) {
	defer r.ACLDelUser(ctx, "ann")
	must(r.ACLSetUser(ctx, "ann", "on", ">secret", "~app:*", "&news*", "+@read", "+@connection", "+set", "+publish", "+multi", "+exec").Err())
	for _, protocol := range []int{2, 3} {
		as := func(password string) *redis.Client {
			return connect(func(o *redis.Options) { o.Protocol, o.Username, o.Password = protocol, "ann", password })
		}
		says(as("guess").Ping(ctx).Err(), "WRONGPASS invalid username-password pair")
		ann := as("secret")
		same(ann.Set(ctx, "app:1", "x", 0).Val(), "OK")
		says(ann.Get(ctx, "other").Err(), "NOPERM No permissions to access a key")
		says(ann.Del(ctx, "app:1").Err(), "NOPERM User ann has no permissions to run the 'del' command")
		says(ann.Publish(ctx, "secret", 1).Err(), "NOPERM No permissions to access a channel")
		_, err := ann.TxPipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Set(ctx, "other", 1, 0).Err() })
		says(err, "EXECABORT Transaction discarded")
		ann.Close()
	}
	same(r.ACLDryRun(ctx, "ann", "get", "app:1").Val(), "OK")
	same(len(r.ACLLog(ctx, 10).Val()) >= 4, true)
	ann := connect(func(o *redis.Options) { o.Username, o.Password, o.PoolSize = "ann", "secret", 1 })
	must(ann.Ping(ctx).Err())
	same(r.ACLDelUser(ctx, "ann").Val(), int64(1))
	same(ann.Ping(ctx).Err() != nil, true)
	says(ann.Ping(ctx).Err(), "WRONGPASS")
	ann.Close()
	must(r.ConfigSet(ctx, "requirepass", "s3cret").Err())
	friend := connect(func(o *redis.Options) { o.Password = "s3cret" })
	must(friend.Ping(ctx).Err())
	stranger := connect(func(o *redis.Options) {})
	says(stranger.Get(ctx, "k").Err(), "NOAUTH")
	stranger.Close()
	must(friend.ConfigSet(ctx, "requirepass", "").Err())
	friend.Close()
}

func main() {
	tests := []struct {
		name string
		run  func(*redis.Client)
	}{
		{"values", values}, {"pipelines", pipelines}, {"transactions", transactions},
		{"clients that wait", waiting}, {"messages and events of keys", messages}, {"users", users},
	}
	for _, test := range tests {
		r := redis.NewClient(options())
		must(r.FlushAll(ctx).Err())
		test.run(r)
		r.Close()
		fmt.Println("ok", test.name)
	}
}
