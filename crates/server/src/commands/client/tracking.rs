//! Client-side caching: CLIENT TRACKING, CACHING, GETREDIR and TRACKINGINFO. `core/tracking` does the work.
use super::{ABOUT, HEARS_LESS, SUB};
use crate::core::call::{ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use crate::core::modes::Modes;
use crate::core::tracking::{Overlap, Tracker, TrackingFlags, find_overlap};
use command::{Arg, Arity, Doc, Done, Error};

pub(super) const TRACKING: ServerCommand = ServerCommand {
    name: "TRACKING",
    arity: Arity::AtLeast(3),
    doc: Doc {
        since: "6.0.0",
        summary: "Tells this connection, or another, when keys that it has read are changed.",
        complexity: "O(N) where N is the number of prefixes named and of those that the connection has.",
        args: &[
            Arg::one_of("status", &[Arg::word("on", "ON"), Arg::word("off", "OFF")]),
            Arg::int("client-id").after("REDIRECT").optional(),
            Arg::str("prefix").after("PREFIX").optional().many_with_token(),
            Arg::word("bcast", "BCAST").optional(),
            Arg::word("optin", "OPTIN").optional(),
            Arg::word("optout", "OPTOUT").optional(),
            Arg::word("noloop", "NOLOOP").optional(),
        ],
        ..ABOUT
    },
    flags: HEARS_LESS,
    run: ServerRun::Shared(tracking),
    ..SUB
};

pub(super) const CACHING: ServerCommand = ServerCommand {
    name: "CACHING",
    arity: Arity::Exactly(3),
    doc: Doc {
        since: "6.0.0",
        summary: "Says whether keys of the next command are tracked.",
        args: &[Arg::one_of("mode", &[Arg::word("yes", "YES"), Arg::word("no", "NO")])],
        ..ABOUT
    },
    run: ServerRun::Anywhere(caching),
    ..SUB
};

pub(super) const GETREDIR: ServerCommand = ServerCommand {
    name: "GETREDIR",
    doc: Doc {
        since: "6.0.0",
        summary: "Shows which connection is told of this one's tracked keys.",
        ..ABOUT
    },
    run: ServerRun::Anywhere(redirection),
    ..SUB
};

pub(super) const TRACKINGINFO: ServerCommand = ServerCommand {
    name: "TRACKINGINFO",
    doc: Doc { since: "6.2.0", summary: "Shows how this connection tracks keys.", ..ABOUT },
    run: ServerRun::Anywhere(info),
    ..SUB
};

/// What GETREDIR and TRACKINGINFO answer to a connection that does not track.
const NOBODY: i64 = -1;

/// What CLIENT TRACKING asks for.
#[derive(Default)]
struct Wish<'a> {
    flags: TrackingFlags,
    /// The client to be told instead, or 0, and its worker.
    redirect: (u64, usize),
    prefixes: Vec<&'a [u8]>,
}

fn tracking(call: &mut ServerCall<'_>) -> Done {
    let wish = wish(call)?;
    let tracking = &call.server.key_events.tracking;
    match call.args.at(2).to_ascii_lowercase().as_slice() {
        b"on" => {
            check(&wish, call.session.record.tracker.get().map(|tracker| &**tracker))?;
            let record = &call.session.record;
            let tracker = match record.tracker.get() {
                Some(tracker) => tracker,
                None => {
                    let tracker = tracking.connect(&call.server.keyspace, record.id, record.worker);
                    let tracker = tracker.ok_or_else(error::too_many_trackers)?;
                    record.tracker.get_or_init(|| tracker)
                }
            };
            tracking.begin(tracker, wish.flags, wish.redirect, &wish.prefixes);
            call.session.modes.set(Modes::TRACKING);
        }
        b"off" => end(call),
        _ => return Err(Error::syntax()),
    }
    call.session.record.note_tracking(&call.server.counters.0[call.session.record.worker]);
    call.reply.ok();
    Ok(())
}

/// Ends tracking by this connection.
pub(crate) fn end(call: &mut ServerCall<'_>) {
    if let Some(tracker) = call.session.record.tracker.get() {
        call.server.key_events.tracking.end(tracker);
    }
    call.session.record.note_tracking(&call.server.counters.0[call.session.record.worker]);
    call.session.modes.clear(Modes::TRACKING);
}

/// Reads the options. The client to be told instead has to be there now, though it may leave later.
fn wish<'a>(call: &ServerCall<'a>) -> Result<Wish<'a>, Error> {
    let mut wish = Wish::default();
    let mut rest = call.args.iter_from(3);
    while let Some(option) = rest.next() {
        let flag = match option.to_ascii_lowercase().as_slice() {
            b"bcast" => TrackingFlags::BCAST,
            b"optin" => TrackingFlags::OPTIN,
            b"optout" => TrackingFlags::OPTOUT,
            b"noloop" => TrackingFlags::NOLOOP,
            b"redirect" => {
                let id = rest.next().ok_or_else(Error::syntax)?;
                if wish.redirect.0 != 0 {
                    return Err(error::one_redirection());
                }
                let id = base::text::parse_i64(id).ok_or_else(Error::not_an_integer)?;
                let id = u64::try_from(id).ok();
                let target = id.and_then(|id| Some((id, call.server.clients().get(&id)?.worker)));
                wish.redirect = target.ok_or_else(error::no_client_to_redirect_to)?;
                continue;
            }
            b"prefix" => {
                wish.prefixes.push(rest.next().ok_or_else(Error::syntax)?);
                continue;
            }
            _ => return Err(Error::syntax()),
        };
        wish.flags = wish.flags.with(flag);
    }
    Ok(wish)
}

/// Refuses options that contradict each other, or the modes in which the client tracks already.
fn check(wish: &Wish<'_>, tracker: Option<&Tracker>) -> Done {
    let before = tracker.map_or(TrackingFlags::default(), Tracker::flags);
    let is_bcast = wish.flags.has(TrackingFlags::BCAST);
    let (optin, optout) = (wish.flags.has(TrackingFlags::OPTIN), wish.flags.has(TrackingFlags::OPTOUT));
    if !is_bcast && !wish.prefixes.is_empty() {
        return Err(error::prefix_without_bcast());
    }
    if before.has(TrackingFlags::ON) && before.has(TrackingFlags::BCAST) != is_bcast {
        return Err(error::tracking_mode_switched("BCAST mode on/off"));
    }
    if is_bcast && (optin || optout) {
        return Err(error::bcast_with_options());
    }
    if optin && optout {
        return Err(error::optin_and_optout());
    }
    if optin && before.has(TrackingFlags::OPTOUT) || optout && before.has(TrackingFlags::OPTIN) {
        return Err(error::tracking_mode_switched("OPTIN/OPTOUT mode"));
    }
    let none = Default::default();
    let own = tracker.map(Tracker::prefixes);
    match find_overlap(own.as_deref().unwrap_or(&none), &wish.prefixes) {
        None => Ok(()),
        Some(Overlap::Existing(prefix, other)) => {
            Err(error::prefixes_overlap(&prefix, b"an existing prefix '", &other))
        }
        Some(Overlap::Provided(prefix, other)) => {
            Err(error::prefixes_overlap(&prefix, b"another provided prefix '", &other))
        }
    }
}

fn caching(call: &mut ServerCall<'_>) -> Done {
    let tracker = call.session.record.tracker.get().filter(|tracker| tracker.flags().has(TrackingFlags::ON));
    let tracker = tracker.ok_or_else(error::caching_without_tracking)?;
    let flags = tracker.flags();
    match call.args.at(2).to_ascii_lowercase().as_slice() {
        b"yes" if flags.has(TrackingFlags::OPTIN) => {}
        b"yes" => return Err(error::caching_not_in_mode("YES", "OPTIN")),
        b"no" if flags.has(TrackingFlags::OPTOUT) => {}
        b"no" => return Err(error::caching_not_in_mode("NO", "OPTOUT")),
        _ => return Err(Error::syntax()),
    }
    tracker.set_flags(flags.with(TrackingFlags::CACHING));
    call.reply.ok();
    Ok(())
}

fn redirection(call: &mut ServerCall<'_>) -> Done {
    let redirect = call.session.record.tracker.get().and_then(|tracker| tracker.redirect());
    call.reply.int(redirect.map_or(NOBODY, |id| id as i64));
    Ok(())
}

fn info(call: &mut ServerCall<'_>) -> Done {
    let tracker = call.session.record.tracker.get().map(|tracker| &**tracker);
    let flags = tracker.map_or(TrackingFlags::default(), Tracker::flags);
    let reply = &mut *call.reply;
    reply.map(3);
    reply.bulk(b"flags");
    let flags = [
        (flags.has(TrackingFlags::ON), "on"),
        (!flags.has(TrackingFlags::ON), "off"),
        (flags.has(TrackingFlags::BCAST), "bcast"),
        (flags.has(TrackingFlags::OPTIN), "optin"),
        (flags.has(TrackingFlags::OPTIN) && flags.has(TrackingFlags::CACHING), "caching-yes"),
        (flags.has(TrackingFlags::OPTOUT), "optout"),
        (flags.has(TrackingFlags::OPTOUT) && flags.has(TrackingFlags::CACHING), "caching-no"),
        (flags.has(TrackingFlags::NOLOOP), "noloop"),
        (flags.has(TrackingFlags::BROKEN), "broken_redirect"),
    ];
    reply.set(flags.iter().filter(|(is, _)| *is).count());
    flags.iter().filter(|(is, _)| *is).for_each(|(_, flag)| reply.bulk(flag.as_bytes()));
    reply.bulk(b"redirect");
    reply.int(tracker.and_then(Tracker::redirect).map_or(NOBODY, |id| id as i64));
    reply.bulk(b"prefixes");
    let prefixes = tracker.map(Tracker::prefixes);
    reply.array(prefixes.as_ref().map_or(0, |prefixes| prefixes.len()));
    prefixes.iter().flat_map(|prefixes| prefixes.iter()).for_each(|prefix| reply.bulk(prefix));
    Ok(())
}
