//! `runs`: how long an absent key takes in stores with 1 to 30 runs that were not merged. A store
//! with a Bloom filter for each run asks one after the other; a store with a guide asks once.
//!
//! All entries are put in random order, in as many parts as there are to be runs, with a flush
//! after each. The column "runs" says how many there were.

use std::hint::black_box;
use std::time::Instant;

use cpu_time::ThreadTime;
use serde_json::json;
use tempfile::TempDir;

use super::entries::key;
use super::measure::{Plan, clock};
use super::process::wait_for_rest;
use super::subject::{OpenUnmerged, Tree};
use super::{SUBJECTS, plan_of};
use crate::args::RunsArgs;
use crate::subject::chosen;
use crate::table::{Table, figure, grouped};
use crate::{Failure, machine};

/// A store with some number of runs: gets of absent keys in nanoseconds.
pub(crate) struct Row {
    pub(crate) store: &'static str,
    pub(crate) runs: u64,
    pub(crate) cpu: f64,
    /// The median and the 99th percentile of gets timed singly, less the clock.
    pub(crate) half: f64,
    pub(crate) p99: f64,
    /// Runs that were read in vain for each get, if the store tells.
    pub(crate) in_vain: Option<f64>,
}

pub(crate) fn run(args: &RunsArgs) -> Result<(), Failure> {
    let rows = measure_all(args)?;
    if args.stores.json {
        for row in &rows {
            println!("{}", row.json());
        }
        return Ok(());
    }
    let (keys, queries) = (grouped(args.stores.keys), grouped(args.stores.queries));
    println!(
        "{}\n{keys} entries; {queries} gets of absent keys, one thread, in ns\n",
        machine::description()
    );
    print!("{}", table(&rows).plain());
    Ok(())
}

/// Measures every store that has runs.
pub(crate) fn measure_all(args: &RunsArgs) -> Result<Vec<Row>, Failure> {
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
) -> Result<Row, Failure> {
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
    let in_vain = asked.map(|(before, now)| (now - before) as f64 / plan.queries as f64);
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
    let row = Row { store, runs: tree.runs(), cpu, half: at(50), p99: at(99), in_vain };
    tree.close()?;
    Ok(row)
}

impl Row {
    fn json(&self) -> serde_json::Value {
        json!({
            "store": self.store, "runs": self.runs, "miss_cpu_ns": self.cpu,
            "miss_p50_ns": self.half, "miss_p99_ns": self.p99, "in_vain": self.in_vain,
        })
    }
}

/// The figures as a table.
pub(crate) fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&["store", "runs", "miss CPU", "p50", "p99", "in vain"]);
    for row in rows {
        let mut cells = vec![row.store.to_owned(), grouped(row.runs)];
        cells.extend([row.cpu, row.half, row.p99].map(|value| figure(Some(value))));
        cells.push(row.in_vain.map_or_else(|| "-".into(), |share| format!("{share:.5}")));
        table.push(cells);
    }
    table
}
