//! HSCAN: a cursor is a position in the order of the fields' hashes, so nothing is kept for it, and a field
//! that stays in the hash is shown whatever comes and goes.
use super::row::{ABOUT, ROW};
use crate::cursor::{self, Filter};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Flags, KeySpec, Long, work};

pub(super) const HSCAN: Command = Command {
    name: "HSCAN",
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.8.0",
        summary: "Goes through the fields of a hash, some at a time.",
        complexity: "O(1) for every call, O(N) for all of them together, where N is the number of fields.",
        args: &[
            Arg::key("key", 0),
            Arg::int("cursor"),
            Arg::pattern("pattern").after("MATCH").optional(),
            Arg::int("count").after("COUNT").optional(),
            Arg::word("novalues", "NOVALUES").optional(),
        ],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(work::scanned, hscan)),
    ..ROW
};

/// A small hash is answered as a whole, whatever the cursor. Where the key is missing the options are not
/// read.
fn hscan(call: &mut Call<'_, '_>) -> Done {
    let cursors = call.view.element_cursors();
    let from = cursor::cursor(call.args.at(2), cursors)?;
    let key = call.key(0);
    let Some(hash) = call.view.hash(key)? else {
        cursor::answer(call.reply, cursors, |_| (0, 0));
        return Ok(());
    };
    let filter = Filter::parse_of_hash(&call.args)?;
    cursor::answer(call.reply, cursors, |fields| {
        let mut written = 0;
        let next = hash.scan(from, filter.count, &mut |field, value| {
            if filter.takes(field) {
                fields.item(field);
                written += 1;
                if filter.shows_values {
                    fields.item(value);
                    written += 1;
                }
            }
        });
        (next, written)
    });
    Ok(())
}
