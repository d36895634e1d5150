//! `waits`: what the callers of a store wait for. One thread loads each store with single puts,
//! then overwrites random keys. Beside every 16th put it gets a present and an absent key. Every
//! call is timed by the wall clock, so quiet machines tell more than busy ones.
//!
//! | phase | what is measured |
//! |---|---|
//! | load | the longest puts and gets; bytes written for each byte put, and on disk |
//! | overwrites | the same |
//! | gets | gets in the store that rests: `measure.rs` |
//! | killed | opening after a kill, and the first gets: `killed.rs` |
//!
//! The value of each get is compared with what was put last. Each row is one phase of one store.

use std::cell::Cell;
use std::ops::Range;
use std::time::Instant;

use cpu_time::ProcessTime;
use serde_json::{Value, json};
use testkit::keys::splitmix64;

use super::entries::Entries;
use super::measure::{Plan, expect};
use super::process::{Written, disk_bytes, wait_for_rest};
use super::subject::Store;
use super::{Subject, for_each, killed, notes, plan_of};
use crate::args::WaitsArgs;
use crate::clock::{Times, each};
use crate::table::{Columns, Table, grouped, print};
use crate::{Failure, machine};

/// Gets follow one in this many puts.
const PUTS_PER_GETS: u64 = 16;

/// The columns of puts.
const PUTS: &Columns = &[
    ("store", "store"),
    ("thousands_per_second", "thousands/s"),
    ("cpu_us", "CPU us"),
    ("put_p9999_us", "p99.99 us"),
    ("longest_puts_ms", "longest puts, ms"),
    ("longest_hits_ms", "longest hits, ms"),
    ("longest_misses_ms", "longest misses, ms"),
    ("written", "written"),
    ("disk", "on disk"),
];

/// The columns of gets.
const GETS: &Columns = &[
    ("store", "store"),
    ("hit_cpu_ns", "hit CPU"),
    ("hit_p50_ns", "p50"),
    ("hit_p99_ns", "p99"),
    ("miss_cpu_ns", "miss CPU"),
    ("miss_p50_ns", "p50"),
    ("miss_p99_ns", "p99"),
];

/// The phases in their order, each with its columns.
const PHASES: [(&str, &Columns); 4] =
    [("load", PUTS), ("overwrites", PUTS), ("gets", GETS), ("killed", killed::COLUMNS)];

pub(crate) fn run(args: &WaitsArgs) -> Result<(), Failure> {
    let plan = plan_of(&args.stores)?;
    let rows = for_each(&args.stores, |subject| {
        let rows = measure(&plan, subject, args)?;
        if args.stores.json {
            print(&rows, true);
        } else {
            // A run that takes hours shows what it has, should a later store fail.
            rows.iter().for_each(|row| eprintln!("{row}"));
        }
        Ok(rows)
    })?;
    if !args.stores.json {
        page(&rows, args);
    }
    Ok(())
}

fn page(rows: &[Value], args: &WaitsArgs) {
    let [keys, overwrites] = [args.stores.keys, overwrites(args)].map(grouped);
    println!(
        "{}\n{keys} entries, keys of 16 bytes, values of {}; {overwrites} overwrites; one thread. The longest five of each kind.\n\
         CPU us: of all threads until they are idle, for each put with its share of the gets. Written: bytes in calls for each byte put. On disk: bytes for each live one.\n\
         Gets, {} of each kind, in ns. Killed: after {} bytes were written; the first {} gets of each kind; kept: the share of the puts after the last sync that are still there.",
        machine::description(),
        grouped(args.stores.value_bytes),
        grouped(args.stores.queries),
        grouped(args.kill_bytes),
        grouped(killed::GETS),
    );
    for (phase, columns) in PHASES {
        let of_phase: Vec<_> = rows.iter().filter(|row| row["phase"] == phase).cloned().collect();
        println!("\n{phase}\n\n{}", Table::of(&of_phase, columns).markdown().trim_end());
    }
    println!();
    notes(rows);
}

fn overwrites(args: &WaitsArgs) -> u64 {
    args.overwrites.unwrap_or(args.stores.keys)
}

/// All phases of a store.
fn measure(plan: &Plan, subject: &Subject, args: &WaitsArgs) -> Result<Vec<Value>, Failure> {
    let folder = plan.folder()?;
    let store = (subject.open)(folder.path(), plan.entries.keys)?;
    let keys = plan.entries.keys;
    let run = Run::new(&plan.entries, &*store);
    let mut rows = Vec::new();
    for (phase, puts) in [("load", 0..keys), ("overwrites", keys..keys + overwrites(args))] {
        let mut row = json!({ "store": subject.name, "phase": phase });
        run.put(puts, &mut row)?;
        row["disk"] = json!(plan.share(disk_bytes(folder.path())?));
        rows.push(row);
    }
    let mut row = json!({ "store": subject.name, "phase": "gets" });
    plan.ask_both(&*store, &mut row)?;
    rows.push(row);
    store.close()?;
    drop(folder);
    rows.push(killed::measure(plan, subject, args.kill_bytes)?);
    Ok(rows)
}

/// A store and what is in it. Puts are numbered: the first load all keys, the others overwrite.
struct Run<'a> {
    entries: &'a Entries,
    store: &'a dyn Store,
    /// Which of its two values each key has. Every overwrite changes it: a store may skip a write
    /// of the value that is there, and a get of the other value would be of an old one.
    is_second: Vec<Cell<bool>>,
}

impl<'a> Run<'a> {
    fn new(entries: &'a Entries, store: &'a dyn Store) -> Self {
        let is_second = (0..entries.keys).map(|_| Cell::new(false)).collect();
        Self { entries, store, is_second }
    }

    /// The numbers of the key and of the value of a put.
    fn entry(&self, put: u64) -> (u64, u64) {
        if put < self.entries.keys {
            return (put, put);
        }
        let number = splitmix64(put) % self.entries.keys;
        let is_second = self.is_second(number);
        is_second.set(!is_second.get());
        (number, self.value_of(number))
    }

    fn is_second(&self, number: u64) -> &Cell<bool> {
        &self.is_second[usize::try_from(number).expect("it is the number of a key in memory")]
    }

    /// The number of the value that a key has.
    fn value_of(&self, number: u64) -> u64 {
        if self.is_second(number).get() { !number } else { number }
    }

    /// Makes these puts and their gets, and waits until the store is idle.
    fn put(&self, range: Range<u64>, row: &mut Value) -> Result<(), Failure> {
        let [mut puts, mut hits, mut misses] = [(); 3].map(|()| Times::new());
        let count = range.end - range.start;
        let (written, cpu, start) = (Written::now(), ProcessTime::now(), Instant::now());
        let mut done = range.start;
        let numbers = range.map(|put| self.entry(put));
        self.entries.put_each(numbers, self.store.batch(), |batch| {
            puts.time(|| self.store.write(batch))?;
            let before = done;
            done += batch.len() as u64;
            let mut asked = (before..done).filter(|put| put % PUTS_PER_GETS == 0);
            asked.try_for_each(|put| {
                let there = splitmix64(!put) % done.min(self.entries.keys);
                let value = self.entries.value(self.value_of(there));
                hits.time(|| expect(self.store, there, Some(value)))?;
                misses.time(|| expect(self.store, self.entries.absent(put), None))
            })
        })?;
        self.store.sync()?;
        row["thousands_per_second"] = json!(count as f64 / start.elapsed().as_secs_f64() / 1e3);
        wait_for_rest();
        row["cpu_us"] = json!(each(cpu.elapsed(), count) / 1e3);
        row["put_p9999_us"] = json!(puts.share(0.9999) as f64 / 1e3);
        row["longest_puts_ms"] = json!(puts.longest_ms());
        row["longest_hits_ms"] = json!(hits.longest_ms());
        row["longest_misses_ms"] = json!(misses.longest_ms());
        let written = Written::now().since(written).calls as f64;
        row["written"] = json!(written / (count * self.entries.entry_bytes()) as f64);
        Ok(())
    }
}
