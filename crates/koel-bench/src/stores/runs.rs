//! `runs`: how long an absent key takes in stores with 1 to 30 runs that were not merged. A store
//! with a Bloom filter for each run asks one after the other; a store with a guide asks once.
//!
//! All entries are put in random order, in as many parts as there are to be runs, with a flush
//! after each. The column "runs" says how many there were.

use std::hint::black_box;
use std::time::Instant;

use cpu_time::ThreadTime;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::entries::key;
use super::measure::{Plan, clock};
use super::process::wait_for_rest;
use super::subject::{OpenUnmerged, Tree};
use super::{SUBJECTS, plan_of};
use crate::args::RunsArgs;
use crate::subject::chosen;
use crate::table::{Columns, grouped, print_columns};
use crate::{Failure, machine};

/// The figures, and the headings of their columns: gets of absent keys in nanoseconds, the median
/// and the 99th percentile of those timed singly, less the clock, and how many runs were read
/// for each get without holding the key.
pub(crate) const FIGURES: &Columns = &[
    ("store", "store"),
    ("runs", "runs"),
    ("miss_cpu_ns", "miss CPU"),
    ("miss_p50_ns", "p50"),
    ("miss_p99_ns", "p99"),
    ("false_reads", "false reads"),
];

pub(crate) fn run(args: &RunsArgs) -> Result<(), Failure> {
    let rows = measure_all(args)?;
    let (keys, queries) = (grouped(args.stores.keys), grouped(args.stores.queries));
    if !args.stores.json {
        println!(
            "{}\n{keys} entries; {queries} gets of absent keys, one thread, in ns\n",
            machine::description()
        );
    }
    print_columns(&rows, FIGURES, args.stores.json);
    Ok(())
}

/// Measures every store that has runs.
pub(crate) fn measure_all(args: &RunsArgs) -> Result<Vec<Value>, Failure> {
    let plan = plan_of(&args.stores)?;
    let mut rows = Vec::new();
    for subject in chosen(SUBJECTS, |store| store.name, &args.stores.only)? {
        let Some(measure) = subject.runs else { continue };
        for &runs in &args.runs {
            let row = measure(&plan, subject.name, runs);
            rows.push(row.map_err(|failure| format!("{}: {failure}", subject.name))?);
        }
    }
    Ok(rows)
}

/// Measures a store with so many runs.
pub(super) fn measure<S: Tree>(
    plan: &Plan,
    store: &'static str,
    open: OpenUnmerged<S>,
    runs: u64,
) -> Result<Value, Failure> {
    let folder = TempDir::with_prefix_in("koel-bench-", &plan.parent)?;
    // Memtables take more than their entries; only `flush` should empty them.
    let memtable = (4 * plan.entries.bytes() / runs).max(64 << 20);
    let tree = open(folder.path(), memtable)?;
    let part = plan.entries.keys.div_ceil(runs);
    for number in 0..plan.entries.keys {
        tree.write(&[(key(number), plan.entries.value(number))])?;
        if number % part == part - 1 || number + 1 == plan.entries.keys {
            tree.flush()?;
        }
    }
    wait_for_rest();
    let absent = |query: u64| key(plan.entries.absent(query));
    let get = |query| tree.get(&absent(query), |_| ());
    // Warms the caches first.
    for query in 0..plan.queries {
        get(query)?;
    }
    let (before, start) = (tree.false_candidates(), ThreadTime::now());
    for query in plan.queries..2 * plan.queries {
        if get(query)?.is_some() {
            return Err("an absent key was found".into());
        }
    }
    let cpu = start.elapsed().as_secs_f64() * 1e9 / plan.queries as f64;
    let asked = before.zip(tree.false_candidates());
    let false_reads = asked.map(|(before, now)| (now - before) as f64 / plan.queries as f64);
    let mut times = Vec::new();
    for query in 2 * plan.queries..3 * plan.queries {
        let key = absent(query);
        let start = Instant::now();
        black_box(tree.get(&key, |_| ())?);
        times.push(start.elapsed().as_nanos());
    }
    times.sort_unstable();
    let clock = clock();
    let at = |percent: usize| (times[(times.len() - 1) * percent / 100] as f64 - clock).max(0.0);
    let row = json!({
        "store": store, "runs": tree.runs(), "miss_cpu_ns": cpu,
        "miss_p50_ns": at(50), "miss_p99_ns": at(99), "false_reads": false_reads,
    });
    tree.close()?;
    Ok(row)
}
