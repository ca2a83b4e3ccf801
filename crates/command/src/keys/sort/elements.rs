//! What is sorted: one buffer of text, and for each element where it lies and what it weighs.
use super::options::{By, Get, Order, Sort};
use super::pattern::{Lookup, Pattern};
use crate::Error;
use base::Item;
use resp::Reply;
use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};
use store::{End, Key, Kind, RankSpan, View};

/// A part of the buffer.
#[derive(Clone, Copy)]
struct Span {
    start: usize,
    len: usize,
}

#[derive(Clone, Copy)]
enum Weight {
    /// The element's own text.
    Own,
    /// A missing text, which comes before all others.
    Missing,
    Text(Span),
    /// A number, never NaN. Where two are equal the texts of the elements decide, so that there is only one
    /// right order.
    Number(f64),
}

#[derive(Clone, Copy)]
struct Element {
    text: Span,
    weight: Weight,
}

pub(super) struct Elements {
    bytes: Vec<u8>,
    all: Vec<Element>,
    /// Whether what was loaded is already cut to LIMIT.
    is_cut: bool,
}

/// Texts, in order; None is a null.
pub(super) struct Results {
    bytes: Vec<u8>,
    all: Vec<Option<Span>>,
}

fn text(bytes: &[u8], span: Span) -> &[u8] {
    &bytes[span.start..][..span.len]
}

/// Copies the elements of `key` out.
pub(super) fn load(view: &mut View<'_>, key: &Key<'_>, sort: &Sort<'_>) -> Result<Elements, Error> {
    // Asking for the type does not count as a lookup; only reading the value does.
    view.ignore_lookups();
    let kind = view.kind(key);
    view.count_lookups();
    match kind {
        Some(Kind::Set) => load_set(view, key, sort),
        Some(Kind::ZSet) => load_zset(view, key, sort),
        _ => load_list(view, key, sort),
    }
}

/// A list that is not to be sorted is read from the end that the order names, and no further than LIMIT.
fn load_list(view: &mut View<'_>, key: &Key<'_>, sort: &Sort<'_>) -> Result<Elements, Error> {
    let mut elements = Elements { bytes: Vec::new(), all: Vec::new(), is_cut: false };
    let Some(list) = view.list(key)? else { return Ok(elements) };
    let len = list.len();
    elements.is_cut = sort.by.is_none();
    let window = if elements.is_cut { sort.window(len as usize) } else { 0..len as usize };
    if window.is_empty() {
        return Ok(elements);
    }
    let (first, towards) = match sort.order {
        Order::Descending if elements.is_cut => (len - 1 - window.start as u64, End::Head),
        _ => (window.start as u64, End::Tail),
    };
    elements.all.reserve_exact(window.len());
    list.visit(first, towards, &mut |_, item| {
        elements.push(item);
        if elements.all.len() < window.len() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    Ok(elements)
}

/// A set has no order that it keeps: where BY asks for none and the result is stored, it is sorted by text,
/// so that what is stored does not depend on chance. Else it is gone through up to the end of LIMIT.
fn load_set(view: &mut View<'_>, key: &Key<'_>, sort: &Sort<'_>) -> Result<Elements, Error> {
    let mut elements = Elements { bytes: Vec::new(), all: Vec::new(), is_cut: cuts_set(sort) };
    let Some(set) = view.set(key)? else { return Ok(elements) };
    let window = of_set(sort, set.len() as usize);
    elements.all.reserve_exact(window.len());
    let mut at = 0;
    // It breaks off where the next member is outside.
    let _ = set.visit(&mut |item| {
        if window.contains(&at) {
            elements.push(item);
        }
        at += 1;
        if at < window.end { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    if sort.by.is_none() && sort.orders_sets() {
        elements.order(sort.order);
    }
    Ok(elements)
}

/// Which members of a set are loaded, of all in its own order.
pub(super) fn of_set(sort: &Sort<'_>, len: usize) -> Range<usize> {
    if cuts_set(sort) { sort.window(len) } else { 0..len }
}

fn cuts_set(sort: &Sort<'_>) -> bool {
    sort.by.is_none() && !sort.orders_sets()
}

/// A sorted set that is not to be sorted is read in its own order, as a list is.
fn load_zset(view: &mut View<'_>, key: &Key<'_>, sort: &Sort<'_>) -> Result<Elements, Error> {
    let mut elements = Elements { bytes: Vec::new(), all: Vec::new(), is_cut: sort.by.is_none() };
    let Some(set) = view.zset(key)? else { return Ok(elements) };
    let len = set.len();
    let window = if elements.is_cut { sort.window(len as usize) } else { 0..len as usize };
    let (towards, skipped) = match sort.order {
        Order::Descending if elements.is_cut => (End::Head, window.start as u64),
        _ => (End::Tail, window.start as u64),
    };
    elements.all.reserve_exact(window.len());
    let all = RankSpan { first: 0, count: len };
    let mut text = Vec::new();
    set.visit_span(all, towards, skipped, window.len() as u64, &mut |entry| {
        text.clear();
        entry.member.append_to(&mut text);
        elements.push(Item::Bytes(&text));
        ControlFlow::Continue(())
    });
    Ok(elements)
}

impl Elements {
    fn push(&mut self, item: Item<'_>) {
        let start = self.bytes.len();
        item.append_to(&mut self.bytes);
        let text = Span { start, len: self.bytes.len() - start };
        self.all.push(Element { text, weight: Weight::Own });
    }

    /// Gives every element its weight. If one weight is no number the command fails, after all have been
    /// looked up. A missing weight counts as 0.
    pub(super) fn weigh(&mut self, by: &By<'_>, alpha: bool, lookup: &mut Lookup<'_>) -> Result<(), Error> {
        let (mut name, mut are_numbers) = (Vec::new(), true);
        for index in 0..self.all.len() {
            let own = self.all[index].text;
            let found = match by {
                By::Themselves => Some(own),
                By::Others(pattern) => self.look_up(pattern, own, &mut name, lookup),
            };
            self.all[index].weight = match (alpha, by, found) {
                (true, By::Themselves, _) => Weight::Own,
                (true, By::Others(_), found) => found.map_or(Weight::Missing, Weight::Text),
                (false, _, None) => Weight::Number(0.0),
                (false, _, Some(found)) => {
                    let number = number(text(&self.bytes, found));
                    are_numbers &= number.is_some();
                    Weight::Number(number.unwrap_or(0.0))
                }
            };
        }
        if are_numbers { Ok(()) } else { Err(Error::weight_not_a_double()) }
    }

    /// Looks up the value that a pattern makes of an element, and appends it to the buffer.
    fn look_up(
        &mut self,
        pattern: &Pattern<'_>,
        element: Span,
        name: &mut Vec<u8>,
        lookup: &mut Lookup<'_>,
    ) -> Option<Span> {
        let name = pattern.name(text(&self.bytes, element), name);
        let start = self.bytes.len();
        let is_there = lookup(name, pattern.field, &mut self.bytes);
        is_there.then(|| Span { start, len: self.bytes.len() - start })
    }

    /// Sorts all elements. Equal ones stay in the order in which they are.
    fn order(&mut self, order: Order) {
        let (bytes, all) = (&self.bytes, 0..self.all.len());
        match order {
            Order::Ascending => sort_window(&mut self.all, all, |a, b| compare(bytes, a, b)),
            Order::Descending => sort_window(&mut self.all, all, |a, b| compare(bytes, b, a)),
        }
    }

    /// The same as far as LIMIT takes them. What comes before and behind is set apart, in any order.
    pub(super) fn order_window(&mut self, sort: &Sort<'_>) {
        let (bytes, window) = (&self.bytes, sort.window(self.all.len()));
        match sort.order {
            Order::Ascending => sort_window(&mut self.all, window, |a, b| compare(bytes, a, b)),
            Order::Descending => sort_window(&mut self.all, window, |a, b| compare(bytes, b, a)),
        }
    }

    /// Drops the elements outside LIMIT.
    pub(super) fn cut(&mut self, sort: &Sort<'_>) {
        if !self.is_cut {
            let window = sort.window(self.all.len());
            self.all.truncate(window.end);
            self.all.drain(..window.start);
        }
    }

    /// Replies what every GET finds for every element, or the elements themselves. What GET did not find is
    /// null.
    pub(super) fn answer(mut self, get: &[Get<'_>], lookup: &mut Lookup<'_>, reply: &mut Reply) {
        let get = if get.is_empty() { &[Get::Itself] } else { get };
        reply.array(self.all.len() * get.len());
        let (kept_bytes, mut name) = (self.bytes.len(), Vec::new());
        for index in 0..self.all.len() {
            for get in get {
                match self.found(get, index, &mut name, lookup) {
                    Some(found) => reply.bulk(text(&self.bytes, found)),
                    None => reply.null(),
                }
                self.bytes.truncate(kept_bytes);
            }
            if reply.is_full() {
                return;
            }
        }
    }

    /// The same, kept to be stored.
    pub(super) fn results(mut self, get: &[Get<'_>], lookup: &mut Lookup<'_>) -> Results {
        if get.is_empty() {
            let all = self.all.iter().map(|element| Some(element.text)).collect();
            return Results { bytes: self.bytes, all };
        }
        let (mut all, mut name) = (Vec::with_capacity(self.all.len() * get.len()), Vec::new());
        for index in 0..self.all.len() {
            for get in get {
                all.push(self.found(get, index, &mut name, lookup));
            }
        }
        Results { bytes: self.bytes, all }
    }

    /// What one GET finds for one element.
    fn found(
        &mut self,
        get: &Get<'_>,
        index: usize,
        name: &mut Vec<u8>,
        lookup: &mut Lookup<'_>,
    ) -> Option<Span> {
        let element = self.all[index].text;
        match get {
            Get::Itself => Some(element),
            Get::Nothing => None,
            Get::Other(pattern) => self.look_up(pattern, element, name, lookup),
        }
    }
}

impl Results {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The length of the longest result, in bytes.
    pub(super) fn len_max(&self) -> usize {
        self.all.iter().flatten().map(|span| span.len).max().unwrap_or(0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Option<&[u8]>> {
        self.all.iter().map(|span| span.map(|span| text(&self.bytes, span)))
    }
}

/// Puts those elements into their places that this part of all has when these are in order. Equal ones come
/// as they were read. Elements that are in order already, as those of many lists are, are compared once.
#[inline(always)]
fn sort_window(
    all: &mut [Element],
    window: Range<usize>,
    compare: impl Fn(&Element, &Element) -> Ordering + Copy,
) {
    if window.len() > all.len() / 2 {
        return all.sort_by(compare);
    }
    if window.is_empty() || all.is_sorted_by(|a, b| compare(a, b).is_le()) {
        return;
    }
    // They lie in the buffer as they were read. An empty text begins where the one behind it does.
    let place = |element: &Element| (element.text.start, element.text.len);
    let compare = |a: &Element, b: &Element| compare(a, b).then_with(|| place(a).cmp(&place(b)));
    let mut rest = &mut *all;
    if window.end < rest.len() {
        rest = rest.select_nth_unstable_by(window.end, compare).0;
    }
    if window.start > 0 {
        rest.select_nth_unstable_by(window.start, compare);
    }
    all[window].sort_unstable_by(compare);
}

#[inline]
fn compare(bytes: &[u8], a: &Element, b: &Element) -> Ordering {
    let by_text = |a, b| text(bytes, a).cmp(text(bytes, b));
    match (a.weight, b.weight) {
        (Weight::Number(x), Weight::Number(y)) => {
            x.partial_cmp(&y).unwrap_or(Ordering::Equal).then_with(|| by_text(a.text, b.text))
        }
        (Weight::Text(x), Weight::Text(y)) => by_text(x, y),
        (Weight::Missing, Weight::Missing) => Ordering::Equal,
        (Weight::Missing, _) => Ordering::Less,
        (_, Weight::Missing) => Ordering::Greater,
        _ => by_text(a.text, b.text),
    }
}

/// A weight as C reads a number: up to a NUL, before which nothing else may follow. An empty text is 0, and a
/// number that is too large is infinite.
fn number(text: &[u8]) -> Option<f64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(0.0);
    }
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (!number.is_nan()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers, texts and missing texts, many of them equal, cut at every place.
    #[test]
    fn what_limit_takes_is_what_it_would_take_of_all_in_order() {
        let mut random = base::random::Random::new(7);
        for len in [0, 1, 2, 7, 40] {
            let mut all = Elements { bytes: Vec::new(), all: Vec::new(), is_cut: false };
            let are_numbers = random.below(2) == 0;
            for _ in 0..len {
                let text = ["", "a", "b", "ab", "c"][random.below(5) as usize];
                all.push(Item::Bytes(text.as_bytes()));
            }
            for at in 0..len {
                let start = all.bytes.len();
                all.bytes.push(b'x' + random.below(3) as u8);
                all.all[at].weight = match random.below(4) {
                    _ if are_numbers => Weight::Number(random.below(3) as f64),
                    0 => Weight::Missing,
                    _ => Weight::Text(Span { start, len: 1 }),
                };
            }
            let texts = |all: &Elements| -> Vec<(usize, usize)> {
                all.all.iter().map(|element| (element.text.start, element.text.len)).collect()
            };
            for order in [Order::Ascending, Order::Descending] {
                let mut sorted = Elements { bytes: all.bytes.clone(), all: all.all.clone(), is_cut: false };
                sorted.order(order);
                for (offset, count) in (0..len + 2).flat_map(|start| (0..len + 2).map(move |n| (start, n))) {
                    let sort = Sort {
                        by: None,
                        get: Vec::new(),
                        order,
                        alpha: false,
                        offset: offset as i64,
                        count: count as i64,
                        destination: None,
                        is_for_script: false,
                    };
                    let mut cut = Elements { bytes: all.bytes.clone(), all: all.all.clone(), is_cut: false };
                    cut.order_window(&sort);
                    cut.cut(&sort);
                    assert_eq!(texts(&cut), texts(&sorted)[sort.window(len)], "{sort:?} of {len}");
                }
            }
        }
    }

    #[test]
    fn weights_are_numbers_as_redis_reads_them() {
        let numbers: [(&[u8], f64); 14] = [
            (b"", 0.0),
            (b"1", 1.0),
            (b"+1", 1.0),
            (b"-0", 0.0),
            (b".5", 0.5),
            (b"5.", 5.0),
            (b"1.5e+3", 1500.0),
            (b"007", 7.0),
            (b"1e400", f64::INFINITY),
            (b"1e-400", 0.0),
            (b"INF", f64::INFINITY),
            (b"-infinity", f64::NEG_INFINITY),
            (b"1\0x", 1.0),
            (b"\0", 0.0),
        ];
        for (text, expected) in numbers {
            assert_eq!(number(text), Some(expected), "{:?}", String::from_utf8_lossy(text));
        }
        for text in [" 1", "1 ", " ", "-", "--1", "0x10", "nan", "-nan", "1e", "1_0", "1,5", "x", "é"] {
            assert_eq!(number(text.as_bytes()), None, "{text:?}");
        }
    }
}
