//! The cost of an insert as a filter fills up, and of a delete plus an insert at a steady load.

use std::path::Path;

use testkit::keys::hashes;

use super::plot::{Axis, Chart, Ink, Line};
use super::{Scale, picture};
use crate::Failure;
use crate::clock::{median, timed};
use crate::subject::{Filter, Subject};
use crate::subjects::chosen;
use crate::table::{Table, figure, grouped};

/// The filters in the plots; the position in the list chooses the colour.
const PLOTTED: [&str; 6] = [
    "koel-fast",
    "koel-small",
    "qfilter",
    "cuckoofilter+mix",
    "scalable_cuckoo_filter+mix",
    "atomic-cuckoo-filter+mix",
];
const RATE: f64 = 0.002;
/// The loads up to which inserts are timed together.
const STEPS: [f64; 14] =
    [0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.88, 0.9, 0.92, 0.93, 0.94, 0.95, 0.96];
/// The loads at which keys are replaced.
const STEADY: [f64; 7] = [0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.94];
/// The number of keys deleted, then inserted, at a time.
const CHURNED: usize = 64;

/// The number of slots that makes up this load.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count")]
fn share(slots: usize, load: f64) -> usize {
    (slots as f64 * load) as usize
}

/// Nanoseconds per insert between one load and the next, up to the first refusal.
fn filling(subject: &Subject, keys: usize) -> Vec<(f64, f64)> {
    let mut filter = (subject.build)(keys, RATE);
    let Some(slots) = filter.slots() else { return Vec::new() };
    let keys: Vec<_> = hashes(1, slots as u64).collect();
    let mut filled = 0;
    let mut costs = Vec::new();
    for load in STEPS {
        let batch = &keys[filled..share(slots, load)];
        let (time, accepted) = timed(|| filter.fill(batch));
        if accepted < batch.len() {
            break;
        }
        filled += accepted;
        costs.push((load, time.as_secs_f64() * 1e9 / accepted.max(1) as f64));
    }
    costs
}

/// Nanoseconds per delete plus insert at each load.
fn churning(subject: &Subject, keys: usize) -> Vec<(f64, f64)> {
    let at = |load: f64| {
        let mut filter = (subject.build)(keys, RATE);
        let slots = filter.slots()?;
        let stream: Vec<_> = hashes(1, 2 * slots as u64).collect();
        let held = share(slots, load);
        if filter.fill(&stream[..held]) < held {
            return None;
        }
        let rounds = (slots / 2).div_ceil(CHURNED);
        let (time, refused) = timed(|| churn(filter.as_mut(), &stream, held, rounds));
        let pairs = (rounds * CHURNED) as f64;
        (refused == 0).then(|| (load, time.as_secs_f64() * 1e9 / pairs))
    };
    STEADY.into_iter().filter_map(at).collect()
}

/// Replaces the oldest keys with new ones, and returns how many of these were refused.
fn churn(filter: &mut dyn Filter, stream: &[u64], held: usize, rounds: usize) -> usize {
    let mut refused = 0;
    for round in 0..rounds {
        let first = round * CHURNED;
        filter.delete(&stream[first..first + CHURNED]);
        refused += CHURNED - filter.insert(&stream[held + first..][..CHURNED]);
    }
    refused
}

/// A line of medians over several repetitions of `curve`, without loads that were not reached every
/// time.
fn medians(
    subject: &Subject,
    scale: &Scale,
    curve: fn(&Subject, usize) -> Vec<(f64, f64)>,
) -> Vec<(f64, f64)> {
    let runs: Vec<_> = (0..scale.repetitions).map(|_| curve(subject, scale.one_size)).collect();
    let reached = runs.iter().map(Vec::len).min().unwrap_or(0);
    let at =
        |i: usize| (runs[0][i].0, median(&runs.iter().map(|run| run[i].1).collect::<Vec<_>>()));
    (0..reached).map(at).collect()
}

fn lines(
    scale: &Scale,
    curve: fn(&Subject, usize) -> Vec<(f64, f64)>,
) -> Result<Vec<Line>, Failure> {
    let line = |(number, name): (usize, &&str)| {
        let subject = chosen(&[name.to_string()])?[0];
        let points = medians(subject, scale, curve);
        Ok(Line { name: name.to_string(), ink: Ink::Filter(number), points })
    };
    PLOTTED.iter().enumerate().map(line).collect()
}

/// The figures of the lines: one row per line, one column per load.
fn figures(lines: &[Line], loads: &[f64]) -> String {
    let mut heading = vec!["load".to_string()];
    heading.extend(loads.iter().map(|load| format!("{load}")));
    let mut table = Table::new(&heading.iter().map(String::as_str).collect::<Vec<_>>());
    for line in lines {
        let at =
            |load: &f64| line.points.iter().find(|point| point.0 == *load).map(|point| point.1);
        let mut cells = vec![line.name.clone()];
        cells.extend(loads.iter().map(|load| figure(at(load))));
        table.push(cells);
    }
    table.markdown()
}

fn chart(title: &'static str, from: f64, lines: Vec<Line>) -> Chart {
    let costs = lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let y = Axis::decades("nanoseconds", costs);
    Chart { title, x: Axis::linear("load: share of slots in use", from, 1.0, 0.05), y, lines }
}

/// The cost of an insert as the filter fills up.
pub(super) fn inserts(scale: &Scale, plots: &Path) -> Result<String, Failure> {
    eprintln!("inserts by load");
    let lines = lines(scale, filling)?;
    let figures = figures(&lines, &STEPS);
    let title = "Nanoseconds per insert while the load rises to that of the point";
    chart(title, 0.25, lines).save(&plots.join("load.svg"))?;
    Ok(format!(
        "## Filling up\n\nBuilt for {} keys, target false-positive rate {RATE}. Each point covers the inserts since the previous point. A line ends where an insert \
         is refused, or the filter grows.\n\n{}{figures}\n",
        grouped(scale.one_size as u64),
        picture(plots, "load.svg", title),
    ))
}

/// The cost of a delete plus an insert at a steady load.
pub(super) fn churn_section(scale: &Scale, plots: &Path) -> Result<String, Failure> {
    eprintln!("churn by load");
    let lines = lines(scale, churning)?;
    let figures = figures(&lines, &STEADY);
    let title = "Nanoseconds per delete plus insert, at a steady load";
    chart(title, 0.45, lines).save(&plots.join("churn.svg"))?;
    Ok(format!(
        "## Churn\n\nDeletes and inserts, half as many of each as there are slots, in single calls: the {CHURNED} oldest keys leave, {CHURNED} new ones \
         arrive. Loads at which a filter refused a key are missing.\n\n{}{figures}\n",
        picture(plots, "churn.svg", title),
    ))
}
