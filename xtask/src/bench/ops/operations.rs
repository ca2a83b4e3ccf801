//! The operations, and the data that they work on.

/// One operation.
pub(super) struct Operation {
    pub(super) name: &'static str,
    /// What is there beforehand, by its name in [`FILLS`]; empty: nothing.
    pub(super) data: &'static str,
    /// Its words. `#` is a number of twelve digits below `keys`, drawn anew for each request; `100B`, `300B`
    /// and `10KB` are values. `[words]*9` at its end are nine times these words. Requests with ` ; ` between
    /// them are sent one after the other, with the number that was drawn for the first.
    pub(super) request: &'static str,
    pub(super) keys: u64,
    /// The operation takes away what it works on, so the data is made again for each turn.
    pub(super) consumes: bool,
}

const fn of(name: &'static str, data: &'static str, request: &'static str, keys: u64) -> Operation {
    Operation { name, data, request, keys, consumes: false }
}

/// The same request every time.
const fn one(name: &'static str, data: &'static str, request: &'static str) -> Operation {
    of(name, data, request, 0)
}

const fn consuming(name: &'static str, data: &'static str, request: &'static str, keys: u64) -> Operation {
    Operation { consumes: true, ..of(name, data, request, keys) }
}

/// Numbers of which hardly one is drawn twice.
const ANY: u64 = 1_000_000_000_000;

const MSET_10: &str = "MSET key:# 100B key:# 100B key:# 100B key:# 100B key:# 100B \
    key:# 100B key:# 100B key:# 100B key:# 100B key:# 100B";

const HMGET_12: &str = "HMGET f:# flag_1 flag_5 flag_9 flag_13 flag_17 flag_21 \
    flag_25 flag_29 flag_33 flag_37 flag_41 flag_45";
const HSET_12: &str = "HSET f:# flag_1 1 flag_5 5 flag_9 9 flag_13 3 flag_17 7 flag_21 1 \
    flag_25 5 flag_29 9 flag_33 3 flag_37 7 flag_41 1 flag_45 5";

/// A dozen such entries fill a node of a stream.
const XADD_JSON: &str = concat!(
    r#"XADD sj MAXLEN ~ 1000 * data {"order":#,"customer":"Ada#Lovelace","items":["#,
    r#"{"sku":"herring-12","count":3},{"sku":"anchovy-7"}],"address":{"street":"12#Harbour-Road","#,
    r#""city":"Lisbon","zip":"1100-148"},"note":"leave-at-the-door","paid":true,"total":#}"#,
);

/// A job that is done at once, behind a full node of others.
const XADD_AND_XDEL: &str =
    "EVAL return(redis.call('XDEL',KEYS[1],redis.call('XADD',KEYS[1],'*','sensor','17','temp','22'))) 1 st";

#[rustfmt::skip]
pub(super) const OPERATIONS: &[Operation] = &[
    of("get hit", "strings", "GET key:#", 200_000),
    of("get miss", "strings", "GET nokey:#", 200_000),
    of("set 100B", "", "SET key:# 100B", 200_000),
    of("set EX", "", "SET skey:# 100B EX 3600", 200_000),
    of("setex short", "", "SET xkey:# 100B PX 500", 200_000),
    of("set NX exists", "strings", "SET key:# x NX", 200_000),
    of("set GET", "strings", "SET key:# 100B GET", 200_000),
    of("mget 10", "strings", "MGET key:# key:# key:# key:# key:# key:# key:# key:# key:# key:#", 200_000),
    of("mset 10", "", MSET_10, 200_000),
    of("exists", "strings", "EXISTS key:#", 200_000),
    of("ttl", "strings", "TTL key:#", 200_000),
    of("expire", "strings", "EXPIRE key:# 1000", 200_000),
    consuming("del", "strings", "DEL key:#", 200_000),
    of("incr", "ints", "INCR int:#", 200_000),
    of("incrby", "ints", "INCRBY int:# 7", 200_000),
    of("append", "", "APPEND ap:# ab", 20_000),
    of("getrange", "strings", "GETRANGE key:# 10 20", 200_000),
    of("strlen", "strings", "STRLEN key:#", 200_000),
    of("get 10KB", "big", "GET big:#", 2_000),
    of("set 10KB", "", "SET big:# 10KB", 2_000),
    of("type", "strings", "TYPE key:#", 200_000),
    of("hget small", "hash-10", "HGET h:# field5", 20_000),
    of("hset small", "hash-10", "HSET h:# field5 changed", 20_000),
    of("hmget 5", "hash-10", "HMGET h:# field1 field3 field5 field7 field9", 20_000),
    of("hgetall 10", "hash-10", "HGETALL h:#", 20_000),
    of("hset new 5", "", "HSET hn:# name alice mail a@b.c age 33 city rome plan free", 200_000),
    of("hincrby", "hash-10", "HINCRBY h:# count 1", 20_000),
    of("hgetall 1000", "hash-1000", "HGETALL hk:#", 100),
    of("hget large", "hash-1000", "HGET hk:000000000005 f:#", 1_000),
    of("hscan", "hash-1000", "HSCAN hk:# 0 COUNT 100", 100),
    of("hrandfield", "hash-1000", "HRANDFIELD hk:# 5", 100),
    of("lpush", "", "LPUSH q:# 100B", 1_000),
    one("rpush one list", "", "RPUSH onelist 100B"),
    of("lrange 10", "list-600", "LRANGE l:# 0 9", 300),
    of("lrange 100", "list-600", "LRANGE l:# 0 99", 300),
    of("lrange 600", "list-600", "LRANGE l:# 0 599", 300),
    of("lindex mid", "list-600", "LINDEX l:# 300", 300),
    of("lset mid", "list-600", "LSET l:# 300 changed", 300),
    of("lpos", "list-600", "LPOS l:# element:300", 300),
    of("rpoplpush", "list-600", "RPOPLPUSH l:# l:#", 300),
    of("ltrim", "list-600", "LTRIM l:# 0 599", 300),
    of("sadd", "", "SADD s:# m:#", 1_000),
    of("sismember", "set-1000", "SISMEMBER s:000000000007 m:#", 1_000),
    of("smembers 1000", "set-1000", "SMEMBERS s:#", 100),
    of("srandmember", "set-1000", "SRANDMEMBER s:#", 100),
    one("sinter 2x300", "sets-300", "SINTER sa:1 sa:2"),
    one("sunion 2x300", "sets-300", "SUNION sa:1 sa:2"),
    one("sinter ints", "int-sets-400", "SINTER si:1 si:2"),
    one("sintercard", "sets-300", "SINTERCARD 2 sa:1 sa:2"),
    one("sdiff", "sets-300", "SDIFF sa:1 sa:2"),
    consuming("spop", "set-1000", "SPOP s:#", 100),
    of("zadd update", "zset-1000", "ZADD z:000000000007 # m:#", 1_000),
    of("zadd big", "zset-300k", "ZADD board # player:#", 300_000),
    of("zincrby big", "zset-300k", "ZINCRBY board 10 player:#", 300_000),
    of("zscore big", "zset-300k", "ZSCORE board player:#", 300_000),
    of("zrank big", "zset-300k", "ZRANK board player:#", 300_000),
    one("zrange 10 big", "zset-300k", "ZREVRANGE board 0 9 WITHSCORES"),
    of("zrange 100", "zset-1000", "ZRANGE z:# 0 99", 100),
    of("zrangebyscore", "zset-1000", "ZRANGEBYSCORE z:# 5000 6000 LIMIT 0 20", 100),
    of("zcount", "zset-1000", "ZCOUNT z:# 1000 9000", 100),
    of("zrevrank", "zset-1000", "ZREVRANK z:000000000007 m:#", 1_000),
    of("zadd small new", "", "ZADD zs:# # m", 200_000),
    one("zunion", "zset-1000", "ZUNION 2 z:000000000001 z:000000000002"),
    consuming("zpopmin", "zset-300k", "ZPOPMIN board", 0),
    one("xadd", "stream", "XADD st * sensor 17 temp 22 unit C"),
    one("xadd maxlen", "", "XADD sm MAXLEN ~ 1000 * sensor 17 temp 22 unit C"),
    one("xrange 10", "stream", "XRANGE st - + COUNT 10"),
    one("xrevrange 10", "stream", "XREVRANGE st + - COUNT 10"),
    one("xlen", "stream", "XLEN st"),
    one("geosearch", "geo", "GEOSEARCH geo FROMLONLAT 0 45 BYRADIUS 50 km ASC COUNT 10"),
    one("geodist", "geo", "GEODIST geo p5 p17"),
    of("geoadd", "geo", "GEOADD geo 1.5 45.5 p#", 20_000),
    one("setbit", "bits", "SETBIT bits 4711 1"),
    one("getbit", "bits", "GETBIT bits 4711"),
    one("bitcount 1MB", "bits", "BITCOUNT bits"),
    one("bitcount range", "bits", "BITCOUNT bits 100 200"),
    one("bitfield", "bits", "BITFIELD bits INCRBY u8 4711 1 GET u4 9"),
    of("pfadd", "sketches", "PFADD hll:1 e#", 100_000),
    one("pfcount", "sketches", "PFCOUNT hll:1"),
    one("pfcount 4", "sketches", "PFCOUNT hll:0 hll:1 hll:2 hll:3"),
    one("scan", "strings", "SCAN 0 COUNT 100"),
    of("sort 600", "list-600", "SORT l:# ALPHA LIMIT 0 10", 300),
    of("sort by 600", "list-600", "SORT l:# BY weight:* LIMIT 0 10", 300),
    of("object encoding", "strings", "OBJECT ENCODING key:#", 200_000),
    one("ping", "", "PING"),
    one("config get", "", "CONFIG GET maxmemory"),
    of("copy", "strings", "COPY key:# kopy:# REPLACE", 200_000),
    of("set keepttl", "strings", "SET key:# 100B KEEPTTL", 200_000),
    of("memory usage", "strings", "MEMORY USAGE key:#", 200_000),
    one("client setname", "", "CLIENT SETNAME x"),
    one("dbsize", "strings", "DBSIZE"),
    of("mget miss 10", "strings", "MGET no:# no:# no:# no:# no:# no:# no:# no:# no:# no:#", 200_000),
    of("getdel", "", "GETDEL key:#", 200_000),
    of("getex", "strings", "GETEX key:# EX 1000", 200_000),
    of("setrange", "strings", "SETRANGE key:# 10 abcdef", 200_000),
    of("incrbyfloat", "ints", "INCRBYFLOAT int:# 1.5", 200_000),
    of("hmget 1", "hash-10", "HMGET h:# field3", 20_000),
    of("hdel", "hash-10", "HDEL h:# field#", 20_000),
    of("hkeys", "hash-10", "HKEYS h:#", 20_000),
    of("hincrbyfloat", "hash-10", "HINCRBYFLOAT h:# price 0.5", 20_000),
    of("hexpire", "hash-10", "HEXPIRE h:# 1000 FIELDS 1 field5", 20_000),
    of("linsert", "list-600", "LINSERT l:# BEFORE element:300 element:300", 300),
    of("lrem none", "list-600", "LREM l:# 0 nothing", 300),
    of("lpos last", "list-600", "LPOS l:# element:599 RANK -1", 300),
    of("rpoplpush of 8", "list-8", "RPOPLPUSH u:# u:#", 20_000),
    of("lrange of 8", "list-8", "LRANGE u:# 0 -1", 20_000),
    of("lindex of 8", "list-8", "LINDEX u:# 5", 20_000),
    of("sismember of 8", "set-8", "SISMEMBER v:# 123e4567-e89b-12d3-a456-426614174005", 20_000),
    of("hget of 5", "hash-5", "HGET w:# 123e4567-e89b-12d3-a456-426614174003", 20_000),
    of("hset of 5", "hash-5", "HSET w:# 123e4567-e89b-12d3-a456-426614174003 changed", 20_000),
    of("zincrby of 8", "zset-8", "ZINCRBY x:# 3 123e4567-e89b-12d3-a456-426614174005", 20_000),
    of("zrange of 8", "zset-8", "ZRANGE x:# 0 -1 WITHSCORES", 20_000),
    of("rpoplpush of 24", "list-24", "RPOPLPUSH u:# u:#", 20_000),
    of("lindex of 24", "list-24", "LINDEX u:# 15", 20_000),
    of("sismember of 24", "set-24", "SISMEMBER v:# 123e4567-e89b-12d3-a456-426614174015", 20_000),
    of("sismember none of 24", "set-24", "SISMEMBER v:# 123e4567-e89b-12d3-a456-426614174099", 20_000),
    of("sadd of 24", "set-24", "SADD v:# 123e4567-e89b-12d3-a456-426614174015", 20_000),
    of("hget of 20", "hash-20", "HGET w:# field:13", 20_000),
    of("hget none of 20", "hash-20", "HGET w:# none", 20_000),
    of("hset of 20", "hash-20", "HSET w:# field:13 changed", 20_000),
    of("hincrby of 20", "hash-20", "HINCRBY w:# count 1", 20_000),
    of("hget count beside 400B", "hash-400B", "HGET e:# count", 20_000),
    of("hget none beside 400B", "hash-400B", "HGET e:# none", 20_000),
    of("hget 400B", "hash-400B", "HGET e:# data", 20_000),
    of("hset 100B for 400B", "hash-400B", "HSET e:# data 100B", 20_000),
    of("hincrby beside 400B", "hash-400B", "HINCRBY e:# count 1", 20_000),
    of("hset new beside 400B", "hash-400B", "HSET e:# at #", 20_000),
    of("hget count beside 1500B", "hash-1500B", "HGET e:# count", 20_000),
    of("hget 1500B", "hash-1500B", "HGET e:# data", 20_000),
    of("hincrby beside 1500B", "hash-1500B", "HINCRBY e:# count 1", 20_000),
    of("hset new beside 1500B", "hash-1500B", "HSET e:# at #", 20_000),
    of("zincrby of 24", "zset-24", "ZINCRBY x:# 3 123e4567-e89b-12d3-a456-426614174015", 20_000),
    of("sismember of 44", "set-44", "SISMEMBER v:# 0000000000000030", 20_000),
    of("hget of 50", "hash-50", "HGET f:# flag_31", 20_000),
    of("hget none of 50", "hash-50", "HGET f:# none_3", 20_000),
    of("hmget 12 of 50", "hash-50", HMGET_12, 20_000),
    of("hset 12 of 50", "hash-50", HSET_12, 20_000),
    of("hset of 50", "hash-50", "HSET f:# flag_31 off", 20_000),
    of("hincrby of 50", "hash-50", "HINCRBY f:# flag_7 1", 20_000),
    of("hgetall of 50", "hash-50", "HGETALL f:#", 20_000),
    of("hlen of 50", "hash-50", "HLEN f:#", 20_000),
    of("sismember of 90", "set-90", "SISMEMBER y:# word31", 20_000),
    of("sismember none of 90", "set-90", "SISMEMBER y:# none31", 20_000),
    of("sadd of 90", "set-90", "SADD y:# word31", 20_000),
    of("smembers of 90", "set-90", "SMEMBERS y:#", 20_000),
    of("sinter of 90", "set-90", "SINTER y:# y:#", 20_000),
    of("sunion of 90", "set-90", "SUNION y:# y:#", 20_000),
    of("sdiff of 90", "set-90", "SDIFF y:# y:#", 20_000),
    of("smove of 90", "set-90", "SMOVE y:# y:# word31", 20_000),
    of("rpoplpush of 50", "list-50", "RPOPLPUSH q:# q:#", 20_000),
    of("rpoplpush of 5 jobs", "jobs-5", "RPOPLPUSH j:# j:#", 20_000),
    of("rpop lpush of 5 jobs", "jobs-5", "RPOP j:# ; LPUSH j:# 300B", 20_000),
    of("lpop rpush of 5 jobs", "jobs-5", "LPOP j:# ; RPUSH j:# 300B", 20_000),
    of("lpush ltrim of 5 jobs", "jobs-5", "LPUSH j:# 300B ; LTRIM j:# 0 4", 20_000),
    of("hget of 10x150B", "hash-10x150B", "HGET g:# field:7", 20_000),
    of("hincrby of 10x150B", "hash-10x150B", "HINCRBY g:# count 1", 20_000),
    of("hset hdel of 10x150B", "hash-10x150B", "HSET g:# new 100B ; HDEL g:# new", 20_000),
    of("sadd srem of 90", "set-90", "SADD y:# another ; SREM y:# another", 20_000),
    of("setrange of 1200B", "text-1200B", "SETRANGE t:# 600 changed", 20_000),
    of("lindex of 50", "list-50", "LINDEX q:# 31", 20_000),
    of("lset of 50", "list-50", "LSET q:# 31 word30", 20_000),
    of("lrange of 50", "list-50", "LRANGE q:# 0 -1", 20_000),
    of("scard of 24", "set-24", "SCARD v:#", 20_000),
    of("hset 16 new", "", "HSET nh:# [field:# #]*16", ANY),
    of("hset 1000 new", "", "HSET nh:# [field:# #]*1000", ANY),
    of("sadd 200 new", "", "SADD ns:# [member:#]*200", ANY),
    of("sadd 1000 new", "", "SADD ns:# [member:#]*1000", ANY),
    of("zadd 200 new", "", "ZADD nz:# [# member:#]*200", ANY),
    of("zadd 1000 new", "", "ZADD nz:# [#.25 member:#]*1000", ANY),
    of("scard of 44", "set-44", "SCARD v:#", 20_000),
    of("srandmember of 44", "set-44", "SRANDMEMBER v:#", 20_000),
    consuming("ltrim integers", "long-lists", "LTRIM numbers 1 -2", 0),
    one("lpos near an end", "long-lists", "LPOS long element:99990 RANK -1"),
    consuming("lrem near an end", "long-lists", "LREM long -1 same", 0),
    one("linsert near an end", "long-lists", "LINSERT long BEFORE element:20 element"),
    of("lmove", "list-600", "LMOVE l:# l:# LEFT RIGHT", 300),
    of("llen", "list-600", "LLEN l:#", 300),
    of("smismember 10", "set-1000", "SMISMEMBER s:000000000007 m:# m:# m:# m:# m:# m:# m:# m:# m:# m:#", 1_000),
    of("srem", "set-1000", "SREM s:000000000007 m:#", 1_000),
    of("smove", "set-1000", "SMOVE s:000000000007 s:000000000008 m:#", 1_000),
    one("sdiffstore", "sets-300", "SDIFFSTORE out sa:1 sa:2"),
    of("zrangebylex", "zset-1000", "ZRANGEBYLEX z:# - + LIMIT 0 10", 100),
    of("zmscore 5", "zset-1000", "ZMSCORE z:000000000007 m:# m:# m:# m:# m:#", 1_000),
    of("zincrby", "zset-1000", "ZINCRBY z:000000000007 1 m:#", 1_000),
    one("zinter", "zset-1000", "ZINTER 2 z:000000000001 z:000000000002"),
    one("zinterstore", "zset-1000", "ZINTERSTORE out 2 z:000000000001 z:000000000002"),
    of("zrandmember", "zset-1000", "ZRANDMEMBER z:# 5", 100),
    one("zdiff", "zset-1000", "ZDIFF 2 z:000000000001 z:000000000002"),
    of("zscan", "zset-1000", "ZSCAN z:# 0 COUNT 10", 100),
    of("zadd to one score", "zset-equal", "ZADD words 0 w:#", 200_000),
    of("zrank in one score", "zset-equal", "ZRANK words w:#", 200_000),
    of("zincrby out of one score", "zset-equal", "ZINCRBY words 1 w:#", 200_000),
    of("zadd among few scores", "zset-few", "ZADD grades:000000000007 3 m:#", 1_000),
    of("zincrby among few scores", "zset-few", "ZINCRBY grades:# 1 m:000000000007", 100),
    of("zrem and zadd", "zset-few", "ZREM grades:# m:000000000007", 100),
    one("xread", "stream", "XREAD COUNT 10 STREAMS st 0"),
    one("xinfo stream", "stream", "XINFO STREAM st"),
    of("xadd id", "", "XADD s:# * a 1", 1_000),
    of("xadd json", "", XADD_JSON, ANY),
    one("xadd and xdel", "stream", XADD_AND_XDEL),
    one("xread nothing", "stream", "XREAD COUNT 10 STREAMS st $"),
    one("xtrim", "stream", "XTRIM st MAXLEN 20000"),
    one("xpending", "stream-group", "XPENDING st g"),
    one("xautoclaim", "stream-group", "XAUTOCLAIM st g c 1000000 0 COUNT 10"),
    one("geopos", "geo", "GEOPOS geo p5 p17"),
    one("geohash", "geo", "GEOHASH geo p5 p17"),
    one("geosearch box", "geo", "GEOSEARCH geo FROMLONLAT 0 45 BYBOX 100 100 km ASC"),
    one("geosearch any", "geo", "GEOSEARCH geo FROMLONLAT 0 45 BYRADIUS 5000 km COUNT 10 ANY"),
    one("geosearch wide", "geo", "GEOSEARCH geo FROMLONLAT 0 45 BYRADIUS 500 km ASC COUNT 10 WITHDIST"),
    one("bitpos", "bits", "BITPOS bits 1 200000"),
    one("bitcount of 4MB part", "long-bits", "BITCOUNT longbits 100 200"),
    one("bitpos of 4MB near", "long-bits", "BITPOS longbits 0"),
    one("sintercard limit", "like-sets", "SINTERCARD 2 like:0 like:1 LIMIT 10"),
    one("zintercard limit", "like-sets", "ZINTERCARD 2 like:0 like:1 LIMIT 10"),
    one("bitop and", "bits", "BITOP AND out bits bits2"),
    one("bitop not", "bits", "BITOP NOT out bits"),
    of("pfadd new", "", "PFADD hll:# e#", 1_000),
    one("pfmerge", "sketches", "PFMERGE out hll:0 hll:1 hll:2 hll:3"),
    one("pfcount small 4", "small-sketches", "PFCOUNT hll:0 hll:1 hll:2 hll:3"),
    one("echo", "", "ECHO hello"),
    one("client id", "", "CLIENT ID"),
    one("client info", "", "CLIENT INFO"),
    one("command count", "", "COMMAND COUNT"),
    one("info keyspace", "strings", "INFO keyspace"),
    one("time", "", "TIME"),
    one("randomkey", "strings", "RANDOMKEY"),
    of("touch", "strings", "TOUCH key:#", 200_000),
    of("persist", "strings", "PERSIST key:#", 200_000),
];

/// Sends one request of the data.
type Send<'s> = &'s mut dyn FnMut(&[String]) -> Result<(), String>;
type Fill = fn(Send<'_>) -> Result<(), String>;

pub(super) const FILLS: &[(&str, Fill)] = &[
    ("strings", |send| keyed(send, 200_000, |n| words(["SET".into(), format!("key:{n}"), "v".repeat(100)]))),
    ("ints", |send| keyed(send, 200_000, |n| words(["SET".into(), format!("int:{n}"), plain(n)]))),
    ("big", |send| keyed(send, 2_000, |n| words(["SET".into(), format!("big:{n}"), "x".repeat(10_000)]))),
    ("hash-10", |send| {
        keyed(send, 20_000, |n| pairs("HSET", "h", n, 10, |i| (format!("field{i}"), format!("value{i}"))))
    }),
    ("hash-1000", |send| {
        keyed(send, 100, |n| pairs("HSET", "hk", n, 1_000, |i| (format!("f:{i:012}"), format!("value{i}"))))
    }),
    ("list-600", |send| {
        keyed(send, 300, |n| elements("RPUSH", &format!("l:{n}"), 0..600, |i| format!("element:{i}")))
    }),
    ("set-1000", |send| {
        keyed(send, 100, |n| elements("SADD", &format!("s:{n}"), 0..1_000, |i| format!("m:{i:012}")))
    }),
    ("sets-300", |send| {
        (0..10).try_for_each(|set| {
            send(&elements("SADD", &format!("sa:{set}"), set * 50..set * 50 + 300, |i| format!("m:{i}")))
        })
    }),
    ("int-sets-400", |send| {
        (0..10).try_for_each(|set| {
            send(&elements("SADD", &format!("si:{set}"), set * 50..set * 50 + 400, |i| i.to_string()))
        })
    }),
    ("zset-1000", |send| {
        keyed(send, 100, |n| {
            pairs("ZADD", "z", n, 1_000, |i| ((i * 7919 % 10_007).to_string(), format!("m:{i:012}")))
        })
    }),
    ("zset-300k", leader_board),
    ("zset-equal", |send| {
        (0..100_000_u64).step_by(500).try_for_each(|first| {
            let both = (first..first + 500).flat_map(|i| ["0".into(), format!("w:{:012}", i * 2)]);
            send(&split("ZADD words").into_iter().chain(both).collect::<Vec<String>>())
        })
    }),
    ("zset-few", |send| {
        keyed(send, 100, |n| {
            pairs("ZADD", "grades", n, 1_000, |i| ((i * 7919 % 10).to_string(), format!("m:{i:012}")))
        })
    }),
    ("stream", stream),
    ("stream-group", |send| {
        stream(send)?;
        send(&split("XGROUP CREATE st g 0"))?;
        send(&split("XREADGROUP GROUP g c COUNT 1000 STREAMS st >"))
    }),
    ("geo", places),
    ("bits", bits),
    ("sketches", |send| {
        (0..4).try_for_each(|n| {
            send(&elements("PFADD", &format!("hll:{n}"), n * 500..n * 500 + 2_000, |i| format!("e{i}")))
        })
    }),
    ("long-lists", long_lists),
    ("list-8", |send| keyed(send, 20_000, |n| elements("RPUSH", &format!("u:{n}"), 0..8, uuid))),
    ("hash-5", |send| keyed(send, 20_000, |n| pairs("HSET", "w", n, 5, |i| (uuid(i), uuid(i))))),
    ("zset-8", |send| keyed(send, 20_000, |n| pairs("ZADD", "x", n, 8, |i| (i.to_string(), uuid(i))))),
    ("set-8", |send| keyed(send, 20_000, |n| elements("SADD", &format!("v:{n}"), 0..8, uuid))),
    ("list-24", |send| keyed(send, 20_000, |n| elements("RPUSH", &format!("u:{n}"), 0..24, uuid))),
    ("hash-20", |send| {
        keyed(send, 20_000, |n| pairs("HSET", "w", n, 20, |i| (format!("field:{i}"), uuid(i))))
    }),
    ("hash-400B", |send| keyed(send, 20_000, |n| document(n, 400))),
    ("hash-1500B", |send| keyed(send, 20_000, |n| document(n, 1_500))),
    ("hash-50", |send| {
        keyed(send, 20_000, |n| pairs("HSET", "f", n, 50, |i| (format!("flag_{i}"), (i % 10).to_string())))
    }),
    ("list-50", |send| {
        keyed(send, 20_000, |n| elements("RPUSH", &format!("q:{n}"), 0..50, |i| format!("word{i}")))
    }),
    ("jobs-5", |send| {
        keyed(send, 20_000, |n| {
            elements("RPUSH", &format!("j:{n}"), 0..5, |i| format!("{i}{}", "x".repeat(300)))
        })
    }),
    ("hash-10x150B", |send| {
        keyed(send, 20_000, |n| pairs("HSET", "g", n, 10, |i| (format!("field:{i}"), "v".repeat(150))))
    }),
    ("text-1200B", |send| keyed(send, 20_000, |n| vec!["SET".into(), format!("t:{n}"), "x".repeat(1_200)])),
    ("set-90", |send| {
        keyed(send, 20_000, |n| elements("SADD", &format!("y:{n}"), 0..90, |i| format!("word{i}")))
    }),
    ("zset-24", |send| keyed(send, 20_000, |n| pairs("ZADD", "x", n, 24, |i| (i.to_string(), uuid(i))))),
    ("set-24", |send| keyed(send, 20_000, |n| elements("SADD", &format!("v:{n}"), 0..24, uuid))),
    ("set-44", |send| keyed(send, 20_000, |n| elements("SADD", &format!("v:{n}"), 0..44, id))),
    ("long-bits", |send| send(&split("SETBIT longbits 32000000 1"))),
    ("like-sets", |send| {
        (0..2)
            .try_for_each(|n| send(&elements("SADD", &format!("like:{n}"), 0..20_000, |i| format!("m:{i}"))))
    }),
    ("small-sketches", |send| {
        (0..4).try_for_each(|n| {
            send(&elements("PFADD", &format!("hll:{n}"), n * 10..n * 10 + 50, |i| format!("e{i}")))
        })
    }),
];

fn words<const N: usize>(words: [String; N]) -> Vec<String> {
    words.into()
}

fn split(text: &str) -> Vec<String> {
    text.split(' ').map(String::from).collect()
}

/// A request for each of so many keys, whose numbers have twelve digits as those that are drawn.
fn keyed(send: Send<'_>, keys: u64, request: impl Fn(&str) -> Vec<String>) -> Result<(), String> {
    (0..keys).try_for_each(|n| send(&request(&format!("{n:012}"))))
}

/// The number without its leading zeros.
fn plain(n: &str) -> String {
    let digits = n.trim_start_matches('0');
    if digits.is_empty() { "0".into() } else { digits.into() }
}

fn elements(
    command: &str,
    key: &str,
    range: std::ops::Range<u64>,
    element: impl Fn(u64) -> String,
) -> Vec<String> {
    [command.to_string(), key.to_string()].into_iter().chain(range.map(element)).collect()
}

fn pairs(
    command: &str,
    key: &str,
    n: &str,
    count: u64,
    pair: impl Fn(u64) -> (String, String),
) -> Vec<String> {
    let both = (0..count).map(pair).flat_map(|(a, b)| [a, b]);
    [command.to_string(), format!("{key}:{n}")].into_iter().chain(both).collect()
}

/// A hash of a document of so many bytes, and two small fields.
fn document(n: &str, bytes: usize) -> Vec<String> {
    let fields = [("user", n.to_string()), ("data", "d".repeat(bytes)), ("count", "1".to_string())];
    pairs("HSET", "e", n, 3, |field| {
        let (name, value) = &fields[field as usize];
        (name.to_string(), value.clone())
    })
}

fn leader_board(send: Send<'_>) -> Result<(), String> {
    (0..300_000_u64).step_by(500).try_for_each(|first| {
        let both = (first..first + 500)
            .flat_map(|i| [(i * 7919 % 1_000_003).to_string(), format!("player:{i:012}")]);
        send(&split("ZADD board").into_iter().chain(both).collect::<Vec<String>>())
    })
}

/// Texts of 36 bytes, as many programs make them for names.
fn uuid(n: u64) -> String {
    format!("123e4567-e89b-12d3-a456-{:012}", 426_614_174_000 + n)
}

/// Sixteen digits; the zeros in front keep it from being an integer.
fn id(n: u64) -> String {
    format!("{n:016}")
}

/// A list of integers in order, and one of texts of which the last are the same.
fn long_lists(send: Send<'_>) -> Result<(), String> {
    (0..100_000).step_by(500).try_for_each(|first| {
        send(&elements("RPUSH", "numbers", first..first + 500, |i| i.to_string()))?;
        send(&elements("RPUSH", "long", first..first + 500, |i| format!("element:{i}")))
    })?;
    (0..20).try_for_each(|_| send(&elements("RPUSH", "long", 0..500, |_| "same".into())))
}

fn stream(send: Send<'_>) -> Result<(), String> {
    (0..20_000)
        .try_for_each(|i| send(&split(&format!("XADD st * sensor {} temp {} unit C", i % 100, i % 37))))
}

/// Members at positions of which some are the same.
fn places(send: Send<'_>) -> Result<(), String> {
    (0..20_000_u64).step_by(100).try_for_each(|first| {
        let place = |i: u64| {
            let (lon, lat) = ((i * 37 % 2_000) as f64 / 100.0 - 10.0, (i * 53 % 1_500) as f64 / 100.0 + 40.0);
            [lon.to_string(), lat.to_string(), format!("p{i}")]
        };
        let all = (first..first + 100).flat_map(place);
        send(&split("GEOADD geo").into_iter().chain(all).collect::<Vec<String>>())
    })
}

/// Two rows of a megabyte.
fn bits(send: Send<'_>) -> Result<(), String> {
    send(&split("SETBIT bits 8000000 1"))?;
    send(&split("SETBIT bits2 8000000 1"))?;
    (0..20_000).try_for_each(|i| {
        send(&split(&format!("SETBIT bits {} 1", i * 37)))?;
        send(&split(&format!("SETBIT bits2 {} 1", i * 41)))
    })
}
