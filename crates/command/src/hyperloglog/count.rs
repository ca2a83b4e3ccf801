//! PFCOUNT and PFMERGE.
//!
//! PFCOUNT of one key writes nothing but the estimate, which it leaves in the string for the next PFCOUNT.
//! PFCOUNT of several merges them into registers of its own, and leaves nothing behind.
use super::add::sparse_bytes_max;
use super::row::{ABOUT, PFADD_EVENT, ROW};
use super::sketch::{self, Corrupt, Merged, Sketch, Union};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Long, work};
use base::text::I64Text;
use store::{Event, Key, View};

pub(super) const PFCOUNT: Command = Command {
    name: "PFCOUNT",
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY.or(Flags::MAY_REPLICATE),
    keys: &[KeySpec::range(1, -1, 1, Access::RW.or(Access::ACCESS))
        .note("RW because the estimate is remembered in the string, unless it is there already.")],
    doc: Doc {
        since: "2.8.9",
        summary: "Answers about how many different elements were added to some sketches together.",
        complexity: "O(1) for one key, O(N) for N keys; in both cases the registers are gone through.",
        args: &[Arg::key("key", 0).many()],
        ..ABOUT
    },
    run: DataRun::Keys(pfcount),
    ..ROW
};

pub(super) const PFMERGE: Command = Command {
    name: "PFMERGE",
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: &[
        KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::INSERT)),
        KeySpec::range(2, -1, 1, Access::RO.or(Access::ACCESS)),
    ],
    doc: Doc {
        since: "2.8.9",
        summary: "Adds to a sketch all that was added to others; creates the key where it is missing.",
        complexity: "O(N) for N keys; the registers of each are gone through.",
        args: &[Arg::key("destkey", 0), Arg::key("sourcekey", 1).optional().many()],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(steps, pfmerge)),
    ..ROW
};

/// Up to so many bytes Redis keeps a string together with its header (`embstr`). PFCOUNT of such a sketch
/// makes it `raw` there, which OBJECT ENCODING shows.
const EMBEDDED_BYTES_MAX: usize = 44;

/// The steps that it takes to merge sketches.
fn steps(call: &mut Call<'_, '_>) -> Option<u64> {
    const STEPS_A_SKETCH: u64 = 16;
    Some(STEPS_A_SKETCH * call.keys().len() as u64 + 2 * work::texts_of_sources(call)?)
}

fn pfcount(call: &mut Call<'_, '_>) -> Done {
    let cardinality = match call.keys() {
        [key] => cardinality_of_one(call.view, key)?,
        keys => cardinality_of_several(call.view, keys)?,
    };
    call.reply.int(cardinality as i64);
    Ok(())
}

fn cardinality_of_one(view: &mut View<'_>, key: &Key<'_>) -> Result<u64, Error> {
    let Some(item) = view.string(key)? else { return Ok(0) };
    let mut scratch = I64Text::new();
    let text = item.text(&mut scratch);
    let sketch = super::sketch(text)?;
    let cached = sketch.cached();
    if let Some(cardinality) = cached
        && text.len() > EMBEDDED_BYTES_MAX
    {
        return Ok(cardinality);
    }
    let cardinality = cached.map_or_else(|| sketch.estimate(), Ok)?;
    // The edit makes OBJECT ENCODING answer `raw` from here on, even where no byte changes.
    view.edit_text(key, |_| Ok::<(), Error>(()), |text| sketch::remember(text, cardinality))?;
    view.changed(key, u64::from(cached.is_none()), Event::CHANGE);
    Ok(cardinality)
}

fn cardinality_of_several(view: &mut View<'_>, keys: &[Key<'_>]) -> Result<u64, Error> {
    let mut union = Union::default();
    for_each_sketch(view, keys, |sketch| union.add(sketch))?;
    Ok(union.cardinality())
}

/// Lends the sketches of those keys that exist.
fn for_each_sketch(
    view: &mut View<'_>,
    keys: &[Key<'_>],
    mut add: impl FnMut(Sketch<'_>) -> Result<(), Corrupt>,
) -> Result<(), Error> {
    for key in keys {
        let Some(item) = view.string(key)? else { continue };
        let mut scratch = I64Text::new();
        add(super::sketch(item.text(&mut scratch))?)?;
    }
    Ok(())
}

/// PFMERGE. The destination counts as one of the sources. The types of all are checked before it is created.
fn pfmerge(call: &mut Call<'_, '_>) -> Done {
    call.view.count_lookups();
    let mut merged = Merged::default();
    for_each_sketch(call.view, call.keys(), |sketch| merged.add(sketch))?;
    call.view.ignore_lookups();
    let destination = call.key(0);
    let sparse_bytes_max = sparse_bytes_max(call);
    let edit = |text: &mut Vec<u8>| {
        if text.is_empty() {
            sketch::begin(text);
        }
        sketch::merge(text, &merged, sparse_bytes_max)?;
        sketch::forget(text);
        Ok::<(), Error>(())
    };
    call.view.edit_text(destination, |_| Ok::<(), Error>(()), edit)??;
    call.view.changed(destination, 1, PFADD_EVENT);
    call.reply.ok();
    Ok(())
}
