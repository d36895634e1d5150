//! `limits`: the highest throughput that this machine allows a filter whose table is in memory.
//!
//! An operation reads one or two random cache lines of a table and does nothing with them. `ring`
//! is how many operations ahead the lines are prefetched. With 0 the processor is on its own and
//! sees as far ahead as its out-of-order window reaches.

pub(crate) mod memory;
mod walk;

use serde_json::json;

use crate::args::LimitsArgs;
use crate::clock::{median, mops, timed};
use crate::table::{Table, bytes, figure};
use crate::{Failure, machine};
use memory::Memory;
pub(crate) use memory::Pages;

/// How many operations ahead lines are prefetched.
pub(crate) const RINGS: [usize; 6] = [0, 8, 16, 32, 64, 128];
/// Cache lines per operation.
pub(crate) const LINES: [usize; 2] = [1, 2];

/// One measurement.
pub(crate) struct Limit {
    pub(crate) bytes: u64,
    pub(crate) pages: Pages,
    pub(crate) lines: usize,
    pub(crate) ring: usize,
    pub(crate) mops: f64,
}

pub(crate) fn run(args: &LimitsArgs) -> Result<(), Failure> {
    if !args.json {
        println!(
            "{}\nMillions of operations per second, medians of {}.",
            machine::description(),
            args.reps
        );
    }
    let mut limits = Vec::new();
    for &size in &args.bytes {
        machine::require_memory(size)?;
        for pages in Pages::ALL {
            let measured = of_table(size, pages, args.ops, args.reps)?;
            if args.json {
                measured.iter().for_each(print_json);
            }
            limits.extend(measured);
        }
    }
    if !args.json {
        print!("\n{}", table(&limits).plain());
    }
    Ok(())
}

fn print_json(limit: &Limit) {
    let line = json!({
        "lines": limit.lines,
        "ring": limit.ring,
        "pages": limit.pages.name(),
        "bytes": limit.bytes,
        "mops": limit.mops,
    });
    println!("{line}");
}

/// All measurements of one table; none if huge pages are not available.
pub(crate) fn of_table(
    size: u64,
    pages: Pages,
    operations: u64,
    repetitions: u32,
) -> Result<Vec<Limit>, Failure> {
    let memory = Memory::new(usize::try_from(size)?, pages)?;
    if pages == Pages::Huge {
        let huge = memory.huge_bytes();
        eprintln!("table of {}: {} in huge pages", bytes(size), bytes(huge));
        if huge < size {
            eprintln!("skipped: the system gives no huge pages for it");
            return Ok(Vec::new());
        }
    }
    let mut limits = Vec::new();
    for lines in LINES {
        for ring in RINGS {
            let sample = |repetition: u32| {
                let seed = u64::from(repetition) + 1;
                let (time, _) = timed(|| walk::walk(memory.lines(), lines, ring, operations, seed));
                mops(usize::try_from(operations).unwrap_or(usize::MAX), time)
            };
            let samples: Vec<_> = (0..repetitions).map(sample).collect();
            limits.push(Limit { bytes: size, pages, lines, ring, mops: median(&samples) });
        }
    }
    Ok(limits)
}

/// One row per table and number of lines, one column per ring.
pub(crate) fn table(limits: &[Limit]) -> Table {
    let rings = RINGS.map(|ring| if ring == 0 { "unaided".into() } else { format!("ring {ring}") });
    let mut heading = vec!["table", "pages", "lines"];
    heading.extend(rings.iter().map(String::as_str));
    let mut table = Table::new(&heading);
    for rows in limits.chunk_by(|a, b| (a.bytes, a.pages, a.lines) == (b.bytes, b.pages, b.lines)) {
        let first = &rows[0];
        let mut cells =
            vec![bytes(first.bytes), first.pages.name().into(), first.lines.to_string()];
        cells.extend(rows.iter().map(|limit| figure(Some(limit.mops))));
        table.push(cells);
    }
    table
}
