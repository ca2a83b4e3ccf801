//! PFADD. On the path of every request: one lookup of the key, and for each element a hash and one register.
use super::row::{ABOUT, PFADD_EVENT, ROW};
use super::{sketch, sketch::Corrupt};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Flags, KeySpec};

pub(super) const PFADD: Command = Command {
    name: "PFADD",
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::INSERT))],
    doc: Doc {
        since: "2.8.9",
        summary: "Adds elements to a sketch that counts different ones; creates the key where it is missing.",
        complexity: "O(1) for each element.",
        args: &[Arg::key("key", 0), Arg::str("element").optional().many()],
        ..ABOUT
    },
    run: DataRun::Keys(pfadd),
    ..ROW
};

/// PFADD. Creating the key counts as a change. If runs turn out to be corrupt half-way, the elements added
/// before stay added, as in Redis.
fn pfadd(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let sparse_bytes_max = sparse_bytes_max(call);
    let elements = call.args.iter_from(2);
    let changes = call.view.edit_text(
        key,
        |text| super::sketch(text).map(drop),
        |text| {
            let is_new = text.is_empty();
            if is_new {
                sketch::begin(text);
            }
            let mut changes = u64::from(is_new);
            for element in elements {
                changes += u64::from(sketch::add(text, element, sparse_bytes_max)?);
            }
            if changes > 0 {
                sketch::forget(text);
            }
            Ok::<u64, Corrupt>(changes)
        },
    )??;
    call.view.changed(key, changes, PFADD_EVENT);
    call.reply.int(i64::from(changes > 0));
    Ok(())
}

/// How long a sketch of runs may be.
pub(super) fn sparse_bytes_max(call: &Call<'_, '_>) -> usize {
    usize::try_from(call.view.settings().hll_sparse_bytes_max).unwrap_or(usize::MAX)
}
