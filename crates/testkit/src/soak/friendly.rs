//! Clients that check every reply: each has names of its own and a model of what it has written.
//!
//! Their keys have no deadline, so under a policy `volatile-*` none of them may go, whatever the memory.
//! Requests go out in batches, whose replies are drawn from the model before they are sent. A write that is
//! refused for want of memory (OOM) ends the model's certainty about one key, which is then deleted.
use super::Stage;
use crate::resp_client::{RespClient, request};
use crate::resp_value::Value;
use base::random::Random;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::atomic::Ordering::Relaxed;

/// Names of each type.
const NAMES: u64 = 40;
const BATCH_MAX: u64 = 40;
/// After so many batches all values are read and compared.
const BATCHES_PER_ROUND: u64 = 300;
/// Collections of more elements are begun anew.
const LEN_MAX: usize = 1000;
/// The longest word.
const WORD_BYTES_MAX: u64 = 6000;
/// Texts of so many words, and a little more, stay below the least `proto-max-bulk-len` that hostile
/// clients set, a megabyte.
const TEXT_WORDS_MAX: usize = 150;

type Bytes = Vec<u8>;

enum Model {
    Text(Bytes),
    List(VecDeque<Bytes>),
    Hash(BTreeMap<Bytes, Bytes>),
    Set(BTreeSet<Bytes>),
    /// Whole scores.
    ZSet(BTreeMap<Bytes, i64>),
    /// Entries `n-0` of one field.
    Stream(BTreeMap<u64, Bytes>),
}

/// What a reply must be.
enum Expected {
    Is(Value),
    /// In any order, or in pairs in any order.
    Sorted(Value),
    Pairs(Value),
}

struct Asked {
    key: Bytes,
    request: Vec<Bytes>,
    expected: Expected,
}

struct Friend<'s> {
    stage: &'s Stage,
    client: RespClient,
    random: Random,
    prefix: String,
    models: BTreeMap<Bytes, Model>,
    batch: Vec<Asked>,
}

/// Sends batches until the stage is over; then all values are read and compared once more.
pub(super) fn run(stage: &Stage, number: u64, seed: u64) {
    let told = (|| {
        let mut friend = Friend::connect(stage, number, seed)?;
        while !stage.is_over() {
            for _ in 0..BATCHES_PER_ROUND {
                if stage.is_over() {
                    break;
                }
                friend.play()?;
            }
            friend.look_at_all()?;
        }
        Ok(())
    })();
    tell(stage, &format!("friendly client {number}"), told);
}

fn tell(stage: &Stage, who: &str, told: Result<(), io::Error>) {
    if let Err(error) = told {
        stage.fail(format!("{who}: {error}"));
    }
}

fn int(n: i64) -> Expected {
    Expected::Is(Value::Line(b':', n.to_string().into_bytes()))
}

fn ok() -> Expected {
    Expected::Is(Value::Line(b'+', b"OK".to_vec()))
}

fn blob(bytes: &[u8]) -> Value {
    Value::Blob(b'$', bytes.to_vec())
}

fn array(elements: impl Iterator<Item = Value>) -> Value {
    Value::Aggregate(b'*', elements.collect())
}

fn maybe(bytes: Option<&Bytes>) -> Expected {
    Expected::Is(bytes.map_or(Value::Null(b'$'), |bytes| blob(bytes)))
}

impl<'s> Friend<'s> {
    fn connect(stage: &'s Stage, number: u64, seed: u64) -> io::Result<Friend<'s>> {
        let mut client = RespClient::connect(&stage.process.address())?;
        client.call(&["CLIENT", "SETNAME", "friendly"])?;
        client.call(&["CLIENT", "NO-EVICT", "ON"])?;
        let (random, prefix) = (Random::new(seed), format!("friend:{number}"));
        Ok(Friend { stage, client, random, prefix, models: BTreeMap::new(), batch: Vec::new() })
    }

    /// Sends a batch and compares its replies.
    fn play(&mut self) -> io::Result<()> {
        for _ in 0..1 + self.random.below(BATCH_MAX) {
            self.draw();
        }
        let wire: Vec<u8> = self.batch.iter().flat_map(|asked| request(&asked.request)).collect();
        if let Err(error) = self.client.send_bytes(&wire) {
            return Err(self.last_words(error));
        }
        let batch = std::mem::take(&mut self.batch);
        let (mut wrong, mut unsure) = (None, BTreeSet::new());
        for asked in &batch {
            let got = self.client.receive()?;
            if is_refused(&got) {
                unsure.insert(asked.key.clone());
            } else if !unsure.contains(&asked.key) && !is_as_expected(&got, &asked.expected) {
                wrong.get_or_insert_with(|| describe(asked, &got));
            }
        }
        self.stage.requests.fetch_add(batch.len() as u64, Relaxed);
        self.stage.checked.fetch_add(batch.len() as u64, Relaxed);
        for key in unsure {
            self.client.call(&[b"DEL".to_vec(), key.clone()])?;
            self.models.remove(&key);
        }
        wrong.map_or(Ok(()), |wrong| Err(io::Error::other(wrong)))
    }

    /// Why the server has closed the connection: the last of its replies that has arrived.
    fn last_words(&mut self, error: io::Error) -> io::Error {
        let last = std::iter::from_fn(|| self.client.receive().ok()).last();
        let last = last.map_or("nothing".to_owned(), |last| last.lines().join(" "));
        io::Error::other(format!("{error}; the last that it answered: {last}"))
    }

    fn ask(&mut self, key: &[u8], words: &[&[u8]], expected: Expected) {
        let request = words.iter().map(|word| word.to_vec()).collect();
        self.batch.push(Asked { key: key.to_vec(), request, expected });
    }

    fn word(&mut self) -> Bytes {
        match self.random.below(8) {
            0..3 => self.random.below(2000).to_string().into_bytes(),
            3 => self.random.next_u64().to_string().into_bytes(),
            4..7 => format!("member:{}", self.random.below(3000)).into_bytes(),
            _ => {
                let len = [40, 400, WORD_BYTES_MAX][self.random.below(3) as usize];
                let mut bytes = vec![0; self.random.below(len) as usize];
                self.random.fill(&mut bytes);
                bytes
            }
        }
    }

    /// One request, with the reply that it must have; the model is changed as if it had been answered.
    fn draw(&mut self) {
        let kind = ["s", "l", "h", "t", "z", "x"][self.random.below(6) as usize];
        let key = format!("{}:{kind}:{}", self.prefix, self.random.below(NAMES)).into_bytes();
        let mut model = self.models.remove(&key);
        let is_long = model.as_ref().is_some_and(|model| model.len() > LEN_MAX);
        if is_long || self.random.below(60) == 0 {
            self.ask(&key, &[b"UNLINK", &key], int(i64::from(model.is_some())));
            return;
        }
        match kind {
            "s" => self.draw_text(&key, &mut model),
            "l" => self.draw_list(&key, &mut model),
            "h" => self.draw_hash(&key, &mut model),
            "t" => self.draw_set(&key, &mut model),
            "z" => self.draw_zset(&key, &mut model),
            _ => self.draw_stream(&key, &mut model),
        }
        if let Some(model) = model.filter(|model| model.len() > 0 || matches!(model, Model::Text(_))) {
            self.models.insert(key, model);
        }
    }

    fn draw_text(&mut self, key: &[u8], model: &mut Option<Model>) {
        let old = match model {
            Some(Model::Text(text)) => Some(&*text),
            _ => None,
        };
        let word = self.word();
        match self.random.below(6) {
            0 => {
                let expected = maybe(old);
                self.ask(key, &[b"GET", key], expected);
            }
            1 => {
                let len = old.map_or(0, Vec::len) as i64;
                self.ask(key, &[b"STRLEN", key], int(len));
            }
            2 if old.is_none_or(|old| old.len() < 100_000) => {
                let text = [old.map_or(&b""[..], |old| old), &word].concat();
                self.ask(key, &[b"APPEND", key, &word], int(text.len() as i64));
                *model = Some(Model::Text(text));
            }
            3 if old.is_some_and(|old| old.len() <= WORD_BYTES_MAX as usize * TEXT_WORDS_MAX) => {
                let mut text = old.cloned().unwrap_or_default();
                let at = self.random.below(text.len() as u64 + 50) as usize;
                if !word.is_empty() {
                    text.resize(text.len().max(at + word.len()), 0);
                    text[at..at + word.len()].copy_from_slice(&word);
                }
                let len = text.len() as i64;
                self.ask(key, &[b"SETRANGE", key, at.to_string().as_bytes(), &word], int(len));
                *model = Some(Model::Text(text));
            }
            _ => {
                let text = if self.random.below(50) == 0 { word.repeat(TEXT_WORDS_MAX) } else { word };
                self.ask(key, &[b"SET", key, &text], ok());
                *model = Some(Model::Text(text));
            }
        }
    }

    fn draw_list(&mut self, key: &[u8], model: &mut Option<Model>) {
        let Model::List(list) = model.get_or_insert_with(|| Model::List(VecDeque::new())) else { return };
        let word = self.word();
        match self.random.below(8) {
            0 => {
                let expected = maybe(list.pop_front().as_ref());
                self.ask(key, &[b"LPOP", key], expected);
            }
            1 => {
                let expected = maybe(list.pop_back().as_ref());
                self.ask(key, &[b"RPOP", key], expected);
            }
            2 => {
                let all = array(list.iter().map(|word| blob(word)));
                self.ask(key, &[b"LRANGE", key, b"0", b"-1"], Expected::Is(all));
            }
            3 if !list.is_empty() => {
                let at = self.random.below(list.len() as u64) as usize;
                self.ask(key, &[b"LSET", key, at.to_string().as_bytes(), &word], ok());
                list[at] = word;
            }
            4 => {
                let at = self.random.below(list.len() as u64 + 2) as usize;
                let expected = maybe(list.get(at));
                self.ask(key, &[b"LINDEX", key, at.to_string().as_bytes()], expected);
            }
            5 => {
                list.push_front(word.clone());
                let len = list.len() as i64;
                self.ask(key, &[b"LPUSH", key, &word], int(len));
            }
            _ => {
                let words: Vec<Bytes> = (0..1 + self.random.below(30)).map(|_| self.word()).collect();
                list.extend(words.iter().cloned());
                let len = list.len() as i64;
                let mut request: Vec<&[u8]> = vec![b"RPUSH", key];
                request.extend(words.iter().map(|word| &word[..]));
                self.ask(key, &request, int(len));
            }
        }
    }

    fn draw_hash(&mut self, key: &[u8], model: &mut Option<Model>) {
        let Model::Hash(hash) = model.get_or_insert_with(|| Model::Hash(BTreeMap::new())) else { return };
        let (field, word) = (self.word(), self.word());
        match self.random.below(7) {
            0 => {
                let expected = maybe(hash.get(&field));
                self.ask(key, &[b"HGET", key, &field], expected);
            }
            1 => {
                let field = hash.keys().nth(self.random.below(20) as usize).cloned().unwrap_or(field);
                let is_gone = hash.remove(&field).is_some();
                self.ask(key, &[b"HDEL", key, &field], int(i64::from(is_gone)));
            }
            2 => {
                let all = array(hash.iter().flat_map(|(field, word)| [blob(field), blob(word)]));
                self.ask(key, &[b"HGETALL", key], Expected::Pairs(all));
            }
            3 => {
                let len = hash.len() as i64;
                self.ask(key, &[b"HLEN", key], int(len));
            }
            _ => {
                let is_new = hash.insert(field.clone(), word.clone()).is_none();
                self.ask(key, &[b"HSET", key, &field, &word], int(i64::from(is_new)));
            }
        }
    }

    fn draw_set(&mut self, key: &[u8], model: &mut Option<Model>) {
        let Model::Set(set) = model.get_or_insert_with(|| Model::Set(BTreeSet::new())) else { return };
        let word = self.word();
        match self.random.below(7) {
            0 => {
                let is_there = set.contains(&word);
                self.ask(key, &[b"SISMEMBER", key, &word], int(i64::from(is_there)));
            }
            1 => {
                let word = set.iter().nth(self.random.below(20) as usize).cloned().unwrap_or(word);
                let is_gone = set.remove(&word);
                self.ask(key, &[b"SREM", key, &word], int(i64::from(is_gone)));
            }
            2 => {
                let all = array(set.iter().map(|word| blob(word)));
                self.ask(key, &[b"SMEMBERS", key], Expected::Sorted(all));
            }
            _ => {
                let words: Vec<Bytes> = (0..1 + self.random.below(30)).map(|_| self.word()).collect();
                let before = set.len();
                set.extend(words.iter().cloned());
                let added = (set.len() - before) as i64;
                let mut request: Vec<&[u8]> = vec![b"SADD", key];
                request.extend(words.iter().map(|word| &word[..]));
                self.ask(key, &request, int(added));
            }
        }
    }

    fn draw_zset(&mut self, key: &[u8], model: &mut Option<Model>) {
        let Model::ZSet(set) = model.get_or_insert_with(|| Model::ZSet(BTreeMap::new())) else { return };
        let (word, score) = (self.word(), self.random.below(5000) as i64);
        match self.random.below(7) {
            0 => {
                let score = set.get(&word).map(|score| score.to_string().into_bytes());
                self.ask(key, &[b"ZSCORE", key, &word], maybe(score.as_ref()));
            }
            1 => {
                let word = set.keys().nth(self.random.below(20) as usize).cloned().unwrap_or(word);
                let is_gone = set.remove(&word).is_some();
                self.ask(key, &[b"ZREM", key, &word], int(i64::from(is_gone)));
            }
            2 => {
                let mut order: Vec<(i64, &Bytes)> = set.iter().map(|(word, score)| (*score, word)).collect();
                order.sort();
                let pair = |(score, word): (i64, &Bytes)| [blob(word), blob(score.to_string().as_bytes())];
                let all = array(order.into_iter().flat_map(pair));
                self.ask(key, &[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"], Expected::Is(all));
            }
            _ => {
                let is_new = set.insert(word.clone(), score).is_none();
                self.ask(key, &[b"ZADD", key, score.to_string().as_bytes(), &word], int(i64::from(is_new)));
            }
        }
    }

    fn draw_stream(&mut self, key: &[u8], model: &mut Option<Model>) {
        let Model::Stream(stream) = model.get_or_insert_with(|| Model::Stream(BTreeMap::new())) else {
            return;
        };
        let word = self.word();
        match self.random.below(5) {
            0 => {
                let len = stream.len() as i64;
                self.ask(key, &[b"XLEN", key], int(len));
            }
            1 => {
                let all = array(stream.iter().map(|(n, word)| {
                    let fields = array([blob(b"f"), blob(word)].into_iter());
                    array([blob(format!("{n}-0").as_bytes()), fields].into_iter())
                }));
                self.ask(key, &[b"XRANGE", key, b"-", b"+"], Expected::Is(all));
            }
            _ => {
                // The last one is never deleted, so that it says which id is next.
                let n = stream.keys().last().map_or(1, |last| last + 1 + self.random.below(5));
                stream.insert(n, word.clone());
                let id = format!("{n}-0").into_bytes();
                self.ask(key, &[b"XADD", key, &id, b"f", &word], Expected::Is(blob(&id)));
            }
        }
    }

    /// Every value as a whole.
    fn look_at_all(&mut self) -> io::Result<()> {
        let keys: Vec<Bytes> = self.models.keys().cloned().collect();
        for key in keys {
            let Some(model) = self.models.get(&key) else { continue };
            let (words, expected) = question(&key, model);
            let got = self.client.call(&words)?;
            self.stage.checked.fetch_add(1, Relaxed);
            if !is_as_expected(&got, &expected) {
                let asked = Asked { key, request: words, expected };
                return Err(io::Error::other(describe(&asked, &got)));
            }
        }
        Ok(())
    }
}

impl Model {
    fn len(&self) -> usize {
        match self {
            Model::Text(_) => 0,
            Model::List(list) => list.len(),
            Model::Hash(hash) => hash.len(),
            Model::Set(set) => set.len(),
            Model::ZSet(set) => set.len(),
            Model::Stream(stream) => stream.len(),
        }
    }
}

/// The request that answers something of every element.
fn question(key: &[u8], model: &Model) -> (Vec<Bytes>, Expected) {
    let (words, expected): (Vec<&[u8]>, Expected) = match model {
        Model::Text(text) => (vec![b"GET", key], maybe(Some(text))),
        Model::List(list) => {
            (vec![b"LRANGE", key, b"0", b"-1"], Expected::Is(array(list.iter().map(|word| blob(word)))))
        }
        Model::Hash(hash) => {
            let pairs = hash.iter().flat_map(|(field, word)| [blob(field), blob(word)]);
            (vec![b"HGETALL", key], Expected::Pairs(array(pairs)))
        }
        Model::Set(set) => {
            (vec![b"SMEMBERS", key], Expected::Sorted(array(set.iter().map(|word| blob(word)))))
        }
        Model::ZSet(set) => (vec![b"ZCARD", key], int(set.len() as i64)),
        Model::Stream(stream) => (vec![b"XLEN", key], int(stream.len() as i64)),
    };
    (words.into_iter().map(<[u8]>::to_vec).collect(), expected)
}

fn is_refused(got: &Value) -> bool {
    matches!(got, Value::Line(b'-', text) if text.starts_with(b"OOM"))
}

fn is_as_expected(got: &Value, expected: &Expected) -> bool {
    match expected {
        Expected::Is(value) => got == value,
        Expected::Sorted(value) => sorted(got, 1) == sorted(value, 1),
        Expected::Pairs(value) => sorted(got, 2) == sorted(value, 2),
    }
}

fn sorted(value: &Value, width: usize) -> Option<Vec<Vec<&[u8]>>> {
    let Value::Aggregate(_, elements) = value else { return None };
    let mut parts: Vec<Vec<&[u8]>> =
        elements.chunks(width).map(|part| part.iter().filter_map(Value::text).collect()).collect();
    parts.sort();
    Some(parts)
}

fn describe(asked: &Asked, got: &Value) -> String {
    const CHARACTERS_MAX: usize = 2000;
    let expected = match &asked.expected {
        Expected::Is(value) | Expected::Sorted(value) | Expected::Pairs(value) => value,
    };
    let short = |text: String| text.chars().take(CHARACTERS_MAX).collect::<String>();
    let words: Vec<String> = asked.request.iter().map(|word| word.escape_ascii().to_string()).collect();
    let (got, expected) = (short(got.lines().join(" ")), short(expected.lines().join(" ")));
    format!("{}\n  answered: {got}\n  expected: {expected}", short(words.join(" ")))
}

/// Keys with deadlines, which may be evicted: what is there is what was written.
pub(super) fn churn(stage: &Stage, seed: u64) {
    let told = (|| {
        let (mut client, mut random) = (RespClient::connect(&stage.process.address())?, Random::new(seed));
        client.call(&["CLIENT", "NO-EVICT", "ON"])?;
        while !stage.is_over() {
            churn_some(stage, &mut client, &mut random)?;
        }
        Ok(())
    })();
    tell(stage, "churning client", told);
}

fn churn_some(stage: &Stage, client: &mut RespClient, random: &mut Random) -> io::Result<()> {
    const REQUESTS: u64 = 30;
    let mut wire = Vec::new();
    let mut asked = Vec::new();
    for _ in 0..REQUESTS {
        let n = random.below(60_000);
        let key = format!("churn:{n}");
        // The text follows from the number, its length too.
        let text = vec![b'a' + (n % 26) as u8; (n * 7919 % 16_000) as usize];
        if random.below(3) == 0 {
            wire.extend(request(&[b"GET", key.as_bytes()]));
            asked.push(Some(text));
        } else {
            let seconds = (1 + random.below(60)).to_string();
            wire.extend(request(&[b"SET", key.as_bytes(), &text, b"EX", seconds.as_bytes()]));
            asked.push(None);
        }
    }
    client.send_bytes(&wire)?;
    for expected in asked {
        match (client.receive()?, expected) {
            (Value::Blob(_, got), Some(text)) if got == text => {}
            (Value::Null(_), Some(_)) => {}
            (Value::Line(b'+', _), None) => {}
            (got, None) if is_refused(&got) => {}
            (got, _) => {
                let got: String = got.lines().join(" ").chars().take(300).collect();
                return Err(io::Error::other(format!("a key that may go answers {got}")));
            }
        }
    }
    stage.requests.fetch_add(REQUESTS, Relaxed);
    Ok(())
}
