// A queue of asynq under the harness of crates/testkit/src/queues, which kills its processes and the server.
//
//	asynq add|work|watch HOST PORT SEED JOBS HOLD NEXT DONE hasty|patient
//
// What is written on standard output and read from standard input is told in crates/testkit/src/queues/mod.rs.
//
// Tasks are drawn from the seed: plain ones in queues of three weights, some for later, some that fail once or
// twice, and unique ones in a queue that is paused until everything is added, so that each second of a pair
// must be refused.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

var weights = map[string]int{"high": 6, "default": 3, "low": 1, unique: 2}

const (
	unique = "unique"
	// Between two tries where the server is away.
	moment = 50 * time.Millisecond
)

// What the command line says.
var (
	role, address          = os.Args[1], os.Args[2] + ":" + os.Args[3]
	seed, jobs, hold, next = number(4), number(5), number(6), number(7)
	skipped                = map[int]bool{}
)

func number(at int) int {
	n, err := strconv.Atoi(os.Args[at])
	check(err)
	return n
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var speech sync.Mutex

func tell(format string, values ...any) {
	speech.Lock()
	defer speech.Unlock()
	fmt.Fprintf(os.Stdout, format+"\n", values...)
}

// Calls back with every line that the harness writes, and ends the process when there is nobody to write.
func listen(hear func(words []string)) {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		hear(strings.Fields(lines.Text()))
	}
	os.Exit(0)
}

// A payload, and all that a worker must know of a task.
type plan struct {
	ID    string
	Fails int
	Hold  bool
}

// The task of a unit, with where and when it goes.
func task(unit int) (plan, []asynq.Option) {
	chance := rand.New(rand.NewSource(int64(seed)<<32 + int64(unit)))
	it := plan{ID: fmt.Sprintf("u%d", unit)}
	options := []asynq.Option{asynq.TaskID(it.ID), asynq.Retention(24 * time.Hour), asynq.MaxRetry(1000)}
	if unit%hold == seed%hold {
		it.Hold = true
		return it, options
	}
	switch kind := chance.Intn(20); {
	case kind < 4:
		options = append(options, asynq.Queue("high"))
	case kind < 6:
		options = append(options, asynq.Queue("low"))
	case kind < 10:
		options = append(options, asynq.ProcessIn(time.Duration(chance.Intn(2000))*time.Millisecond))
	case kind < 13:
		it.Fails = 1 + chance.Intn(2)
	case kind < 15:
		options = append(options, asynq.Queue(unique), asynq.Unique(time.Hour))
	}
	return it, options
}

func isUnique(options []asynq.Option) bool {
	for _, option := range options {
		if option.Type() == asynq.UniqueOpt {
			return true
		}
	}
	return false
}

// Adds until the server has answered: a task that is there already has been added before.
func enqueue(client *asynq.Client, it plan, options []asynq.Option) error {
	payload, err := json.Marshal(it)
	check(err)
	for {
		_, err := client.Enqueue(asynq.NewTask("job", payload), options...)
		if err == nil || errors.Is(err, asynq.ErrTaskIDConflict) || errors.Is(err, asynq.ErrDuplicateTask) {
			return err
		}
		tell("note %q", err.Error())
		time.Sleep(moment)
	}
}

func add() {
	client := asynq.NewClient(asynq.RedisClientOpt{Addr: address})
	inspector := asynq.NewInspector(asynq.RedisClientOpt{Addr: address})
	if next == 0 {
		// One that was killed has paused it already.
		_ = inspector.PauseQueue(unique)
	}
	var turn sync.Mutex
	isPaused := false
	go func() {
		for unit := next; unit < jobs; unit++ {
			if skipped[unit] {
				continue
			}
			turn.Lock()
			it, options := task(unit)
			_ = enqueue(client, it, options)
			if isUnique(options) {
				again := append([]asynq.Option{}, options...)
				again[0] = asynq.TaskID(it.ID + "-again")
				if err := enqueue(client, it, again); !errors.Is(err, asynq.ErrDuplicateTask) {
					tell("wrong %s was added a second time: %v", it.ID, err)
				}
			}
			tell("added %d %s", unit, it.ID)
			turn.Unlock()
		}
		for {
			err := inspector.UnpauseQueue(unique)
			info, lost := inspector.GetQueueInfo(unique)
			if err == nil || lost == nil && !info.Paused {
				break
			}
			time.Sleep(moment)
		}
		tell("all")
	}()
	listen(func(words []string) {
		switch {
		case words[0] == "pause" && !isPaused:
			isPaused = true
			turn.Lock()
			tell("paused")
		case words[0] == "go" && isPaused:
			isPaused = false
			turn.Unlock()
		}
	})
}

// The connection of a worker, which sees when the server has noted the end of a task, or a failure: the library
// has no other sign of it.
type watched struct{}

func (watched) MakeRedisClient() interface{} {
	client := redis.NewClient(&redis.Options{Addr: address})
	client.AddHook(ears{})
	return client
}

type ears struct{}

func (ears) DialHook(next redis.DialHook) redis.DialHook { return next }

func (ears) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (ears) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := next(ctx, command)
		args := command.Args()
		keys := keysOf(args)
		if err != nil || len(keys) < 2 || len(args) <= 3+len(keys) {
			return err
		}
		if strings.HasSuffix(keys[0], ":pending") {
			if found := idOf.FindStringSubmatch(fmt.Sprint(command)); found != nil {
				tell("taken %s", found[1])
			}
		} else if hasSuffix(keys, ":active") && hasSuffix(keys, ":lease") {
			tell("kept %s", args[3+len(keys)])
		}
		return nil
	}
}

// The id in a plan, in whatever it is wrapped.
var idOf = regexp.MustCompile(`\\?"ID\\?":\\?"(u\d+)`)

// The keys of a script: one that takes a task begins with those that are pending, and one that ends a task names
// it in its first argument, and takes it off those that are active and leased.
func keysOf(args []any) (keys []string) {
	if name := fmt.Sprint(args[0]); name != "evalsha" && name != "eval" {
		return nil
	}
	count, err := strconv.Atoi(fmt.Sprint(args[2]))
	if err != nil || len(args) < 3+count {
		return nil
	}
	for _, key := range args[3 : 3+count] {
		keys = append(keys, fmt.Sprint(key))
	}
	return keys
}

func hasSuffix(keys []string, suffix string) bool {
	for _, key := range keys {
		if strings.HasSuffix(key, suffix) {
			return true
		}
	}
	return false
}

func handle(ctx context.Context, task *asynq.Task) error {
	var it plan
	check(json.Unmarshal(task.Payload(), &it))
	tries, _ := asynq.GetRetryCount(ctx)
	if it.Hold && tries == 0 {
		tell("begin %s hold", it.ID)
		select {}
	}
	tell("begin %s", it.ID)
	time.Sleep(time.Duration(len(it.ID)%4) * time.Millisecond)
	if tries < it.Fails {
		tell("fail %s", it.ID)
		return errors.New("as planned")
	}
	tell("done %s", it.ID)
	return nil
}

func work() {
	server := asynq.NewServer(watched{}, asynq.Config{
		Concurrency:              10,
		Queues:                   weights,
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return 0 },
		DelayedTaskCheckInterval: 200 * time.Millisecond,
		LogLevel:                 asynq.FatalLevel,
	})
	for {
		// It asks the server once, which may be away.
		if err := server.Start(asynq.HandlerFunc(handle)); err == nil {
			break
		} else if !strings.Contains(err.Error(), "connect") {
			check(err)
		}
		time.Sleep(moment)
	}
	listen(func([]string) {})
}

// All that the queues together know.
func totals(inspector *asynq.Inspector) (sum asynq.QueueInfo, err error) {
	for name := range weights {
		it, err := inspector.GetQueueInfo(name)
		if errors.Is(err, asynq.ErrQueueNotFound) {
			continue
		}
		if err != nil {
			return sum, err
		}
		sum.Pending += it.Pending
		sum.Active += it.Active
		sum.Scheduled += it.Scheduled
		sum.Retry += it.Retry
		sum.Aggregating += it.Aggregating
		sum.Archived += it.Archived
		sum.Completed += it.Completed
		sum.ProcessedTotal += it.ProcessedTotal
		sum.FailedTotal += it.FailedTotal
	}
	return sum, nil
}

func status(inspector *asynq.Inspector) {
	it := until(func() (asynq.QueueInfo, error) { return totals(inspector) })
	left := it.Pending + it.Active + it.Scheduled + it.Retry + it.Aggregating
	tell("status %d %d %d pending=%d active=%d scheduled=%d retry=%d",
		it.Completed, left, it.Archived, it.Pending, it.Active, it.Scheduled, it.Retry)
}

// Lets go the leases of the killed, or all of them: else they last a minute.
func revive(client *redis.Client, ids []string) {
	ctx := context.Background()
	for name := range weights {
		lease := "asynq:{" + name + "}:lease"
		those := ids
		if len(ids) == 1 && ids[0] == "*" {
			those = until(func() ([]string, error) { return client.ZRange(ctx, lease, 0, -1).Result() })
			for _, id := range those {
				tell("again %s", id)
			}
		}
		for _, id := range those {
			until(func() (int64, error) { return client.ZAddXX(ctx, lease, redis.Z{Score: 1, Member: id}).Result() })
		}
	}
	tell("revived")
}

// Asks again while the server is away.
func until[T any](ask func() (T, error)) T {
	for {
		answer, err := ask()
		if err == nil {
			return answer
		}
		time.Sleep(moment)
	}
}

func account(inspector *asynq.Inspector, client *redis.Client) {
	const page = 1000
	sum, err := totals(inspector)
	check(err)
	told := 0
	for name := range weights {
		for n := 1; ; n++ {
			tasks, err := inspector.ListCompletedTasks(name, asynq.PageSize(page), asynq.Page(n))
			if errors.Is(err, asynq.ErrQueueNotFound) {
				break
			}
			check(err)
			for _, task := range tasks {
				var it plan
				check(json.Unmarshal(task.Payload, &it))
				if task.ID != it.ID {
					tell("wrong %s has the task of %s", task.ID, it.ID)
				}
				if task.Retried < it.Fails {
					tell("wrong %s was tried again %d times, and not %d", task.ID, task.Retried, it.Fails)
				}
				tell("job %s 1 %d", task.ID, task.Retried-it.Fails)
				told++
			}
			if len(tasks) < page {
				break
			}
		}
	}
	if ends := sum.ProcessedTotal - sum.FailedTotal; ends != told {
		tell("wrong %d tasks were completed, and the queues have counted %d", told, ends)
	}
	keys, err := client.Keys(context.Background(), "asynq:*:unique:*").Result()
	check(err)
	if len(keys) > 0 {
		tell("wrong locks of unique tasks are left: %v", keys[0])
	}
	tell("accounted")
}

func watch() {
	inspector := asynq.NewInspector(asynq.RedisClientOpt{Addr: address})
	client := redis.NewClient(&redis.Options{Addr: address})
	listen(func(words []string) {
		switch words[0] {
		case "status":
			status(inspector)
		case "revive":
			revive(client, words[1:])
		case "account":
			account(inspector, client)
		}
	})
}

func main() {
	for _, unit := range strings.Split(os.Args[8], ",") {
		if n, err := strconv.Atoi(unit); err == nil {
			skipped[n] = true
		}
	}
	map[string]func(){"add": add, "work": work, "watch": watch}[role]()
}
