//! SSCAN: the members of a set, some at a time.
//!
//! The server keeps nothing between two calls: a cursor is a place in hash order or an integer member
//! (`store`'s `position.rs`), valid whatever happens to the set meanwhile. What Redis keeps in one block is
//! answered at once, whatever the count, as there.
use super::row::{ABOUT, ROW};
use crate::cursor::{self, Filter};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Flags, KeySpec, Long, work};

pub(super) const SSCAN: Command = Command {
    name: "SSCAN",
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.8.0",
        summary: "Goes through the members of a set, some at a time.",
        complexity: "O(1) for every call, O(N) for all of them together, where N is the number of members.",
        args: &[
            Arg::key("key", 0),
            Arg::int("cursor"),
            Arg::pattern("pattern").after("MATCH").optional(),
            Arg::int("count").after("COUNT").optional(),
        ],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(work::scanned, sscan)),
    ..ROW
};

/// SSCAN. An invalid cursor is refused first. If the key is missing the options are not read.
fn sscan(call: &mut Call<'_, '_>) -> Done {
    let cursors = call.view.element_cursors();
    let from = cursor::cursor(call.args.at(2), cursors)?;
    let key = call.key(0);
    let Some(set) = call.view.set(key)? else {
        cursor::answer(call.reply, cursors, |_| (0, 0));
        return Ok(());
    };
    let filter = Filter::parse(&call.args)?;
    cursor::answer(call.reply, cursors, |members| {
        let mut found = 0;
        let next = set.scan(from, filter.count, &mut |member| {
            if filter.takes(member) {
                members.item(member);
                found += 1;
            }
        });
        (next, found)
    });
    Ok(())
}
