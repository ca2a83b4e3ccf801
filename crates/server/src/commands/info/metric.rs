//! What a metric is: its name, what sort of number it is, its unit, what it tells, and how it is read. INFO's
//! text and docs/metrics.md are made from the rows; name, kind and unit are enough to expose them in another
//! format.
use super::reading::Reading;
use std::borrow::Cow;
use std::fmt;

/// One row: a field of INFO, or a family of fields that differ in a label (`cmdstat_get`, `cmdstat_set` ...).
pub(super) struct Metric {
    /// Redis's name for it, where Redis has it. Of a family: what stands before the label.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) unit: Unit,
    /// One sentence, for the reference.
    pub(super) help: &'static str,
    /// Why its value is always the same, where it is: it belongs to something that Sardine does not have.
    pub(super) constant: Option<&'static str>,
    /// Whether a second field, `NAME_human`, has the same bytes as people read them ("1.50M").
    pub(super) is_human_too: bool,
    /// When INFO shows it, where that is not always.
    pub(super) is_shown: Option<fn(&Reading<'_>) -> bool>,
    pub(super) read: Read,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Only grows, until the server ends or CONFIG RESETSTAT.
    Counter,
    /// Goes up and down.
    Gauge,
    /// No number.
    Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    None,
    Bytes,
    KibibytesPerSecond,
    PerSecond,
    Percent,
    Days,
    Seconds,
    Milliseconds,
    Microseconds,
}

/// How a metric is read, when somebody asks for it.
pub(super) enum Read {
    One(fn(&Reading<'_>) -> Value),
    /// A field for each of several things, each with the same cells (`calls=1,usec=2`).
    Each {
        /// What the fields differ in ("command").
        label: &'static str,
        /// A name that ends with `*` stands for any that begin so.
        cells: &'static [Cell],
        read: fn(&Reading<'_>) -> Vec<Line>,
    },
}

/// One part of the value of a family's fields.
pub(super) struct Cell {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) unit: Unit,
    pub(super) help: &'static str,
}

/// A field of a family: its label, and its cells by name.
pub(super) struct Line {
    pub(super) label: String,
    pub(super) cells: Vec<(Cow<'static, str>, Value)>,
}

/// A value as INFO writes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Int(i64),
    Uint(u64),
    /// With two digits behind the point.
    Hundredths(f64),
    /// With three digits behind the point.
    Thousandths(f64),
    /// With two digits and a `%`.
    Percent(f64),
    Text(Cow<'static, str>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(n) => n.fmt(f),
            Value::Uint(n) => n.fmt(f),
            Value::Hundredths(n) => write!(f, "{n:.2}"),
            Value::Thousandths(n) => write!(f, "{n:.3}"),
            Value::Percent(n) => write!(f, "{n:.2}%"),
            Value::Text(text) => f.write_str(text),
        }
    }
}

impl From<u64> for Value {
    fn from(n: u64) -> Value {
        Value::Uint(n)
    }
}

impl From<u32> for Value {
    fn from(n: u32) -> Value {
        Value::Uint(u64::from(n))
    }
}

impl From<usize> for Value {
    fn from(n: usize) -> Value {
        Value::Uint(n as u64)
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Value {
        Value::Int(n)
    }
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Value {
        Value::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(Cow::Owned(text))
    }
}

type ReadOne = fn(&Reading<'_>) -> Value;

impl Metric {
    const fn new(kind: Kind, name: &'static str, help: &'static str, read: Read) -> Metric {
        let (constant, is_shown) = (None, None);
        Metric { name, kind, unit: Unit::None, help, constant, is_human_too: false, is_shown, read }
    }

    pub(super) const fn unit(mut self, unit: Unit) -> Metric {
        self.unit = unit;
        self
    }

    /// The metric is a number of bytes, which INFO shows a second time as people read it.
    pub(super) const fn human(mut self) -> Metric {
        self.unit = Unit::Bytes;
        self.is_human_too = true;
        self
    }

    /// INFO shows it only while this is so.
    pub(super) const fn only_if(mut self, is_shown: fn(&Reading<'_>) -> bool) -> Metric {
        self.is_shown = Some(is_shown);
        self
    }

    /// Its value is always the same, because of this.
    pub(super) const fn constant(mut self, because: &'static str) -> Metric {
        self.constant = Some(because);
        self
    }
}

pub(super) const fn counter(name: &'static str, help: &'static str, read: ReadOne) -> Metric {
    Metric::new(Kind::Counter, name, help, Read::One(read))
}

pub(super) const fn gauge(name: &'static str, help: &'static str, read: ReadOne) -> Metric {
    Metric::new(Kind::Gauge, name, help, Read::One(read))
}

pub(super) const fn text(name: &'static str, help: &'static str, read: ReadOne) -> Metric {
    Metric::new(Kind::Text, name, help, Read::One(read))
}

/// A metric that is always 0, because of this.
pub(super) const fn zero(
    kind: Kind,
    name: &'static str,
    help: &'static str,
    because: &'static str,
) -> Metric {
    Metric::new(kind, name, help, Read::One(|_| Value::Uint(0))).constant(because)
}

/// A family of fields, one for each of what `label` names.
pub(super) const fn each(
    name: &'static str,
    label: &'static str,
    help: &'static str,
    cells: &'static [Cell],
    read: fn(&Reading<'_>) -> Vec<Line>,
) -> Metric {
    Metric::new(Kind::Text, name, help, Read::Each { label, cells, read })
}

pub(super) const fn cell(name: &'static str, kind: Kind, unit: Unit, help: &'static str) -> Cell {
    Cell { name, kind, unit, help }
}
