//! `stores`: Koel's log store compared with other stores, with the same keys and values, each in a
//! temporary folder, one after the other in one process.
//!
//! | file | contents |
//! |---|---|
//! | `entries.rs` | keys and values |
//! | `subject.rs` | the trait of every store |
//! | `koel.rs`, `fjall.rs`, `redb.rs`, `candystore.rs` | the stores, with their settings |
//! | `measure.rs`, `process.rs` | the measurement |
//! | `print.rs` | tables and JSON |
//! | `overwrites.rs` | Koel only: the cost of compaction |
//!
//! All data is in the page cache. To add a store, write a file with a type that implements
//! [`Store`](subject::Store), and add a line to [`SUBJECTS`].

mod candystore;
mod entries;
mod fjall;
mod koel;
mod measure;
pub(crate) mod overwrites;
mod print;
mod process;
mod redb;
mod subject;

use crate::Failure;
use crate::args::StoresArgs;
use crate::subject::chosen;
use entries::Entries;
use measure::{Plan, Row};

/// The cache size of a store that has a cache of its own.
const CACHE_BYTES: usize = 256 << 20;

/// A store and its settings.
struct Subject {
    name: &'static str,
    measure: fn(&Plan, &'static str) -> Result<Row, Failure>,
    note: &'static str,
}

static SUBJECTS: &[Subject] = &[
    Subject {
        name: "koel",
        measure: |plan, name| plan.measure(name, koel::growing),
        note: "defaults: the index grows; single puts; 128 MiB segments, synced while they fill",
    },
    Subject {
        name: "koel-sized",
        measure: |plan, name| plan.measure(name, koel::sized),
        note: "the same with `expected_keys`",
    },
    Subject {
        name: "koel-one-segment",
        measure: |plan, name| plan.measure(name, koel::one_segment),
        note: "as koel, in one segment: no write waits for a sync, so its busiest 64 show how long the index pauses to grow",
    },
    Subject {
        name: "candystore",
        measure: |plan, name| plan.measure(name, candystore::open),
        note: "single puts; a checkpoint every 128 MiB; its index is a mapped file",
    },
    Subject {
        name: "fjall",
        measure: |plan, name| plan.measure(name, fjall::open),
        note: "single puts; no compression; a cache of 256 MiB",
    },
    Subject {
        name: "redb",
        measure: |plan, name| plan.measure(name, redb::open),
        note: "batches of 1,000, every 200th durable, so its longest write is a batch; a cache of 256 MiB",
    },
];

pub(crate) fn run(args: &StoresArgs) -> Result<(), Failure> {
    let subjects = chosen(SUBJECTS, |store| store.name, &args.only)?;
    let plan = Plan {
        entries: Entries::new(args.keys, usize::try_from(args.value_bytes)?),
        queries: args.queries,
        parent: args.dir.clone().unwrap_or_else(std::env::temp_dir),
    };
    let overhead = plan.overhead()?;
    let mut rows = Vec::new();
    for subject in &subjects {
        let row = (subject.measure)(&plan, subject.name)
            .map_err(|failure| format!("{}: {failure}", subject.name))?;
        if args.json {
            println!("{}", print::json(&row, args, overhead));
        }
        rows.push(row);
    }
    if !args.json {
        print::page(&rows, &subjects, args, overhead);
    }
    Ok(())
}
