//! The options of the searches: six commands and one grammar. GEOSEARCH names its centre and its shape by
//! words, GEORADIUS and GEORADIUSBYMEMBER by the order of their arguments; what follows is the same for all.
//!
//! Options are read in the order in which they stand, and a member is looked up where it is named, because
//! the first thing that is wrong decides the error. Where the key is missing no member is looked for: the
//! answer will be empty whatever it is.
use super::cell::Point;
use super::distance::Unit;
use super::longitude_latitude;
use super::shape::{Extent, Shape};
use crate::Error;
use crate::argument::{int, is_word};
use base::double::parse_f64;
use resp::Args;

/// Which of the grammars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grammar {
    /// GEORADIUS, with STORE and STOREDIST where they are allowed.
    AroundPoint(Storing),
    /// GEORADIUSBYMEMBER.
    AroundMember(Storing),
    Search,
    SearchStore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storing {
    Allowed,
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// In the order in which the cells are searched.
    None,
    Nearest,
    Farthest,
}

/// What scores a stored result gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredScore {
    Position,
    Distance,
}

/// What is shown of each member besides its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) distance: bool,
    pub(super) hash: bool,
    pub(super) position: bool,
}

impl Columns {
    pub(super) fn count(self) -> usize {
        usize::from(self.distance) + usize::from(self.hash) + usize::from(self.position)
    }
}

#[derive(Debug)]
pub(super) struct Query<'a> {
    /// None where the key is missing and the shape is not known.
    pub(super) shape: Option<Shape>,
    pub(super) columns: Columns,
    pub(super) order: Order,
    /// How many are wanted; 0: all.
    pub(super) count: u64,
    /// ANY: the first that are found will do, which need not be the nearest.
    pub(super) is_any: bool,
    /// Where results go instead of the client.
    pub(super) destination: Option<&'a [u8]>,
    pub(super) stored_score: StoredScore,
}

/// What reading the options needs to know of the key that is searched.
pub(super) trait Source {
    fn is_missing(&self) -> bool;
    fn position(&mut self, member: &[u8]) -> Option<Point>;
}

/// What has been read so far.
struct Reader<'a, 's> {
    args: Args<'a>,
    grammar: Grammar,
    source: &'s mut dyn Source,
    centre: Option<Point>,
    named_centre: Option<NamedCentre>,
    extent: Option<(Extent, Unit)>,
    query: Query<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamedCentre {
    Member,
    LonLat,
}

impl<'a> Query<'a> {
    pub(super) fn parse(
        args: Args<'a>,
        grammar: Grammar,
        source: &mut dyn Source,
    ) -> Result<Query<'a>, Error> {
        let query = Query {
            shape: None,
            columns: Columns::default(),
            order: Order::None,
            count: 0,
            is_any: false,
            destination: None,
            stored_score: StoredScore::Position,
        };
        let mut reader =
            Reader { args, grammar, source, centre: None, named_centre: None, extent: None, query };
        let mut at = reader.read_positional()?;
        while at < args.len() {
            at += reader.read_option(at)?;
        }
        reader.finish()
    }
}

impl<'a> Reader<'a, '_> {
    /// Reads the arguments that no word announces. Returns the index of the first option.
    fn read_positional(&mut self) -> Result<usize, Error> {
        match self.grammar {
            Grammar::AroundPoint(_) => {
                self.centre = Some(longitude_latitude(self.args.at(2), self.args.at(3))?);
                self.extent = Some(self.radius(4)?);
                Ok(6)
            }
            // Where the member to search around is missing the radius is not even read.
            Grammar::AroundMember(_) if self.source.is_missing() => Ok(5),
            Grammar::AroundMember(_) => {
                self.centre = Some(self.member(2)?);
                self.extent = Some(self.radius(3)?);
                Ok(5)
            }
            Grammar::Search => Ok(2),
            Grammar::SearchStore => {
                self.query.destination = Some(self.args.at(1));
                Ok(3)
            }
        }
    }

    /// Reads the option at argument `at`, and returns how many arguments it takes.
    fn read_option(&mut self, at: usize) -> Result<usize, Error> {
        let word = self.args.at(at);
        let is = |name: &str| is_word(word, name);
        let query = &mut self.query;
        match word {
            _ if is("WITHDIST") => query.columns.distance = true,
            _ if is("WITHHASH") => query.columns.hash = true,
            _ if is("WITHCOORD") => query.columns.position = true,
            _ if is("ANY") => query.is_any = true,
            _ if is("ASC") => query.order = Order::Nearest,
            _ if is("DESC") => query.order = Order::Farthest,
            _ if is("COUNT") && self.has(at, 1) => {
                self.query.count = positive_count(self.args.at(at + 1))?;
                return Ok(2);
            }
            _ if self.is_search() => return self.read_search_option(at),
            _ => return self.read_store_option(at),
        }
        Ok(1)
    }

    /// STORE and STOREDIST of the older commands; the last one counts.
    fn read_store_option(&mut self, at: usize) -> Result<usize, Error> {
        let word = self.args.at(at);
        let storing = match self.grammar {
            Grammar::AroundPoint(storing) | Grammar::AroundMember(storing) => storing,
            _ => Storing::Refused,
        };
        let stored_score = match word {
            _ if is_word(word, "STORE") => StoredScore::Position,
            _ if is_word(word, "STOREDIST") => StoredScore::Distance,
            _ => return Err(Error::syntax()),
        };
        if storing == Storing::Refused || !self.has(at, 1) {
            return Err(Error::syntax());
        }
        (self.query.destination, self.query.stored_score) = (Some(self.args.at(at + 1)), stored_score);
        Ok(2)
    }

    /// The centre and the shape, which GEOSEARCH names by words. A word may come twice, but not two that
    /// exclude each other.
    fn read_search_option(&mut self, at: usize) -> Result<usize, Error> {
        let word = self.args.at(at);
        let is = |name: &str| is_word(word, name);
        let is_box = matches!(self.extent, Some((Extent::Box { .. }, _)));
        let is_circle = matches!(self.extent, Some((Extent::Radius(_), _)));
        match word {
            _ if is("FROMMEMBER") && self.has(at, 1) && self.named_centre != Some(NamedCentre::LonLat) => {
                if !self.source.is_missing() {
                    self.centre = Some(self.member(at + 1)?);
                }
                self.named_centre = Some(NamedCentre::Member);
                Ok(2)
            }
            _ if is("FROMLONLAT") && self.has(at, 2) && self.named_centre != Some(NamedCentre::Member) => {
                self.centre = Some(longitude_latitude(self.args.at(at + 1), self.args.at(at + 2))?);
                self.named_centre = Some(NamedCentre::LonLat);
                Ok(3)
            }
            _ if is("BYRADIUS") && self.has(at, 2) && !is_box => {
                self.extent = Some(self.radius(at + 1)?);
                Ok(3)
            }
            _ if is("BYBOX") && self.has(at, 3) && !is_circle => {
                self.extent = Some(self.width_and_height(at + 1)?);
                Ok(4)
            }
            _ if is("STOREDIST") && self.grammar == Grammar::SearchStore => {
                self.query.stored_score = StoredScore::Distance;
                Ok(1)
            }
            _ => Err(Error::syntax()),
        }
    }

    fn finish(self) -> Result<Query<'a>, Error> {
        let mut query = self.query;
        let name = self.args.at(0);
        if query.destination.is_some() && query.columns != Columns::default() {
            let what = if self.grammar == Grammar::SearchStore {
                "GEOSEARCHSTORE"
            } else {
                "STORE option in GEORADIUS"
            };
            return Err(Error::store_with_columns(what));
        }
        let is_search = matches!(self.grammar, Grammar::Search | Grammar::SearchStore);
        if is_search && self.named_centre.is_none() {
            return Err(Error::one_centre(name));
        }
        if is_search && self.extent.is_none() {
            return Err(Error::one_shape(name));
        }
        if query.is_any && query.count == 0 {
            return Err(Error::any_without_count());
        }
        // COUNT without an order asks for the nearest.
        if query.count > 0 && query.order == Order::None && !query.is_any {
            query.order = Order::Nearest;
        }
        query.shape =
            self.centre.zip(self.extent).map(|(centre, (extent, unit))| Shape { centre, extent, unit });
        Ok(query)
    }

    fn is_search(&self) -> bool {
        matches!(self.grammar, Grammar::Search | Grammar::SearchStore)
    }

    /// Whether `count` words follow.
    fn has(&self, at: usize, count: usize) -> bool {
        at + count < self.args.len()
    }

    fn member(&mut self, at: usize) -> Result<Point, Error> {
        self.source.position(self.args.at(at)).ok_or_else(Error::no_such_member)
    }

    fn radius(&self, at: usize) -> Result<(Extent, Unit), Error> {
        let radius = parse_f64(self.args.at(at)).ok_or_else(|| Error::need_numeric("radius"))?;
        if radius < 0.0 {
            return Err(Error::negative_radius());
        }
        Ok((Extent::Radius(radius), Unit::parse(self.args.at(at + 1))?))
    }

    fn width_and_height(&self, at: usize) -> Result<(Extent, Unit), Error> {
        let width = parse_f64(self.args.at(at)).ok_or_else(|| Error::need_numeric("width"))?;
        let height = parse_f64(self.args.at(at + 1)).ok_or_else(|| Error::need_numeric("height"))?;
        if height < 0.0 || width < 0.0 {
            return Err(Error::negative_box());
        }
        Ok((Extent::Box { width, height }, Unit::parse(self.args.at(at + 2))?))
    }
}

fn positive_count(text: &[u8]) -> Result<u64, Error> {
    match u64::try_from(int(text)?) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(Error::count_below_one()),
    }
}
