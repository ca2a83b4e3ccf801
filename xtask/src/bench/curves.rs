//! The memory of one list by `list-max-listpack-size`: the curves that were once published for the quicklist,
//! with integers, words, and elements of 2.5 KB.
use super::Options;
use super::bytes::labels;
use super::chart::{Base, Better, Chart, Drawing};
use super::data_sets::{Send, push_all, random_bytes, words};
use super::memory::measure;
use super::parts::Part;
use super::progress::Progress;
use base::random::Random;

const SIZES: [&str; 11] = ["1", "2", "3", "4", "8", "16", "32", "64", "128", "290", "512"];
const QUICK_SIZES: [&str; 3] = ["1", "16", "512"];

/// A data set; the second argument says how many elements, where that can be chosen.
type Load = fn(Send<'_>, u64) -> Result<(), String>;

struct Curve {
    name: &'static str,
    elements: u64,
    quick_elements: u64,
    load: Load,
}

const CURVES: [Curve; 3] = [
    Curve { name: "integers", elements: 1_000_000, quick_elements: 50_000, load: integers },
    Curve { name: "words", elements: u64::MAX, quick_elements: 50_000, load: word_list },
    Curve { name: "elements of 2.5 KB", elements: 40_000, quick_elements: 2_000, load: blobs },
];

/// Whether there is a curve of this name.
pub(super) fn knows(name: &str) -> bool {
    CURVES.iter().any(|curve| curve.name == name)
}

pub(crate) fn run(options: &Options) -> Result<Part, String> {
    let labels = labels(options)?;
    let sizes: &[&str] = if options.is_quick { &QUICK_SIZES } else { &SIZES };
    let curves: Vec<&Curve> = CURVES.iter().filter(|curve| options.wants(curve.name)).collect();
    let mut progress = Progress::new(curves.len() * sizes.len());
    let mut charts = Vec::new();
    for curve in curves {
        let mut bars = Vec::new();
        for size in sizes {
            progress.step(&format!("{}, list-max-listpack-size {size}", curve.name));
            let elements = if options.is_quick { curve.quick_elements } else { curve.elements };
            for (spec, label) in options.servers.iter().zip(&labels) {
                let settings = [("list-max-listpack-size", *size)];
                let cost = measure(spec, &settings, 64, &|send: Send<'_>| (curve.load)(send, elements))?;
                bars.push(cost.bar(size, label));
            }
        }
        charts.push(Chart {
            section: "One list".into(),
            title: curve.name.into(),
            unit: "bytes of RSS an element",
            better: Better::Less,
            axis: "list-max-listpack-size",
            base: Base::of(&labels),
            drawing: Drawing::Bars,
            bars,
        });
    }
    Ok(Part {
        name: "curves",
        title: "Memory of a list by its leaf size",
        method:
            "One list in a fresh process for each bar, pushed at its tail: a million consecutive integers, \
                 the word list of Debian's miscfiles, 40,000 random elements of 2,500 bytes."
                .into(),
        is_quick: options.is_quick,
        charts,
    })
}

fn integers(send: Send<'_>, elements: u64) -> Result<(), String> {
    let values: Vec<Vec<u8>> = (0..elements).map(|n| n.to_string().into_bytes()).collect();
    push_all(send, "RPUSH", "list", &values, 500)
}

fn word_list(send: Send<'_>, elements: u64) -> Result<(), String> {
    let mut values: Vec<Vec<u8>> = words()?.into_iter().map(String::into_bytes).collect();
    values.truncate(usize::try_from(elements).unwrap_or(usize::MAX));
    push_all(send, "RPUSH", "list", &values, 500)
}

fn blobs(send: Send<'_>, elements: u64) -> Result<(), String> {
    let mut random = Random::new(5);
    let values: Vec<Vec<u8>> = (0..elements).map(|_| random_bytes(&mut random, 2_500)).collect();
    push_all(send, "RPUSH", "list", &values, 50)
}
