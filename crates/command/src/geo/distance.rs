//! Distances on a sphere, by the haversine formula, and the units they are told in.
//!
//! The earth's radius and the order of the operations are those of Redis, because four decimals of the result are shown.
use super::cell::Point;
use crate::Error;
use crate::argument::is_word;

pub(super) const EARTH_RADIUS_M: f64 = 6_372_797.560_856;
const RADIANS: f64 = std::f64::consts::PI / 180.0;

/// What users give lengths in; the value is its metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit(f64);

impl Unit {
    pub(super) const METRE: Unit = Unit(1.0);

    pub(super) fn parse(text: &[u8]) -> Result<Unit, Error> {
        const UNITS: [(&str, f64); 4] = [("M", 1.0), ("KM", 1_000.0), ("FT", 0.304_8), ("MI", 1_609.34)];
        let found = UNITS.iter().find(|(word, _)| is_word(text, word));
        found.map(|(_, metres)| Unit(*metres)).ok_or_else(Error::unsupported_unit)
    }

    pub(super) fn to_metres(self, length: f64) -> f64 {
        length * self.0
    }

    pub(super) fn of_metres(self, metres: f64) -> f64 {
        metres / self.0
    }
}

pub(super) fn radians(degrees: f64) -> f64 {
    degrees * RADIANS
}

pub(super) fn degrees(radians: f64) -> f64 {
    radians / RADIANS
}

/// In metres.
pub(super) fn between(a: Point, b: Point) -> f64 {
    let v = ((radians(b.lon) - radians(a.lon)) / 2.0).sin();
    // On one meridian: cheaper, and without the rounding of what follows.
    if v == 0.0 {
        return between_latitudes(a.lat, b.lat);
    }
    let (a_lat, b_lat) = (radians(a.lat), radians(b.lat));
    let u = ((b_lat - a_lat) / 2.0).sin();
    let haversine = u * u + a_lat.cos() * b_lat.cos() * v * v;
    2.0 * EARTH_RADIUS_M * haversine.sqrt().asin()
}

/// In metres, along a meridian.
pub(super) fn between_latitudes(a: f64, b: f64) -> f64 {
    EARTH_RADIUS_M * (radians(b) - radians(a)).abs()
}

/// A distance as it is shown: four decimals, rounded to the nearest even.
pub(super) fn text(distance: f64) -> String {
    let tenths_of_thousandths = (distance * 1e4).round_ties_even() as u64;
    format!("{}.{:04}", tenths_of_thousandths / 10_000, tenths_of_thousandths % 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PALERMO: Point = Point { lon: 13.361389, lat: 38.115556 };
    const CATANIA: Point = Point { lon: 15.087269, lat: 37.502669 };

    /// The example of Redis's documentation; the positions are those that scores keep.
    #[test]
    fn palermo_and_catania_are_as_far_apart_as_redis_says() {
        let [a, b] = [PALERMO, CATANIA].map(|point| Point::of_score(point.score()));
        let metres = between(a, b);
        for (unit, expect) in
            [("m", "166274.1516"), ("KM", "166.2742"), ("ft", "545518.8700"), ("Mi", "103.3182")]
        {
            let unit = Unit::parse(unit.as_bytes()).unwrap();
            assert_eq!(text(unit.of_metres(metres)), expect);
        }
    }

    #[test]
    fn a_distance_is_the_same_both_ways_and_nothing_to_oneself() {
        assert_eq!(between(PALERMO, CATANIA), between(CATANIA, PALERMO));
        assert_eq!(text(between(PALERMO, PALERMO)), "0.0000");
        let (south, north) = (Point { lon: 5.0, lat: -10.0 }, Point { lon: 5.0, lat: 10.0 });
        assert_eq!(between(south, north), between_latitudes(10.0, -10.0));
    }

    #[test]
    fn units_have_four_names_in_any_case() {
        assert!(Unit::parse(b"nm").is_err() && Unit::parse(b"").is_err());
        assert_eq!(Unit::parse(b"m"), Ok(Unit::METRE));
    }
}
