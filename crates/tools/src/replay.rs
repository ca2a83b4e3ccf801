//! Commands of an append-only file, run on a keyspace that no server serves.
//!
//! Time stands before all deadlines meanwhile: a key is there until the file says that it went. The clock
//! shows the present, from which lifetimes are counted. A transaction is run when its end has come.
use base::random::Random;
use command::{Call, Command, DataRun, FAMILIES, WholeCall, key_positions};
use disk::aof::commands::{CommandError, CommandReader, Entry};
use resp::{Args, Protocol, Reply, Span};
use server::Clock;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::Path;
use store::{BEFORE_ALL, Keyspace, Settings};

/// Runs commands on a keyspace.
pub(crate) struct Replay<'k> {
    keyspace: &'k Keyspace,
    settings: Settings,
    commands: BTreeMap<String, &'static Command>,
    random: Random,
    db: u16,
    /// How many have run.
    pub(crate) count: u64,
}

/// The words of commands whose transaction has not ended.
type Queue = Option<Vec<Vec<Vec<u8>>>>;

impl<'k> Replay<'k> {
    pub(crate) fn new(keyspace: &'k Keyspace) -> Replay<'k> {
        keyspace.set_replay_clock(Clock::real().now());
        let rows = FAMILIES.iter().copied().flatten();
        let commands = rows.map(|row| (row.name.to_ascii_lowercase(), *row)).collect();
        Replay { keyspace, settings: Settings::default(), commands, random: Random::new(0), db: 0, count: 0 }
    }

    /// Runs the commands of a file from this byte on. Returns why it cannot be read to its end, if it ends
    /// too early; other errors are errors.
    pub(crate) fn run_file(&mut self, path: &Path, from: u64) -> Result<Option<String>, String> {
        let failed = |error: std::io::Error| format!("{}: {}", path.display(), base::reason::reason(&error));
        let mut file = File::open(path).map_err(failed)?;
        file.seek(SeekFrom::Start(from)).map_err(failed)?;
        let mut reader = CommandReader::new(file);
        let mut queue: Queue = None;
        self.db = 0;
        loop {
            match reader.next_entry() {
                Ok(Some(Entry::Time(_))) => {}
                Ok(Some(Entry::Command(words))) => {
                    self.take(words, &mut queue).map_err(|why| format!("{}: {why}", path.display()))?;
                }
                Ok(None) => return Ok(queue.map(|_| "a transaction has no end".to_string())),
                Err(CommandError::Io(error)) => return Err(failed(error)),
                Err(CommandError::Truncated(broken)) => return Ok(Some(broken.what.to_string())),
                Err(CommandError::Broken(broken)) => {
                    return Err(format!(
                        "{}: {} (at byte {})",
                        path.display(),
                        broken.what,
                        from + broken.at
                    ));
                }
            }
        }
    }

    /// Runs a command, or keeps it until its transaction has ended.
    fn take(&mut self, words: &[Vec<u8>], queue: &mut Queue) -> Result<(), String> {
        let is = |name: &[u8]| words.len() == 1 && words[0].eq_ignore_ascii_case(name);
        if is(b"multi") {
            *queue = Some(Vec::new());
            return Ok(());
        }
        if is(b"exec") {
            let queued = queue.take().ok_or("EXEC without MULTI")?;
            return queued.iter().try_for_each(|words| self.run(words));
        }
        match queue {
            Some(queue) => queue.push(words.to_vec()),
            None => self.run(words)?,
        }
        Ok(())
    }

    fn run(&mut self, words: &[Vec<u8>]) -> Result<(), String> {
        self.count += 1;
        let name = String::from_utf8_lossy(&words[0]).to_ascii_lowercase();
        if name == "select" {
            let db = words.get(1).and_then(|word| base::text::parse_i64(word));
            let db = db.and_then(|db| u16::try_from(db).ok()).filter(|db| *db < self.keyspace.databases());
            self.db = db.ok_or("SELECT of a database that there is not (--databases)")?;
            return Ok(());
        }
        // Functions are no keys.
        if name == "function" {
            return Ok(());
        }
        let unknown = || format!("unknown command '{}'", name.escape_debug());
        let mut command = *self.commands.get(&name).ok_or_else(unknown)?;
        if let (false, Some(word)) = (command.subcommands.is_empty(), words.get(1)) {
            let is_meant = |sub: &&&'static Command<DataRun>| sub.name.as_bytes().eq_ignore_ascii_case(word);
            command = *command.subcommands.iter().find(is_meant).ok_or_else(unknown)?;
        }
        if !command.arity.accepts(words.len()) {
            return Err(format!("wrong number of arguments of '{name}'"));
        }
        let (mut text, mut spans) = (Vec::new(), Vec::new());
        for word in words {
            spans.push(Span { start: text.len(), len: word.len() });
            text.extend_from_slice(word);
        }
        self.run_row(command, Args::new(&text, &spans));
        Ok(())
    }

    /// A command that fails now has failed when it was written too, and is not in the file.
    fn run_row(&mut self, command: &'static Command, args: Args<'_>) {
        let mut reply = Reply::new(Protocol::Resp2);
        reply.bound(0);
        let all = match command.run {
            DataRun::Keys(run) => return self.run_on_keys(command, run, args, &mut reply),
            DataRun::Long(long) | DataRun::Blocking(long) => {
                return self.run_on_keys(command, long.run, args, &mut reply);
            }
            DataRun::KeysOrAll(ways) if !(ways.needs_all)(&args) => {
                return self.run_on_keys(command, ways.keys.run, args, &mut reply);
            }
            DataRun::KeysOrAll(ways) => ways.all.run,
            DataRun::Whole(_, run) => run,
            DataRun::LongWhole(_, long) => long.run,
            DataRun::Container => return,
        };
        let _ = all(&mut WholeCall {
            keyspace: self.keyspace,
            db: self.db,
            now: BEFORE_ALL,
            settings: &self.settings,
            args,
            reply: &mut reply,
            random: &mut self.random,
            leaves_trace: true,
            garbage: &mut Vec::new(),
            spared: None,
        });
    }

    fn run_on_keys(
        &self,
        command: &'static Command,
        run: fn(&mut Call<'_, '_>) -> command::Done,
        args: Args<'_>,
        reply: &mut Reply,
    ) {
        let mut positions = Vec::new();
        key_positions(command.keys, &args, &mut positions);
        let names = positions.iter().map(|position| args.at(*position as usize));
        let names = names.map(|name| (name, self.keyspace.hash(name)));
        let (mut view, keys) = self.keyspace.lock(self.db, BEFORE_ALL, &self.settings, names);
        let _ = run(&mut Call::new(&mut view, args, &keys, reply));
    }
}
