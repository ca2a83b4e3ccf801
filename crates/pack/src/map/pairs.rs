//! A small hash as one byte string, to live inside its keyspace entry: its fields in the order in which they
//! came.
//!
//! ```text
//! image   [flag] [count] pair pair ...
//! pair    field value [mark]
//!
//! header of a field or value      then
//! 0x00..=0xAF  text               so many bytes
//! 0xB0..=0xB7  integer            1 to 8 bytes, little endian
//! 0xC0..=0xFF  integer 0 to 63    nothing
//! header of a mark
//! 0xB8, 0xB9                      5 or 11 bytes that mean something to the caller only
//! 0xBF         the flag           nothing; it means something to the caller only
//! header of a count
//! 0xBA                            a byte: how many pairs there are
//! header of a value alone
//! 0xBB         long text          2 bytes, little endian, and so many bytes
//! ```
//!
//! `id 7 name ab` is `02 6964 C7 04 6E616D65 02 6162`. Cost: one byte a field and one a value beside their
//! bytes, 3 a value of more than 175; 1 to 9 bytes an integer; nothing for the hash, but 2 bytes once it has
//! 16 pairs, which are counted from then on. Limits: a field of 175 bytes and a value of 2 KB, so a hash of
//! longer ones is no image; a count of 255 pairs.
//!
//! A lookup goes from pair to pair by their lengths and compares what is as long as the field it looks for:
//! an image is a few cache lines, and whoever keeps images decides how long they may be. Edits are made in a
//! buffer of the caller's, or where the image lies. Images are made here alone, never read from outside, so
//! reading asserts what it relies on instead of returning errors.
use crate::code::probe::Probe;
use crate::code::short_int::{ShortInt, read_int};
use crate::memory::apart::Pliable;
use crate::memory::prefetch::prefetch_walk;
use base::Item;

/// The longest text that an image can hold as a field.
pub const FIELD_MAX: usize = 0xAF;
/// The longest text that it can hold as a value.
pub const VALUE_MAX: usize = 2 << 10;
const INT: u8 = 0xAF;
const MARK: u8 = 0xB8;
const LONG_MARK: u8 = 0xB9;
const COUNT: u8 = 0xBA;
const LONG: u8 = 0xBB;
/// The header of a long text, and its length.
const LONG_BYTES: usize = 3;
const FLAG: u8 = 0xBF;
const SMALL: u8 = 0xC0;
const SMALL_MAX: i64 = (u8::MAX - SMALL) as i64;

/// An image of so many pairs is given a count.
const COUNTED_LEN_MIN: u64 = 16;
const COUNT_MAX: u64 = u8::MAX as u64;
/// What a count takes.
pub const COUNT_BYTES: usize = 2;

/// The lengths that a mark may have.
pub const MARK_BYTES: [usize; 2] = [5, 11];

/// How many bytes a field, value or mark with this header takes, header included; 0 for a long text, and for
/// bytes that are no header of one.
const LENS: [u8; 256] = {
    let mut lens = [0; 256];
    let mut header = 0;
    while header < 256 {
        lens[header] = match header as u8 {
            text @ 0..=0xAF => 1 + text,
            int @ 0xB0..=0xB7 => 1 + int - INT,
            MARK => 1 + MARK_BYTES[0] as u8,
            LONG_MARK => 1 + MARK_BYTES[1] as u8,
            SMALL.. => 1,
            _ => 0,
        };
        header += 1;
    }
    lens
};

#[inline(always)]
fn len_at(image: &[u8], at: usize) -> usize {
    let len = match usize::from(LENS[usize::from(image[at])]) {
        0 => long_len_at(image, at),
        len => len,
    };
    debug_assert!(at + len <= image.len(), "a piece that is cut off, at {at}");
    len
}

/// [`len_at`] of a long text.
#[inline]
fn long_len_at(image: &[u8], at: usize) -> usize {
    debug_assert!(image[at] == LONG, "no header at {at}");
    LONG_BYTES + usize::from(u16::from_le_bytes([image[at + 1], image[at + 2]]))
}

/// Where a pair is in its image. Valid until something before the pair changes its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    start: usize,
    value: usize,
    mark: usize,
    end: usize,
}

impl Spot {
    /// Where the field begins.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Behind which pair [`find_behind`] begins.
    pub fn end(&self) -> usize {
        self.end
    }

    /// How many bytes the pair takes.
    pub fn bytes(&self) -> usize {
        self.end - self.start
    }

    /// Whether the pair has a mark.
    pub fn has_mark(&self) -> bool {
        self.mark < self.end
    }

    /// Whether [`overwrite`] can put this value in the place of the pair's.
    pub fn takes(&self, value: Item<'_>) -> bool {
        item_len(value) == self.mark - self.value
    }
}

/// A pair, as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<'i> {
    pub field: Item<'i>,
    pub value: Item<'i>,
    pub mark: Option<&'i [u8]>,
}

/// Whether the image has the caller's flag.
pub fn is_flagged(image: &[u8]) -> bool {
    image.first() == Some(&FLAG)
}

/// Gives the image the flag, for good.
pub fn flag(image: &mut (impl Pliable + ?Sized)) {
    if !is_flagged(image.bytes()) {
        image.gap(0, 0, 1)[0] = FLAG;
    }
}

/// Whether an image can hold this pair: any integers, and texts of at most [`FIELD_MAX`] and [`VALUE_MAX`]
/// bytes.
pub fn fits(field: Item<'_>, value: Item<'_>) -> bool {
    let is_longer = |item, max| matches!(item, Item::Bytes(text) if text.len() > max);
    !is_longer(field, FIELD_MAX) && !is_longer(value, VALUE_MAX)
}

/// Where the count is, if the pairs are counted, and where the first pair is.
#[inline(always)]
fn front(image: &[u8]) -> (Option<usize>, usize) {
    let at = usize::from(is_flagged(image));
    if image.get(at) == Some(&COUNT) { (Some(at + 1), at + 2) } else { (None, at) }
}

/// How many pairs there are: O(pairs), and O(1) once there were [`COUNTED_LEN_MIN`].
pub fn len(image: &[u8]) -> u64 {
    let (count, mut at) = front(image);
    if let Some(count) = count {
        return u64::from(image[count]);
    }
    let mut pieces = 0;
    while let Some(&here) = image.get(at) {
        at += len_of(image, at);
        pieces += u64::from(!matches!(here, MARK | LONG_MARK));
    }
    pieces / 2
}

/// How many pairs there are, of an image that is to be kept: has them counted from here on where there are
/// many.
pub fn len_of_kept(image: &mut (impl Pliable + ?Sized)) -> u64 {
    let len = len(image.bytes());
    if let (None, at) = front(image.bytes())
        && let COUNTED_LEN_MIN..=COUNT_MAX = len
    {
        image.gap(at, 0, COUNT_BYTES).copy_from_slice(&[COUNT, len as u8]);
    }
    len
}

/// Changes the count, if there is one, by one pair.
#[inline]
fn recount(image: &mut (impl Pliable + ?Sized), change: impl FnOnce(u8) -> Option<u8>) {
    if let (Some(at), _) = front(image.bytes()) {
        match change(image.bytes()[at]) {
            Some(count) => image.bytes_mut()[at] = count,
            // More than it can say: they are not counted any more.
            None => {
                image.gap(at - 1, COUNT_BYTES, 0);
            }
        }
    }
}

/// All pairs, in the order in which they came.
pub fn spots(image: &[u8]) -> impl Iterator<Item = Spot> + '_ {
    let (_, mut at) = front(image);
    std::iter::from_fn(move || {
        let spot = (at < image.len()).then(|| spot_at(image, at))?;
        at = spot.end;
        Some(spot)
    })
}

/// The marks of all pairs that have one. Neither fields nor values are read.
pub fn marks(image: &[u8]) -> impl Iterator<Item = &[u8]> + '_ {
    let (_, mut at) = front(image);
    std::iter::from_fn(move || {
        while let Some(&here) = image.get(at) {
            let start = at;
            at += len_of(image, at);
            if let MARK | LONG_MARK = here {
                return Some(&image[start + 1..at]);
            }
        }
        None
    })
}

/// Whether some pair has a mark.
pub fn has_mark(image: &[u8]) -> bool {
    marks(image).next().is_some()
}

/// All pairs, read.
pub fn iter(image: &[u8]) -> impl Iterator<Item = Pair<'_>> + '_ {
    spots(image).map(|spot| read(image, spot))
}

#[inline(always)]
fn spot_at(image: &[u8], start: usize) -> Spot {
    let value = start + len_at(image, start);
    let mark = value + len_at(image, value);
    let has_mark = matches!(image.get(mark), Some(&(MARK | LONG_MARK)));
    let end = if has_mark { mark + len_at(image, mark) } else { mark };
    debug_assert!(!matches!(image[start], MARK..=FLAG) && !matches!(image[value], MARK..LONG | FLAG));
    Spot { start, value, mark, end }
}

/// The pair at a spot of this image.
pub fn read(image: &[u8], spot: Spot) -> Pair<'_> {
    Pair {
        field: item_of(&image[spot.start..spot.value]),
        value: item_of(&image[spot.value..spot.mark]),
        mark: (spot.mark < spot.end).then(|| &image[spot.mark + 1..spot.end]),
    }
}

#[inline]
fn item_of(bytes: &[u8]) -> Item<'_> {
    match bytes[0] {
        small @ SMALL.. => Item::Int(i64::from(small - SMALL)),
        LONG => Item::Bytes(&bytes[LONG_BYTES..]),
        header if header > INT => Item::Int(read_int(&bytes[1..])),
        _ => Item::Bytes(&bytes[1..]),
    }
}

/// The pair of `field`.
#[inline]
pub fn find(image: &[u8], field: Item<'_>) -> Option<Spot> {
    find_behind(image, field, 0)
}

/// The same, for whoever looks for one field after the other: most ask for them in the order in which they
/// came. The walk begins where a pair of this image ends, or with 0 at the beginning, and goes on from the
/// beginning.
#[inline]
pub fn find_behind(image: &[u8], field: Item<'_>, end: usize) -> Option<Spot> {
    let head = Head::of(field)?;
    let body = head.body(&field);
    let (sought, (_, first)) = ((head.header, Probe::new(body), 1 + body.len()), front(image));
    let begin = end.max(first);
    // Whoever goes on behind another field has asked for the image before.
    if begin == first {
        prefetch_walk(image);
    }
    find_among(image, &sought, begin).or_else(|| match begin > first {
        true => find_among(&image[..begin], &sought, first),
        false => None,
    })
}

/// The header of a pair's field and what follows it.
pub(crate) fn field_bytes(image: &[u8], spot: Spot) -> &[u8] {
    &image[spot.start..spot.value]
}

/// The pair of `field`, found by its header and what follows it.
#[inline]
pub(crate) fn find_by(
    image: &[u8],
    field: Item<'_>,
    find: impl FnOnce(u8, &[u8]) -> Option<usize>,
) -> Option<Spot> {
    let head = Head::of(field)?;
    find(head.header, head.body(&field)).map(|at| spot_at(image, at))
}

#[inline(always)]
fn find_among(image: &[u8], (header, probe, bytes): &(u8, Probe<'_>, usize), mut at: usize) -> Option<Spot> {
    while let Some(&here) = image.get(at) {
        if here == *header {
            if probe.is_at(image, at + 1) {
                return Some(spot_at(image, at));
            }
            // As long as the one that is looked for: no length is waited for.
            at += bytes;
        } else {
            at += len_of(image, at);
        }
        at += len_of(image, at);
        if let Some(&(MARK | LONG_MARK)) = image.get(at) {
            at += len_at(image, at);
        }
    }
    None
}

/// What [`len_at`] says, for a walk that only wants to get on: most pieces are texts, whose lengths are their
/// headers, and a length that the processor guesses right is not waited for.
#[inline(always)]
fn len_of(image: &[u8], at: usize) -> usize {
    let header = usize::from(image[at]);
    if header <= FIELD_MAX { 1 + header } else { len_at(image, at) }
}

/// A field, or a value that is no long text, as it is to be written.
struct Head {
    header: u8,
    int: ShortInt,
}

impl Head {
    /// The header of this item; None for a text that is too long.
    #[inline]
    fn of(item: Item<'_>) -> Option<Head> {
        let none = ShortInt::NONE;
        match item {
            Item::Bytes(text) if text.len() > FIELD_MAX => None,
            Item::Bytes(text) => Some(Head { header: text.len() as u8, int: none }),
            Item::Int(n @ 0..=SMALL_MAX) => Some(Head { header: SMALL + n as u8, int: none }),
            Item::Int(n) => {
                let int = ShortInt::new(n);
                Some(Head { header: INT + int.as_bytes().len() as u8, int })
            }
        }
    }

    #[inline]
    fn body<'b>(&'b self, item: &Item<'b>) -> &'b [u8] {
        match item {
            Item::Bytes(text) => text,
            Item::Int(_) => self.int.as_bytes(),
        }
    }
}

/// Bytes that an item takes here.
pub fn item_len(item: Item<'_>) -> usize {
    match Head::of(item) {
        Some(head) => 1 + head.body(&item).len(),
        None => LONG_BYTES + item.len(),
    }
}

/// Adds a pair behind all others. The caller has made sure that its field is not there.
pub fn push(image: &mut (impl Pliable + ?Sized), field: Item<'_>, value: Item<'_>, mark: Option<&[u8]>) {
    debug_assert!(find(image.bytes(), field).is_none(), "a field comes once");
    let (at, field_len) = (image.bytes().len(), item_len(field));
    let place = image.gap(at, 0, field_len + kept_len(value, mark));
    write_item(&mut place[..field_len], field);
    write_kept(&mut place[field_len..], value, mark);
    recount(image, |count| count.checked_add(1));
}

/// The same in a buffer, where the caller makes sure later that the field comes once.
#[inline]
pub fn append(image: &mut Vec<u8>, field: Item<'_>, value: Item<'_>, mark: Option<&[u8]>) {
    push_item(image, field);
    push_item(image, value);
    if let Some(mark) = mark {
        image.push(mark_header(mark));
        image.extend_from_slice(mark);
    }
    recount(image, |count| count.checked_add(1));
}

fn push_item(image: &mut Vec<u8>, item: Item<'_>) {
    match Head::of(item) {
        Some(head) => {
            image.push(head.header);
            image.extend_from_slice(head.body(&item));
        }
        None => {
            let at = image.len();
            image.resize(at + item_len(item), 0);
            write_item(&mut image[at..], item);
        }
    }
}

/// Bytes that a value and a mark take.
fn kept_len(value: Item<'_>, mark: Option<&[u8]>) -> usize {
    item_len(value) + mark.map_or(0, |mark| 1 + mark.len())
}

/// Writes a value and a mark, which fill `place`.
fn write_kept(place: &mut [u8], value: Item<'_>, mark: Option<&[u8]>) {
    let (value_place, mark_place) = place.split_at_mut(item_len(value));
    write_item(value_place, value);
    write_mark(mark_place, mark);
}

/// Writes a field or a value, which fills `place`.
fn write_item(place: &mut [u8], item: Item<'_>) {
    match (Head::of(item), item) {
        (Some(head), _) => {
            place[0] = head.header;
            place[1..].copy_from_slice(head.body(&item));
        }
        (None, Item::Bytes(text)) => {
            let len = u16::try_from(text.len()).expect("only what fits is written");
            place[0] = LONG;
            place[1..LONG_BYTES].copy_from_slice(&len.to_le_bytes());
            place[LONG_BYTES..].copy_from_slice(text);
        }
        (None, Item::Int(_)) => unreachable!("any integer has a short header"),
    }
}

/// Writes a mark, which fills `place`.
fn write_mark(place: &mut [u8], mark: Option<&[u8]>) {
    if let Some(mark) = mark {
        place[0] = mark_header(mark);
        place[1..].copy_from_slice(mark);
    }
}

fn mark_header(mark: &[u8]) -> u8 {
    assert!(MARK_BYTES.contains(&mark.len()), "a mark of {} bytes", mark.len());
    if mark.len() == MARK_BYTES[0] { MARK } else { LONG_MARK }
}

/// How much longer the image is once a pair has this value; the pair has no mark.
pub fn growth(spot: Spot, value: Item<'_>) -> isize {
    item_len(value) as isize - (spot.end - spot.value) as isize
}

/// Gives a pair another value and mark, and returns where it ends now. The order of the pairs stays.
pub fn set(image: &mut (impl Pliable + ?Sized), spot: Spot, value: Item<'_>, mark: Option<&[u8]>) -> usize {
    debug_assert_eq!(spot, spot_at(image.bytes(), spot.start), "a stale spot");
    let len = kept_len(value, mark);
    write_kept(image.gap(spot.value, spot.end - spot.value, len), value, mark);
    spot.value + len
}

/// Puts a value in the place of one that is as long ([`Spot::takes`]), and touches nothing else.
pub fn overwrite(image: &mut [u8], spot: Spot, value: Item<'_>) {
    write_item(&mut image[spot.value..spot.mark], value);
}

/// Gives a pair another mark, or takes it away.
pub fn set_mark(image: &mut (impl Pliable + ?Sized), spot: Spot, mark: Option<&[u8]>) {
    let len = mark.map_or(0, |mark| 1 + mark.len());
    write_mark(image.gap(spot.mark, spot.end - spot.mark, len), mark);
}

/// Removes a pair. The others keep their order.
pub fn remove(image: &mut (impl Pliable + ?Sized), spot: Spot) {
    debug_assert_eq!(spot, spot_at(image.bytes(), spot.start), "a stale spot");
    image.gap(spot.start, spot.end - spot.start, 0);
    recount(image, |count| count.checked_sub(1));
}

#[cfg(test)]
#[path = "pairs_properties.rs"]
mod properties;
