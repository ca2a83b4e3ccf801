//! What a part of the bench leaves behind: charts of bars, in groups along the axis, one bar a server or
//! variant, and of each bar the parts it opens into. The page draws exactly this; the JSON files hold exactly
//! this.
use serde_json::{Value, json};

/// Which way is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    More,
    Less,
}

/// What changes are relative to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// The bar of this series in the same group.
    Series(String),
    /// The bar of the same series in this group.
    Group(String),
}

impl Base {
    /// The newest Redis among the servers, else the last of them: peers stand in the order of their versions.
    pub(crate) fn of(labels: &[String]) -> Base {
        let redis = labels.iter().rev().find(|label| label.starts_with("redis"));
        Base::Series(redis.or(labels.last()).cloned().unwrap_or_default())
    }
}

/// How a chart is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drawing {
    Bars,
    /// A line for each series; the groups are numbers, on a logarithmic axis, as are the values.
    Curves,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chart {
    /// Charts of one section stand side by side.
    pub(crate) section: String,
    pub(crate) title: String,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
    /// What the groups are.
    pub(crate) axis: &'static str,
    pub(crate) base: Base,
    pub(crate) drawing: Drawing,
    pub(crate) bars: Vec<Bar>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bar {
    pub(crate) group: String,
    pub(crate) series: String,
    pub(crate) value: f64,
    /// What it is made of, from the bottom, in the unit `parts_unit`.
    pub(crate) parts: Vec<(String, f64)>,
    pub(crate) parts_unit: &'static str,
}

impl Chart {
    pub(crate) fn json(&self) -> Value {
        let (by, name) = match &self.base {
            Base::Series(name) => ("series", name),
            Base::Group(name) => ("group", name),
        };
        json!({
            "section": self.section,
            "title": self.title,
            "unit": self.unit,
            "better": if self.better == Better::More { "more" } else { "less" },
            "axis": self.axis,
            "base": { "by": by, "name": name },
            "drawing": if self.drawing == Drawing::Bars { "bars" } else { "curves" },
            "bars": self.bars.iter().map(Bar::json).collect::<Vec<_>>(),
        })
    }
}

impl Bar {
    /// A figure that is no number (nothing was measured) is null.
    fn json(&self) -> Value {
        let part = |(name, value): &(String, f64)| json!({ "name": name, "value": value });
        json!({
            "group": self.group,
            "series": self.series,
            "value": self.value,
            "parts": self.parts.iter().map(part).collect::<Vec<_>>(),
            "parts_unit": self.parts_unit,
        })
    }
}

#[cfg(test)]
pub(crate) fn example() -> Chart {
    let bar = |series: &str, value| Bar {
        group: "depth 1".into(),
        series: series.into(),
        value,
        parts: vec![("user".into(), value / 4.0), ("system".into(), value * 0.75)],
        parts_unit: "us",
    };
    Chart {
        section: "SET".into(),
        title: "CPU of the server".into(),
        unit: "us",
        better: Better::Less,
        axis: "pipeline",
        base: Base::Series("redis".into()),
        drawing: Drawing::Bars,
        bars: vec![bar("sardine", 2.0), bar("redis", 4.0)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_against_the_newest_redis() {
        let labels = ["sardine", "redis 7.0.15", "redis 8.0.2", "valkey 8.1.1"].map(String::from);
        assert_eq!(Base::of(&labels), Base::Series("redis 8.0.2".into()));
        assert_eq!(Base::of(&labels[..1]), Base::Series("sardine".into()));
    }

    #[test]
    fn a_chart_keeps_its_bars_and_their_parts() {
        let mut chart = example();
        chart.bars[1].value = f64::NAN;
        let value = chart.json();
        assert_eq!(value["base"], json!({ "by": "series", "name": "redis" }));
        assert_eq!(
            (&value["bars"][0]["series"], &value["bars"][0]["value"]),
            (&json!("sardine"), &json!(2.0))
        );
        assert_eq!(value["bars"][0]["parts"][1], json!({ "name": "system", "value": 1.5 }));
        assert_eq!(value["bars"][1]["value"], Value::Null, "JSON has no other word for it");
    }
}
