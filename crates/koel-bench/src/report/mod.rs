//! `report`: the tables of docs/BENCHMARKS.md and of the pages beside it, and their plots.
//!
//! * `speed.rs`: throughput by table size
//! * `space.rs`: bits per key by false-positive rate
//! * `load.rs`: inserts as a filter fills, and churn
//! * `growth.rs`: growable filters
//! * `plot.rs`: draws

pub(crate) mod growth;
mod load;
pub(crate) mod plot;
pub(crate) mod runs;
mod space;
mod speed;

use std::fs;
use std::path::Path;

use crate::Failure;
use crate::args::{ReportArgs, Section};
use crate::subjects::GROWING;
use crate::table::bytes;

/// The sizes and repetitions of the measurements.
pub(crate) struct Scale {
    /// The numbers of keys in the tables of all filters.
    keys: Vec<usize>,
    /// The slots of the tables in the plots by size, for filters with a power of two of slots.
    slots: Vec<usize>,
    /// The number of keys of the plots by false-positive rate and by load.
    one_size: usize,
    repetitions: u32,
    /// The number of keys that filters grow to.
    grown: u64,
}

/// 95 % of a power of two: see `args.rs`.
fn full(slots: usize) -> usize {
    slots * 19 / 20
}

impl Scale {
    fn of(args: &ReportArgs) -> Self {
        if args.quick {
            return Self {
                keys: vec![20_000],
                slots: vec![1 << 13, 1 << 15],
                one_size: 20_000,
                repetitions: 1,
                grown: 20_000,
            };
        }
        let slots = (15..=30).step_by(2).map(|bits| 1_usize << bits);
        // Twelve bits per slot.
        let fits = |&slots: &usize| slots as u64 * 3 / 2 <= args.max_bytes;
        Self {
            keys: vec![full(1 << 20), full(1 << 24)],
            slots: slots.filter(fits).collect(),
            one_size: full(1 << 20),
            repetitions: 3,
            grown: 64_000_000,
        }
    }
}

pub(crate) fn run(args: &ReportArgs) -> Result<(), Failure> {
    let (scale, plots) = (Scale::of(args), &args.plots);
    fs::create_dir_all(plots)?;
    let text = match args.section {
        Section::Filters => speed::tables(&scale)?,
        Section::Sizes => speed::by_size(&scale, plots)?,
        Section::Space => space::by_rate(&scale, plots)? + &space::by_count(&scale),
        Section::Load => load::inserts(&scale, plots)? + &load::churn_section(&scale, plots)?,
        Section::Growth => growth::section(&GROWING.each_ref(), scale.grown, 0.001, plots)?,
    };
    print!("{text}");
    Ok(())
}

/// The Markdown of a plot.
fn picture(plots: &Path, file: &str, what: &str) -> String {
    let folder = plots.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    format!("![{what}]({folder}/{file})\n\n")
}

/// The ticks of an axis of bytes: powers of four, from the first size below to the first above.
fn byte_ticks(values: &[f64]) -> Vec<(f64, String)> {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    let sizes: Vec<u64> = (10..=34).step_by(2).map(|bits| 1_u64 << bits).collect();
    let from = sizes.iter().rposition(|&size| size as f64 <= low).unwrap_or(0);
    let to = sizes.iter().position(|&size| size as f64 >= high).unwrap_or(sizes.len() - 1);
    sizes[from..=to].iter().map(|&size| (size as f64, bytes(size))).collect()
}
