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

use serde_json::{Value, json};
use testkit::keys::{hashes, splitmix64};

use crate::args::MapArgs;
use crate::clock::{median, mops, timed};
use crate::table::print;
use crate::{Failure, machine};
use subject::{Map, SUBJECTS};

/// The operations that are timed, in millions a second. `grow` inserts into a map made without a
/// capacity.
const OPS: [&str; 5] = ["insert", "grow", "hit", "miss", "remove"];

/// The least number of operations in a sample: small maps are measured repeatedly.
const AT_LEAST: usize = 1_000_000;
/// The number of single lookups whose times are sorted.
const LOOKUPS: usize = 1_000_000;
/// The percentiles of their times, as shares.
const SHARES: [(&str, f64); 4] =
    [("ns_p50", 0.5), ("ns_p99", 0.99), ("ns_p999", 0.999), ("ns_max", 1.0)];

/// The keys of a run.
struct Keys {
    present: Vec<u64>,
    absent: Vec<u64>,
}

pub(crate) fn run(args: &MapArgs) -> Result<(), Failure> {
    if !args.output.json {
        println!(
            "{}\nMedians of {}; keys and values of 8 bytes.",
            machine::description(),
            args.output.reps
        );
    }
    for &keys in &args.keys {
        machine::require_memory_of(keys)?;
        let count = usize::try_from(keys)?;
        let keys = Keys {
            present: hashes(1, count as u64).collect(),
            absent: hashes(2, count as u64).collect(),
        };
        let rows: Vec<_> =
            SUBJECTS.iter().map(|(name, of)| of(name, &keys, args.output.reps)).collect();
        if !args.output.json {
            println!(
                "\nmillions of operations per second; buckets or groups read per lookup; nanoseconds of single lookups,"
            );
            println!(
                "each started after the previous one ended ({:.0} for the clock alone)\n",
                clock_alone()
            );
        }
        print(&rows, args.output.json);
    }
    Ok(())
}

/// Measures one map.
fn measure<M: Map>(name: &'static str, keys: &Keys, repetitions: u32) -> Value {
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
    let mut row = json!({ "map": name, "keys": keys.present.len() });
    for (op, samples) in OPS.into_iter().zip(samples) {
        row[op] = json!(median(&samples));
    }
    row["bytes_per_key"] = json!(map.bytes() as f64 / keys.present.len() as f64);
    for (kind, keys) in [("hit", &keys.present), ("miss", &keys.absent)] {
        let mut probes = map.probes(keys);
        probes.sort_unstable();
        for (name, share) in [("p999", 0.999), ("max", 1.0)] {
            row[format!("{kind}_probes_{name}")] = json!(at_share(&probes, share));
        }
    }
    let latency = latency(&map, &keys.present);
    SHARES.iter().zip(latency).for_each(|((name, _), time)| row[*name] = json!(time));
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
    SHARES.map(|(_, share)| at_share(&times, share) as f64)
}

/// The value that this share of all samples does not exceed.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a count")]
fn at_share<T: Copy>(sorted: &[T], share: f64) -> T {
    let last = sorted.len() - 1;
    sorted[((last as f64 * share).ceil() as usize).min(last)]
}
