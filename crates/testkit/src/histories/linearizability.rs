//! Linearizability of one key: whether the requests have an order that respects their times and in which a
//! plain model gives every answer. The search is that of Wing and Gong, with Lowe's memory of what was tried:
//! take any request that was sent before the first answer still open; where the model does not agree, or all
//! after it fails, take another. A set of requests done with the same state is never tried twice.
use crate::resp_value::Value;
use base::random::Random;
use std::collections::{BTreeSet, HashSet, VecDeque};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Register,
    List,
    Set,
}

impl Kind {
    pub(super) const ALL: [Kind; 3] = [Kind::Register, Kind::List, Kind::Set];

    pub(super) fn key(self) -> &'static str {
        match self {
            Kind::Register => "register",
            Kind::List => "list",
            Kind::Set => "set",
        }
    }
}

/// What a request does. Words are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Get,
    Set(u64),
    /// SET with GET.
    Swap(u64),
    Incr,
    Append(u64),
    Del,
    PushLeft(u64),
    PopRight,
    /// BLPOP, with a short timeout.
    WaitLeft,
    Len,
    Add(u64),
    Remove(u64),
    Contains(u64),
    /// SPOP, which chooses for itself.
    Take,
}

/// A request with its answer and the times of both.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) client: usize,
    pub(super) sent: u64,
    pub(super) answered: u64,
    pub(super) deed: Deed,
    pub(super) answer: Value,
}

impl Deed {
    pub(super) fn draw(kind: Kind, random: &mut Random, blocks: bool) -> Deed {
        let word = random.below(10);
        match (kind, random.below(12)) {
            (Kind::Register, 0..4) => Deed::Get,
            (Kind::Register, 4..6) => Deed::Set(word),
            (Kind::Register, 6) => Deed::Swap(word),
            (Kind::Register, 7) => Deed::Append(word),
            (Kind::Register, 8) => Deed::Del,
            (Kind::Register, _) => Deed::Incr,
            // Words of a list differ, so that none can stand for another.
            (Kind::List, 0..5) => Deed::PushLeft(random.below(1 << 40)),
            (Kind::List, 5..8) => Deed::PopRight,
            (Kind::List, 8..11) if blocks => Deed::WaitLeft,
            (Kind::List, _) => Deed::Len,
            (Kind::Set, 0..4) => Deed::Add(word),
            (Kind::Set, 4..7) => Deed::Remove(word),
            (Kind::Set, 7..9) => Deed::Contains(word),
            (Kind::Set, 9) => Deed::Len,
            (Kind::Set, _) => Deed::Take,
        }
    }

    pub(super) fn words(self, key: &str) -> Vec<String> {
        let line = match self {
            Deed::Get => format!("GET {key}"),
            Deed::Set(word) => format!("SET {key} {word}"),
            Deed::Swap(word) => format!("SET {key} {word} GET"),
            Deed::Incr => format!("INCR {key}"),
            Deed::Append(word) => format!("APPEND {key} {word}"),
            Deed::Del => format!("DEL {key}"),
            Deed::PushLeft(word) => format!("LPUSH {key} {word}"),
            Deed::PopRight => format!("RPOP {key}"),
            Deed::WaitLeft => format!("BLPOP {key} 0.002"),
            Deed::Len if key == Kind::List.key() => format!("LLEN {key}"),
            Deed::Len => format!("SCARD {key}"),
            Deed::Add(word) => format!("SADD {key} {word}"),
            Deed::Remove(word) => format!("SREM {key} {word}"),
            Deed::Contains(word) => format!("SISMEMBER {key} {word}"),
            Deed::Take => format!("SPOP {key}"),
        };
        line.split(' ').map(str::to_owned).collect()
    }
}

/// The model of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Register(Option<String>),
    List(VecDeque<u64>),
    Set(BTreeSet<u64>),
}

impl State {
    fn new(kind: Kind) -> State {
        match kind {
            Kind::Register => State::Register(None),
            Kind::List => State::List(VecDeque::new()),
            Kind::Set => State::Set(BTreeSet::new()),
        }
    }

    /// What follows when this request gets this answer; None where it cannot.
    fn after(&self, asked: &Asked) -> Option<State> {
        let mut next = self.clone();
        let is_right = match &mut next {
            State::Register(value) => register(value, asked),
            State::List(list) => self::list(list, asked),
            State::Set(set) => self::set(set, asked),
        };
        is_right.then_some(next)
    }
}

fn text(value: &Value) -> Option<&str> {
    std::str::from_utf8(value.text()?).ok()
}

fn number(value: &Value) -> Option<u64> {
    text(value)?.parse().ok()
}

fn is_null(value: &Value) -> bool {
    matches!(value, Value::Null(_))
}

/// Whether the answer is this text, or the null of none.
fn is(answer: &Value, expected: Option<&str>) -> bool {
    match expected {
        Some(expected) => text(answer) == Some(expected),
        None => is_null(answer),
    }
}

fn register(value: &mut Option<String>, asked: &Asked) -> bool {
    let answer = &asked.answer;
    match asked.deed {
        Deed::Get => is(answer, value.as_deref()),
        Deed::Set(word) => {
            *value = Some(word.to_string());
            is(answer, Some("OK"))
        }
        Deed::Swap(word) => {
            let old = value.replace(word.to_string());
            is(answer, old.as_deref())
        }
        Deed::Del => is(answer, Some(if value.take().is_some() { "1" } else { "0" })),
        Deed::Append(word) => {
            let text = value.get_or_insert_default();
            text.push_str(&word.to_string());
            number(answer) == Some(text.len() as u64)
        }
        // APPEND can make a text that INCR takes for no number: INCR is an error then and changes nothing.
        Deed::Incr => match value.as_deref().unwrap_or("0").parse::<i64>() {
            Ok(n) if n < i64::MAX && is_canonical(value.as_deref()) => {
                let text = (n + 1).to_string();
                let is_right = is(answer, Some(&text));
                *value = Some(text);
                is_right
            }
            _ => matches!(answer, Value::Line(b'-', _)),
        },
        _ => false,
    }
}

/// Whether INCR takes it for a number: no leading zeros.
fn is_canonical(text: Option<&str>) -> bool {
    text.is_none_or(|text| text == "0" || !text.starts_with('0'))
}

fn list(list: &mut VecDeque<u64>, asked: &Asked) -> bool {
    let answer = &asked.answer;
    match asked.deed {
        Deed::PushLeft(word) => {
            list.push_front(word);
            number(answer) == Some(list.len() as u64)
        }
        Deed::PopRight => match list.pop_back() {
            Some(word) => number(answer) == Some(word),
            None => is_null(answer),
        },
        Deed::WaitLeft => match (list.pop_front(), answer) {
            (Some(word), Value::Aggregate(_, parts)) => parts.len() == 2 && number(&parts[1]) == Some(word),
            (None, answer) => is_null(answer),
            _ => false,
        },
        Deed::Len => number(answer) == Some(list.len() as u64),
        _ => false,
    }
}

fn set(set: &mut BTreeSet<u64>, asked: &Asked) -> bool {
    let answer = &asked.answer;
    let is_count = |is_one: bool| number(answer) == Some(u64::from(is_one));
    match asked.deed {
        Deed::Add(word) => is_count(set.insert(word)),
        Deed::Remove(word) => is_count(set.remove(&word)),
        Deed::Contains(word) => is_count(set.contains(&word)),
        Deed::Len => number(answer) == Some(set.len() as u64),
        Deed::Take => match number(answer) {
            Some(word) => set.remove(&word),
            None => set.is_empty() && is_null(answer),
        },
        _ => false,
    }
}

/// The beginnings and ends of requests in their order, as a linked list from which they are taken and put
/// back. Entry `2 * n + 1` is the beginning of request `n`, `2 * n + 2` its end, 0 the head of the list.
struct Timeline {
    next: Vec<usize>,
    prev: Vec<usize>,
}

impl Timeline {
    fn new(history: &[Asked]) -> Timeline {
        let mut entries: Vec<(u64, usize)> = Vec::new();
        for (n, asked) in history.iter().enumerate() {
            entries.extend([(asked.sent, 2 * n + 1), (asked.answered, 2 * n + 2)]);
        }
        entries.sort_unstable();
        let mut timeline = Timeline { next: vec![0; entries.len() + 1], prev: vec![0; entries.len() + 1] };
        let mut last = 0;
        for (_, entry) in entries {
            (timeline.next[last], timeline.prev[entry]) = (entry, last);
            last = entry;
        }
        (timeline.next[last], timeline.prev[0]) = (0, last);
        timeline
    }

    fn unlink(&mut self, entry: usize) {
        let (prev, next) = (self.prev[entry], self.next[entry]);
        (self.next[prev], self.prev[next]) = (next, prev);
    }

    fn link(&mut self, entry: usize) {
        let (prev, next) = (self.prev[entry], self.next[entry]);
        (self.next[prev], self.prev[next]) = (entry, entry);
    }

    fn take(&mut self, request: usize) {
        self.unlink(2 * request + 1);
        self.unlink(2 * request + 2);
    }

    /// Puts back the request that was taken last.
    fn put_back(&mut self, request: usize) {
        self.link(2 * request + 2);
        self.link(2 * request + 1);
    }
}

/// Whether the history has an order that explains it; otherwise the part that has none.
pub(super) fn check(kind: Kind, history: &[Asked]) -> Result<(), String> {
    let mut timeline = Timeline::new(history);
    let mut done = vec![0u64; history.len().div_ceil(64)];
    let mut tried: HashSet<(Vec<u64>, State)> = HashSet::new();
    let mut order: Vec<(usize, State)> = Vec::new();
    let mut longest = 0;
    let mut state = State::new(kind);
    let mut entry = timeline.next[0];
    while timeline.next[0] != 0 {
        let is_beginning = entry % 2 == 1;
        if is_beginning {
            let request = (entry - 1) / 2;
            if let Some(next) = state.after(&history[request]) {
                done[request / 64] |= 1 << (request % 64);
                if tried.insert((done.clone(), next.clone())) {
                    order.push((request, std::mem::replace(&mut state, next)));
                    longest = longest.max(order.len());
                    timeline.take(request);
                    entry = timeline.next[0];
                    continue;
                }
                done[request / 64] &= !(1 << (request % 64));
            }
            entry = timeline.next[entry];
            continue;
        }
        // The end of a request that has not been taken, or of the list: the last choice was wrong.
        let Some((request, before)) = order.pop() else {
            return Err(told(kind, history, longest));
        };
        state = before;
        done[request / 64] &= !(1 << (request % 64));
        timeline.put_back(request);
        entry = timeline.next[2 * request + 1];
    }
    Ok(())
}

/// The history around what could not be explained.
fn told(kind: Kind, history: &[Asked], explained: usize) -> String {
    const SHOWN: usize = 60;
    let mut sorted: Vec<&Asked> = history.iter().collect();
    sorted.sort_by_key(|asked| asked.answered);
    let start = explained.saturating_sub(SHOWN / 2);
    let lines = sorted.iter().skip(start).take(SHOWN).map(|asked| {
        let (words, answer) = (asked.deed.words(kind.key()).join(" "), asked.answer.lines().join(" "));
        format!("{:>8} {:>8}  client {}: {words} = {answer}", asked.sent, asked.answered, asked.client)
    });
    let lines: Vec<String> = lines.collect();
    format!(
        "no order explains all of {} requests on a {kind:?} (at most {explained}):\n{}",
        history.len(),
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(mark: u8, text: &str) -> Value {
        Value::Line(mark, text.as_bytes().to_vec())
    }

    fn asked(client: usize, sent: u64, answered: u64, deed: Deed, answer: Value) -> Asked {
        Asked { client, sent, answered, deed, answer }
    }

    fn ok(client: usize, sent: u64, answered: u64, word: u64) -> Asked {
        asked(client, sent, answered, Deed::Set(word), line(b'+', "OK"))
    }

    fn got(client: usize, sent: u64, answered: u64, word: u64) -> Asked {
        asked(client, sent, answered, Deed::Get, Value::Blob(b'$', word.to_string().into_bytes()))
    }

    #[test]
    fn what_overlaps_may_be_in_any_order() {
        // The later of two writes at once is read as if it were the earlier.
        let history = [ok(0, 0, 9, 1), ok(1, 1, 8, 2), got(2, 10, 11, 1), got(2, 12, 13, 1)];
        assert_eq!(check(Kind::Register, &history), Ok(()));
        let history = [ok(0, 0, 9, 1), ok(1, 1, 8, 2), got(2, 10, 11, 2)];
        assert_eq!(check(Kind::Register, &history), Ok(()));
    }

    #[test]
    fn a_read_of_what_was_overwritten_before_it_began_is_refused() {
        let history = [ok(0, 0, 1, 1), ok(0, 2, 3, 2), got(1, 4, 5, 1)];
        assert!(check(Kind::Register, &history).unwrap_err().contains("GET register = $1 1"));
    }

    #[test]
    fn two_reads_in_a_row_do_not_go_back_in_time() {
        let history = [ok(0, 0, 1, 1), ok(0, 2, 20, 2), got(1, 3, 4, 2), got(2, 5, 6, 1)];
        assert!(check(Kind::Register, &history).is_err());
    }

    #[test]
    fn a_lost_increment_is_refused() {
        let incr = |client, sent, answered, n: &str| asked(client, sent, answered, Deed::Incr, line(b':', n));
        assert!(check(Kind::Register, &[incr(0, 0, 5, "1"), incr(1, 1, 6, "2")]).is_ok());
        assert!(check(Kind::Register, &[incr(0, 0, 5, "1"), incr(1, 1, 6, "1")]).is_err());
    }

    #[test]
    fn an_element_that_is_popped_twice_or_never_is_refused() {
        let push =
            |sent, answered, word, len: &str| asked(0, sent, answered, Deed::PushLeft(word), line(b':', len));
        let pop = |client, sent, answered, word: &str| {
            asked(client, sent, answered, Deed::PopRight, Value::Blob(b'$', word.as_bytes().to_vec()))
        };
        let none = |sent, answered| asked(3, sent, answered, Deed::WaitLeft, Value::Null(b'*'));
        assert!(check(Kind::List, &[push(0, 1, 7, "1"), pop(1, 2, 5, "7"), none(3, 9)]).is_ok());
        assert!(check(Kind::List, &[push(0, 1, 7, "1"), pop(1, 2, 5, "7"), pop(2, 3, 6, "7")]).is_err());
        assert!(check(Kind::List, &[push(0, 1, 7, "1"), none(2, 3)]).is_err());
        let waited = |sent, answered, word: &str| {
            let parts = ["list", word].map(|part| Value::Blob(b'$', part.as_bytes().to_vec()));
            asked(3, sent, answered, Deed::WaitLeft, Value::Aggregate(b'*', parts.to_vec()))
        };
        // The left end is that of the last push.
        let pushes = [push(0, 1, 7, "1"), push(2, 3, 8, "2")];
        assert!(check(Kind::List, &[&pushes[..], &[waited(4, 5, "8")]].concat()).is_ok());
        assert!(check(Kind::List, &[&pushes[..], &[waited(4, 5, "7")]].concat()).is_err());
    }

    #[test]
    fn a_member_is_added_once_and_taken_once() {
        let add = |sent, answered, n: &str| asked(0, sent, answered, Deed::Add(3), line(b':', n));
        let take = |sent, answered| asked(1, sent, answered, Deed::Take, Value::Blob(b'$', b"3".to_vec()));
        assert!(check(Kind::Set, &[add(0, 5, "1"), add(1, 6, "0"), take(7, 8)]).is_ok());
        assert!(check(Kind::Set, &[add(0, 5, "1"), add(1, 6, "1")]).is_err());
        assert!(check(Kind::Set, &[add(0, 1, "1"), take(2, 5), take(3, 6)]).is_err());
    }

    #[test]
    fn a_long_history_that_one_wrong_answer_spoils_is_refused() {
        let mut random = Random::new(1);
        let (mut history, mut value) = (Vec::new(), 0);
        for n in 0..2_000u64 {
            // Each request overlaps the one before.
            let (sent, answered) = (n * 10, n * 10 + 15);
            let word = random.below(5);
            if n == 0 || random.below(3) == 0 {
                value = word;
                history.push(ok((n % 4) as usize, sent, n * 10 + 1, word));
            } else {
                history.push(got((n % 4) as usize, sent, answered.min(n * 10 + 9), value));
            }
        }
        assert_eq!(check(Kind::Register, &history), Ok(()));
        let last = history.iter().rposition(|asked| asked.deed == Deed::Get).unwrap();
        history[last] = got(0, history[last].sent, history[last].answered, 77);
        assert!(check(Kind::Register, &history).is_err());
    }
}
