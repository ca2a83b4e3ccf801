//! Random scripts: EVAL with one of a few texts, and a random request as its arguments, which the script
//! runs. So whatever can be drawn is run from scripts too, and its reply goes through Lua and back.
//!
//! Most texts hand the reply on as it is: such an exchange is judged as that of the inner request. The others
//! do more with it, and run only commands whose replies are the same on every server.
use super::focus::Focus;
use super::request;
use base::random::Random;

/// Texts that answer what their command does.
const PLAIN: [&str; 4] = [
    "return redis.call(unpack(ARGV))",
    "return redis.pcall(unpack(ARGV))",
    "redis.setresp(3) return redis.call(unpack(ARGV))",
    "local reply = redis.call(unpack(ARGV)) redis.call('exists', 'k') return reply",
];
/// Texts that look at it, or do something beside it.
const CURIOUS: [&str; 9] = [
    "local r = redis.pcall(unpack(ARGV)) if type(r) == 'table' and r.err then return {'failed', r.err} end \
     return {type(r), type(r) == 'table' and #r or tostring(r)}",
    "redis.call('set', 's:1', 'before') local r = redis.call(unpack(ARGV)) redis.call('append', 's:1', 'behind') \
     return {r, redis.call('get', 's:1')}",
    "redis.call(unpack(ARGV)) error('late')",
    "local ok, r = pcall(redis.call, unpack(ARGV)) return {ok and 1 or 0, type(r)}",
    "redis.call('select', 1) return redis.call(unpack(ARGV))",
    "return cjson.encode({KEYS, redis.call(unpack(ARGV)), #ARGV})",
    "return cmsgpack.pack(redis.call(unpack(ARGV)))",
    "for i = 1, 20 do redis.call(unpack(ARGV)) end return {KEYS, redis.call(unpack(ARGV))}",
    "return {redis.call('rpush', 'l:1', #ARGV), redis.pcall(unpack(ARGV)), redis.call('lpop', 'l:1')}",
];
/// The keys that these texts name by themselves: no word of a request does.
pub(super) const NAMED: [&str; 3] = ["k", "s:1", "l:1"];
/// What curious texts run.
const SAFE: [&str; 34] = [
    "set",
    "get",
    "incr",
    "incrby",
    "append",
    "strlen",
    "setrange",
    "getrange",
    "setbit",
    "getbit",
    "mget",
    "mset",
    "lpush",
    "rpush",
    "lrange",
    "llen",
    "lpop",
    "lindex",
    "lset",
    "linsert",
    "hset",
    "hget",
    "hdel",
    "hlen",
    "sadd",
    "srem",
    "scard",
    "sismember",
    "zadd",
    "zrem",
    "zcard",
    "zrange",
    "del",
    "rename",
];

/// Appends what follows the name of EVAL, EVALSHA or SCRIPT LOAD.
pub(super) fn write(random: &mut Random, focus: &Focus<'_>, request: &mut Vec<Vec<u8>>) {
    let is_by_sha = request[0].to_ascii_lowercase().starts_with(b"evalsha");
    let is_plain = random.below(2) == 0;
    let text = match is_plain {
        true => PLAIN[random.below(PLAIN.len() as u64) as usize],
        false => CURIOUS[random.below(CURIOUS.len() as u64) as usize],
    };
    request.push(if is_by_sha { sha(text).into_bytes() } else { text.into() });
    if request[0].eq_ignore_ascii_case(b"script") {
        return;
    }
    let keys = random.below(3);
    request.push(keys.to_string().into_bytes());
    request.extend((0..keys).map(|key| format!("s:{}", key + 1).into_bytes()));
    for _ in 0..DRAWS_MAX {
        let inner = request::inner(random, focus);
        if is_plain || is_safe(&inner) {
            return request.extend(inner);
        }
    }
    request.extend([b"get".to_vec(), b"s:1".to_vec()]);
}

/// A stream of another family than those that curious texts run has nothing for them.
const DRAWS_MAX: usize = 10;

fn is_safe(request: &[Vec<u8>]) -> bool {
    SAFE.iter().any(|name| request[0].eq_ignore_ascii_case(name.as_bytes()))
}

fn sha(text: &str) -> String {
    base::text::hex(&base::digest::sha1(text.as_bytes()))
}

/// The request that a script is given, if this is one of the pool with its arguments in place.
pub(super) fn inner(request: &[Vec<u8>]) -> Option<&[Vec<u8>]> {
    let name = request.first()?.to_ascii_lowercase();
    let script = request.get(1)?;
    let is_known = |text: &&&str| match &*name {
        b"eval" | b"eval_ro" => script == text.as_bytes(),
        b"evalsha" | b"evalsha_ro" => script.eq_ignore_ascii_case(sha(text).as_bytes()),
        _ => false,
    };
    PLAIN.iter().chain(&CURIOUS).find(is_known)?;
    let keys = base::text::parse_i64(request.get(2)?)?;
    request.get(3 + usize::try_from(keys).ok()?..).filter(|inner| !inner.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_a_text_names_is_known() {
        // The first argument of a command that the text itself calls.
        for call in PLAIN.iter().chain(&CURIOUS).flat_map(|text| text.split("redis.call('").skip(1)) {
            let words: Vec<&str> = call.split('\'').collect();
            let key = words.get(2).filter(|_| words[0] != "select" && words[1] == ", ");
            assert!(words[0] == "select" || key.is_some_and(|key| NAMED.contains(key)), "{call}");
        }
    }
}
