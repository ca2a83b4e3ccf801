//! Geohash cells: the world as a square that is halved again and again, alternately by longitude and by
//! latitude.
//!
//! ```text
//! bits of a cell after `step` halvings each way, 2 * step of them
//!   lon lat lon lat ... lon lat       the first halving by longitude is the topmost bit;
//!                                     1 is the eastern, northern half
//! ```
//!
//! A point of a sorted set has 26 halvings each way, 52 bits: its score, exact in a double, about 0.6 m wide
//! at the equator. Points of one cell are then one range of scores, which is what a search reads. Example:
//! 13.361389 E 38.115556 N (Palermo) is 3,479,099,956,230,698; its cell of 2 halvings is the top 4 bits,
//! `1100`: east, north, west of the middle of that, south of the middle of that.
//!
//! Latitudes end at 85.05112878, where Mercator's square does. The arithmetic is that of Redis, operation for
//! operation: scores and the digits of positions must be the same.
use std::ops::Range;

pub(super) const LON_MAX: f64 = 180.0;
pub(super) const LAT_MAX: f64 = 85.051_128_78;
/// The halvings of a score.
pub(super) const STEP_MAX: u32 = 26;

const LATITUDE_BITS: u64 = 0x5555_5555_5555_5555;
const LONGITUDE_BITS: u64 = !LATITUDE_BITS;
const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
/// Letters of a geohash that GEOHASH shows. Ten letters of 5 bits each hold all of the 52 bits but two; the
/// eleventh is always `0`, as in Redis.
pub(super) const HASH_LETTERS: usize = 11;

/// In degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) lon: f64,
    pub(super) lat: f64,
}

/// A rectangle in degrees, edges included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) west: f64,
    pub(super) east: f64,
    pub(super) south: f64,
    pub(super) north: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    bits: u64,
    step: u32,
}

/// The two directions along an axis. Going one cell from the edge of the world leads to its other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Towards {
    Lower,
    Higher,
}

impl Point {
    pub(super) fn is_on_the_map(self) -> bool {
        (-LON_MAX..=LON_MAX).contains(&self.lon) && (-LAT_MAX..=LAT_MAX).contains(&self.lat)
    }

    /// The score of the point in a sorted set.
    pub(super) fn score(self) -> f64 {
        Cell::of(self, STEP_MAX).bits as f64
    }

    /// The middle of the cell that a score means. A score that no point has is converted to an integer as x86
    /// converts it.
    pub(super) fn of_score(score: f64) -> Point {
        let area = Cell { bits: to_u64(score), step: STEP_MAX }.area();
        let middle = |low: f64, high: f64, max: f64| ((low + high) / 2.0).clamp(-max, max);
        Point { lon: middle(area.west, area.east, LON_MAX), lat: middle(area.south, area.north, LAT_MAX) }
    }

    /// The standard geohash, whose latitudes end at the poles.
    pub(super) fn geohash(self) -> [u8; HASH_LETTERS] {
        let bits = Cell::on_map(self, 90.0, STEP_MAX).bits;
        std::array::from_fn(|letter| match 47_usize.checked_sub(5 * letter) {
            Some(shift) => ALPHABET[(bits >> shift & 31) as usize],
            None => ALPHABET[0],
        })
    }
}

impl Cell {
    pub(super) fn of(point: Point, step: u32) -> Cell {
        Cell::on_map(point, LAT_MAX, step)
    }

    fn on_map(point: Point, lat_max: f64, step: u32) -> Cell {
        let scale = (1_u64 << step) as f64;
        let number = |at: f64, max: f64| ((at + max) / (max + max) * scale) as u32;
        Cell { bits: spread(number(point.lat, lat_max)) | spread(number(point.lon, LON_MAX)) << 1, step }
    }

    pub(super) fn area(self) -> Area {
        // Multiplying by the inverse of a power of two gives the same bits as dividing by it.
        let part = 1.0 / (1_u64 << self.step) as f64;
        let (lat, lon) = (gathered(self.bits), gathered(self.bits >> 1));
        let at = |number: u32, max: f64| -max + f64::from(number) * part * (max + max);
        // These numbers overflow only for scores that no point has.
        Area {
            south: at(lat, LAT_MAX),
            north: at(lat.wrapping_add(1), LAT_MAX),
            west: at(lon, LON_MAX),
            east: at(lon.wrapping_add(1), LON_MAX),
        }
    }

    /// The scores of all points in it.
    pub(super) fn scores(self) -> Range<f64> {
        let shift = 2 * (STEP_MAX - self.step);
        (self.bits << shift) as f64..((self.bits + 1) << shift) as f64
    }

    /// The four cells that halving it each way makes, in the order of their scores; None for a cell as small
    /// as that of a score.
    pub(super) fn quarters(self) -> Option<[Cell; 4]> {
        let quarter = |n: u64| Cell { bits: self.bits << 2 | n, step: self.step + 1 };
        (self.step < STEP_MAX).then(|| [0, 1, 2, 3].map(quarter))
    }

    pub(super) fn along_longitude(self, towards: Towards) -> Cell {
        self.along(LONGITUDE_BITS, towards)
    }

    pub(super) fn along_latitude(self, towards: Towards) -> Cell {
        self.along(LATITUDE_BITS, towards)
    }

    /// Adds or subtracts one in the bits of an axis: carries run over the other axis' bits where these are
    /// all ones, and borrows where they are all zeros.
    fn along(self, axis: u64, towards: Towards) -> Cell {
        let all = u64::MAX >> (64 - 2 * self.step);
        let (own, others) = (self.bits & axis, self.bits & !axis);
        let one = (!axis & all) + 1;
        let moved = match towards {
            Towards::Higher => own.wrapping_add(one),
            Towards::Lower => (own | (!axis & all)).wrapping_sub(one),
        };
        Cell { bits: moved & axis & all | others, step: self.step }
    }
}

/// Bit `i` goes to bit `2 * i`.
fn spread(n: u32) -> u64 {
    let mut n = u64::from(n);
    for (shift, mask) in [
        (16, 0x0000_FFFF_0000_FFFF),
        (8, 0x00FF_00FF_00FF_00FF),
        (4, 0x0F0F_0F0F_0F0F_0F0F),
        (2, 0x3333_3333_3333_3333),
        (1, LATITUDE_BITS),
    ] {
        n = (n | n << shift) & mask;
    }
    n
}

/// Bit `2 * i` goes to bit `i`.
fn gathered(n: u64) -> u32 {
    let mut n = n & LATITUDE_BITS;
    for (shift, mask) in [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0F0F_0F0F_0F0F_0F0F),
        (4, 0x00FF_00FF_00FF_00FF),
        (8, 0x0000_FFFF_0000_FFFF),
        (16, 0x0000_0000_FFFF_FFFF),
    ] {
        n = (n | n >> shift) & mask;
    }
    n as u32
}

/// A double as an unsigned integer. Beyond the range, where C leaves the result open, it is what x86 gives.
fn to_u64(n: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if n >= HALF { to_i64(n - HALF) as u64 ^ 1 << 63 } else { to_i64(n) as u64 }
}

/// The same for a signed one.
pub(super) fn to_i64(n: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&n) { n as i64 } else { i64::MIN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    const PALERMO: Point = Point { lon: 13.361389, lat: 38.115556 };

    #[test]
    fn the_example_in_the_opener_is_true() {
        assert_eq!(PALERMO.score(), 3_479_099_956_230_698.0);
        assert_eq!(Cell::of(PALERMO, 2), Cell { bits: 0b1100, step: 2 });
        assert_eq!(&PALERMO.geohash(), b"sqc8b49rny0");
    }

    #[test]
    fn the_corners_of_the_world_have_cells() {
        for (lon, lat) in
            [(-180.0, -LAT_MAX), (-180.0, LAT_MAX), (180.0, -LAT_MAX), (180.0, LAT_MAX), (0.0, 0.0)]
        {
            let point = Point { lon, lat };
            let back = Point::of_score(point.score());
            assert!(point.is_on_the_map() && back.is_on_the_map(), "{point:?} {back:?}");
        }
        assert!(
            !Point { lon: 180.1, lat: 0.0 }.is_on_the_map()
                && !Point { lon: 0.0, lat: -86.0 }.is_on_the_map()
        );
    }

    #[test]
    fn neighbours_go_around_the_world() {
        let (west, east) = (Point { lon: -179.9, lat: 1.0 }, Point { lon: 179.9, lat: 1.0 });
        assert_eq!(Cell::of(east, 8).along_longitude(Towards::Higher), Cell::of(west, 8));
        assert_eq!(Cell::of(west, 8).along_longitude(Towards::Lower), Cell::of(east, 8));
        let (south, north) = (Point { lon: 1.0, lat: -85.0 }, Point { lon: 1.0, lat: 85.0 });
        assert_eq!(Cell::of(north, 8).along_latitude(Towards::Higher), Cell::of(south, 8));
        assert_eq!(Cell::of(south, 8).along_latitude(Towards::Lower), Cell::of(north, 8));
    }

    #[test]
    fn scores_that_no_point_has_are_read_as_c_does() {
        assert_eq!((to_u64(-1.0), to_u64(1e300), to_u64(f64::NEG_INFINITY)), (u64::MAX, 0, 1 << 63));
        assert_eq!((to_u64(1e19), to_i64(1e19), to_i64(-1.5)), (10_000_000_000_000_000_000, i64::MIN, -1));
        for score in [f64::INFINITY, f64::NEG_INFINITY, -1.0, 1e17, 0.5] {
            assert!(Point::of_score(score).is_on_the_map(), "{score}");
        }
    }

    fn anywhere(random: &mut Random) -> Point {
        Point { lon: random.unit_f64() * 360.0 - 180.0, lat: random.unit_f64() * 170.0 - 85.0 }
    }

    #[test]
    fn bits_survive_spreading() {
        let mut random = Random::new(1);
        for _ in 0..1_000 {
            let n = random.next_u64() as u32;
            assert_eq!((gathered(spread(n)), gathered(spread(n) << 1)), (n, 0));
        }
    }

    #[test]
    fn a_point_lies_in_its_cell_and_in_the_range_of_its_scores() {
        let mut random = Random::new(2);
        for _ in 0..2_000 {
            let (point, step) = (anywhere(&mut random), 1 + random.below(26) as u32);
            let cell = Cell::of(point, step);
            let Area { west, east, south, north } = cell.area();
            // The edges are rounded.
            let slack = 1e-9;
            assert!((west - slack..=east + slack).contains(&point.lon), "{point:?}, {step}");
            assert!((south - slack..=north + slack).contains(&point.lat), "{point:?}, {step}");
            assert!(cell.scores().contains(&point.score()), "{point:?}, {step}");
        }
    }

    #[test]
    fn going_there_and_back_is_staying() {
        let mut random = Random::new(3);
        for _ in 0..2_000 {
            let cell = Cell::of(anywhere(&mut random), 1 + random.below(26) as u32);
            let east = cell.along_longitude(Towards::Higher);
            assert_eq!(east.along_longitude(Towards::Lower), cell);
            assert_eq!(cell.along_latitude(Towards::Lower).along_latitude(Towards::Higher), cell);
            assert_ne!(east, cell);
        }
    }

    #[test]
    fn quarters_divide_the_scores_of_a_cell_in_their_order() {
        let mut random = Random::new(4);
        for step in 1..STEP_MAX {
            let cell = Cell::of(anywhere(&mut random), step);
            let quarters = cell.quarters().unwrap().map(Cell::scores);
            assert_eq!((quarters[0].start, quarters[3].end), (cell.scores().start, cell.scores().end));
            assert!(quarters.windows(2).all(|pair| pair[0].end == pair[1].start), "{quarters:?}");
        }
        assert_eq!(Cell::of(PALERMO, STEP_MAX).quarters(), None);
    }
}
