//! Thresholds: how full the exact map gets in each shape, by its size, compared with the
//! theoretical limit of large tables.

use std::path::Path;

use super::plot::{Axis, Chart, Ink, Line};
use super::{Scale, picture};
use crate::Failure;
use crate::table::grouped;
use crate::thresholds::{SHAPES, Shape, Threshold, measure, table};

/// The sizes, each with its measurements.
type Sizes = [(u64, Vec<Threshold>)];

/// The plot, and its figures as a table.
pub(super) fn section(scale: &Scale, plots: &Path) -> Result<String, Failure> {
    eprintln!("thresholds of the map");
    let of = |&slots: &u64| Ok((slots, measure(slots, scale.maps_of_each)?));
    let sizes: Vec<_> = scale.maps.iter().map(of).collect::<Result<_, Failure>>()?;
    chart(&sizes).save(&plots.join("thresholds.svg"))?;
    let what =
        "Share of the map's slots left empty at the first failure, by hashes x slots per bucket";
    Ok(format!(
        "## The exact map: how full it gets\n\n`koel-bench -- thresholds`: share of slots in use when the first insert into a `CuckooMap` finds no \
         slot, means of {} tables. Theory assumes unlimited tables and searches; the map looks at 4096 entries and then grows. \
         Grey in the plot: theory.\n\n{}{}\n",
        scale.maps_of_each,
        picture(plots, "thresholds.svg", what),
        table(&sizes).markdown()
    ))
}

fn chart(sizes: &Sizes) -> Chart {
    let mut lines: Vec<_> = SHAPES.iter().map(theory(sizes)).collect();
    lines.extend(SHAPES.iter().enumerate().map(|(row, shape)| Line {
        name: format!("{} (theory {:.4})", shape.name(), 1.0 - shape.threshold),
        ink: Ink::Filter(row),
        points: sizes.iter().map(|(slots, all)| (*slots as f64, 1.0 - all[row].load)).collect(),
    }));
    let empty = lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let ticks = sizes.iter().map(|(slots, _)| (*slots as f64, grouped(*slots))).collect();
    Chart {
        title: "Share of the map's slots left empty at the first failure, by hashes x slots per bucket",
        x: Axis::marked("slots of the table", ticks),
        y: Axis::decades("share of slots left empty", empty),
        lines,
    }
}

/// A grey line without a name.
fn theory(sizes: &Sizes) -> impl Fn(&Shape) -> Line {
    |shape| {
        let ends = [sizes.first(), sizes.last()].into_iter().flatten();
        let points = ends.map(|(slots, _)| (*slots as f64, 1.0 - shape.threshold)).collect();
        Line { name: String::new(), ink: Ink::Limit(1), points }
    }
}
