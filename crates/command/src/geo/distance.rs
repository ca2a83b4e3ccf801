//! Distances on a sphere, by the haversine formula, and the units they are told in.
//!
//! The earth's radius and the order of the operations are those of Redis, because four decimals of the result
//! are shown.
use super::cell::{Area, Point};
use crate::Error;
use crate::argument::is_word;
use base::text::{put_two_digits, write_digits_back};

pub(super) const EARTH_RADIUS_M: f64 = 6_372_797.560_856;
const RADIANS: f64 = std::f64::consts::PI / 180.0;

/// A unit in which users give lengths, as a number of metres.
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

    /// Nearly always there is nothing to divide by.
    pub(super) fn of_metres(self, metres: f64) -> f64 {
        if self == Unit::METRE { metres } else { metres / self.0 }
    }
}

pub(super) fn radians(degrees: f64) -> f64 {
    degrees * RADIANS
}

pub(super) fn degrees(radians: f64) -> f64 {
    radians / RADIANS
}

/// The distance between two points, in metres.
pub(super) fn between(a: Point, b: Point) -> f64 {
    Centre::of(a).distance_to(b)
}

/// A point that others are measured from: what is the same for all of them is computed once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Centre {
    point: Point,
    lon: f64,
    lat: f64,
    lat_cos: f64,
}

impl Centre {
    pub(super) fn of(point: Point) -> Centre {
        let lat = radians(point.lat);
        Centre { point, lon: radians(point.lon), lat, lat_cos: lat.cos() }
    }

    /// The distance from the centre to another point, in metres.
    pub(super) fn distance_to(&self, other: Point) -> f64 {
        let v = ((radians(other.lon) - self.lon) / 2.0).sin();
        // Both points lie on one meridian: the distance is cheaper to compute, and without the rounding
        // below.
        if v == 0.0 {
            return between_latitudes(self.point.lat, other.lat);
        }
        let lat = radians(other.lat);
        let u = ((lat - self.lat) / 2.0).sin();
        let haversine = u * u + self.lat_cos * lat.cos() * v * v;
        2.0 * EARTH_RADIUS_M * haversine.sqrt().asin()
    }
}

/// Tells quickly, by multiplications alone, that a point is far outside a circle, as most points of the cells
/// around a circle are.
///
/// Within the circle's band of latitudes cosines are at least that of the latitude nearest to a pole, and a
/// sine is at least `x - x^3 / 6`; so haversines are at least what [`Fence::is_beyond`] makes of them. What
/// it does not tell has to be measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fence {
    centre: Centre,
    /// How many degrees of latitude the circle reaches to either side of its centre.
    lat_max: f64,
    lon_max: f64,
    /// The product of the cosine at the centre and the least cosine in the band.
    cosines: f64,
    haversine_max: f64,
}

impl Fence {
    /// None where the circle reaches a pole: its band has no least cosine.
    pub(super) fn around(centre: Centre, radius_m: f64) -> Option<Fence> {
        // This is far more than all rounding errors together, of large numbers and of tiny ones.
        const SLACK: f64 = 1.0 + 1e-9;
        const SLACK_RADIANS: f64 = 1e-12;
        let angle = radius_m / EARTH_RADIUS_M * SLACK + SLACK_RADIANS;
        let lat_most = centre.lat.abs() + angle;
        if lat_most >= std::f64::consts::FRAC_PI_2 {
            return None;
        }
        let half = (angle / 2.0).sin();
        let (cosines, haversine_max) = (centre.lat_cos * lat_most.cos(), half * half * SLACK);
        // If the sine of half the difference in longitude exceeds this, the point is outside, whatever its
        // latitude.
        let lon_sine = (haversine_max / cosines).sqrt();
        let lon_max = if lon_sine < 1.0 { degrees(2.0 * lon_sine.asin()) * SLACK } else { 360.0 };
        Some(Fence { centre, lat_max: degrees(angle) * SLACK, lon_max, cosines, haversine_max })
    }

    /// Whether all points of an area are outside the circle, as far as that is quickly told.
    pub(super) fn is_area_beyond(&self, area: Area) -> bool {
        let Point { lon, lat } = self.centre.point;
        let away = |at: f64, low: f64, high: f64| (low - at).max(at - high);
        let lon_away = |turn: f64| away(lon + turn, area.west, area.east);
        away(lat, area.south, area.north) > self.lat_max
            || lon_away(0.0).min(lon_away(360.0)).min(lon_away(-360.0)) > self.lon_max
    }

    #[inline]
    pub(super) fn is_beyond(&self, point: Point) -> bool {
        let lat = (point.lat - self.centre.point.lat).abs();
        if lat > self.lat_max {
            return true;
        }
        let lon = (point.lon - self.centre.point.lon).abs();
        let lon = if lon > 180.0 { 360.0 - lon } else { lon };
        let least_sine = |degrees: f64| {
            let x = radians(degrees) / 2.0;
            x - x * x * x / 6.0
        };
        let (u, v) = (least_sine(lat), least_sine(lon));
        u * u + self.cosines * v * v > self.haversine_max
    }
}

/// The distance between two latitudes along a meridian, in metres.
pub(super) fn between_latitudes(a: f64, b: f64) -> f64 {
    EARTH_RADIUS_M * (radians(b) - radians(a)).abs()
}

/// A distance as it is shown: four decimals, rounded to the nearest even. It stands at the end of the bytes.
pub(super) struct Text {
    bytes: [u8; Text::BYTES_MAX],
    start: usize,
}

impl Text {
    const DECIMALS: usize = 4;
    /// Digits of the greatest `u64`.
    const WHOLE_MAX: usize = 20;
    const BYTES_MAX: usize = Text::WHOLE_MAX + 1 + Text::DECIMALS;

    #[inline(always)]
    pub(super) fn of(distance: f64) -> Text {
        let tenths_of_thousandths = rounded(distance * 1e4);
        let (whole, decimals) = (tenths_of_thousandths / 10_000, tenths_of_thousandths % 10_000);
        let mut text = Text { bytes: [b'.'; Text::BYTES_MAX], start: 0 };
        put_two_digits(&mut text.bytes, Text::BYTES_MAX - 2, (decimals % 100) as usize);
        put_two_digits(&mut text.bytes, Text::BYTES_MAX - 4, (decimals / 100) as usize);
        text.start = write_digits_back(&mut text.bytes[..Text::WHOLE_MAX], whole);
        text
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// The nearest integer of what is not negative, the even one of two; the greatest `u64` for all above it.
/// `round_ties_even` would be a call.
#[inline]
fn rounded(n: f64) -> u64 {
    /// From here on doubles are integers. So the sum of this and a lesser one is rounded to an integer, which
    /// is what its bits are more than those of this.
    const WHOLE: f64 = (1_u64 << 52) as f64;
    if n < WHOLE { (n + WHOLE).to_bits() - WHOLE.to_bits() } else { n as u64 }
}

#[cfg(test)]
mod tests {
    use super::super::cell::Cell;
    use super::*;
    use base::random::Random;

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
            assert_eq!(Text::of(unit.of_metres(metres)).as_bytes(), expect.as_bytes());
        }
    }

    #[test]
    fn a_distance_is_the_same_both_ways_and_nothing_to_oneself() {
        assert_eq!(between(PALERMO, CATANIA), between(CATANIA, PALERMO));
        assert_eq!(Text::of(between(PALERMO, PALERMO)).as_bytes(), b"0.0000");
        let (south, north) = (Point { lon: 5.0, lat: -10.0 }, Point { lon: 5.0, lat: 10.0 });
        assert_eq!(between(south, north), between_latitudes(10.0, -10.0));
    }

    #[test]
    fn units_have_four_names_in_any_case() {
        assert!(Unit::parse(b"nm").is_err() && Unit::parse(b"").is_err());
        assert_eq!(Unit::parse(b"m"), Ok(Unit::METRE));
    }

    #[test]
    fn distances_are_shown_with_four_decimals_whatever_they_are() {
        for (distance, expect) in
            [(0.0, "0.0000"), (0.00004, "0.0000"), (9.99996, "10.0000"), (1e15, "1000000000000000.0000")]
        {
            assert_eq!(Text::of(distance).as_bytes(), expect.as_bytes());
        }
        assert_eq!(Text::of(f64::MAX).as_bytes(), b"1844674407370955.1615");
    }

    #[test]
    fn rounding_is_to_the_nearest_even() {
        let mut random = Random::new(9);
        for n in [0.0, 0.5, 1.5, 2.5, 0.499_999_999_999_999_94, 4_503_599_627_370_495.5, 9e15, 1e19, 1e300] {
            assert_eq!(rounded(n), n.round_ties_even() as u64, "{n}");
        }
        for _ in 0..20_000 {
            let n = 10_f64.powf(20.0 * random.unit_f64()) * (1 + random.below(3)) as f64;
            assert_eq!(rounded(n), n.round_ties_even() as u64, "{n}");
            let half = random.below(1 << 50) as f64 + 0.5;
            assert_eq!(rounded(half), half.round_ties_even() as u64, "{half}");
        }
    }

    #[test]
    fn nothing_within_a_circle_is_beyond_its_fence_and_most_of_what_is_outside_is() {
        let mut random = Random::new(6);
        let (mut outside, mut beyond) = (0, 0);
        for _ in 0..200_000 {
            let centre =
                Point { lon: random.unit_f64() * 360.0 - 180.0, lat: random.unit_f64() * 170.0 - 85.0 };
            let radius_m = 10_f64.powf(1.0 + 6.3 * random.unit_f64());
            let spread = (radius_m / 30_000.0).min(170.0);
            let offset = |random: &mut Random| (random.unit_f64() - 0.5) * spread;
            let lon = centre.lon + offset(&mut random);
            let lon = if lon.abs() > 180.0 { lon - 360.0 * lon.signum() } else { lon };
            let point = Point { lon, lat: (centre.lat + offset(&mut random)).clamp(-85.0, 85.0) };
            let distance_m = between(centre, point);
            let Some(fence) = Fence::around(Centre::of(centre), radius_m) else { continue };
            assert!(distance_m > radius_m || !fence.is_beyond(point), "{centre:?} {point:?} {radius_m}");
            let area = Cell::of(point, 1 + random.below(26) as u32).area();
            assert!(distance_m > radius_m || !fence.is_area_beyond(area), "{centre:?} {point:?} {area:?}");
            // To the last digit.
            let edge = Fence::around(Centre::of(centre), distance_m);
            assert!(edge.is_none_or(|fence| !fence.is_beyond(point)), "{centre:?} {point:?}");
            outside += u32::from(distance_m > radius_m * 1.3);
            beyond += u32::from(distance_m > radius_m * 1.3 && fence.is_beyond(point));
        }
        assert!(beyond > outside / 10 * 8, "{beyond} of {outside}");
    }
}
