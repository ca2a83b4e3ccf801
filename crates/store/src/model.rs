//! The naive twin of the keyspace: a sorted map of plain values, in which a key past its deadline is simply
//! not there. What the properties compare against.
use crate::{AddError, Deadline, End, Expiry, WrongType};
use base::text::parse_i64;
use std::collections::{BTreeMap, VecDeque};

pub(crate) type Text = Vec<u8>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Str(Text),
    List(VecDeque<Text>),
}

#[derive(Default)]
pub(crate) struct Model {
    pub(crate) now: i64,
    pub(crate) keys: BTreeMap<(u16, Text), (Value, Deadline)>,
}

impl Model {
    /// Forgets what is past its deadline.
    pub(crate) fn expire(&mut self) {
        let now = base::Millis(self.now);
        self.keys.retain(|_, (_, deadline)| !deadline.is_past(now));
    }

    pub(crate) fn len(&self, db: u16) -> u64 {
        self.keys.keys().filter(|(in_db, _)| *in_db == db).count() as u64
    }

    pub(crate) fn names(&self, db: u16) -> Vec<Text> {
        self.keys.keys().filter(|(in_db, _)| *in_db == db).map(|(_, key)| key.clone()).collect()
    }

    /// Keys with a deadline, and the mean time to live.
    pub(crate) fn volatile(&self, db: u16) -> (u64, i64) {
        let deadlines = self.keys.iter().filter_map(|((in_db, _), (_, deadline))| match deadline {
            Deadline::At(at) if *in_db == db => Some(i128::from(at.0)),
            _ => None,
        });
        let (count, sum) = deadlines.fold((0, 0), |(count, sum), at| (count + 1, sum + at));
        if count == 0 {
            return (0, 0);
        }
        (count as u64, i64::try_from((sum / count - i128::from(self.now)).max(0)).unwrap_or(i64::MAX))
    }

    pub(crate) fn value(&self, db: u16, key: &[u8]) -> Option<&Value> {
        self.keys.get(&(db, key.to_vec())).map(|(value, _)| value)
    }

    pub(crate) fn deadline(&self, db: u16, key: &[u8]) -> Option<Deadline> {
        self.keys.get(&(db, key.to_vec())).map(|(_, deadline)| *deadline)
    }

    pub(crate) fn string(&self, db: u16, key: &[u8]) -> Result<Option<Text>, WrongType> {
        match self.value(db, key) {
            None => Ok(None),
            Some(Value::Str(text)) => Ok(Some(text.clone())),
            Some(Value::List(_)) => Err(WrongType),
        }
    }

    pub(crate) fn put_string(&mut self, db: u16, key: &[u8], text: &[u8], expiry: Expiry) {
        let deadline = match expiry {
            Expiry::Clear => Deadline::Never,
            Expiry::Keep => self.deadline(db, key).unwrap_or(Deadline::Never),
            Expiry::At(at) => Deadline::At(at),
        };
        self.keys.insert((db, key.to_vec()), (Value::Str(text.to_vec()), deadline));
    }

    pub(crate) fn add(&mut self, db: u16, key: &[u8], delta: i64) -> Result<i64, AddError> {
        let old = match self.string(db, key) {
            Err(WrongType) => return Err(AddError::WrongType),
            Ok(None) => 0,
            Ok(Some(text)) => parse_i64(&text).ok_or(AddError::NotAnInteger)?,
        };
        let sum = old.checked_add(delta).ok_or(AddError::Overflow)?;
        self.put_string(db, key, sum.to_string().as_bytes(), Expiry::Keep);
        Ok(sum)
    }

    pub(crate) fn edit(
        &mut self,
        db: u16,
        key: &[u8],
        edit: impl FnOnce(&mut Text),
    ) -> Result<u64, WrongType> {
        let mut text = self.string(db, key)?.unwrap_or_default();
        edit(&mut text);
        self.put_string(db, key, &text, Expiry::Keep);
        Ok(text.len() as u64)
    }

    pub(crate) fn remove(&mut self, db: u16, key: &[u8]) -> bool {
        self.keys.remove(&(db, key.to_vec())).is_some()
    }

    pub(crate) fn rename(&mut self, from: &(u16, Text), to: &(u16, Text)) -> bool {
        let Some(moved) = self.keys.remove(from) else { return false };
        self.keys.insert(to.clone(), moved);
        true
    }

    pub(crate) fn copy(&mut self, from: &(u16, Text), to: &(u16, Text)) -> bool {
        let Some(copied) = self.keys.get(from).cloned() else { return false };
        self.keys.insert(to.clone(), copied);
        true
    }

    pub(crate) fn swap(&mut self, a: u16, b: u16) {
        let renumbered = |db| {
            if db == a {
                b
            } else if db == b {
                a
            } else {
                db
            }
        };
        let keys = std::mem::take(&mut self.keys);
        self.keys = keys.into_iter().map(|((db, key), value)| ((renumbered(db), key), value)).collect();
    }

    pub(crate) fn set_deadline(&mut self, db: u16, key: &[u8], deadline: Deadline) -> bool {
        let Some((_, old)) = self.keys.get_mut(&(db, key.to_vec())) else { return false };
        *old = deadline;
        self.expire();
        true
    }

    /// Edits a list, made where it is missing; an empty one goes.
    pub(crate) fn list<R>(
        &mut self,
        db: u16,
        key: &[u8],
        edit: impl FnOnce(&mut VecDeque<Text>) -> R,
    ) -> Result<R, WrongType> {
        let name = (db, key.to_vec());
        let fresh = (Value::List(VecDeque::new()), Deadline::Never);
        let (Value::List(list), _) = self.keys.entry(name.clone()).or_insert(fresh) else {
            return Err(WrongType);
        };
        let done = edit(list);
        if list.is_empty() {
            self.keys.remove(&name);
        }
        Ok(done)
    }

    pub(crate) fn flush(&mut self, db: Option<u16>) -> u64 {
        let before = self.keys.len();
        self.keys.retain(|(in_db, _), _| db.is_some_and(|db| db != *in_db));
        (before - self.keys.len()) as u64
    }
}

pub(crate) fn push(list: &mut VecDeque<Text>, end: End, value: &[u8]) {
    match end {
        End::Head => list.push_front(value.to_vec()),
        End::Tail => list.push_back(value.to_vec()),
    }
}

pub(crate) fn pop(list: &mut VecDeque<Text>, end: End) -> Option<Text> {
    match end {
        End::Head => list.pop_front(),
        End::Tail => list.pop_back(),
    }
}
