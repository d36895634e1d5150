//! Growable filters from a thousand keys on: space, false-positive rate, lookups and inserts by
//! size, pauses and memory.

use std::path::Path;

use super::picture;
use super::plot::{Axis, Chart, Ink, Line};
use crate::Failure;
use crate::growth::{
    Grown, INSERTS, LEGEND, Point, inserts_table, measure_inserts, summary, table,
};
use crate::subjects::{FIRST, Growing};
use crate::table::grouped;

/// A plot: its file, its title, its vertical axis, and the figure it shows of a filter.
struct Picture {
    file: &'static str,
    title: &'static str,
    axis: &'static str,
    logarithmic: bool,
    of: fn(&Point) -> Option<f64>,
    /// Whether it includes the fixed filters, which are full at every size.
    fixed: bool,
}

const PICTURES: [Picture; 5] = [
    Picture {
        file: "growth-space.svg",
        title: "Growing: bits per key",
        axis: "bits per key",
        logarithmic: false,
        of: |point| Some(point.bits_per_key()),
        fixed: false,
    },
    Picture {
        file: "growth-rate.svg",
        title: "Growing: false-positive rate, measured",
        axis: "percent of absent keys",
        logarithmic: false,
        of: |point| Some(point.fpr * 100.0),
        fixed: false,
    },
    Picture {
        file: "growth-lookups.svg",
        title: "Growing: nanoseconds per single lookup of an absent key",
        axis: "nanoseconds",
        logarithmic: true,
        of: |point| point.lookups[0],
        fixed: true,
    },
    Picture {
        file: "growth-many.svg",
        title: "Growing: nanoseconds per batched lookup of an absent key",
        axis: "nanoseconds",
        logarithmic: true,
        of: |point| point.lookups[2],
        fixed: true,
    },
    Picture {
        file: "growth-inserts.svg",
        title: "Growing: nanoseconds per insert, growth included",
        axis: "nanoseconds",
        logarithmic: true,
        of: |point| Some(point.insert),
        fixed: true,
    },
];

/// The plots and the figures.
pub(super) fn section(
    filters: &[&Growing],
    keys: u64,
    rate: f64,
    plots: &Path,
) -> Result<String, Failure> {
    eprintln!("growable filters");
    let (others, filters) =
        filters.iter().copied().partition::<Vec<_>, _>(|filter| filter.inserts_alone);
    let measured = |filter: &&Growing| Grown::measure(filter, keys, rate);
    let grown: Vec<_> = filters.iter().map(measured).collect::<Result<_, Failure>>()?;
    let others = measure_inserts(&others, keys, rate)?;
    let mut text = format!(
        "## Growing\n\nFrom {} keys to {}, target false-positive rate {rate}. {LEGEND}\n\n{}\n{INSERTS}\n\n{}\n",
        grouped(FIRST),
        grouped(keys),
        summary(&grown).markdown(),
        inserts_table(&others).markdown()
    );
    for kind in &PICTURES {
        chart(kind, &grown, keys).save(&plots.join(kind.file))?;
        text += &picture(plots, kind.file, kind.title);
    }
    text += "<details><summary>The figures</summary>\n\n";
    for filter in &grown {
        text += &format!("### {}\n\n{}\n", filter.name, table(&filter.curve).markdown());
    }
    Ok(text + "</details>\n\n")
}

fn chart(picture: &Picture, grown: &[Grown], keys: u64) -> Chart {
    let mut lines: Vec<_> = grown
        .iter()
        .enumerate()
        .map(|(number, filter)| Line {
            name: filter.name.into(),
            ink: Ink::Filter(number),
            points: points(filter.curve.growing(), picture),
        })
        .collect();
    if picture.fixed {
        let fixed = |(number, filter): (usize, &Grown)| Line {
            name: format!("{}, fixed", filter.name.split(' ').next().unwrap_or("")),
            ink: Ink::Variant(number),
            points: points(filter.curve.points.iter().filter(|point| point.fixed), picture),
        };
        let growable =
            grown.iter().enumerate().filter(|(_, filter)| filter.name.ends_with("growable"));
        lines.extend(growable.map(fixed));
    }
    lines.retain(|line| !line.points.is_empty());
    let values = || lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let y = if picture.logarithmic {
        Axis::decades(picture.axis, values())
    } else {
        let highest = values().fold(0.0, f64::max);
        let step = if highest > 5.0 { 5.0 } else { 0.02 };
        Axis::linear(picture.axis, 0.0, (highest / step).ceil() * step, step)
    };
    let ticks =
        (0..12).map(|exponent| FIRST * 10_u64.pow(exponent)).take_while(|&tick| 2 * tick <= keys);
    let ticks = ticks.chain([keys]).map(|tick| (tick as f64, grouped(tick))).collect();
    Chart { title: picture.title, x: Axis::marked("keys", ticks), y, lines }
}

fn points<'a>(of: impl Iterator<Item = &'a Point>, picture: &Picture) -> Vec<(f64, f64)> {
    of.filter_map(|point| Some((point.keys as f64, (picture.of)(point)?))).collect()
}
