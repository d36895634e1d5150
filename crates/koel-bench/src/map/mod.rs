//! `map`: the library's exact map compared with hashbrown's, which is also std's.
//!
//! Measures the throughput of one thread and the tail of lookups, which is the cuckoo table's
//! strength. The tail is given twice: as buckets (groups, in hashbrown) per lookup, which are
//! counted, and as nanoseconds of single lookups, which are noisy. Both maps run with both default
//! hashes.

mod probes;
mod subject;

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::keys::{hashes, splitmix64};

use crate::args::MapArgs;
use crate::clock::{median, mops, timed};
use crate::table::{Table, figure, grouped};
use crate::{Failure, machine};
use subject::{Map, SUBJECTS};

/// The operations that are timed. `Grow` inserts into a map made without a capacity.
#[derive(Clone, Copy, Debug)]
enum Op {
    Insert,
    Grow,
    Hit,
    Miss,
    Remove,
}

impl Op {
    const ALL: [Self; 5] = [Self::Insert, Self::Grow, Self::Hit, Self::Miss, Self::Remove];

    fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Grow => "grow",
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Remove => "remove",
        }
    }
}

/// The least number of operations in a sample: small maps are measured repeatedly.
const AT_LEAST: usize = 1_000_000;
/// The number of single lookups whose times are sorted.
const LOOKUPS: usize = 1_000_000;
/// The percentiles reported, as shares.
const SHARES: [f64; 4] = [0.5, 0.99, 0.999, 1.0];

/// The keys of a run.
struct Keys {
    present: Vec<u64>,
    absent: Vec<u64>,
}

/// The measurements of one map at one size.
struct Row {
    name: &'static str,
    keys: usize,
    /// Millions of operations per second, in the order of [`Op::ALL`].
    mops: [f64; 5],
    bytes_per_key: f64,
    /// Buckets read by lookups of present and of absent keys, sorted.
    hit_probes: Vec<u32>,
    miss_probes: Vec<u32>,
    /// Nanoseconds of single lookups of present keys, at [`SHARES`].
    latency: [f64; 4],
}

pub(crate) fn run(args: &MapArgs) -> Result<(), Failure> {
    if !args.json {
        println!(
            "{}\nMedians of {}; keys and values of 8 bytes.",
            machine::description(),
            args.reps
        );
    }
    for &keys in &args.keys {
        machine::require_memory_of(keys)?;
        let count = usize::try_from(keys)?;
        let keys = Keys {
            present: hashes(1, count as u64).collect(),
            absent: hashes(2, count as u64).collect(),
        };
        let rows: Vec<_> = SUBJECTS.iter().map(|(name, of)| of(name, &keys, args.reps)).collect();
        if args.json {
            rows.iter().for_each(print_json);
        } else {
            println!("\n{} keys: millions of operations per second\n", grouped(count as u64));
            print!("{}", speed(&rows).plain());
            println!("\nbuckets or groups read per lookup, and nanoseconds of single lookups,");
            println!(
                "each started after the previous one ended ({:.0} for the clock alone)\n",
                clock_alone()
            );
            print!("{}", worst(&rows).plain());
        }
    }
    Ok(())
}

/// Measures one map.
fn measure<M: Map>(name: &'static str, keys: &Keys, repetitions: u32) -> Row {
    let rounds = AT_LEAST.div_ceil(keys.present.len());
    let mut samples = [const { Vec::new() }; 5];
    for _ in 0..repetitions {
        let mut times = [Duration::ZERO; 5];
        for _ in 0..rounds {
            let spent = one_round::<M>(keys);
            times.iter_mut().zip(spent).for_each(|(sum, time)| *sum += time);
        }
        for (samples, time) in samples.iter_mut().zip(times) {
            samples.push(mops(rounds * keys.present.len(), time));
        }
    }
    let mut map = M::with_capacity(keys.present.len());
    fill(&mut map, &keys.present);
    let mut row = Row {
        name,
        keys: keys.present.len(),
        mops: samples.map(|samples| median(&samples)),
        bytes_per_key: map.bytes() as f64 / keys.present.len() as f64,
        hit_probes: map.probes(&keys.present),
        miss_probes: map.probes(&keys.absent),
        latency: latency(&map, &keys.present),
    };
    row.hit_probes.sort_unstable();
    row.miss_probes.sort_unstable();
    row
}

fn fill<M: Map>(map: &mut M, keys: &[u64]) {
    black_box(keys).iter().for_each(|&key| map.insert(key, !key));
}

/// The CPU time of each operation over all keys.
fn one_round<M: Map>(keys: &Keys) -> [Duration; 5] {
    let mut map = M::with_capacity(keys.present.len());
    let (insert, ()) = timed(|| fill(&mut map, &keys.present));
    let count =
        |keys: &[u64]| black_box(keys).iter().filter(|&&key| map.get(key).is_some()).count();
    let (hit, found) = timed(|| count(&keys.present));
    assert_eq!(found, keys.present.len(), "every inserted key is found");
    let (miss, found) = timed(|| count(&keys.absent));
    assert_eq!(found, 0, "no absent key is found");
    let (remove, removed) =
        timed(|| black_box(&keys.present).iter().filter(|&&key| map.remove(key)).count());
    assert_eq!(removed, keys.present.len(), "every key was removed");
    drop(map);
    let mut map = M::with_capacity(0);
    let (grow, ()) = timed(|| fill(&mut map, &keys.present));
    [insert, grow, hit, miss, remove]
}

/// The times of single lookups at [`SHARES`]. The value found decides which key comes next, so that
/// no lookup starts before the previous one has finished.
fn latency<M: Map>(map: &M, keys: &[u64]) -> [f64; 4] {
    let mut at = 0;
    single(|i| {
        let key = keys[at];
        let start = Instant::now();
        let value = black_box(map.get(black_box(key)));
        let time = start.elapsed();
        let mixed = splitmix64(i ^ value.unwrap_or(0));
        at = usize::try_from(mixed % keys.len() as u64).unwrap_or(0);
        time
    })
}

/// The median time of an empty measurement.
fn clock_alone() -> f64 {
    single(|_| Instant::now().elapsed())[0]
}

fn single(mut once: impl FnMut(u64) -> Duration) -> [f64; 4] {
    let mut times: Vec<_> = (0..LOOKUPS as u64).map(|i| once(i).as_nanos()).collect();
    times.sort_unstable();
    SHARES.map(|share| at_share(&times, share) as f64)
}

/// The value that this share of all samples does not exceed.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count")]
fn at_share<T: Copy>(sorted: &[T], share: f64) -> T {
    let last = sorted.len() - 1;
    sorted[((last as f64 * share).ceil() as usize).min(last)]
}

fn print_json(row: &Row) {
    for (op, mops) in Op::ALL.into_iter().zip(row.mops) {
        let line = json!({ "map": row.name, "keys": row.keys, "op": op.name(), "mops": mops,
                           "bytes_per_key": row.bytes_per_key });
        println!("{line}");
    }
    let [median, p99, p999, max] = row.latency;
    for (op, probes) in [(Op::Hit, &row.hit_probes), (Op::Miss, &row.miss_probes)] {
        let line = json!({ "map": row.name, "keys": row.keys, "op": op.name(),
                           "probes_p999": at_share(probes, 0.999), "probes_max": at_share(probes, 1.0) });
        println!("{line}");
    }
    let line = json!({ "map": row.name, "keys": row.keys, "op": "single hit",
                       "ns_median": median, "ns_p99": p99, "ns_p999": p999, "ns_max": max });
    println!("{line}");
}

fn speed(rows: &[Row]) -> Table {
    let mut heading = vec!["map"];
    heading.extend(Op::ALL.map(Op::name));
    heading.push("bytes/key");
    let mut table = Table::new(&heading);
    for row in rows {
        let mut cells = vec![row.name.to_string()];
        cells.extend(row.mops.map(|mops| figure(Some(mops))));
        cells.push(figure(Some(row.bytes_per_key)));
        table.push(cells);
    }
    table
}

fn worst(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "map",
        "hit 99.9 %",
        "hit max",
        "miss 99.9 %",
        "miss max",
        "ns 50 %",
        "ns 99 %",
        "ns 99.9 %",
        "ns max",
    ]);
    for row in rows {
        let mut cells = vec![row.name.to_string()];
        for probes in [&row.hit_probes, &row.miss_probes] {
            cells.extend([0.999, 1.0].map(|share| at_share(probes, share).to_string()));
        }
        cells.extend(row.latency.map(|time| figure(Some(time))));
        table.push(cells);
    }
    table
}
