//! GEOPOS, GEODIST and GEOHASH: what is known of members.
use super::cell::Point;
use super::distance::{self, Unit};
use super::row::{ABOUT, ROW};
use super::search::{UNIT, reply_point};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec};
use resp::Reply;

pub(super) const GEODIST: Command = Command {
    name: "GEODIST",
    arity: Arity::AtLeast(4),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "3.2.0",
        summary: "Answers how far two members are apart.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0), Arg::str("member1"), Arg::str("member2"), UNIT.optional()],
        ..ABOUT
    },
    run: DataRun::Keys(geodist),
    ..ROW
};

pub(super) const GEOHASH: Command = Command {
    name: "GEOHASH",
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "3.2.0",
        summary: "Answers the geohashes of members, as geohash.org has them.",
        complexity: "O(1) for each member.",
        args: &[Arg::key("key", 0), Arg::str("member").optional().many()],
        ..ABOUT
    },
    run: DataRun::Keys(geohash),
    ..ROW
};

pub(super) const GEOPOS: Command = Command {
    name: "GEOPOS",
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "3.2.0",
        summary: "Answers the longitudes and latitudes of members.",
        complexity: "O(1) for each member.",
        args: &[Arg::key("key", 0), Arg::str("member").optional().many()],
        ..ABOUT
    },
    run: DataRun::Keys(geopos),
    ..ROW
};

/// The unit is read before the key.
fn geodist(call: &mut Call<'_, '_>) -> Done {
    let unit = match call.args.get(4) {
        None => Unit::METRE,
        Some(_) if call.args.len() > 5 => return Err(Error::syntax()),
        Some(word) => Unit::parse(word)?,
    };
    let key = call.key(0);
    let set = call.view.zset(key)?;
    let members = [2, 3].map(|at| call.args.at(at));
    match set.map_or([None; 2], |set| set.scores(members)) {
        [Some(a), Some(b)] => {
            // Side by side: each is a long chain of operations, and they do not wait for one another.
            let [a, b] = [a, b].map(Point::of_score);
            let text = distance::Text::of(unit.of_metres(distance::between(a, b)));
            call.reply.bulk(text.as_bytes());
        }
        _ => call.reply.null(),
    }
    Ok(())
}

fn geohash(call: &mut Call<'_, '_>) -> Done {
    each_member(call, |reply, point| match point {
        Some(point) => reply.bulk(&point.geohash()),
        None => reply.null(),
    })
}

fn geopos(call: &mut Call<'_, '_>) -> Done {
    each_member(call, |reply, point| match point {
        Some(point) => reply_point(reply, point),
        None => reply.null_array(),
    })
}

fn each_member(call: &mut Call<'_, '_>, write: impl Fn(&mut Reply, Option<Point>)) -> Done {
    let key = call.key(0);
    let set = call.view.zset(key)?;
    let members = call.args.iter_from(2);
    call.reply.array(members.len());
    let mut write_score = |score: Option<f64>| write(call.reply, score.map(Point::of_score));
    match set {
        Some(set) => set.each_score(members, write_score),
        None => members.for_each(|_| write_score(None)),
    }
    Ok(())
}
