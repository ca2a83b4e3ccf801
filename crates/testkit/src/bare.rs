//! The data commands on a keyspace, without a server around them: no sockets, no threads, and time stands still until a
//! test moves it. What a transcript says of a command is tried here first, with any number of shards.
use crate::resp_client::request;
use crate::resp_value::Value;
use crate::transcript::{Peer, Version};
use base::Millis;
use base::hash::Seed;
use base::random::Random;
use command::{Call, Command, DataRun, Done, Error, FAMILIES, WholeCall};
use resp::{Args, Limits, Parser, Protocol, Reply, Span};
use store::{Keyspace, KeyspaceOptions, Settings};

/// Some day in 2026: deadlines that transcripts name as Unix times lie before and behind it.
const BEGINNING: Millis = Millis(1_780_000_000_000);

pub struct Bare {
    keyspace: Keyspace,
    settings: Settings,
    now: Millis,
    random: Random,
}

impl Bare {
    pub fn new(shard_bits: u32, seed: u64) -> Bare {
        let options = KeyspaceOptions { shard_bits, databases: 16, seed: Seed::new(seed, !seed) };
        Bare {
            keyspace: Keyspace::new(options),
            settings: Settings::default(),
            now: BEGINNING,
            random: Random::new(seed),
        }
    }

    pub fn set_now(&mut self, now: Millis) {
        self.now = now;
    }

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
            DataRun::Whole(_, run) => run(&mut WholeCall {
                keyspace: &self.keyspace,
                db: 0,
                now: self.now,
                settings: &self.settings,
                args,
                reply,
                random: &mut self.random,
                garbage: &mut Vec::new(),
            }),
            DataRun::Container => Err(Error::wrong_arity(&full_name)),
        }
    }

    fn run_on_keys(
        &self,
        command: &Command,
        run: fn(&mut Call<'_, '_>) -> Done,
        args: Args<'_>,
        reply: &mut Reply,
    ) -> Done {
        if let Some(position) = command.only_key() {
            let (mut view, key) = self.keyspace.lock_one(0, self.now, &self.settings, args.at(position));
            return run(&mut Call::new(&mut view, args, &[key], reply));
        }
        let mut positions = Vec::new();
        command.key_positions(&args, &mut positions);
        let keys: Vec<&[u8]> = positions.iter().map(|position| args.at(*position as usize)).collect();
        let (mut view, keys) = self.keyspace.lock(0, self.now, &self.settings, &keys);
        run(&mut Call::new(&mut view, args, &keys, reply))
    }
}

fn find<'a>(
    mut commands: impl Iterator<Item = &'a &'static Command>,
    name: &[u8],
) -> Option<&'static Command> {
    commands.find(|command| command.name.as_bytes().eq_ignore_ascii_case(name)).copied()
}

impl Peer for Bare {
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
