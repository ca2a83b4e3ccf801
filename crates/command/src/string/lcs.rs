//! LCS: the longest common subsequence of two strings, by the table of all prefixes' answers.
//!
//! `table[i][j]` is the length for the first `i` bytes of `a` and the first `j` of `b`; row 0 and column 0
//! are zero. The subsequence is read backwards from the last cell. Where only the length is asked for, two
//! rows are enough.
use super::row::{ABOUT, ROW};
use crate::argument::{int, is_word};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Long};
use base::text::I64Text;
use resp::{Args, Reply};
use std::ops::Range;
use store::LookUp;

pub(super) const LCS: Command = Command {
    name: "LCS",
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::range(1, 1, 1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "7.0.0",
        summary: "Finds the longest common subsequence of two strings.",
        complexity: "O(N*M) where N and M are the lengths of the two strings.",
        args: &[
            Arg::key("key1", 0),
            Arg::key("key2", 0),
            Arg::word("len", "LEN").optional(),
            Arg::word("idx", "IDX").optional(),
            Arg::int("min-match-len").after("MINMATCHLEN").optional(),
            Arg::word("withmatchlen", "WITHMATCHLEN").optional(),
        ],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(cells, lcs)),
    ..ROW
};

/// What is replied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Text,
    Len,
    Ranges,
}

struct Options {
    answer: Answer,
    match_len_min: u64,
    shows_match_len: bool,
}

/// The strings are read where they lie.
fn lcs(call: &mut Call<'_, '_>) -> Done {
    let len_max_bytes = call.view.settings().proto_max_bulk_len_bytes;
    let items = call.view.strings(call.keys(), LookUp::All).map_err(|_| Error::lcs_not_strings())?;
    let mut scratch = [I64Text::new(); 2];
    let mut texts = (items.iter().zip(&mut scratch))
        .map(|(item, scratch)| item.as_ref().map_or(&b""[..], |item| item.text(scratch)));
    let (a, b) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
    let options = options(&call.args)?;
    check_size(len_max_bytes, a.len() as u64, b.len() as u64)?;
    match options.answer {
        Answer::Len => call.reply.int(i64::from(common_len(a, b))),
        Answer::Text => {
            let table = Table::new(a, b);
            call.reply.bulk(&table.subsequence(a, b));
        }
        Answer::Ranges => reply_ranges(call.reply, &Table::new(a, b), a, b, &options),
    }
    Ok(())
}

/// LEN and IDX ask for different answers and go together only in error; the other options mean nothing
/// without IDX and are accepted all the same.
fn options(args: &Args<'_>) -> Result<Options, Error> {
    let (mut wants_len, mut wants_ranges) = (false, false);
    let mut options = Options { answer: Answer::Text, match_len_min: 0, shows_match_len: false };
    let mut words = args.iter_from(3);
    while let Some(word) = words.next() {
        if is_word(word, "IDX") {
            wants_ranges = true;
        } else if is_word(word, "LEN") {
            wants_len = true;
        } else if is_word(word, "WITHMATCHLEN") {
            options.shows_match_len = true;
        } else if is_word(word, "MINMATCHLEN") {
            let min = int(words.next().ok_or_else(Error::syntax)?)?;
            options.match_len_min = min.max(0) as u64;
        } else {
            return Err(Error::syntax());
        }
    }
    options.answer = match (wants_len, wants_ranges) {
        (true, true) => return Err(Error::lcs_len_and_idx()),
        (true, false) => Answer::Len,
        (false, true) => Answer::Ranges,
        (false, false) => Answer::Text,
    };
    Ok(options)
}

/// How many cells a step fills.
const STEP_CELLS: u64 = 64;

/// The steps that it takes to fill the table.
fn cells(call: &mut Call<'_, '_>) -> Option<u64> {
    let len = |index: usize| call.view.extent(call.key(index)).bytes;
    Some(len(0).saturating_mul(len(1)) / STEP_CELLS)
}

/// The table's bytes count against the longest string a client may send, as in Redis.
fn check_size(len_max_bytes: u64, a_len: u64, b_len: u64) -> Done {
    let len_max = u64::from(u32::MAX) - 1;
    if a_len >= len_max || b_len >= len_max {
        return Err(Error::lcs_too_long());
    }
    let bytes = (a_len + 1).saturating_mul(b_len + 1).saturating_mul(size_of::<u32>() as u64);
    if bytes > len_max_bytes {
        return Err(Error::lcs_too_much_memory());
    }
    Ok(())
}

/// One row of the table from the one above it: `above` and `row` have `b.len() + 1` cells.
fn fill_row(byte: u8, b: &[u8], above: &[u32], row: &mut [u32]) {
    for (j, other) in b.iter().enumerate() {
        row[j + 1] = if byte == *other { above[j] + 1 } else { above[j + 1].max(row[j]) };
    }
}

/// The length alone, in two rows: what is above the last row is never read again.
fn common_len(a: &[u8], b: &[u8]) -> u32 {
    let mut above = vec![0; b.len() + 1];
    let mut row = above.clone();
    for byte in a {
        fill_row(*byte, b, &above, &mut row);
        std::mem::swap(&mut above, &mut row);
    }
    above[b.len()]
}

/// All cells, row by row, in one allocation.
struct Table {
    cells: Vec<u32>,
    width: usize,
}

impl Table {
    fn new(a: &[u8], b: &[u8]) -> Table {
        let width = b.len() + 1;
        let mut cells = vec![0; (a.len() + 1) * width];
        for (i, byte) in a.iter().enumerate() {
            let (above, row) = cells[i * width..(i + 2) * width].split_at_mut(width);
            fill_row(*byte, b, above, row);
        }
        Table { cells, width }
    }

    fn at(&self, i: usize, j: usize) -> u32 {
        self.cells[i * self.width + j]
    }

    fn len(&self) -> u32 {
        self.cells[self.cells.len() - 1]
    }

    /// Visits the common bytes, by their indexes in both strings, last first. Of two ways equally long it is
    /// the one that Redis takes: the shorter `b`.
    fn for_each_match(&self, a: &[u8], b: &[u8], visit: &mut dyn FnMut(usize, usize)) {
        let (mut i, mut j) = (a.len(), b.len());
        while i > 0 && j > 0 {
            if a[i - 1] == b[j - 1] {
                (i, j) = (i - 1, j - 1);
                visit(i, j);
            } else if self.at(i - 1, j) > self.at(i, j - 1) {
                i -= 1;
            } else {
                j -= 1;
            }
        }
    }

    fn subsequence(&self, a: &[u8], b: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.len() as usize);
        self.for_each_match(a, b, &mut |i, _| text.push(a[i]));
        text.reverse();
        text
    }

    /// The stretches that are common without a gap in either string, last first.
    fn ranges(&self, a: &[u8], b: &[u8]) -> Vec<(Range<usize>, Range<usize>)> {
        let mut ranges: Vec<(Range<usize>, Range<usize>)> = Vec::new();
        self.for_each_match(a, b, &mut |i, j| match ranges.last_mut() {
            Some((in_a, in_b)) if in_a.start == i + 1 && in_b.start == j + 1 => {
                (in_a.start, in_b.start) = (i, j);
            }
            _ => ranges.push((i..i + 1, j..j + 1)),
        });
        ranges
    }
}

fn reply_ranges(reply: &mut Reply, table: &Table, a: &[u8], b: &[u8], options: &Options) {
    let mut ranges = table.ranges(a, b);
    ranges.retain(|(in_a, _)| in_a.len() as u64 >= options.match_len_min);
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(ranges.len());
    for (in_a, in_b) in ranges {
        reply.array(if options.shows_match_len { 3 } else { 2 });
        reply_range(reply, &in_a);
        reply_range(reply, &in_b);
        if options.shows_match_len {
            reply.int(in_a.len() as i64);
        }
    }
    reply.bulk(b"len");
    reply.int(i64::from(table.len()));
}

fn reply_range(reply: &mut Reply, range: &Range<usize>) {
    reply.array(2);
    reply.int(range.start as i64);
    reply.int(range.end as i64 - 1);
}
