//! What growth costs at several loads, drawn from the table that a measurement in the library
//! prints: `cargo test --release -p koel --lib -- --ignored --nocapture load_curve`.
//!
//! Only the library can change the load of a growing table, so the measurement is a test of it.

use std::collections::BTreeMap;
use std::io::{BufRead, stdin};
use std::path::Path;

use super::plot::{Axis, Chart, Ink, Line};
use crate::Failure;
use crate::table::{Table, figure};

/// Nanoseconds per insert by load: single inserts, then batched ones.
type Curves = [Vec<(f64, f64)>; 2];

/// Reads the measurement from standard input, draws it, and prints it as a table.
pub(crate) fn run(plot: &Path) -> Result<(), Failure> {
    let mut table = Table::new(&["packing", "load", "single, ns", "batched, ns", "bits/key"]);
    let mut curves = BTreeMap::<String, Curves>::new();
    for line in stdin().lock().lines() {
        let line = line?;
        // Other lines are those of the test harness.
        let Some((packing, figures)) = parsed(&line) else { continue };
        let [load, single, batched, bits] = figures;
        let times = [single, batched, bits].map(|it| figure(Some(it)));
        table.push([packing.into(), format!("{load:.3}")].into_iter().chain(times).collect());
        let curves = curves.entry(packing.to_owned()).or_default();
        curves[0].push((load, single));
        curves[1].push((load, batched));
    }
    if curves.is_empty() {
        return Err("standard input has no line of the measurement".into());
    }
    chart(curves).save(plot)?;
    print!("{}", table.markdown());
    Ok(())
}

/// Packing, load, nanoseconds of a single and of a batched insert, and bits per key.
fn parsed(line: &str) -> Option<(&str, [f64; 4])> {
    let (packing, rest) = line.split_once(' ')?;
    let figures: Vec<f64> = rest.split(' ').map_while(|word| word.parse().ok()).collect();
    Some((packing, figures.try_into().ok()?))
}

fn chart(curves: BTreeMap<String, Curves>) -> Chart {
    let mut lines = Vec::new();
    for (number, (packing, [single, batched])) in curves.into_iter().enumerate() {
        let line = |mode, ink, points| Line { name: format!("{packing}, {mode}"), ink, points };
        lines.push(line("single", Ink::Filter(number), single));
        lines.push(line("batched", Ink::Variant(number), batched));
    }
    let points = || lines.iter().flat_map(|line| &line.points);
    let highest = points().map(|point| point.1).fold(0.0, f64::max);
    let (from, to) =
        points().fold((1.0_f64, 0.0_f64), |(from, to), point| (from.min(point.0), to.max(point.0)));
    Chart {
        title: "Growing to a million keys: nanoseconds per insert by load",
        x: Axis::linear("load at which buckets are split", from, to, 0.025),
        y: Axis::linear("nanoseconds", 0.0, (highest / 100.0).ceil() * 100.0, 100.0),
        lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_measurement_are_told_from_others() {
        assert_eq!(
            parsed("small 0.87 296 250 18.79"),
            Some(("small", [0.87, 296.0, 250.0, 18.79]))
        );
        for other in ["", "running 1 test", "test result: ok. 1 passed", "small 0.87 296 250"] {
            assert_eq!(parsed(other), None, "{other}");
        }
    }
}
