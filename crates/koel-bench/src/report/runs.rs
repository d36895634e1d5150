//! `runs` as a plot: absent keys by the number of runs, for docs/STORES.md.

use std::path::Path;

use super::plot::{Axis, Chart, Ink, Line};
use crate::Failure;
use crate::args::RunsArgs;
use crate::stores::runs::{Row, measure_all, table};

/// Measures, draws the plot into a file, and prints the table in Markdown.
pub(crate) fn run(args: &RunsArgs, file: &Path) -> Result<(), Failure> {
    let rows = measure_all(args)?;
    chart(&rows).save(file)?;
    print!("{}", table(&rows).markdown());
    Ok(())
}

fn chart(rows: &[Row]) -> Chart {
    let mut lines: Vec<Line> = Vec::new();
    for row in rows {
        let point = (row.runs as f64, row.half);
        match lines.last_mut().filter(|line| line.name == row.store) {
            Some(line) => line.points.push(point),
            None => {
                let ink = Ink::Filter(lines.len());
                lines.push(Line { name: row.store.to_owned(), ink, points: vec![point] });
            }
        }
    }
    let most = rows.iter().map(|row| row.half).fold(100.0, f64::max);
    let last = rows.iter().map(|row| row.runs).max().unwrap_or(1) as f64;
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
