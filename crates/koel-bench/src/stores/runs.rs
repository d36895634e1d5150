//! `runs`: how long an absent key takes in stores with 1 to 30 runs that were not merged. A store
//! with a Bloom filter for each run asks one after the other; a store with a guide asks once.
//!
//! All entries are put in random order, in as many parts as there are to be runs, with a flush
//! after each. The column "runs" says how many there were.

use serde_json::{Value, json};

use super::measure::Plan;
use super::process::wait_for_rest;
use super::{Subject, for_each, plan_of};
use crate::args::RunsArgs;
use crate::table::{Columns, Table, grouped, print_as};
use crate::{Failure, machine};

/// The figures, and the headings of their columns: gets of absent keys in nanoseconds, the median
/// and the 99th percentile of those timed singly, less the clock, and how many runs were read
/// for each get without holding the key.
const FIGURES: &Columns = &[
    ("store", "store"),
    ("runs", "runs"),
    ("miss_cpu_ns", "miss CPU"),
    ("miss_p50_ns", "p50"),
    ("miss_p99_ns", "p99"),
    ("false_reads", "false reads"),
];

pub(crate) fn run(args: &RunsArgs) -> Result<(), Failure> {
    let plan = plan_of(&args.stores)?;
    let rows = for_each(&args.stores, |subject| {
        let runs = args.runs.iter().filter(|_| subject.unmerged.is_some());
        runs.map(|&runs| measure(&plan, subject, runs)).collect()
    })?;
    if !args.stores.json {
        let [keys, queries] = [args.stores.keys, args.stores.queries].map(grouped);
        let machine = machine::description();
        println!("{machine}\n{keys} entries; {queries} gets of absent keys, one thread, in ns\n");
    }
    print_as(&rows, &Table::of(&rows, FIGURES), args.stores.json);
    Ok(())
}

/// Measures a store with so many runs.
fn measure(plan: &Plan, subject: &Subject, runs: u64) -> Result<Value, Failure> {
    let folder = plan.folder()?;
    // Memtables take more than their entries; only `flush` should empty them.
    let memtable = (4 * plan.entries.bytes() / runs).max(64 << 20);
    let open = subject.unmerged.ok_or("it has no runs")?;
    let tree = open(folder.path(), memtable)?;
    let part = plan.entries.keys.div_ceil(runs);
    let mut put = 0;
    plan.entries.put_all(1, |entry| {
        tree.write(entry)?;
        put += 1;
        if put % part == 0 || put == plan.entries.keys { tree.flush() } else { Ok(()) }
    })?;
    wait_for_rest();
    let absent = |query| plan.entries.absent(query);
    let gets = plan.ask(&*tree, false, &absent, |tree| tree.false_candidates())?;
    let row = json!({
        "store": subject.name, "runs": tree.runs(), "miss_cpu_ns": gets.cpu,
        "miss_p50_ns": gets.timed[0], "miss_p99_ns": gets.timed[1], "false_reads": gets.counted,
    });
    tree.close()?;
    Ok(row)
}
