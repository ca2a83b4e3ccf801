//! A hierarchical timing wheel: what falls due when, in milliseconds, for one shard and database. Its items
//! are ranges of leaves in hash order (see `notes.rs`), not keys: 20 bytes for a leaf of some two dozen keys.
//!
//! Time is read as digits of base 64, the lowest being a millisecond. An item waits at the level of the
//! highest digit in which its due time differs from `elapsed`, in the slot that this digit of its due time
//! names:
//!
//! ```text
//! elapsed = .. 07 51 12   due = .. 07 51 40  ->  level 0, slot 40: fires when its millisecond comes
//!                         due = .. 07 60 03  ->  level 1, slot 60: falls to level 0 when .. 07 60 00 comes
//!                         due = .. 09 00 01  ->  level 2, slot 09: falls to level 0 when .. 09 00 00 comes
//! ```
//!
//! So every waiting slot lies ahead of `elapsed`, every slot of a level comes before all slots of the level
//! above, and the next slot is the lowest bit of the lowest level that has one: a jump of years costs as much
//! as a millisecond. Eleven levels hold any `u64`; a level is allocated when something first waits in it. An
//! item falls at most once a level. Slots are lists through one slab of items, so that falling and firing
//! allocate nothing.
//!
//! Nothing fires before its time, even if the clock is put back behind `elapsed`: items that became due
//! between the two times and have not fired wait in a list of their own (`loose`) until the first of them is
//! due again. So do the first few items, whenever they are due: most wheels are those of small hashes of
//! which some fields have deadlines, and a level takes more than the rest of such a hash.
//!
//! Work comes out in [`Step`]s, each O(1), so that whoever drives the wheel can stop anywhere.
//!
//! When leaves split or join, and when keys are removed before their deadlines, items stay behind that no
//! leaf relies on, for years if their due times are that far away. So when twice as many items wait as after
//! the last tidying, whoever drives the wheel goes through all of them, some at a time ([`Wheel::tidy`]), and
//! says which are needed; the others are dropped, and so are items whose leaves another one names for the
//! same time: a leaf gets one more each time when a key with a nearer deadline has come and gone.
use base::random::Random;
use pack::arena::{Moves, relocate_box, relocate_vec};
use pack::map::OrderRange;
use std::cmp::Reverse;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 11;
/// The end of a list.
const NONE: u32 = u32::MAX;
/// If the clock steps back by less than this, due items wait; if by more, the wheel is laid out anew. Small
/// steps back are common, because the clocks of workers differ by a moment.
const BACKSTEP_MS_MAX: u64 = 1000;

/// One entry of the slab: 20 bytes, so the due time is kept in halves.
#[derive(Clone, Copy)]
struct Node {
    due_high: u32,
    due_low: u32,
    first: u32,
    last: u32,
    next: u32,
}
const _: () = assert!(size_of::<Node>() == 20);

impl Node {
    fn new(item: Item) -> Node {
        Node {
            due_high: (item.due >> 32) as u32,
            due_low: item.due as u32,
            first: item.range.first,
            last: item.range.last,
            next: NONE,
        }
    }

    fn item(&self) -> Item {
        Item {
            due: u64::from(self.due_high) << 32 | u64::from(self.due_low),
            range: OrderRange { first: self.first, last: self.last },
        }
    }
}

/// A node that is not in use: its range is empty, which no item's is.
const FREE: Node = Node { due_high: 0, due_low: 0, first: NOTHING.first, last: NOTHING.last, next: NONE };
/// The range of a node that is free, or waits but is not needed any more.
const NOTHING: OrderRange = OrderRange { first: 1, last: 0 };
/// As long as no more items wait than this they wait in `loose`.
const LOOSE: u32 = 8;
/// If so many items wait, a level that has become empty stays allocated.
const ITEMS_FOR_EMPTY_LEVELS: u32 = 64;
/// With fewer items than this nothing is tidied.
const TIDY_ITEMS_MIN: u32 = 8;
/// The wheel is laid out anew if at least one item in so many may not be needed.
const NEEDLESS_PART: u32 = 4;
/// It is laid out anew as well before an item is drawn, if fewer than one node in so many is in use.
const UNUSED_PART: usize = 4;
/// At most so many items of a slot are compared to find the soonest.
const COMPARED: usize = 64;

/// The node that is due first among the first of a list, and the one before it.
fn soonest(slab: &[Node], head: u32) -> (u32, u32) {
    let mut best = (NONE, head);
    let (mut before, mut node) = (NONE, head);
    for _ in 0..COMPARED {
        if slab[node as usize].item().due < slab[best.1 as usize].item().due {
            best = (before, node);
        }
        (before, node) = (node, slab[node as usize].next);
        if node == NONE {
            break;
        }
    }
    best
}

/// Takes a node out of a list, in which `before` comes before it.
fn unlink(slab: &mut [Node], head: &mut u32, (before, node): (u32, u32)) {
    let after = slab[node as usize].next;
    match before {
        NONE => *head = after,
        before => slab[before as usize].next = after,
    }
}

/// When the first of a list is due; None of a long list.
fn least_due(slab: &[Node], head: u32) -> Option<u64> {
    let (mut least, mut node) = (u64::MAX, head);
    for _ in 0..COMPARED {
        if node == NONE {
            return Some(least);
        }
        least = least.min(slab[node as usize].item().due);
        node = slab[node as usize].next;
    }
    None
}

#[derive(Clone)]
struct Level {
    /// A bit for every slot that holds something.
    occupied: u64,
    heads: [u32; SLOTS],
}

/// What waits in a wheel: the leaves in `range` are to be looked at when `due` comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) due: u64,
    pub(crate) range: OrderRange,
}

/// The number of an item that was drawn, until the wheel is changed.
pub(crate) struct Drawn(usize);

/// One step of the wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// This item is due and has left the wheel.
    Fired(Item),
    /// An item moved nearer; step again.
    Moved,
    /// Nothing is due.
    Idle,
}

type Levels = [Option<Box<Level>>; LEVELS];

#[derive(Clone)]
pub(crate) struct Wheel {
    /// The time up to which everything has fired, or stands in `ready`.
    elapsed: u64,
    /// None until something waits in one.
    levels: Option<Box<Levels>>,
    slab: Vec<Node>,
    /// Heads of lists: free nodes, what is due by `elapsed`, the slot that is being emptied downwards, and
    /// what is not due because the clock was put back, or waits where only a few do.
    free: u32,
    ready: u32,
    falling: u32,
    loose: u32,
    /// No item of `ready` is due before `ready_due`, and none of `loose` before `loose_due`, which is
    /// `u64::MAX` where `loose` is empty.
    ready_due: u64,
    loose_due: u64,
    /// Nodes that are in a list other than the free one.
    waiting: u32,
    /// When so many wait, those that are not needed are looked for.
    tidy_at: u32,
    /// The next node to be tidied; NONE while no tidying is under way.
    tidying: u32,
    /// How many of those that wait may not be needed: those of which that is known, and all that were
    /// scheduled again since the wheel was laid out, for a time at which another one may wait.
    needless: u32,
}

impl Node {
    fn is_something(&self) -> bool {
        self.first <= self.last
    }
}

impl Wheel {
    pub(crate) fn new(now: u64) -> Wheel {
        Wheel {
            elapsed: now,
            levels: None,
            slab: Vec::new(),
            free: NONE,
            ready: NONE,
            falling: NONE,
            loose: NONE,
            ready_due: u64::MAX,
            loose_due: u64::MAX,
            waiting: 0,
            tidy_at: TIDY_ITEMS_MIN,
            tidying: NONE,
            needless: 0,
        }
    }

    /// [`Wheel::schedule`] for leaves of which something nearer has gone.
    pub(crate) fn schedule_again(&mut self, item: Item) {
        self.needless = self.needless.saturating_add(1);
        self.schedule(item);
    }

    pub(crate) fn schedule(&mut self, item: Item) {
        let node = self.allocate(item);
        self.link(node, item.due);
        if self.waiting >= self.tidy_at && self.tidying == NONE {
            self.tidying = 0;
        }
    }

    /// Whether nothing waits, and so no leaf relies on the wheel.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// How many items wait, those included that are known not to be needed.
    #[cfg(test)]
    pub(crate) fn len(&self) -> u32 {
        self.waiting
    }

    /// Whether [`Wheel::tidy`] should be called.
    #[inline]
    pub(crate) fn is_untidy(&self) -> bool {
        self.tidying != NONE
    }

    /// Goes through at most `looks` items. When all have been gone through, those that `is_needed` said no to
    /// are dropped.
    pub(crate) fn tidy(&mut self, looks: usize, mut is_needed: impl FnMut(Item) -> bool) {
        if !self.is_untidy() {
            return;
        }
        let first = self.tidying as usize;
        let end = self.slab.len().min(first + looks);
        for number in first..end {
            let node = self.slab[number];
            if node.is_something() && !is_needed(node.item()) {
                self.forget(number);
            }
        }
        self.tidying = end as u32;
        if self.tidying as usize == self.slab.len() {
            self.tidying = NONE;
            self.tidy_at = (2 * self.waiting).max(TIDY_ITEMS_MIN);
            if self.needless >= self.waiting / NEEDLESS_PART {
                self.lay_out(self.elapsed);
            }
        }
    }

    /// When to step again, at the latest: never later than the earliest item's due time.
    pub(crate) fn next_due(&self) -> Option<u64> {
        if self.ready != NONE {
            return Some(self.ready_due.min(self.loose_due));
        }
        let in_slots = self.next_opening();
        match self.loose {
            NONE => in_slots,
            _ => Some(in_slots.map_or(self.loose_due, |start| start.min(self.loose_due))),
        }
    }

    /// When the first of the items falls or fires that wait in levels.
    fn next_opening(&self) -> Option<u64> {
        match self.falling {
            NONE => self.next_slot().map(|(_, _, start)| start),
            _ => Some(self.elapsed),
        }
    }

    /// Makes one step towards `now`. O(1), but for a clock that was set back by much.
    pub(crate) fn step(&mut self, now: u64) -> Step {
        if self.elapsed.saturating_sub(now) > BACKSTEP_MS_MAX {
            self.lay_out(now);
        }
        if self.falling != NONE {
            let node = self.falling;
            self.falling = self.slab[node as usize].next;
            self.link(node, self.slab[node as usize].item().due);
            return Step::Moved;
        }
        if self.ready != NONE {
            return self.fire_or_defer(now);
        }
        let next = self.next_slot();
        if self.loose != NONE
            && self.loose_due <= now
            && next.is_none_or(|(_, _, start)| self.loose_due <= start)
        {
            return self.fire_loose(now);
        }
        match next {
            Some((level, slot, start)) if start <= now => {
                self.elapsed = start;
                self.open(level, slot);
                Step::Moved
            }
            _ => {
                self.elapsed = self.elapsed.max(now);
                Step::Idle
            }
        }
    }

    /// The first item of `ready` fires. It goes to `loose` where the clock was put back behind its time.
    fn fire_or_defer(&mut self, now: u64) -> Step {
        let node = self.ready;
        let due = self.slab[node as usize].item().due;
        if due <= now {
            return self.take_ready().map_or(Step::Moved, Step::Fired);
        }
        self.ready = std::mem::replace(&mut self.slab[node as usize].next, self.loose);
        self.loose = node;
        self.loose_due = self.loose_due.min(due);
        Step::Moved
    }

    /// The first item of `loose` fires. Where too many wait there to find it all become ready.
    fn fire_loose(&mut self, now: u64) -> Step {
        let (before, node) = soonest(&self.slab, self.loose);
        if self.slab[node as usize].item().due > now {
            self.reconsider();
            return Step::Moved;
        }
        self.take_loose(before, node).map_or(Step::Moved, Step::Fired)
    }

    /// Takes an item out of `loose`, of which this one comes before it.
    fn take_loose(&mut self, before: u32, node: u32) -> Option<Item> {
        unlink(&mut self.slab, &mut self.loose, (before, node));
        self.loose_due = least_due(&self.slab, self.loose).unwrap_or(self.loose_due);
        self.release(node)
    }

    /// Makes the items of `loose` ready again, when nothing else is.
    fn reconsider(&mut self) {
        self.ready = std::mem::replace(&mut self.loose, NONE);
        self.ready_due = std::mem::replace(&mut self.loose_due, u64::MAX);
    }

    /// Takes out about the item that is due first, before its time: the first of up to [`COMPARED`] items in
    /// the slot that opens next.
    pub(crate) fn take_soonest(&mut self) -> Option<Item> {
        loop {
            let taken = self.take_next()?;
            if taken.is_some() {
                return taken;
            }
        }
    }

    /// None where nothing waits, `Some(None)` where what waited was not needed.
    fn take_next(&mut self) -> Option<Option<Item>> {
        let next = self.next_slot();
        let head = if self.ready != NONE {
            Some(&mut self.ready)
        } else if self.falling != NONE {
            Some(&mut self.falling)
        } else {
            next.and_then(|(level, slot, _)| Some(&mut self.levels.as_mut()?[level].as_mut()?.heads[slot]))
        };
        let first = head.as_ref().map(|head| soonest(&self.slab, **head));
        let due = first.map(|(_, node)| self.slab[node as usize].item().due);
        if self.loose != NONE && due.is_none_or(|due| self.loose_due < due) {
            let (before, node) = soonest(&self.slab, self.loose);
            return Some(self.take_loose(before, node));
        }
        let ((before, node), head) = first.zip(head)?;
        unlink(&mut self.slab, head, (before, node));
        let is_emptied = *head == NONE;
        if self.ready == NONE
            && self.falling == NONE
            && is_emptied
            && let Some((level, slot, _)) = next
        {
            self.close(level, slot);
        }
        Some(self.release(node))
    }

    /// An item chosen at random, with the number by which [`Wheel::drop_drawn`] knows it. None where several
    /// draws in a row hit nodes that are not in use.
    pub(crate) fn draw(&mut self, random: &mut Random) -> Option<(Drawn, Item)> {
        const DRAWS: usize = 8;
        if self.slab.len() / UNUSED_PART > (self.waiting.max(TIDY_ITEMS_MIN)) as usize {
            self.lay_out(self.elapsed);
        }
        if self.slab.is_empty() {
            return None;
        }
        let mut numbers = (0..DRAWS).map(|_| random.below(self.slab.len() as u64) as usize);
        let number = numbers.find(|number| self.slab[*number].is_something())?;
        Some((Drawn(number), self.slab[number].item()))
    }

    /// No leaf relies on this item any more.
    pub(crate) fn drop_drawn(&mut self, Drawn(number): Drawn) {
        self.forget(number);
        if self.needless >= TIDY_ITEMS_MIN.max(self.waiting / NEEDLESS_PART) {
            self.lay_out(self.elapsed);
        }
    }

    /// A node that waits holds nothing any more.
    fn forget(&mut self, number: usize) {
        let node = &mut self.slab[number];
        (node.first, node.last) = (NOTHING.first, NOTHING.last);
        self.needless = self.needless.saturating_add(1);
    }

    /// Empties a slot whose time has come: its list becomes `ready` or `falling`, both of which are empty.
    fn open(&mut self, level: usize, slot: usize) {
        let level_ref = self.levels.as_mut().and_then(|levels| levels[level].as_mut());
        let level_ref = level_ref.expect("next_slot names a level that exists");
        let head = std::mem::replace(&mut level_ref.heads[slot], NONE);
        self.close(level, slot);
        if level == 0 {
            (self.ready, self.ready_due) = (head, self.elapsed);
        } else {
            self.falling = head;
        }
    }

    /// Marks a slot that is empty as such. A level takes as much as a dozen items, so where few wait one that
    /// is empty goes.
    fn close(&mut self, level: usize, slot: usize) {
        let Some(levels) = &mut self.levels else { return };
        if let Some(level_ref) = &mut levels[level]
            && level_ref.heads[slot] == NONE
        {
            level_ref.occupied &= !(1 << slot);
            if level_ref.occupied == 0 && self.waiting < ITEMS_FOR_EMPTY_LEVELS {
                levels[level] = None;
            }
        }
    }

    /// The next slot to open, and when: (level, slot, its first millisecond).
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        let (level, slot) = self.levels.as_ref()?.iter().enumerate().find_map(|(index, level)| {
            let occupied = level.as_ref()?.occupied;
            (occupied != 0).then(|| (index, occupied.trailing_zeros() as usize))
        })?;
        let shift = level as u32 * BITS;
        let above = self.elapsed.checked_shr(shift + BITS).unwrap_or(0);
        let start = above.checked_shl(shift + BITS).unwrap_or(0) | (slot as u64) << shift;
        debug_assert!(start > self.elapsed, "a waiting slot lies ahead");
        Some((level, slot, start))
    }

    /// Links a node into the list in which it waits: `ready` if it is due by `elapsed`, otherwise the slot of
    /// its due time.
    fn link(&mut self, node: u32, due: u64) {
        let head = if due <= self.elapsed {
            self.ready_due = if self.ready == NONE { due } else { self.ready_due.min(due) };
            &mut self.ready
        } else if self.waiting <= LOOSE {
            self.loose_due = self.loose_due.min(due);
            &mut self.loose
        } else {
            let level = ((63 - (self.elapsed ^ due).leading_zeros()) / BITS) as usize;
            let slot = (due >> (level as u32 * BITS)) as usize % SLOTS;
            let levels = self.levels.get_or_insert_with(|| Box::new([const { None }; LEVELS]));
            let level =
                levels[level].get_or_insert_with(|| Box::new(Level { occupied: 0, heads: [NONE; SLOTS] }));
            level.occupied |= 1 << slot;
            &mut level.heads[slot]
        };
        self.slab[node as usize].next = *head;
        *head = node;
    }

    fn allocate(&mut self, item: Item) -> u32 {
        self.waiting += 1;
        let node = self.free;
        if node == NONE {
            assert!(self.slab.len() < NONE as usize, "a wheel holds fewer than 2^32 items");
            self.slab.push(Node::new(item));
            return (self.slab.len() - 1) as u32;
        }
        self.free = self.slab[node as usize].next;
        self.slab[node as usize] = Node::new(item);
        node
    }

    fn take_ready(&mut self) -> Option<Item> {
        let node = self.ready;
        self.ready = self.slab[node as usize].next;
        self.release(node)
    }

    /// Frees a node that is in no list any more. Returns the item that it held, if that is still needed.
    fn release(&mut self, node: u32) -> Option<Item> {
        let old = std::mem::replace(&mut self.slab[node as usize], Node { next: self.free, ..FREE });
        self.free = node;
        self.waiting -= 1;
        self.needless -= u32::from(!old.is_something());
        old.is_something().then(|| old.item())
    }

    /// Links all items anew as seen from `now`, but for those that another stands for: O(items) and a sort.
    /// It happens when the clock was set back by much, and when many may not be needed.
    fn lay_out(&mut self, now: u64) {
        let needed = self.slab.iter().filter(|node| node.is_something());
        let mut items: Vec<Item> = needed.map(Node::item).collect();
        items.sort_unstable_by_key(|item| (item.due, item.range.first, Reverse(item.range.last)));
        items.dedup_by(|next, kept| next.due == kept.due && next.range.last <= kept.range.last);
        let tidy_at = (2 * items.len() as u32).max(TIDY_ITEMS_MIN);
        *self = Wheel { tidy_at, slab: Vec::with_capacity(items.len()), ..Wheel::new(now) };
        items.into_iter().for_each(|item| self.schedule(item));
    }

    /// Moves what lies in extents that are being emptied.
    pub(crate) fn relocate(&mut self, moves: &mut Moves) {
        let has_moved = relocate_vec(&mut self.slab);
        moves.note(has_moved, self.slab.capacity() * size_of::<Node>());
        self.levels = self.levels.take().map(relocate_box);
        for level in self.levels.iter_mut().flat_map(|levels| levels.iter_mut()) {
            *level = level.take().map(relocate_box);
        }
    }

    /// Bytes that the wheel takes, allocator rounding aside.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        let levels = self
            .levels
            .as_ref()
            .map_or(0, |levels| size_of::<Levels>() + levels.iter().flatten().count() * size_of::<Level>());
        (size_of::<Wheel>() + levels + self.slab.capacity() * size_of::<Node>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn range(n: u32) -> OrderRange {
        OrderRange { first: n, last: n }
    }

    /// Everything due at `now`, in the order it fires.
    fn drain(wheel: &mut Wheel, now: u64) -> Vec<Item> {
        let mut fired = Vec::new();
        loop {
            match wheel.step(now) {
                Step::Fired(item) => fired.push(item),
                Step::Moved => {}
                Step::Idle => return fired,
            }
        }
    }

    /// The naive twin: times in a sorted map.
    #[derive(Default)]
    struct Twin(BTreeMap<u64, Vec<u32>>);
    impl Twin {
        fn drain(&mut self, now: u64) -> Vec<(u64, u32)> {
            let later = if now == u64::MAX { BTreeMap::new() } else { self.0.split_off(&(now + 1)) };
            let due = std::mem::replace(&mut self.0, later);
            due.into_iter().flat_map(|(at, all)| all.into_iter().map(move |n| (at, n))).collect()
        }
    }

    fn some_distance(random: &mut Random) -> u64 {
        let bits = random.below(64);
        random.next_u64() >> bits
    }

    fn check_against_twin(seed: u64) {
        let mut random = Random::new(seed);
        let mut now = some_distance(&mut random) >> 1;
        let (mut wheel, mut twin) = (Wheel::new(now), Twin::default());
        for n in 0..400 {
            match random.below(3) {
                0 => now = now.saturating_add(some_distance(&mut random)),
                1 => now = now.saturating_add(random.below(100)),
                _ => {}
            }
            let due = match random.below(8) {
                0 => now.saturating_sub(some_distance(&mut random)),
                1 => [0, u64::MAX, i64::MAX as u64][random.below(3) as usize],
                2 => now,
                _ => now.saturating_add(some_distance(&mut random)),
            };
            wheel.schedule(Item { due, range: range(n) });
            twin.0.entry(due).or_default().push(n);
            if random.below(2) == 0 {
                let next = wheel.next_due().expect("something waits");
                let first = *twin.0.keys().next().expect("something waits");
                assert!(next <= first.max(wheel.elapsed), "seed {seed}: next {next}, first {first}");
                let mut fired: Vec<_> =
                    drain(&mut wheel, now).iter().map(|i| (i.due, i.range.first)).collect();
                fired.sort_unstable();
                let mut expected = twin.drain(now);
                expected.sort_unstable();
                assert_eq!(fired, expected, "seed {seed}, now {now}");
                assert_eq!(wheel.next_due().is_none(), twin.0.is_empty());
            }
        }
        assert_eq!(drain(&mut wheel, u64::MAX).len(), twin.drain(u64::MAX).len(), "seed {seed}");
        assert_eq!(wheel.next_due(), None);
    }

    #[test]
    fn fires_what_its_naive_twin_fires_at_any_time_and_over_jumps_of_years() {
        (0..300).for_each(check_against_twin);
    }

    #[test]
    fn what_is_due_first_can_be_taken_out_before_its_time() {
        let mut random = Random::new(3);
        let mut wheel = Wheel::new(1_000_000);
        let mut dues: Vec<u64> =
            (0..50).map(|_| 1_000_000 + some_distance(&mut random) % 100_000_000).collect();
        for (n, due) in dues.iter().enumerate() {
            wheel.schedule(Item { due: *due, range: range(n as u32) });
        }
        dues.sort_unstable();
        let taken: Vec<u64> = std::iter::from_fn(|| wheel.take_soonest()).map(|item| item.due).collect();
        assert_eq!(taken, dues);
        assert_eq!((wheel.next_due(), wheel.draw(&mut random).is_none()), (None, true));
    }

    #[test]
    fn what_is_drawn_is_what_waits() {
        let mut random = Random::new(4);
        let mut wheel = Wheel::new(0);
        (0..20).for_each(|n| wheel.schedule(Item { due: 1 + u64::from(n % 3), range: range(n) }));
        assert_eq!(drain(&mut wheel, 2).len(), 14);
        for _ in 0..100 {
            assert!(wheel.draw(&mut random).is_none_or(|(_, item)| item.range.first % 3 == 2));
        }
    }

    #[test]
    fn fires_in_order_of_time_when_stepped_through_a_long_gap() {
        let mut wheel = Wheel::new(1_700_000_000_000);
        for (n, ms) in [3_600_000, 1, 64, 31_536_000_000, 63, 4096, 65].into_iter().enumerate() {
            wheel.schedule(Item { due: 1_700_000_000_000 + ms, range: range(n as u32) });
        }
        let fired = drain(&mut wheel, 1_800_000_000_000);
        assert!(fired.is_sorted_by_key(|item| item.due));
        assert_eq!(fired.len(), 7);
    }

    #[test]
    fn is_never_asked_too_late_when_driven_by_next_due_alone() {
        let mut wheel = Wheel::new(5);
        for due in [6, 70, 4_000, 300_000, 1 << 40] {
            wheel.schedule(Item { due, range: range(0) });
        }
        let mut fired = Vec::new();
        while let Some(now) = wheel.next_due() {
            for item in drain(&mut wheel, now) {
                assert_eq!(item.due, now, "fired in its own millisecond");
                fired.push(item.due);
            }
        }
        assert_eq!(fired, [6, 70, 4_000, 300_000, 1 << 40]);
    }

    #[test]
    fn a_clock_set_back_by_an_hour_does_not_lose_or_delay_what_waits() {
        let mut wheel = Wheel::new(10_000_000);
        wheel.schedule(Item { due: 10_000_500, range: range(1) });
        wheel.schedule(Item { due: 7_000_000, range: range(2) });
        assert_eq!(drain(&mut wheel, 6_400_000), []);
        assert_eq!(drain(&mut wheel, 7_000_000).len(), 1);
        assert_eq!(drain(&mut wheel, 10_000_499), []);
        assert_eq!(drain(&mut wheel, 10_000_500).len(), 1);
    }

    /// Whatever the clock does, what has fired is what a sorted map would have given out at the same
    /// readings.
    fn check_against_twin_under_an_unsteady_clock(seed: u64) {
        let mut random = Random::new(seed);
        let mut now = 1_000_000_000;
        let (mut wheel, mut twin) = (Wheel::new(now), Twin::default());
        for n in 0..1_000 {
            now = match random.below(40) {
                0 => now - random.below(4_000),
                1 => now + random.below(4_000_000),
                2 => now - random.below(4_000_000).min(now / 2),
                3..8 => now - random.below(1_000),
                8..20 => now + random.below(1_000),
                _ => now + random.below(3),
            };
            let due = now - 100 + random.below(2_000);
            wheel.schedule(Item { due, range: range(n) });
            twin.0.entry(due).or_default().push(n);
            // Now and then the driver stops in the middle, as it does when its budget is used up.
            for _ in 0..random.below(6) {
                match wheel.step(now) {
                    Step::Fired(item) => {
                        assert!(item.due <= now, "seed {seed}: due at {}, fired at {now}", item.due);
                        twin.0.get_mut(&item.due).expect("it waits").retain(|n| *n != item.range.first);
                    }
                    Step::Moved | Step::Idle => {}
                }
            }
            twin.0.retain(|_, items| !items.is_empty());
            let first = twin.0.keys().next().copied();
            assert_eq!(wheel.next_due().is_some(), first.is_some(), "seed {seed}");
            if random.below(2) == 0 {
                let mut fired: Vec<_> =
                    drain(&mut wheel, now).iter().map(|i| (i.due, i.range.first)).collect();
                let mut expected = twin.drain(now);
                fired.sort_unstable();
                expected.sort_unstable();
                assert_eq!(fired, expected, "seed {seed}, now {now}");
                let (next, first) = (wheel.next_due(), twin.0.keys().next().copied());
                assert!(
                    next.is_none() == first.is_none() && next <= first,
                    "seed {seed}: {next:?}, {first:?}"
                );
            }
        }
    }

    #[test]
    fn a_clock_that_goes_back_by_any_time_makes_nothing_fire_early_or_late() {
        (0..100).for_each(check_against_twin_under_an_unsteady_clock);
    }

    #[test]
    fn what_waits_because_the_clock_went_back_can_be_taken_before_its_time() {
        let mut wheel = Wheel::new(10_000);
        [9_900, 9_700, 9_800].into_iter().for_each(|due| wheel.schedule(Item { due, range: range(0) }));
        assert_eq!(drain(&mut wheel, 9_500), []);
        assert_eq!(wheel.next_due(), Some(9_700));
        let taken: Vec<u64> = std::iter::from_fn(|| wheel.take_soonest()).map(|item| item.due).collect();
        assert_eq!((taken, wheel.next_due()), (vec![9_700, 9_800, 9_900], None));
    }

    #[test]
    fn reuses_the_places_of_items_that_fired() {
        let mut wheel = Wheel::new(0);
        for round in 1..1000 {
            wheel.schedule(Item { due: round, range: range(0) });
            assert_eq!(drain(&mut wheel, round).len(), 1);
        }
        assert_eq!(wheel.slab.len(), 1);
    }
}
