//! Operations in a loaded store, one after the other by one thread.
//!
//! `ycsb` has the six workloads of the Yahoo! Cloud Serving Benchmark (Cooper et al., SoCC 2010):
//!
//! | workload | operations | keys |
//! |---|---|---|
//! | A | 50 % gets, 50 % updates | zipfian |
//! | B | 95 % gets, 5 % updates | zipfian |
//! | C | gets | zipfian |
//! | F | 50 % gets, 50 % a get and an update | zipfian |
//! | D | 95 % gets, 5 % inserts | the latest ones most often |
//! | E | 95 % scans of up to 100 entries, 5 % inserts | zipfian |
//!
//! `overwrites` measures the cost of a log whose keys are overwritten again and again: how much of
//! it is dead, and how much background compaction writes. Rounds have as many overwrites as there
//! are keys. The first three, in which the log reaches its steady state, are not counted.
//! docs/decisions/0009-log-store.md has the figures and the theoretical bounds.

use std::ops::Range;
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use koel_store::{LogOptions, LogStats};
use serde_json::{Value, json};
use testkit::keys::splitmix64;

use super::entries::{Entries, key};
use super::measure::{Plan, SCANNED, touch};
use super::process::wait_for_rest;
use super::subject::Store;
use super::{Subject, for_each, plan_of};
use crate::args::{OverwritesArgs, StoresArgs};
use crate::clock::{each, half_and_p99};
use crate::table::{Columns, Table, figure, grouped, print, print_as};
use crate::{Failure, machine};

/// The exponent of the zipfian distribution, as in the original.
const THETA: f64 = 0.99;
/// One key in this many is a hot one.
const ONE_IN: u64 = 5;

/// Which keys are asked for.
#[derive(Clone, Copy)]
enum Pick {
    Zipfian,
    /// The latest most often.
    Latest,
    /// Any key, and in addition so many times in a hundred a hot one.
    Hot(u64),
}

/// What the operations of a workload are besides gets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Other {
    Update,
    GetAndUpdate,
    Insert,
    /// Scans instead of gets, and inserts.
    ScanAndInsert,
}

/// A workload: its name, the others of its operations in a hundred, and its keys.
struct Workload {
    name: &'static str,
    others: u64,
    other: Other,
    pick: Pick,
}

const fn of(name: &'static str, others: u64, other: Other, pick: Pick) -> Workload {
    Workload { name, others, other, pick }
}

/// In the order that the original recommends: inserts come last.
static YCSB: [Workload; 6] = [
    of("A", 50, Other::Update, Pick::Zipfian),
    of("B", 5, Other::Update, Pick::Zipfian),
    of("C", 0, Other::Update, Pick::Zipfian),
    of("F", 50, Other::GetAndUpdate, Pick::Zipfian),
    of("D", 5, Other::Insert, Pick::Latest),
    of("E", 5, Other::ScanAndInsert, Pick::Zipfian),
];

static OVERWRITES: [Workload; 3] = [
    of("any key", 100, Other::Update, Pick::Hot(0)),
    of("a fifth of the keys, by 80 %", 100, Other::Update, Pick::Hot(75)),
    of("a fifth of the keys, by 96 %", 100, Other::Update, Pick::Hot(95)),
];

/// A store under workloads.
struct Run<'a> {
    entries: &'a Entries,
    store: &'a dyn Store,
    zipf: Zipf,
    keys: u64,
    /// Counts the updates, each of which writes another value.
    versions: u64,
}

impl<'a> Run<'a> {
    /// Loads the store.
    fn new(entries: &'a Entries, store: &'a dyn Store) -> Result<Self, Failure> {
        entries.put_all(store.batch(), |entries| store.write(entries))?;
        store.sync()?;
        wait_for_rest();
        let (keys, zipf) = (entries.keys, Zipf::new(entries.keys));
        Ok(Self { entries, store, zipf, keys, versions: 0 })
    }

    /// Makes the operations of these numbers, and returns their times.
    fn operate(
        &mut self,
        workload: &Workload,
        numbers: Range<u64>,
    ) -> Result<Vec<Duration>, Failure> {
        let mut times = Vec::new();
        for number in numbers {
            let draw = splitmix64(number ^ u64::from(workload.name.as_bytes()[0]) << 56);
            let chosen = self.chosen(workload.pick, draw);
            let is_other = splitmix64(draw) % 100 < workload.others;
            let before = Instant::now();
            self.once(chosen, is_other.then_some(workload.other), workload.other)?;
            times.push(before.elapsed());
        }
        Ok(times)
    }

    /// The number of a key.
    fn chosen(&self, pick: Pick, draw: u64) -> u64 {
        match pick {
            Pick::Zipfian => splitmix64(self.zipf.rank(draw)) % self.entries.keys,
            Pick::Latest => self.keys - 1 - self.zipf.rank(draw).min(self.keys - 1),
            Pick::Hot(share) => hot(share, draw, self.entries.keys),
        }
    }

    /// Makes an operation: a get or a scan, unless another is asked for.
    fn once(&mut self, chosen: u64, other: Option<Other>, of: Other) -> Result<(), Failure> {
        match other {
            None if of == Other::ScanAndInsert => {
                self.store.scan(&key(chosen), SCANNED, &mut touch)?;
                Ok(())
            }
            None => self.get(chosen),
            Some(Other::Update) => self.update(chosen),
            Some(Other::GetAndUpdate) => {
                self.get(chosen)?;
                self.update(chosen)
            }
            Some(Other::Insert | Other::ScanAndInsert) => {
                let number = self.keys;
                self.keys += 1;
                self.store.put(&key(number), self.entries.value(number))
            }
        }
    }

    fn get(&self, number: u64) -> Result<(), Failure> {
        let found = self.store.get(&key(number), &mut touch)?;
        if found { Ok(()) } else { Err(format!("entry {number} is missing").into()) }
    }

    fn update(&mut self, number: u64) -> Result<(), Failure> {
        self.versions += 1;
        self.store.put(&key(number), self.entries.value(self.versions))
    }
}

/// The number of a key of [`Pick::Hot`].
fn hot(share: u64, draw: u64, keys: u64) -> u64 {
    let is_hot = splitmix64(!draw) % 100 < share;
    if is_hot { draw % keys.div_ceil(ONE_IN) * ONE_IN } else { draw % keys }
}

/// The figures of `ycsb`, with the heading of a table.
const FIGURES: [(&str, &str); 3] =
    [("thousands_per_second", "thousands/s"), ("p50_ns", "p50, ns"), ("p99_ns", "p99, ns")];

pub(crate) fn ycsb(args: &StoresArgs) -> Result<(), Failure> {
    let plan = plan_of(args)?;
    let rows = for_each(args, |subject| all_of(&plan, subject))?;
    if args.json {
        print(&rows, true);
        return Ok(());
    }
    let (keys, queries) = (grouped(args.keys), grouped(args.queries));
    let machine = machine::description();
    println!("{machine}\n{keys} entries, {queries} operations of each workload, one thread");
    for (field, heading) in FIGURES {
        println!("\n{}", by_workload(&rows, field, heading).markdown());
    }
    Ok(())
}

/// One figure of each workload, with a column for each store.
fn by_workload(rows: &[Value], field: &str, heading: &str) -> Table {
    let of_stores = rows.chunk_by(|one, other| one["store"] == other["store"]);
    let of_stores: Vec<_> = of_stores.collect();
    let stores = of_stores.iter().filter_map(|rows| rows[0]["store"].as_str());
    let mut table = Table::new(&std::iter::once(heading).chain(stores).collect::<Vec<_>>());
    for name in ["A", "B", "C", "D", "E", "F"] {
        let value =
            |rows: &[Value]| rows.iter().find(|row| row["workload"] == name)?[field].as_f64();
        let cells = of_stores.iter().map(|rows| figure(value(rows)));
        table.push(std::iter::once(name.to_owned()).chain(cells).collect());
    }
    table
}

/// Runs all workloads in a store, but E if the store cannot scan. The CPU time is that of all
/// threads.
fn all_of(plan: &Plan, subject: &Subject) -> Result<Vec<Value>, Failure> {
    let folder = plan.folder()?;
    let store = (subject.open)(folder.path(), plan.entries.keys)?;
    let mut run = Run::new(&plan.entries, &*store)?;
    let mut rows = Vec::new();
    for workload in YCSB.iter().filter(|it| subject.scans || it.other != Other::ScanAndInsert) {
        let (cpu, start) = (ProcessTime::now(), Instant::now());
        let times = run.operate(workload, 0..plan.queries)?;
        let rate = plan.queries as f64 / start.elapsed().as_secs_f64();
        wait_for_rest();
        let cpu = each(cpu.elapsed(), plan.queries) / 1e3;
        let [p50, p99] = half_and_p99(times);
        rows.push(json!({
            "store": subject.name, "workload": workload.name, "thousands_per_second": rate / 1e3,
            "cpu_us": cpu, "p50_ns": p50, "p99_ns": p99,
        }));
    }
    store.close()?;
    Ok(rows)
}

/// The number of rounds of `overwrites` that are not counted.
const FIRST: u64 = 3;
/// How often the log is sampled in a round.
const LOOKS: u64 = 100;

/// Shares of the log, the mean and the maximum; bytes appended and compacted by those appended.
const OF_THE_LOG: &Columns = &[
    ("load", "overwritten"),
    ("dead", "dead, mean"),
    ("most_dead", "dead, most"),
    ("written", "written by appended"),
];

pub(crate) fn overwrites(args: &OverwritesArgs) -> Result<(), Failure> {
    let entries = Entries::new(args.keys, usize::try_from(args.value_bytes)?);
    let rows = OVERWRITES.iter().map(|workload| overwritten(args, &entries, workload));
    let rows = rows.collect::<Result<Vec<_>, Failure>>()?;
    if !args.json {
        println!(
            "{} entries of 16 + {} bytes; {} overwrites of each on average, after {FIRST} rounds that are not counted; segments of {} bytes.\n",
            grouped(args.keys),
            args.value_bytes,
            args.rounds,
            grouped(args.segment_bytes)
        );
    }
    print_as(&rows, &Table::of(&rows, OF_THE_LOG), args.json);
    Ok(())
}

fn overwritten(
    args: &OverwritesArgs,
    entries: &Entries,
    workload: &Workload,
) -> Result<Value, Failure> {
    let folder = tempfile::tempdir_in(args.dir.clone().unwrap_or_else(std::env::temp_dir))?;
    let store = LogOptions::default().segment_bytes(args.segment_bytes).open(folder.path())?;
    let mut run = Run::new(entries, &store)?;
    run.operate(workload, 0..FIRST * args.keys)?;
    let before = store.stats();
    let (mut dead, mut most_dead) = (0.0, 0.0_f64);
    let look = |at: u64| FIRST * args.keys + at * args.keys / LOOKS;
    for at in 0..args.rounds * LOOKS {
        run.operate(workload, look(at)..look(at + 1))?;
        let share = dead_share(&store.stats());
        dead += share;
        most_dead = most_dead.max(share);
    }
    let after = store.stats();
    // If compaction failed, its cost is missing from the figures.
    if let Some(failure) = &after.compaction_failed {
        return Err(failure.to_string().into());
    }
    store.close()?;
    Ok(json!({
        "load": workload.name, "keys": args.keys, "rounds": args.rounds,
        "dead": dead / (args.rounds * LOOKS) as f64, "most_dead": most_dead,
        "written": written(&before, &after),
    }))
}

fn dead_share(stats: &LogStats) -> f64 {
    stats.dead_bytes as f64 / stats.log_bytes.max(1) as f64
}

fn written(before: &LogStats, after: &LogStats) -> f64 {
    let appended = after.appended_bytes - before.appended_bytes;
    let compacted = after.compacted_bytes - before.compacted_bytes;
    (appended + compacted) as f64 / appended.max(1) as f64
}

/// Ranks by Zipf's law, by the method of Gray et al. (SIGMOD 1994).
struct Zipf {
    count: f64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    fn new(count: u64) -> Self {
        let zeta = |count: u64| (1..=count).map(|rank| (rank as f64).powf(-THETA)).sum::<f64>();
        let (all, two) = (zeta(count), zeta(2));
        let count = count as f64;
        let eta = (1.0 - (2.0 / count).powf(1.0 - THETA)) / (1.0 - two / all);
        Self { count, zeta: all, alpha: 1.0 / (1.0 - THETA), eta }
    }

    /// The rank that a random number stands for, from 0 on.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count is a count"
    )]
    fn rank(&self, draw: u64) -> u64 {
        let point = draw as f64 / 2_f64.powi(64);
        let scaled = point * self.zeta;
        if scaled < 1.0 {
            0
        } else if scaled < 1.0 + 0.5_f64.powf(THETA) {
            1
        } else {
            (self.count * (self.eta * point - self.eta + 1.0).powf(self.alpha)) as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_the_law() {
        let zipf = Zipf::new(1000);
        let mut counts = vec![0_u32; 1000];
        for number in 0..100_000 {
            counts[usize::try_from(zipf.rank(splitmix64(number))).unwrap()] += 1;
        }
        let expected = |rank: usize| 100_000.0 * ((rank + 1) as f64).powf(-THETA) / zipf.zeta;
        for rank in [0, 1, 9, 99] {
            let ratio = f64::from(counts[rank]) / expected(rank);
            assert!((0.7..1.4).contains(&ratio), "rank {rank}: {ratio}");
        }
    }

    #[test]
    fn a_fifth_of_the_keys_gets_the_share_of_overwrites_that_is_said() {
        let draws = || (0..100_000).map(splitmix64);
        for (share, said) in [(0, 0.2), (75, 0.8), (95, 0.96)] {
            let few = draws().filter(|&draw| hot(share, draw, 1000).is_multiple_of(ONE_IN));
            // Five standard deviations of a share in 100,000 draws: at most 0.0063.
            let got = few.count() as f64 / 100_000.0;
            assert!((got - said).abs() < 0.0064, "{got}");
            assert!(draws().all(|draw| hot(share, draw, 1000) < 1000));
        }
    }

    #[test]
    fn the_figures_are_shares_of_what_the_store_tells() {
        let mut before = LogStats::default();
        (before.appended_bytes, before.compacted_bytes) = (100, 50);
        let mut after = before.clone();
        (after.appended_bytes, after.compacted_bytes) = (300, 150);
        (after.log_bytes, after.dead_bytes) = (200, 50);
        assert!((written(&before, &after) - 1.5).abs() < 1e-9);
        assert!((dead_share(&after) - 0.25).abs() < 1e-9);
    }
}
