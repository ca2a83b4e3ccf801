//! The databases other than 0 of one shard, and which of their lengths may have changed.
//!
//! A database is made in a shard when something is first written to it there. Those that were made stand in
//! the order of their numbers, side by side, and are found by halves; where they are 1, 2, 3 and so on
//! without a gap, as they mostly are, at once. So what a database costs does not depend on its number, and
//! those that nobody uses cost nothing, however many the settings allow.
//!
//! ```text
//! numbers [1, 2, 9]   made [Db and 7, Db and 0, Db and 12: the length that was published]
//! ```
//!
//! A database that is empty when its length is published beside those of others goes. Positions are therefore
//! good for as long as the shard is locked; who comes back names databases by their numbers.
use crate::keyspace::shard::Db;

/// See the file's opener. Both lists are as long.
#[derive(Default)]
pub(crate) struct Databases {
    /// Ascending.
    numbers: Vec<u16>,
    made: Vec<Made>,
}

struct Made {
    db: Db,
    /// How many keys it had when that was last published for readers without the lock (`locked.rs`).
    published: u64,
}

/// Which databases other than 0 may have changed since their lengths were published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Lent {
    #[default]
    None,
    One(u16),
    Many,
}

impl Lent {
    /// This one too.
    pub(crate) fn add(&mut self, db: u16) {
        *self = match *self {
            Lent::None => Lent::One(db),
            Lent::One(other) if other == db => Lent::One(db),
            _ => Lent::Many,
        };
    }
}

impl Databases {
    /// Where a database stands, or would.
    fn position(&self, db: u16) -> Result<usize, usize> {
        debug_assert!(db > 0, "database 0 stands elsewhere");
        let dense = usize::from(db) - 1;
        match self.numbers.get(dense) {
            Some(number) if *number == db => Ok(dense),
            _ => self.numbers.binary_search(&db),
        }
    }

    /// None where it was not made yet.
    pub(crate) fn find(&self, db: u16) -> Option<&Db> {
        self.position(db).ok().map(|at| &self.made[at].db)
    }

    /// None where it was not made yet.
    pub(crate) fn find_mut(&mut self, db: u16) -> Option<&mut Db> {
        self.position(db).ok().map(|at| &mut self.made[at].db)
    }

    /// The first one of those with this number or a greater one.
    pub(crate) fn first_from(&mut self, db: u16) -> Option<(u16, &mut Db)> {
        let at = self.position(db).unwrap_or_else(|at| at);
        Some((*self.numbers.get(at)?, &mut self.made[at].db))
    }

    /// It is made where it is missing.
    pub(crate) fn open(&mut self, db: u16) -> &mut Db {
        let at = self.position(db).unwrap_or_else(|at| {
            self.numbers.insert(at, db);
            self.made.insert(at, Made { db: Db::new(), published: 0 });
            at
        });
        &mut self.made[at].db
    }

    /// Exchanges what two of them hold.
    pub(crate) fn swap(&mut self, a: u16, b: u16) {
        let held = std::mem::replace(self.open(a), Db::new());
        let other = std::mem::replace(self.open(b), held);
        *self.open(a) = other;
    }

    /// All with their numbers, ascending.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u16, &Db)> {
        self.numbers.iter().copied().zip(self.made.iter().map(|made| &made.db))
    }

    /// All with their numbers, ascending.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = (u16, &mut Db)> {
        self.numbers.iter().copied().zip(self.made.iter_mut().map(|made| &mut made.db))
    }

    /// Shows the lengths that are not what was published, of those that may have changed. They count as
    /// published from then on.
    pub(crate) fn publish(&mut self, lent: Lent, mut publish: impl FnMut(u16, u64)) {
        let chosen = match lent {
            Lent::None => 0..0,
            Lent::One(db) => self.position(db).map_or(0..0, |at| at..at + 1),
            Lent::Many => 0..self.made.len(),
        };
        let mut is_any_empty = false;
        for (number, made) in self.numbers[chosen.clone()].iter().zip(&mut self.made[chosen]) {
            let len = made.db.map.len();
            is_any_empty |= len == 0;
            if std::mem::replace(&mut made.published, len) != len {
                publish(*number, len);
            }
        }
        if is_any_empty && lent == Lent::Many {
            self.forget_empty();
        }
    }

    #[cold]
    fn forget_empty(&mut self) {
        let is_kept = |made: &Made| !made.db.map.is_empty();
        let kept = self.numbers.iter().zip(&self.made).filter(|(_, made)| is_kept(made));
        self.numbers = kept.map(|(number, _)| *number).collect();
        self.made.retain(is_kept);
        self.made.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(databases: &Databases) -> Vec<u16> {
        databases.all().map(|(number, _)| number).collect()
    }

    #[test]
    fn a_database_is_found_by_its_number_whichever_were_made_before() {
        let mut databases = Databases::default();
        for number in [1, 2, 9, u16::MAX, 5] {
            assert!(databases.find(number).is_none(), "{number}");
            databases.open(number).volatile.keys = u64::from(number);
        }
        assert_eq!(numbers(&databases), [1, 2, 5, 9, u16::MAX]);
        for (number, db) in databases.all() {
            assert_eq!(db.volatile.keys, u64::from(number));
            assert_eq!(databases.find(number).map(|db| db.volatile.keys), Some(u64::from(number)));
        }
        let from = |databases: &mut Databases, number| databases.first_from(number).map(|(number, _)| number);
        assert_eq!([3, 9, 10].map(|number| from(&mut databases, number)), [Some(5), Some(9), Some(u16::MAX)]);
        databases.swap(2, 9);
        assert_eq!([2, 9].map(|number| databases.open(number).volatile.keys), [9, 2]);
    }

    #[test]
    fn those_that_are_empty_go_when_all_are_looked_at() {
        let mut databases = Databases::default();
        for number in [1, 4] {
            databases.open(number).volatile.keys = 1;
        }
        databases.publish(Lent::One(4), |number, _| panic!("{number} has no keys, as before"));
        assert_eq!(numbers(&databases), [1, 4]);
        databases.publish(Lent::Many, |number, _| panic!("{number} has no keys, as before"));
        assert_eq!(numbers(&databases), [0; 0]);
        let mut lent = Lent::None;
        lent.add(3);
        lent.add(3);
        assert_eq!(lent, Lent::One(3));
        lent.add(4);
        assert_eq!(lent, Lent::Many);
    }
}
