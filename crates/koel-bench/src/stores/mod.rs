//! `stores`: Koel's stores compared with others, with the same keys and values, each in a
//! temporary folder, one after the other in one process.
//!
//! | file | contents |
//! |---|---|
//! | `entries.rs` | keys and values |
//! | `subject.rs` | the trait of every store |
//! | `koel.rs`, `fjall.rs`, `redb.rs`, `candystore.rs`, `rocksdb.rs` | their settings and calls |
//! | `measure.rs`, `process.rs` | the measurement |
//! | `runs.rs` | absent keys in stores with many unmerged runs |
//! | `workloads.rs` | `ycsb`, and `overwrites`: the cost of compaction |
//! | `waits.rs` | `waits`: the longest puts and gets while a store is loaded and overwritten |
//! | `killed.rs` | its gets after the process that wrote was killed |
//!
//! All data is in the page cache. To add a store, write a file with a type that implements
//! [`Store`], and add a line to [`SUBJECTS`].

mod candystore;
mod entries;
mod fjall;
pub(crate) mod killed;
mod koel;
mod measure;
mod process;
mod redb;
#[cfg(rocksdb)]
mod rocksdb;
pub(crate) mod runs;
mod subject;
pub(crate) mod waits;
pub(crate) mod workloads;

use std::path::Path;

use serde_json::{Value, json};

use crate::args::StoresArgs;
use crate::subject::chosen;
use crate::table::{Columns, Table, grouped};
use crate::{Failure, machine};
use entries::Entries;
use measure::{INDEX_BYTES, Plan, SCANNED};
use subject::Store;

/// The cache size of a store that has a cache of its own.
const CACHE_BYTES: usize = 256 << 20;

/// Opens the store in a folder, or creates it. The number is a hint.
type Open = fn(&Path, u64) -> Result<Box<dyn Store>, Failure>;

/// A store and its settings.
struct Subject {
    name: &'static str,
    /// The hint is the number of keys.
    open: Open,
    /// Whether its keys are in order.
    scans: bool,
    /// Opens it so that it does not merge its runs, if it has runs. The hint is the size of a
    /// memtable.
    unmerged: Option<Open>,
    note: &'static str,
}

const fn log(name: &'static str, open: Open, note: &'static str) -> Subject {
    Subject { name, open, scans: false, unmerged: None, note }
}

const fn tree(name: &'static str, open: Open, note: &'static str) -> Subject {
    Subject { scans: true, ..log(name, open, note) }
}

static SUBJECTS: &[Subject] = &[
    log(
        "koel",
        koel::growing,
        "the log store, defaults: the index grows; single puts; 128 MiB segments, synced while they fill",
    ),
    log("koel-sized", koel::sized, "the same with `expected_keys`"),
    log(
        "koel-one-segment",
        koel::one_segment,
        "as koel, in one segment: no write waits for a sync, so its busiest 64 show how long the index pauses to grow",
    ),
    Subject {
        unmerged: Some(koel::unmerged),
        ..tree(
            "koel-ordered",
            koel::ordered,
            "the ordered store; single puts; no compression; a cache of 256 MiB",
        )
    },
    tree("koel-unguided", koel::unguided, "the same without the guide: reads ask every run"),
    log(
        "candystore",
        candystore::open,
        "single puts; a checkpoint every 128 MiB; its index is a mapped file",
    ),
    Subject {
        unmerged: Some(fjall::unmerged),
        ..tree("fjall", fjall::open, "single puts; no compression; a cache of 256 MiB")
    },
    #[cfg(rocksdb)]
    Subject {
        unmerged: Some(rocksdb::unmerged),
        ..tree(
            "rocksdb",
            rocksdb::open,
            "RocksDB 11.8; single puts, unsynced; memtables of 64 MiB, as Koel's; a cache of 256 MiB; Bloom filters of 10 bits per key; no compression; two background threads",
        )
    },
    tree(
        "redb",
        redb::open,
        "batches of 1,000, every 200th durable, so its longest write is a batch; a cache of 256 MiB",
    ),
];

/// The tables: loading, gets, and what is on disk and how long it takes to open.
const TABLES: [&Columns; 3] = [
    &[
        ("store", "store"),
        ("load_cpu_us", "CPU us"),
        ("thousands_per_second", "thousands/s"),
        ("longest_write_ms", "longest ms"),
        ("busiest_ms", "busiest ms"),
        ("written", "written, calls"),
        ("written_pages", "written, pages"),
    ],
    &[
        ("store", "store"),
        ("hit_cpu_ns", "hit CPU"),
        ("hit_p50_ns", "p50"),
        ("hit_p99_ns", "p99"),
        ("reads_per_hit", "reads"),
        ("miss_cpu_ns", "miss CPU"),
        ("miss_p50_ns", "p50"),
        ("miss_p99_ns", "p99"),
        ("reads_per_miss", "reads"),
        ("scan_us", "scan us"),
    ],
    &[
        ("store", "store"),
        ("disk", "on disk"),
        ("index_bytes_per_key", "index bytes/key"),
        ("resident_mib", "memory MiB"),
        ("close_s", "close s"),
        ("open_s", "open s"),
        ("open_killed_s", "killed s"),
    ],
];

pub(crate) fn run(args: &StoresArgs) -> Result<(), Failure> {
    let plan = plan_of(args)?;
    let overhead = plan.overhead()?;
    let rows = for_each(args, |subject| {
        let mut row = plan.measure(subject)?;
        row["keys"] = json!(args.keys);
        row["value_bytes"] = json!(args.value_bytes);
        for (field, nanoseconds) in ["clock_ns", "key_ns", "two_lines_ns"].iter().zip(overhead) {
            row[*field] = json!(nanoseconds);
        }
        if args.json {
            println!("{row}");
        }
        Ok(vec![row])
    })?;
    if !args.json {
        page(&rows, args, overhead);
    }
    Ok(())
}

/// The rows of all stores that are asked for, one after the other.
fn for_each(
    args: &StoresArgs,
    mut measure: impl FnMut(&Subject) -> Result<Vec<Value>, Failure>,
) -> Result<Vec<Value>, Failure> {
    let mut rows = Vec::new();
    for subject in chosen(SUBJECTS, |store| store.name, &args.only)? {
        rows.extend(measure(subject).map_err(|failure| format!("{}: {failure}", subject.name))?);
    }
    Ok(rows)
}

fn plan_of(args: &StoresArgs) -> Result<Plan, Failure> {
    chosen(SUBJECTS, |store| store.name, &args.only)?;
    Ok(Plan {
        entries: Entries::new(args.keys, usize::try_from(args.value_bytes)?),
        queries: args.queries,
        parent: args.dir.clone().unwrap_or_else(std::env::temp_dir),
    })
}

/// The tables and their legend.
fn page(rows: &[Value], args: &StoresArgs, [clock, key, lines]: [f64; 3]) {
    println!(
        "{}\n{} entries, keys of 16 bytes, values of {}; all data in the page cache; {} gets of each kind, one thread.\n\
         The clock, read twice: {clock:.0} ns, subtracted from p50 and p99. Making a key: {key:.0} ns, included in the CPU time of gets.\n\
         Two random cache lines of a table of {INDEX_BYTES} bytes per key, prefetched together and timed as single gets are: p50 {lines:.0} ns.",
        machine::description(),
        grouped(args.keys),
        grouped(args.value_bytes),
        grouped(args.queries)
    );
    println!(
        "CPU us: of all threads, less {:.2} for making an entry and reading the clock. Written, on disk: bytes relative to those of keys and values.\n\
         Gets in ns; a scan of {SCANNED} entries in us of CPU time.\n",
        rows.first().and_then(|row| row["load_own_us"].as_f64()).unwrap_or(0.0)
    );
    for columns in TABLES {
        println!("{}", Table::of(rows, columns).markdown());
    }
    notes(rows);
}

/// How the stores of a table were set.
fn notes(rows: &[Value]) {
    let is_shown = |name: &str| rows.iter().any(|row| row["store"] == name);
    for subject in SUBJECTS.iter().filter(|subject| is_shown(subject.name)) {
        println!("{}: {}", subject.name, subject.note);
    }
}
