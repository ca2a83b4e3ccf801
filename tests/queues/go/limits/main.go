package main

import (
	_ "github.com/go-redis/redis_rate/v10"
	_ "github.com/go-redsync/redsync/v4"
	_ "github.com/go-redsync/redsync/v4/redis/goredis/v9"
)

func main() {}
