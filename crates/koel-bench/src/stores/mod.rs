//! `stores`: Koel's stores compared with others, with the same keys and values, each in a
//! temporary folder, one after the other in one process.
//!
//! | file | contents |
//! |---|---|
//! | `entries.rs` | keys and values |
//! | `subject.rs` | the trait of every store |
//! | `koel.rs`, `ordered.rs` | Koel's log store and its ordered store |
//! | `fjall.rs`, `redb.rs`, `candystore.rs` | the others, with their settings |
//! | `measure.rs`, `process.rs` | the measurement |
//! | `print.rs` | tables and JSON |
//! | `runs.rs` | absent keys in stores with many unmerged runs |
//! | `ycsb.rs` | the workloads A to F of YCSB |
//! | `overwrites.rs` | Koel only: the cost of compaction |
//!
//! All data is in the page cache. To add a store, write a file with a type that implements
//! [`Store`](subject::Store), and add a line to [`SUBJECTS`].

mod candystore;
mod entries;
mod fjall;
mod koel;
mod measure;
mod ordered;
pub(crate) mod overwrites;
mod print;
mod process;
mod redb;
pub(crate) mod runs;
mod subject;
pub(crate) mod ycsb;

use serde_json::Value;

use crate::Failure;
use crate::args::StoresArgs;
use crate::subject::chosen;
use entries::Entries;
use measure::{Plan, Row};
use subject::scan;

/// The cache size of a store that has a cache of its own.
const CACHE_BYTES: usize = 256 << 20;

/// Measures absent keys in a store with so many unmerged runs.
type MeasureRuns = fn(&Plan, &'static str, u64) -> Result<Value, Failure>;

/// A store and its settings.
struct Subject {
    name: &'static str,
    measure: fn(&Plan, &'static str) -> Result<Row, Failure>,
    ycsb: fn(&Plan, &'static str) -> Result<Vec<Value>, Failure>,
    /// Measures it with so many unmerged runs, if it has runs.
    runs: Option<MeasureRuns>,
    note: &'static str,
}

static SUBJECTS: &[Subject] = &[
    Subject {
        name: "koel",
        measure: |plan, name| plan.measure(name, koel::growing, None),
        ycsb: |plan, name| ycsb::measure(plan, name, koel::growing, None),
        runs: None,
        note: "the log store, defaults: the index grows; single puts; 128 MiB segments, synced while they fill",
    },
    Subject {
        name: "koel-sized",
        measure: |plan, name| plan.measure(name, koel::sized, None),
        ycsb: |plan, name| ycsb::measure(plan, name, koel::sized, None),
        runs: None,
        note: "the same with `expected_keys`",
    },
    Subject {
        name: "koel-one-segment",
        measure: |plan, name| plan.measure(name, koel::one_segment, None),
        ycsb: |plan, name| ycsb::measure(plan, name, koel::one_segment, None),
        runs: None,
        note: "as koel, in one segment: no write waits for a sync, so its busiest 64 show how long the index pauses to grow",
    },
    Subject {
        name: "koel-ordered",
        measure: |plan, name| plan.measure(name, ordered::open, Some(scan)),
        ycsb: |plan, name| ycsb::measure(plan, name, ordered::open, Some(scan)),
        runs: Some(|plan, name, count| runs::measure(plan, name, ordered::unmerged, count)),
        note: "the ordered store; single puts; no compression; a cache of 256 MiB",
    },
    Subject {
        name: "koel-unguided",
        measure: |plan, name| plan.measure(name, ordered::unguided, Some(scan)),
        ycsb: |plan, name| ycsb::measure(plan, name, ordered::unguided, Some(scan)),
        runs: None,
        note: "the same without the guide: reads ask every run",
    },
    Subject {
        name: "candystore",
        measure: |plan, name| plan.measure(name, candystore::open, None),
        ycsb: |plan, name| ycsb::measure(plan, name, candystore::open, None),
        runs: None,
        note: "single puts; a checkpoint every 128 MiB; its index is a mapped file",
    },
    Subject {
        name: "fjall",
        measure: |plan, name| plan.measure(name, fjall::open, Some(scan)),
        ycsb: |plan, name| ycsb::measure(plan, name, fjall::open, Some(scan)),
        runs: Some(|plan, name, count| runs::measure(plan, name, fjall::unmerged, count)),
        note: "single puts; no compression; a cache of 256 MiB",
    },
    Subject {
        name: "redb",
        measure: |plan, name| plan.measure(name, redb::open, Some(scan)),
        ycsb: |plan, name| ycsb::measure(plan, name, redb::open, Some(scan)),
        runs: None,
        note: "batches of 1,000, every 200th durable, so its longest write is a batch; a cache of 256 MiB",
    },
];

pub(crate) fn run(args: &StoresArgs) -> Result<(), Failure> {
    let subjects = chosen(SUBJECTS, |store| store.name, &args.only)?;
    let plan = plan_of(args)?;
    let overhead = plan.overhead()?;
    let mut rows = Vec::new();
    for subject in &subjects {
        let row = (subject.measure)(&plan, subject.name)
            .map_err(|failure| format!("{}: {failure}", subject.name))?;
        let row = print::json(&row, args, overhead);
        if args.json {
            println!("{row}");
        }
        rows.push(row);
    }
    if !args.json {
        print::page(&rows, &subjects, args, overhead);
    }
    Ok(())
}

fn plan_of(args: &StoresArgs) -> Result<Plan, Failure> {
    Ok(Plan {
        entries: Entries::new(args.keys, usize::try_from(args.value_bytes)?),
        queries: args.queries,
        parent: args.dir.clone().unwrap_or_else(std::env::temp_dir),
    })
}
