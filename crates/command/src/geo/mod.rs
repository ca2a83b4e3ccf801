//! Points on the map: members of sorted sets whose scores are geohash cells.
//!
//! Such a member is like any other: the sorted set's own commands work on it, ZREM removes it, and scores
//! that mean no point are read as well as they can be. A search reads the ranges of scores of at most nine
//! cells and measures what it finds there.
//!
//! | file | what it holds |
//! |---|---|
//! | `cell.rs` | points, cells, scores, the geohash as text |
//! | `distance.rs` | how far it is, and in which unit |
//! | `shape.rs` | circle and box, and the cells that cover them |
//! | `query.rs` | the options of the searches |
//! | `search.rs` | searching, replying, storing |
//! | `add.rs`, `member.rs`, `radius.rs` | GEOADD; GEOPOS, GEODIST and GEOHASH; the older searches |
mod add;
mod cell;
mod distance;
mod member;
mod query;
mod radius;
mod row;
mod search;
mod shape;

use crate::{Command, Error, checked};
use base::double::parse_f64;
use cell::Point;

pub const COMMANDS: &[&Command] = checked(&[
    &add::GEOADD,
    &member::GEODIST,
    &member::GEOHASH,
    &member::GEOPOS,
    &radius::GEORADIUS,
    &radius::GEORADIUSBYMEMBER,
    &radius::GEORADIUSBYMEMBER_RO,
    &radius::GEORADIUS_RO,
    &search::GEOSEARCH,
    &search::GEOSEARCHSTORE,
]);

/// A point of the map, its longitude first.
fn longitude_latitude(lon: &[u8], lat: &[u8]) -> Result<Point, Error> {
    let lon = parse_f64(lon).ok_or_else(Error::not_a_float)?;
    let lat = parse_f64(lat).ok_or_else(Error::not_a_float)?;
    let point = Point { lon, lat };
    if point.is_on_the_map() { Ok(point) } else { Err(Error::not_on_the_map(lon, lat)) }
}
