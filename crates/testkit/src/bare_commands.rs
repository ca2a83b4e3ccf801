//! The data commands on a keyspace, without a server around them: no sockets, no threads, and time stands
//! still until a test moves it. What a transcript says of a command is tried here first, with any number of
//! shards.
use crate::in_process::BEGINNING;
use crate::resp_client::request;
use crate::resp_value::Value;
use crate::transcript::{Peer, Version};
use base::Millis;
use base::hash::Seed;
use base::random::Random;
use command::{Call, Command, DataRun, Done, Error, FAMILIES, WholeCall};
use resp::{Args, Limits, Parser, Protocol, Reply, Span};
use store::{Keyspace, KeyspaceOptions, Settings};

pub struct BareCommands {
    keyspace: Keyspace,
    settings: Settings,
    now: Millis,
    random: Random,
}

impl BareCommands {
    /// An empty keyspace of `2^shard_bits` shards. `seed` decides all that is drawn at random.
    pub fn new(shard_bits: u32, seed: u64) -> BareCommands {
        let options = KeyspaceOptions { shard_bits, databases: 16, seed: Seed::new(seed, !seed) };
        BareCommands {
            keyspace: Keyspace::new(options),
            settings: Settings::default(),
            now: BEGINNING,
            random: Random::new(seed),
        }
    }

    /// The time that later requests see; it may go back.
    pub fn set_now(&mut self, now: Millis) {
        self.now = now;
    }

    /// The settings that later requests see.
    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// The bytes of the reply to a request.
    pub fn reply(&mut self, protocol: Protocol, args: &[impl AsRef<[u8]>]) -> Vec<u8> {
        let mut wire = request(args);
        let mut spans: Vec<Span> = Vec::new();
        let parsed = Parser::new().parse(&mut wire, &mut 0, &mut spans, &Limits::default());
        parsed.expect("a request that this module has written");
        let mut reply = Reply::new(protocol);
        if let Err(error) = self.dispatch(Args::new(&wire, &spans), &mut reply) {
            reply.error(error.text());
        }
        reply.finish();
        reply.out
    }

    fn dispatch(&mut self, args: Args<'_>, reply: &mut Reply) -> Done {
        let name = args.at(0);
        let mut command = find(FAMILIES.iter().copied().flatten(), name).ok_or_else(|| {
            Error::custom(format!("ERR unknown command '{}'", String::from_utf8_lossy(name)))
        })?;
        let mut full_name = command.name.to_ascii_lowercase();
        if let (false, Some(word)) = (command.subcommands.is_empty(), args.get(1)) {
            command = find(command.subcommands.iter(), word)
                .ok_or_else(|| Error::custom("ERR unknown subcommand".to_owned()))?;
            full_name = format!("{full_name}|{}", command.name.to_ascii_lowercase());
        }
        if !command.arity.accepts(args.len()) {
            return Err(Error::wrong_arity(&full_name));
        }
        match command.run {
            DataRun::Keys(run) => self.run_on_keys(command, run, args, reply),
            DataRun::Long(long) | DataRun::Blocking(long) => self.run_on_keys(command, long.run, args, reply),
            DataRun::KeysOrAll(ways) if (ways.needs_all)(&args) => self.run_on_all(ways.all.run, args, reply),
            DataRun::KeysOrAll(ways) => self.run_on_keys(command, ways.keys.run, args, reply),
            DataRun::Whole(_, run) => self.run_on_all(run, args, reply),
            DataRun::LongWhole(_, long) => self.run_on_all(long.run, args, reply),
            DataRun::Container => Err(Error::wrong_arity(&full_name)),
        }
    }

    fn run_on_all(&mut self, run: fn(&mut WholeCall<'_>) -> Done, args: Args<'_>, reply: &mut Reply) -> Done {
        run(&mut WholeCall {
            keyspace: &self.keyspace,
            db: 0,
            now: self.now,
            settings: &self.settings,
            args,
            reply,
            random: &mut self.random,
            leaves_trace: true,
            garbage: &mut Vec::new(),
            spared: None,
        })
    }

    fn run_on_keys(
        &self,
        command: &Command,
        run: fn(&mut Call<'_, '_>) -> Done,
        args: Args<'_>,
        reply: &mut Reply,
    ) -> Done {
        if let Some(name) = command.fixed_keys().only_key(&args) {
            let (mut view, key) = self.keyspace.lock_one(0, self.now, &self.settings, name);
            return run_or_give_up(run, &mut Call::new(&mut view, args, &[key], reply));
        }
        let mut positions = Vec::new();
        command::key_positions(command.keys, &args, &mut positions);
        let names = positions.iter().map(|position| args.at(*position as usize));
        let names = names.map(|name| (name, self.keyspace.hash(name)));
        let (mut view, keys) = self.keyspace.lock(0, self.now, &self.settings, names);
        run_or_give_up(run, &mut Call::new(&mut view, args, &keys, reply))
    }
}

fn find<'a>(
    mut commands: impl Iterator<Item = &'a &'static Command>,
    name: &[u8],
) -> Option<&'static Command> {
    commands.find(|command| command.name.as_bytes().eq_ignore_ascii_case(name)).copied()
}

impl Peer for BareCommands {
    fn call(&mut self, _: &str, protocol: Protocol, args: &[Vec<u8>]) -> Value {
        let reply = self.reply(protocol, args);
        let (value, len) = Value::parse(&reply).expect("a reply is RESP").expect("a reply is whole");
        assert_eq!(len, reply.len(), "one request has one reply");
        value
    }

    fn advance(&mut self, ms: u64) {
        self.now = Millis(self.now.0 + ms as i64);
    }

    fn changes(&mut self) -> i64 {
        self.keyspace.stats().dirty as i64
    }

    fn version(&self) -> Version {
        (8, 0)
    }
}

/// Runs a command. One that would wait for a key answers as if its time were over: nobody else is here.
fn run_or_give_up(run: fn(&mut Call<'_, '_>) -> Done, call: &mut Call<'_, '_>) -> Done {
    run(call)?;
    call.give_up_waiting();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn call(bare: &mut BareCommands, line: &str) -> Value {
        let args: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        bare.call("A", Protocol::Resp2, &args)
    }

    fn elements(value: Value) -> Vec<Value> {
        let Value::Aggregate(_, elements) = value else { panic!("an array: {value:?}") };
        elements
    }

    /// What a whole walk with `options` shows, and how many calls it took.
    fn walk(bare: &mut BareCommands, options: &str) -> (BTreeSet<Vec<u8>>, usize) {
        let (keys, cursors) = walk_of(bare, "SCAN", options);
        (keys.into_iter().collect(), cursors.len() + 1)
    }

    /// All that a walk shows, and the cursors between its calls.
    fn walk_of(bare: &mut BareCommands, command: &str, options: &str) -> (Vec<Vec<u8>>, Vec<u64>) {
        let (mut shown, mut cursors, mut cursor) = (Vec::new(), Vec::new(), 0);
        loop {
            let reply = elements(call(bare, &format!("{command} {cursor}{options}")));
            shown.extend(elements(reply[1].clone()).iter().map(|text| text.text().unwrap().to_vec()));
            cursor = std::str::from_utf8(reply[0].text().unwrap()).unwrap().parse().unwrap();
            if cursor == 0 {
                return (shown, cursors);
            }
            cursors.push(cursor);
        }
    }

    fn filled(shard_bits: u32) -> BareCommands {
        let mut bare = BareCommands::new(shard_bits, 3);
        for n in 0..3_000 {
            call(&mut bare, &format!("SET key:{n} {n}"));
        }
        for n in 0..40 {
            call(&mut bare, &format!("RPUSH list:{n} a"));
        }
        bare
    }

    #[test]
    fn a_walk_shows_every_key_on_any_number_of_shards() {
        for shard_bits in [0, 8] {
            let mut bare = filled(shard_bits);
            let (keys, calls) = walk(&mut bare, "");
            assert_eq!(keys.len(), 3_040);
            assert!(calls > 10, "ten keys a call or so, not {calls} calls in all");
            let (keys, calls) = walk(&mut bare, " COUNT 100000");
            assert_eq!((keys.len(), calls), (3_040, 1));
        }
    }

    #[test]
    fn a_walk_can_be_narrowed_to_a_pattern_and_a_type() {
        let mut bare = filled(4);
        assert_eq!(walk(&mut bare, " TYPE list").0.len(), 40);
        assert_eq!(walk(&mut bare, " TYPE LIST MATCH list:1?").0.len(), 10);
        assert_eq!(walk(&mut bare, " MATCH key:29?? COUNT 7").0.len(), 100);
        assert_eq!(walk(&mut bare, " TYPE nothing").0.len(), 0);
    }

    /// A cursor is a place in hash order. A client that could read it as such would learn a part of the hash
    /// of each name that it has written.
    #[test]
    fn cursors_show_no_places() {
        let mut bare = filled(8);
        for n in 0..3_000 {
            call(&mut bare, &format!("HSET hash field:{n} value"));
            call(&mut bare, &format!("SADD set member:{n}"));
            call(&mut bare, &format!("ZADD zset {n} member:{n}"));
        }
        for (walked, len) in
            [("SCAN", 3_043), ("HSCAN hash", 6_000), ("SSCAN set", 3_000), ("ZSCAN zset", 6_000)]
        {
            let (shown, cursors) = walk_of(&mut bare, walked, "");
            assert_eq!(shown.len(), len, "{walked}");
            assert!(cursors.iter().all(|cursor| *cursor < 1 << 53), "{walked}: exact as doubles");
            let ascents = cursors.windows(2).filter(|pair| pair[0] < pair[1]).count();
            let (least, most) = (cursors.len() / 3, cursors.len() * 2 / 3);
            assert!((least..most).contains(&ascents), "{walked}: {ascents} of {}", cursors.len());
        }
    }

    #[test]
    fn keys_added_and_removed_during_a_walk_do_not_hide_the_others() {
        let mut bare = filled(2);
        let (mut seen, mut cursor, mut round) = (BTreeSet::new(), "0".to_owned(), 0);
        loop {
            let reply = elements(call(&mut bare, &format!("SCAN {cursor} COUNT 20")));
            seen.extend(elements(reply[1].clone()).iter().map(|key| key.text().unwrap().to_vec()));
            cursor = String::from_utf8(reply[0].text().unwrap().to_vec()).unwrap();
            for n in 0..30 {
                call(&mut bare, &format!("SET new:{round}:{n} x"));
                call(&mut bare, &format!("DEL key:{}", round * 7 % 1_500));
            }
            round += 1;
            if cursor == "0" {
                break;
            }
        }
        for n in 1_500..3_000 {
            assert!(seen.contains(format!("key:{n}").as_bytes()), "key:{n}");
        }
    }

    #[test]
    fn sort_looks_up_every_weight_though_the_first_is_no_number() {
        let mut bare = BareCommands::new(2, 5);
        call(&mut bare, "RPUSH list 1 2 3");
        call(&mut bare, "SET weight:1 x");
        let before = bare.keyspace.stats();
        let reply = call(&mut bare, "SORT list BY weight:*");
        assert!(matches!(reply, Value::Line(b'-', _)), "{reply:?}");
        let after = bare.keyspace.stats();
        assert_eq!((after.hits - before.hits, after.misses - before.misses), (2, 2));
    }

    #[test]
    fn a_random_key_is_one_that_lives() {
        let mut bare = BareCommands::new(8, 5);
        call(&mut bare, "SET lives v");
        call(&mut bare, "SET dies v PX 10");
        let mut seen = BTreeSet::new();
        for _ in 0..100 {
            seen.insert(call(&mut bare, "RANDOMKEY").text().unwrap().to_vec());
        }
        assert_eq!(seen.len(), 2, "both come up");
        bare.advance(11);
        for _ in 0..20 {
            assert_eq!(call(&mut bare, "RANDOMKEY").text(), Some(&b"lives"[..]));
        }
    }

    #[test]
    fn flushing_counts_as_many_changes_as_there_were_keys() {
        let mut bare = filled(8);
        let before = bare.changes();
        call(&mut bare, "FLUSHALL ASYNC");
        assert_eq!(bare.changes() - before, 3_040);
        assert_eq!(call(&mut bare, "DBSIZE"), Value::Line(b':', b"0".to_vec()));
    }

    #[test]
    fn layout_tells_where_the_bytes_of_a_long_list_are() {
        let mut bare = BareCommands::new(0, 1);
        for n in 0..5_000_u64 {
            call(&mut bare, &format!("RPUSH l {}", n * 48_271 % 1_000_003));
        }
        let layout =
            bare.call("A", Protocol::Resp3, &[b"MEMORY".to_vec(), b"LAYOUT".to_vec(), b"l".to_vec()]);
        let Value::Aggregate(b'%', pairs) = layout else { panic!("a map") };
        let value = |name: &str| {
            let at = pairs.iter().position(|v| v.text() == Some(name.as_bytes())).unwrap();
            pairs[at + 1].clone()
        };
        assert_eq!(value("place").text(), Some(&b"outside"[..]));
        assert_eq!(value("length"), Value::Line(b':', b"5000".to_vec()));
        let bytes: u64 = String::from_utf8(value("bytes").text().unwrap().to_vec()).unwrap().parse().unwrap();
        assert!((5_000..50_000).contains(&bytes), "a few bytes an integer, not {bytes} in all");
    }
}
