//! Space: bits per key at each false-positive rate, and the cost of a number of keys just above a
//! power of two.

use std::f64::consts::LOG2_E;
use std::path::Path;

use testkit::keys::hashes;

use super::plot::{Axis, Chart, Ink, Line};
use super::{Scale, picture};
use crate::Failure;
use crate::subject::Subject;
use crate::subjects::chosen;
use crate::table::{Table, figure, grouped};

const RATES: [f64; 7] = [0.03, 0.01, 0.003, 0.001, 0.000_3, 0.000_1, 0.000_03];

/// The ends of the rate axis.
const HIGHEST: f64 = 0.05;
const LOWEST: f64 = 0.000_01;

/// The filters in the plot; the position in the list chooses the colour.
const PLOTTED: [&str; 7] = [
    "koel-fast",
    "koel-small",
    "qfilter",
    "atomic-cuckoo-filter+mix",
    "scalable_cuckoo_filter+mix",
    "fastbloom+mix",
    "sbbf",
];

/// The number of keys looked up to measure a false-positive rate.
const ABSENT: u64 = 8_000_000;

/// False-positive rate and bits per key, both measured.
fn measured(subject: &Subject, keys: &[u64], rate: f64, absent: &[u64]) -> (f64, f64) {
    let mut filter = (subject.build)(keys.len(), rate);
    let accepted = filter.insert(keys).max(1);
    let found = filter.find(absent);
    (found as f64 / absent.len() as f64, filter.bytes() as f64 * 8.0 / accepted as f64)
}

/// The plot, and its figures as a table.
pub(super) fn by_rate(scale: &Scale, plots: &Path) -> Result<String, Failure> {
    eprintln!("bits per key by false-positive rate");
    let keys: Vec<_> = hashes(1, scale.one_size as u64).collect();
    let absent: Vec<_> = hashes(2, ABSENT.min(scale.one_size as u64 * 8)).collect();
    let mut lines = Vec::new();
    let mut table = Table::new(&["filter", "asked for", "measured", "bits/key", "above log2(1/p)"]);
    for (number, name) in PLOTTED.iter().enumerate() {
        let subject = chosen(&[name.to_string()])?[0];
        let mut points = Vec::new();
        for rate in RATES {
            let (error, bits) = measured(subject, &keys, rate, &absent);
            table.push(vec![
                name.to_string(),
                format!("{rate}"),
                format!("{error:.6}"),
                figure(Some(bits)),
                figure((error > 0.0).then(|| bits + error.log2())),
            ]);
            if error * absent.len() as f64 >= 20.0 {
                points.push((error, bits));
            }
        }
        points.dedup();
        lines.push(Line { name: name.to_string(), ink: Ink::Filter(number), points });
    }
    lines.extend(information_limits());
    lines.retain(|line| !line.points.is_empty());
    space_chart(lines).save(&plots.join("space.svg"))?;
    let what = "Bits per key by false-positive rate, both measured";
    Ok(format!(
        "## Space\n\n{} keys. Grey: `log2(1/p)`, the least for sets that are built once; `log2(1/p) + log2 e`, the least for sets \
         with deletes; and `1.44 log2(1/p)`, the Bloom filter. Points with fewer than 20 false positives are left out of the plot.\n\n\
         {}<details><summary>The figures</summary>\n\n{}\n</details>\n\n",
        grouped(scale.one_size as u64),
        picture(plots, "space.svg", what),
        table.markdown()
    ))
}

/// The lower bounds of bits per key, at the ends of the plot.
fn information_limits() -> Vec<Line> {
    let line = |name: &str, number: usize, bits: fn(f64) -> f64| Line {
        name: name.into(),
        ink: Ink::Limit(number),
        points: [HIGHEST, LOWEST].map(|rate: f64| (rate, bits(rate.recip().log2()))).to_vec(),
    };
    vec![
        line("1.44 log2(1/p): Bloom", 2, |information| information * LOG2_E),
        line("log2(1/p) + log2 e: dynamic", 1, |information| information + LOG2_E),
        line("log2(1/p): static", 0, |information| information),
    ]
}

/// The false-positive rate falls to the right.
fn space_chart(lines: Vec<Line>) -> Chart {
    let label = |rate: f64| (rate, format!("{} %", rate * 100.0));
    let ticks = [HIGHEST, 0.01, 0.001, 0.000_1, LOWEST].map(label).to_vec();
    let x =
        Axis { from: HIGHEST, to: LOWEST, ..Axis::marked("false-positive rate, measured", ticks) };
    Chart {
        title: "Bits per key by false-positive rate, both measured",
        x,
        y: Axis::linear("bits per key", 0.0, 35.0, 5.0),
        lines,
    }
}

/// Bits per key at three numbers of keys, one of which suits a power of two of slots.
pub(super) fn by_count(scale: &Scale) -> String {
    let counts = [scale.one_size, scale.one_size / 90 * 91, scale.one_size / 90 * 100];
    let heading = counts.map(|count| format!("{} keys", grouped(count as u64)));
    let mut table = Table::new(&["filter", &heading[0], &heading[1], &heading[2]]);
    let keys: Vec<_> = hashes(1, counts[2] as u64).collect();
    for subject in crate::subjects::SUBJECTS
        .iter()
        .filter(|subject| subject.is_single() && !subject.name.contains('+'))
    {
        let bits = counts.map(|count| measured(subject, &keys[..count], 0.002, &keys[..1]).1);
        let mut cells = vec![subject.name.to_string()];
        cells.extend(bits.map(|bits| figure(Some(bits))));
        table.push(cells);
    }
    format!(
        "### A few keys more\n\nBits per key, target false-positive rate 0.002. Most tables have a power of two of slots: they double when \
         the keys no longer fit.\n\n{}\n",
        table.markdown()
    )
}
