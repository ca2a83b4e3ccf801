//! What a search looks for: a circle or a box around a point, and the cells that cover it.
//!
//! Cells are chosen so large that the one with the centre and its eight neighbours cover the shape; those
//! that it cannot reach are left out. The order of the cells is that of Redis, because results that nobody
//! sorts come in it: the centre, then north, south, east, west, north-east, north-west, south-east,
//! south-west.
use super::cell::{Area, Cell, Point, STEP_MAX, Towards};
use super::distance::{Centre, EARTH_RADIUS_M, Fence, Unit, between, between_latitudes, degrees, radians};

/// Half of the equator in Mercator's projection, in metres.
const MERCATOR_MAX_M: f64 = 20_037_726.37;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Extent {
    Radius(f64),
    Box { width: f64, height: f64 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shape {
    pub(super) centre: Point,
    /// In `unit`.
    pub(super) extent: Extent,
    pub(super) unit: Unit,
}

/// In metres.
#[derive(Clone, Copy, Debug)]
enum Limit {
    Radius(f64),
    Halves { width: f64, height: f64 },
}

/// A shape, with what is the same for all points that are compared with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Within {
    point: Point,
    centre: Centre,
    limit: Limit,
    fence: Option<Fence>,
}

impl Within {
    /// Whether nothing of a cell lies within, as far as that is quickly told.
    pub(super) fn is_beyond(&self, cell: Cell) -> bool {
        self.fence.is_some_and(|fence| fence.is_area_beyond(cell.area()))
    }

    /// How far a point is from the centre, in metres, if it lies within.
    #[inline]
    pub(super) fn distance_to(&self, point: Point) -> Option<f64> {
        if self.fence.is_some_and(|fence| fence.is_beyond(point)) {
            return None;
        }
        if let Limit::Halves { width, height } = self.limit {
            // The height is the cheaper test. The width is measured at the latitude of the point, because a
            // box narrows towards the poles.
            if between_latitudes(point.lat, self.point.lat) > height {
                return None;
            }
            if between(point, Point { lon: self.point.lon, lat: point.lat }) > width {
                return None;
            }
        }
        let distance = self.centre.distance_to(point);
        match self.limit {
            Limit::Radius(radius) if distance > radius => None,
            _ => Some(distance),
        }
    }
}

impl Shape {
    /// The shape, prepared for comparing many points with it.
    pub(super) fn within(&self) -> Within {
        let centre = Centre::of(self.centre);
        let (limit, fence) = match self.extent {
            Extent::Radius(radius) => {
                let radius_m = self.unit.to_metres(radius);
                (Limit::Radius(radius_m), Fence::around(centre, radius_m))
            }
            Extent::Box { width, height } => {
                let (width, height) = (self.unit.to_metres(width), self.unit.to_metres(height));
                // Every point of a box can be reached by going along the meridian first and then to the side,
                // so none is farther away than both halves together.
                let fence = Fence::around(centre, (width + height) / 2.0);
                (Limit::Halves { width: width / 2.0, height: height / 2.0 }, fence)
            }
        };
        Within { point: self.centre, centre, limit, fence }
    }

    /// The cells to look in, in their order, none twice in a row: where the shape is as large as the world,
    /// neighbours are the same.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let bounds = self.bounds();
        let mut step = self.step();
        let mut centre = Cell::of(self.centre, step);
        if step > 1 && !reaches(centre, bounds) {
            step -= 1;
            centre = Cell::of(self.centre, step);
        }
        let [north, south, east, west] = neighbours(centre);
        let area = centre.area();
        // Cells that are so large all have every neighbour within reach.
        let is_fine = step >= 2;
        let goes_north = !(is_fine && area.north > bounds.north);
        let goes_south = !(is_fine && area.south < bounds.south);
        let goes_east = !(is_fine && area.east > bounds.east);
        let goes_west = !(is_fine && area.west < bounds.west);
        let cells = [
            (true, centre),
            (goes_north, north),
            (goes_south, south),
            (goes_east, east),
            (goes_west, west),
            (goes_north && goes_east, north.along_longitude(Towards::Higher)),
            (goes_north && goes_west, north.along_longitude(Towards::Lower)),
            (goes_south && goes_east, south.along_longitude(Towards::Higher)),
            (goes_south && goes_west, south.along_longitude(Towards::Lower)),
        ];
        let mut chosen: Vec<Cell> =
            cells.into_iter().filter(|(goes, _)| *goes).map(|(_, cell)| cell).collect();
        // The first cell, that of the centre, is not compared with the others: where one of them is the same
        // cell it is searched again, as in Redis.
        let rest = chosen.split_off(1);
        chosen.extend(without_repeats(rest));
        chosen
    }

    /// Half of the height and of the width, in metres.
    fn halves(&self) -> (f64, f64) {
        match self.extent {
            Extent::Radius(radius) => (self.unit.to_metres(radius), self.unit.to_metres(radius)),
            Extent::Box { width, height } => {
                (self.unit.to_metres(height / 2.0), self.unit.to_metres(width / 2.0))
            }
        }
    }

    /// The least area around the shape, in degrees; longitudes may pass the end of the map. The shape spans
    /// more degrees of longitude on the side that is nearer to a pole, and that side counts.
    fn bounds(&self) -> Area {
        let Point { lon, lat } = self.centre;
        let (height, width) = self.halves();
        let lat_delta = degrees(height / EARTH_RADIUS_M);
        let nearer_pole = if lat < 0.0 { lat - lat_delta } else { lat + lat_delta };
        let lon_delta = degrees(width / EARTH_RADIUS_M / radians(nearer_pole).cos());
        Area { west: lon - lon_delta, east: lon + lon_delta, south: lat - lat_delta, north: lat + lat_delta }
    }

    /// The halvings that leave cells of about the shape's size; fewer near the poles, where cells are narrow.
    fn step(&self) -> u32 {
        let mut reach = match self.extent {
            Extent::Radius(radius) => self.unit.to_metres(radius),
            Extent::Box { width, height } => {
                let diagonal = ((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0)).sqrt();
                self.unit.to_metres(diagonal)
            }
        };
        if reach == 0.0 {
            return STEP_MAX;
        }
        let mut step: i32 = 1;
        while reach < MERCATOR_MAX_M {
            reach *= 2.0;
            step += 1;
        }
        // Cells of one halving less would do for a shape in the middle of a cell. One more is taken off for
        // shapes at an edge.
        step -= 2;
        let lat = self.centre.lat.abs();
        if lat > 66.0 {
            step -= 1;
        }
        if lat > 80.0 {
            step -= 1;
        }
        step.clamp(1, STEP_MAX as i32) as u32
    }
}

/// North, south, east, west.
fn neighbours(cell: Cell) -> [Cell; 4] {
    [
        cell.along_latitude(Towards::Higher),
        cell.along_latitude(Towards::Lower),
        cell.along_longitude(Towards::Higher),
        cell.along_longitude(Towards::Lower),
    ]
}

/// Whether the neighbours of a cell go as far as the bounds.
fn reaches(centre: Cell, bounds: Area) -> bool {
    let [north, south, east, west] = neighbours(centre).map(Cell::area);
    north.north >= bounds.north
        && south.south <= bounds.south
        && east.east >= bounds.east
        && west.west <= bounds.west
}

fn without_repeats(mut cells: Vec<Cell>) -> Vec<Cell> {
    cells.dedup();
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    fn around(lon: f64, lat: f64, extent: Extent) -> Shape {
        Shape { centre: Point { lon, lat }, extent, unit: Unit::METRE }
    }

    #[test]
    fn a_small_circle_needs_few_cells_and_the_world_at_most_nine() {
        assert!(around(13.0, 38.0, Extent::Radius(1.0)).cells().len() < 9);
        assert!(around(13.0, 38.0, Extent::Radius(3e7)).cells().len() <= 9);
        assert_eq!(
            around(13.0, 38.0, Extent::Radius(0.0)).cells()[0],
            Cell::of(Point { lon: 13.0, lat: 38.0 }, 26)
        );
    }

    #[test]
    fn whatever_lies_within_a_shape_lies_in_one_of_its_cells() {
        let mut random = Random::new(1);
        let mut found = 0;
        for _ in 0..20_000 {
            let reach = 10_f64.powf(1.0 + 5.0 * random.unit_f64());
            let (lon, lat) = (random.unit_f64() * 340.0 - 170.0, random.unit_f64() * 130.0 - 65.0);
            let extent = match random.below(2) {
                0 => Extent::Radius(reach),
                _ => Extent::Box { width: reach * (0.5 + random.unit_f64()), height: reach },
            };
            let shape = around(lon, lat, extent);
            // Degrees enough to fall inside now and then.
            let spread = reach / 60_000.0;
            let offset = |random: &mut Random| (random.unit_f64() - 0.5) * spread;
            let point = Point { lon: lon + offset(&mut random), lat: lat + offset(&mut random) };
            let score = point.score();
            if shape.within().distance_to(Point::of_score(score)).is_some() {
                found += 1;
                assert!(
                    shape.cells().iter().any(|cell| cell.scores().contains(&score)),
                    "{shape:?} {point:?}"
                );
            }
        }
        assert!(found > 3_000, "{found} of the points lay within");
    }

    #[test]
    fn the_edge_of_a_circle_belongs_to_it_and_a_box_is_half_as_far_each_way() {
        let point = Point::of_score(Point { lon: 1.0, lat: 1.0 }.score());
        let centre = Point { lon: 0.0, lat: 0.0 };
        let distance = between(centre, point);
        let within = |extent| around(0.0, 0.0, extent).within().distance_to(point);
        assert_eq!(within(Extent::Radius(distance)), Some(distance));
        assert_eq!(within(Extent::Radius(distance - 0.001)), None);
        assert_eq!(within(Extent::Box { width: 222_500.0, height: 222_500.0 }), Some(distance));
        assert_eq!(within(Extent::Box { width: 222_500.0, height: 222_000.0 }), None);
        assert_eq!(within(Extent::Box { width: 222_000.0, height: 222_500.0 }), None);
    }
}
