//! `ycsb`: the six workloads of the Yahoo! Cloud Serving Benchmark (Cooper et al., SoCC 2010), one
//! after the other in a loaded store, by one thread.
//!
//! | workload | operations | keys |
//! |---|---|---|
//! | A | 50 % gets, 50 % updates | zipfian |
//! | B | 95 % gets, 5 % updates | zipfian |
//! | C | gets | zipfian |
//! | F | 50 % gets, 50 % a get and an update | zipfian |
//! | D | 95 % gets, 5 % inserts | the latest ones most often |
//! | E | 95 % scans of up to 100 entries, 5 % inserts | zipfian |

use std::hint::black_box;
use std::time::Instant;

use cpu_time::ProcessTime;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::keys::splitmix64;

use super::entries::key;
use super::measure::{Plan, clock};
use super::process::wait_for_rest;
use super::subject::{Open, Scan, Store};
use super::{SUBJECTS, plan_of};
use crate::args::StoresArgs;
use crate::subject::chosen;
use crate::table::{Table, figure, grouped, print};
use crate::{Failure, machine};

/// The exponent of the zipfian distribution, as in the original.
const THETA: f64 = 0.99;

/// What the operations of a workload are besides gets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Other {
    Update,
    GetAndUpdate,
    Insert,
    /// Scans instead of gets, and inserts.
    ScanAndInsert,
}

/// A workload: its name, the others of its operations in a hundred, and whether it asks for the
/// latest entries.
struct Workload {
    name: &'static str,
    others: u64,
    other: Other,
    latest: bool,
}

/// In the order that the original recommends: inserts come last.
const WORKLOADS: [Workload; 6] = [
    Workload { name: "A", others: 50, other: Other::Update, latest: false },
    Workload { name: "B", others: 5, other: Other::Update, latest: false },
    Workload { name: "C", others: 0, other: Other::Update, latest: false },
    Workload { name: "F", others: 50, other: Other::GetAndUpdate, latest: false },
    Workload { name: "D", others: 5, other: Other::Insert, latest: true },
    Workload { name: "E", others: 5, other: Other::ScanAndInsert, latest: false },
];

/// The figures of a workload, with the heading of a table.
const FIGURES: [(&str, &str); 3] =
    [("thousands_per_second", "thousands/s"), ("p50_ns", "p50, ns"), ("p99_ns", "p99, ns")];

pub(crate) fn run(args: &StoresArgs) -> Result<(), Failure> {
    let plan = plan_of(args)?;
    let mut rows = Vec::new();
    for subject in chosen(SUBJECTS, |store| store.name, &args.only)? {
        let measured = (subject.ycsb)(&plan, subject.name)
            .map_err(|failure| format!("{}: {failure}", subject.name))?;
        rows.extend(measured);
    }
    if args.json {
        print(&rows, true);
        return Ok(());
    }
    println!(
        "{}\n{} entries, {} operations of each workload, one thread",
        machine::description(),
        grouped(args.keys),
        grouped(args.queries)
    );
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
    let mut names = WORKLOADS.map(|workload| workload.name);
    names.sort_unstable();
    for name in names {
        let value =
            |rows: &[Value]| rows.iter().find(|row| row["workload"] == name)?[field].as_f64();
        let cells = of_stores.iter().map(|rows| figure(value(rows)));
        table.push(std::iter::once(name.to_owned()).chain(cells).collect());
    }
    table
}

/// Loads a store and runs all workloads, but E if the store cannot scan.
pub(super) fn measure<S: Store>(
    plan: &Plan,
    store: &'static str,
    open: Open<S>,
    scan: Option<Scan<S>>,
) -> Result<Vec<Value>, Failure> {
    let folder = TempDir::with_prefix_in("koel-bench-", &plan.parent)?;
    let opened = open(folder.path(), plan.entries.keys)?;
    let mut batch = Vec::new();
    for number in 0..plan.entries.keys {
        batch.push((key(number), plan.entries.value(number)));
        if batch.len() == S::BATCH || number + 1 == plan.entries.keys {
            opened.write(&batch)?;
            batch.clear();
        }
    }
    opened.sync()?;
    wait_for_rest();
    let zipf = Zipf::new(plan.entries.keys);
    let mut run = Run { plan, store: &opened, scan, zipf, keys: plan.entries.keys, versions: 0 };
    let mut rows = Vec::new();
    for workload in &WORKLOADS {
        if workload.other != Other::ScanAndInsert || scan.is_some() {
            rows.push(run.measure(store, workload)?);
        }
    }
    opened.close()?;
    Ok(rows)
}

/// The state of a store under workloads.
struct Run<'a, S> {
    plan: &'a Plan,
    store: &'a S,
    scan: Option<Scan<S>>,
    zipf: Zipf,
    keys: u64,
    /// Counts the updates, each of which writes another value.
    versions: u64,
}

impl<S: Store> Run<'_, S> {
    fn measure(&mut self, store: &'static str, workload: &Workload) -> Result<Value, Failure> {
        let count = self.plan.queries;
        let (mut times, cpu, start) = (Vec::new(), ProcessTime::now(), Instant::now());
        for number in 0..count {
            let draw = splitmix64(number ^ u64::from(workload.name.as_bytes()[0]) << 56);
            let rank = self.zipf.rank(draw);
            let chosen = if workload.latest {
                self.keys - 1 - rank.min(self.keys - 1)
            } else {
                splitmix64(rank) % self.plan.entries.keys
            };
            let is_other = splitmix64(draw) % 100 < workload.others;
            let before = Instant::now();
            self.operate(chosen, if is_other { Some(workload.other) } else { None }, workload)?;
            times.push(before.elapsed().as_nanos());
        }
        let rate = count as f64 / start.elapsed().as_secs_f64();
        wait_for_rest();
        let cpu = cpu.elapsed().as_secs_f64() * 1e6 / count as f64;
        times.sort_unstable();
        let clock = clock();
        let at =
            |percent: usize| (times[(times.len() - 1) * percent / 100] as f64 - clock).max(0.0);
        // The CPU time is that of all threads.
        Ok(json!({
            "store": store, "workload": workload.name, "thousands_per_second": rate / 1e3,
            "cpu_us": cpu, "p50_ns": at(50), "p99_ns": at(99),
        }))
    }

    /// Makes an operation: a get or a scan, unless another is asked for.
    fn operate(
        &mut self,
        chosen: u64,
        other: Option<Other>,
        workload: &Workload,
    ) -> Result<(), Failure> {
        match (other, self.scan) {
            (None, Some(scan)) if workload.other == Other::ScanAndInsert => {
                black_box(scan(self.store, &key(chosen))?);
                Ok(())
            }
            (None, _) => self.get(chosen),
            (Some(Other::Update), _) => self.update(chosen),
            (Some(Other::GetAndUpdate), _) => {
                self.get(chosen)?;
                self.update(chosen)
            }
            (Some(Other::Insert | Other::ScanAndInsert), _) => {
                let number = self.keys;
                self.keys += 1;
                self.store.write(&[(key(number), self.plan.entries.value(number))])
            }
        }
    }

    fn get(&self, number: u64) -> Result<(), Failure> {
        let found = self.store.get(&key(number), |value| value.first().copied())?;
        if found.is_none() {
            return Err(format!("entry {number} is missing").into());
        }
        black_box(found);
        Ok(())
    }

    fn update(&mut self, number: u64) -> Result<(), Failure> {
        self.versions += 1;
        self.store.write(&[(key(number), self.plan.entries.value(self.versions))])
    }
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
}
