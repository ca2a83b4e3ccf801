//! The picture for the README: two panels, bytes and time against the number of elements, as one SVG that
//! needs nothing else.
//!
//! Every collection is a thin line, and the geometric mean of all of them a thick one with a name. Colours
//! and the grey of the text are chosen to be read on white and on black alike, since a page that shows the
//! file does not tell it which of the two it has.
use super::super::chart::Chart;
use std::collections::BTreeMap;
use std::fmt::Write;

pub(super) struct Picture<'c> {
    pub(super) bytes: Vec<&'c Chart>,
    pub(super) times: Vec<&'c Chart>,
}

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 392.0;
const PANEL_WIDTH: f64 = 470.0;
/// Around a panel's plot, within the panel.
const LEFT: f64 = 46.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 58.0;
const BOTTOM: f64 = 74.0;
const COLOURS: [&str; 3] = ["#2f81f7", "#d98c0a", "#e5534b"];
const TEXT: &str = "#7d8793";
const RULE: &str = "#7d8793";

/// A line through (elements, value).
type Line = Vec<(f64, f64)>;

/// How values become heights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    FromZero,
    Logarithmic,
}

impl Picture<'_> {
    pub(super) fn svg(&self) -> String {
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\" font-size=\"13\">\n\
             <title>Bytes an element and server time an operation against the number of elements</title>\n"
        );
        let names =
            |charts: &[&Chart]| charts.iter().map(|c| c.title.as_str()).collect::<Vec<_>>().join(", ");
        let panels = [
            Panel::new(0.0, "Bytes an element", names(&self.bytes), &self.bytes, Scale::FromZero),
            Panel::new(
                WIDTH - PANEL_WIDTH,
                "Server CPU an operation, microseconds",
                names(&self.times),
                &self.times,
                Scale::Logarithmic,
            ),
        ];
        for panel in panels.iter().filter(|panel| !panel.means.is_empty()) {
            panel.draw(&mut out);
        }
        legend(&mut out, &panels[0]);
        out.push_str("</svg>\n");
        out
    }
}

struct Panel {
    left: f64,
    title: &'static str,
    subtitle: String,
    scale: Scale,
    /// The servers in their order, each with its mean.
    means: Vec<(String, Line)>,
    /// The server's place in that order, and one collection.
    lines: Vec<(usize, Line)>,
    /// Least and greatest.
    elements: (f64, f64),
    values: (f64, f64),
}

impl Panel {
    fn new(left: f64, title: &'static str, subtitle: String, charts: &[&Chart], scale: Scale) -> Panel {
        let mut series: Vec<String> = Vec::new();
        for bar in charts.iter().flat_map(|chart| &chart.bars) {
            if !series.contains(&bar.series) {
                series.push(bar.series.clone());
            }
        }
        let mut lines = Vec::new();
        for chart in charts {
            lines.extend(series.iter().enumerate().map(|(at, name)| (at, line(chart, name))));
        }
        let all: Vec<(f64, f64)> = lines.iter().flat_map(|(_, line)| line).copied().collect();
        let span = |of: fn(&(f64, f64)) -> f64| {
            let each = all.iter().map(of);
            (each.clone().fold(f64::INFINITY, f64::min), each.fold(0.0, f64::max))
        };
        let (least, most) = span(|point| point.1);
        let values = match scale {
            Scale::FromZero => (0.0, most * 1.08),
            Scale::Logarithmic => (least * 0.8, most * 1.25),
        };
        let means = series.iter().map(|name| (name.clone(), mean(charts, name))).collect();
        Panel { left, title, subtitle, scale, means, lines, elements: span(|point| point.0), values }
    }

    fn x(&self, elements: f64) -> f64 {
        let (least, most) = self.elements;
        let share = if most > least { (elements / least).ln() / (most / least).ln() } else { 0.5 };
        self.left + LEFT + share * (PANEL_WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        let (least, most) = self.values;
        let share = match self.scale {
            Scale::FromZero => value / most,
            Scale::Logarithmic => (value / least).ln() / (most / least).ln(),
        };
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }

    fn draw(&self, out: &mut String) {
        text(
            out,
            self.left + LEFT,
            22.0,
            "start",
            &format!("font-size=\"16\" font-weight=\"600\" fill=\"{TEXT}\""),
            self.title,
        );
        text(out, self.left + LEFT, 41.0, "start", &format!("fill=\"{TEXT}\""), &self.subtitle);
        for value in self.value_ticks() {
            let (y, left) = (self.y(value), self.left + LEFT);
            rule(out, (left, y), (self.left + PANEL_WIDTH - RIGHT, y));
            text(out, left - 6.0, y + 4.5, "end", &format!("fill=\"{TEXT}\""), &short(value));
        }
        let bottom = HEIGHT - BOTTOM;
        let mut elements = self.elements.0;
        while elements <= self.elements.1 * 1.01 {
            let x = self.x(elements);
            rule(out, (x, bottom), (x, bottom + 5.0));
            text(out, x, bottom + 20.0, "middle", &format!("fill=\"{TEXT}\""), &binary(elements));
            elements *= 16.0;
        }
        let end = self.left + PANEL_WIDTH - RIGHT;
        text(out, end, bottom + 37.0, "end", &format!("fill=\"{TEXT}\""), "elements");
        for (at, line) in &self.lines {
            self.polyline(
                out,
                line,
                COLOURS[at % COLOURS.len()],
                "stroke-width=\"1\" stroke-opacity=\"0.45\"",
            );
        }
        for (at, (_, line)) in self.means.iter().enumerate() {
            self.polyline(out, line, COLOURS[at % COLOURS.len()], "stroke-width=\"3\"");
        }
    }

    /// Round numbers, five or so.
    fn value_ticks(&self) -> Vec<f64> {
        let (least, most) = self.values;
        let powers = (-4..9).map(|power| 10_f64.powi(power));
        let steps: Vec<f64> = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * power)).collect();
        match self.scale {
            Scale::FromZero => {
                let step = steps.into_iter().find(|step| most / step <= 6.0).unwrap_or(most);
                (0..=(most / step) as u32).map(|n| f64::from(n) * step).collect()
            }
            Scale::Logarithmic => {
                let is_wide = most / least > 100.0;
                let is_shown = |tick: &f64| !is_wide || (tick.log10() - tick.log10().round()).abs() < 1e-9;
                steps.into_iter().filter(|tick| (least..=most).contains(tick)).filter(is_shown).collect()
            }
        }
    }

    fn polyline(&self, out: &mut String, line: &Line, colour: &str, style: &str) {
        let points: Vec<String> = line
            .iter()
            .map(|(elements, value)| format!("{:.1},{:.1}", self.x(*elements), self.y(*value)))
            .collect();
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-linejoin=\"round\" {style}/>",
            points.join(" ")
        );
    }
}

/// What one server needs for one collection.
fn line(chart: &Chart, series: &str) -> Line {
    let own = chart.bars.iter().filter(|bar| bar.series == series);
    own.filter_map(|bar| Some((bar.group.parse().ok()?, bar.value))).collect()
}

/// The geometric mean of all collections, where all of them were measured.
fn mean(charts: &[&Chart], series: &str) -> Line {
    let mut logs: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (elements, value) in charts.iter().flat_map(|chart| line(chart, series)) {
        logs.entry(elements as u64).or_default().push(value.max(1e-6).ln());
    }
    let is_complete = |logs: &Vec<f64>| logs.len() == charts.len();
    let mean = |logs: Vec<f64>| (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    logs.into_iter().filter(|(_, logs)| is_complete(logs)).map(|(n, logs)| (n as f64, mean(logs))).collect()
}

/// The servers' names with their colours, below both panels.
fn legend(out: &mut String, panel: &Panel) {
    let mut x = LEFT;
    let y = HEIGHT - 12.0;
    for (at, (name, _)) in panel.means.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{0:.1}\" x2=\"{1:.1}\" y2=\"{0:.1}\" stroke=\"{colour}\" stroke-width=\"3\"/>",
            y - 4.0,
            x + 24.0
        );
        text(out, x + 31.0, y, "start", &format!("font-weight=\"600\" fill=\"{colour}\""), name);
        x += 60.0 + 7.6 * name.len() as f64;
    }
    let note = "thin: each, thick: geometric mean";
    text(out, WIDTH - RIGHT, y, "end", &format!("fill=\"{TEXT}\""), note);
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, style: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {style}>{words}</text>");
}

fn rule(out: &mut String, from: (f64, f64), to: (f64, f64)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(
        out,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{RULE}\" stroke-opacity=\"0.3\"/>"
    );
}

/// 0.5, 20, 1000.
fn short(value: f64) -> String {
    format!("{}", (value * 1e4).round() / 1e4)
}

/// 16, 4k, 1M: powers of two by the names they go by.
fn binary(elements: f64) -> String {
    match elements as u64 {
        n @ ..1_024 => n.to_string(),
        n @ ..1_048_576 => format!("{}k", n / 1_024),
        n => format!("{}M", n / 1_048_576),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::chart::{self, Bar, Drawing};
    use super::*;

    fn curves(values: &[(&str, u64, f64)]) -> Chart {
        let bar = |(series, elements, value): &(&str, u64, f64)| Bar {
            group: elements.to_string(),
            series: series.to_string(),
            value: *value,
            parts: Vec::new(),
            parts_unit: "",
        };
        Chart { drawing: Drawing::Curves, bars: values.iter().map(bar).collect(), ..chart::example() }
    }

    #[test]
    fn the_mean_is_geometric_and_only_where_all_were_measured() {
        let (a, b) = (curves(&[("s", 16, 1.0), ("s", 64, 2.0)]), curves(&[("s", 16, 4.0)]));
        let mean = mean(&[&a, &b], "s");
        assert_eq!(mean.len(), 1);
        assert!((mean[0].1 - 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_picture_needs_nothing_from_elsewhere_and_names_every_server() {
        let chart = curves(&[("sardine", 16, 1.0), ("redis <8>", 16, 400.0), ("sardine", 64, 2.0)]);
        let svg = Picture { bytes: vec![&chart], times: vec![&chart] }.svg();
        assert!(svg.contains(">sardine<") && svg.contains("redis &lt;8>"), "{svg}");
        assert_eq!(svg.matches("http").count(), 1, "the name of SVG itself");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn sizes_go_by_their_short_names() {
        assert_eq!([16.0, 1_024.0, 65_536.0, 1_048_576.0].map(binary), ["16", "1k", "64k", "1M"]);
    }
}
