//! What one stream is about. Half of the streams draw from all commands and keys; the others from a few
//! commands, most of one family, on few keys: the fewer there are, the longer they work on the same values,
//! and the further these come.
use super::vocabulary::Vocabulary;
use base::random::Random;
use server::Grammar;

const COMMANDS_MAX: u64 = 9;
const KEYS_MAX: u64 = 3;
/// How many of a hundred requests are commands on the server.
const SERVER_PERCENT: u64 = 10;
/// How many of a hundred flushes that are drawn are sent: commands find nothing to work on in an empty
/// keyspace.
const FLUSH_PERCENT: u64 = 10;

pub(super) struct Focus<'v> {
    pub(super) vocabulary: &'v Vocabulary,
    data: Vec<&'v Grammar>,
    /// The commands on the server.
    server: Vec<&'v Grammar>,
    /// How many keys of a pool are used.
    keys: usize,
}

impl<'v> Focus<'v> {
    pub(super) fn draw(random: &mut Random, vocabulary: &'v Vocabulary) -> Focus<'v> {
        let (data, server) = vocabulary.grammars.iter().partition(|grammar| grammar.is_data);
        let mut focus = Focus { vocabulary, data, server, keys: usize::MAX };
        if random.below(2) == 0 && !focus.data.is_empty() {
            focus.narrow(random);
        }
        focus
    }

    fn narrow(&mut self, random: &mut Random) {
        let group = any(random, &self.data).doc.group;
        let family: Vec<&Grammar> = self.data.iter().copied().filter(|g| g.doc.group == group).collect();
        let count = 2 + random.below(COMMANDS_MAX - 2);
        let mut chosen: Vec<&Grammar> = (0..count).map(|_| any(random, &family)).collect();
        chosen.extend((0..random.below(3)).map(|_| any(random, &self.data)));
        self.data = chosen;
        self.server.clear();
        self.keys = 1 + random.below(KEYS_MAX) as usize;
    }

    /// The next request's command.
    pub(super) fn command(&self, random: &mut Random) -> &'v Grammar {
        let is_server = self.data.is_empty() || random.below(100) < SERVER_PERCENT;
        let rows = if is_server && !self.server.is_empty() { &self.server } else { &self.data };
        let row = any(random, rows);
        let is_flush = row.full_name.starts_with("flush");
        if is_flush && random.below(100) >= FLUSH_PERCENT { any(random, rows) } else { row }
    }

    /// The keys of a pool that this stream uses.
    pub(super) fn keys(&self, pool: &'static [&'static str]) -> &'static [&'static str] {
        &pool[..pool.len().min(self.keys)]
    }
}

fn any<'v>(random: &mut Random, rows: &[&'v Grammar]) -> &'v Grammar {
    rows[random.below(rows.len() as u64) as usize]
}
