//! `runs` as a plot: absent keys by the number of runs, for docs/STORES.md.

use std::path::Path;

use serde_json::Value;

use super::plot::{Axis, Chart, Ink, Line};
use crate::Failure;
use crate::args::RunsArgs;
use crate::stores::runs::{FIGURES, measure_all};
use crate::table::Table;

/// Measures, draws the plot into a file, and prints the table in Markdown.
pub(crate) fn run(args: &RunsArgs, file: &Path) -> Result<(), Failure> {
    let rows = measure_all(args)?;
    chart(&rows).save(file)?;
    print!("{}", Table::of(&rows, FIGURES).markdown());
    Ok(())
}

fn chart(rows: &[Value]) -> Chart {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let mut lines: Vec<Line> = Vec::new();
    for of_store in rows.chunk_by(|one, other| one["store"] == other["store"]) {
        lines.push(Line {
            name: of_store[0]["store"].as_str().unwrap_or_default().to_owned(),
            ink: Ink::Filter(lines.len()),
            points: of_store
                .iter()
                .map(|it| (number(&it["runs"]), number(&it["miss_p50_ns"])))
                .collect(),
        });
    }
    let points = || lines.iter().flat_map(|line| &line.points);
    let most = points().map(|point| point.1).fold(100.0, f64::max);
    let last = points().map(|point| point.0).fold(1.0, f64::max);
    Chart {
        title: "An absent key by the number of unmerged runs",
        x: Axis::linear("runs", 0.0, last + 1.0, 4.0),
        y: Axis::linear(
            "median latency, ns",
            0.0,
            1.05 * most,
            (most / 8.0 / 100.0).ceil() * 100.0,
        ),
        lines,
    }
}
