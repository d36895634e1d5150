//! `map`: the library's exact map compared with hashbrown's, which is also std's.
//!
//! Measures the throughput of one thread as that of filters (`filters`), and the tail of lookups,
//! which is the cuckoo table's strength. The tail is given twice: as buckets (groups, in hashbrown)
//! per lookup, which are counted, and as nanoseconds of single lookups, which are noisy. Both maps
//! run with both default hashes.

mod probes;

use std::hash::BuildHasher;
use std::time::{Duration, Instant};

use hashbrown::{DefaultHashBuilder, HashMap};
use koel_map::{CuckooMap, SipState};
use serde_json::{Value, json};
use testkit::keys::{hashes, splitmix64};

use crate::args::SizesArgs;
use crate::clock::{at_shares, clock, each, median, mops, timed};
use crate::filters::{AT_LEAST, Loads, Row, measure};
use crate::subject::{Calls, Filter, Mode, Op, Subject};
use crate::table::print;
use crate::{Failure, machine};

/// The operations that are timed, in millions a second.
const OPS: [(Op, &str); 4] =
    [(Op::Insert, "insert"), (Op::Hit, "hit"), (Op::Miss, "miss"), (Op::Delete, "remove")];
/// The number of single lookups whose times are sorted.
const LOOKUPS: u64 = 1_000_000;

/// How many buckets or groups a lookup of each of the second keys reads in a map of the first.
type Probes = fn(&[u64], &[u64]) -> Vec<u32>;

/// Each map with its name; `+` names a hash other than its own.
static MAPS: [(Subject, Probes); 4] = [
    (Subject::new("koel", Mode::Single, koel::<SipState>), koel_probes::<SipState>),
    (
        Subject::new("koel+foldhash", Mode::Single, koel::<DefaultHashBuilder>),
        koel_probes::<DefaultHashBuilder>,
    ),
    (
        Subject::new("hashbrown", Mode::Single, hashbrown::<DefaultHashBuilder>),
        hashbrown_probes::<DefaultHashBuilder>,
    ),
    (
        Subject::new("hashbrown+siphash", Mode::Single, hashbrown::<SipState>),
        hashbrown_probes::<SipState>,
    ),
];

pub(crate) fn run(args: &SizesArgs) -> Result<(), Failure> {
    let reps = args.output.reps;
    if !args.output.json {
        println!("{}\nMedians of {reps}; keys and values of 8 bytes.", machine::description());
    }
    let maps: Vec<_> = MAPS.iter().map(|map| &map.0).collect();
    for &keys in &args.keys {
        machine::require_memory_of(keys)?;
        if !args.output.json {
            println!(
                "\nmillions of operations per second; buckets or groups read per lookup; nanoseconds of single lookups,\n\
                 each started after the previous one ended ({:.0} for the clock alone)\n",
                clock()
            );
        }
        let measured = measure(&maps, usize::try_from(keys)?, 0.0, reps, Loads::Skip);
        let rows = measured.iter().zip(&MAPS).map(|(row, map)| figures(row, map.1, reps));
        print(&rows.collect::<Vec<_>>(), args.output.json);
    }
    Ok(())
}

fn koel<S: BuildHasher + Default + 'static>(keys: usize, _rate: f64) -> Box<dyn Filter> {
    let calls = Calls::new(
        CuckooMap::<u64, u64, S>::with_capacity_and_hasher(keys, S::default()),
        |map, key| {
            map.insert(key, !key);
            true
        },
        |map, key| map.get(&key) == Some(&!key),
        |map, key| map.remove(&key).is_some(),
    );
    // A tag, a hash, a key and a value.
    Box::new(calls.with_bytes(|map| map.slots() * (1 + 3 * size_of::<u64>())))
}

fn hashbrown<S: BuildHasher + Default + 'static>(keys: usize, _rate: f64) -> Box<dyn Filter> {
    let calls = Calls::new(
        HashMap::<u64, u64, S>::with_capacity_and_hasher(keys, S::default()),
        |map, key| {
            map.insert(key, !key);
            true
        },
        |map, key| map.get(&key) == Some(&!key),
        |map, key| map.remove(&key).is_some(),
    );
    Box::new(calls.with_bytes(HashMap::allocation_size))
}

/// A lookup always reads both; the overflow would count as one more.
fn koel_probes<S: BuildHasher + Default>(present: &[u64], asked: &[u64]) -> Vec<u32> {
    let mut map = CuckooMap::<u64, u64, S>::with_capacity_and_hasher(present.len(), S::default());
    present.iter().for_each(|&key| {
        map.insert(key, !key);
    });
    vec![2 + u32::from(map.overflow_len() > 0); asked.len()]
}

fn hashbrown_probes<S: BuildHasher + Default>(present: &[u64], asked: &[u64]) -> Vec<u32> {
    let mut map = HashMap::<u64, u64, S>::with_capacity_and_hasher(present.len(), S::default());
    map.extend(present.iter().map(|&key| (key, !key)));
    probes::of(&map, asked)
}

/// The figures of one map.
fn figures(row: &Row, probes: Probes, reps: u32) -> Value {
    let [present, absent] = [1, 2].map(|seed| hashes(seed, row.keys as u64).collect::<Vec<_>>());
    assert_eq!((row.lost, row.fpr()), (0, Some(0.0)), "every key is found, and no other");
    let mut figures = json!({ "map": row.subject.name, "keys": row.keys });
    for (op, name) in OPS {
        figures[name] = json!(row.mops(op));
    }
    // Inserts into a map made without a capacity.
    let rounds = AT_LEAST.div_ceil(row.keys);
    let grow = |_| {
        let mut map = (row.subject.build)(0, 0.0);
        timed(|| map.insert(&present, Mode::Single)).0
    };
    let sample = |_| mops(rounds * row.keys, (0..rounds).map(grow).sum());
    figures["grow"] = json!(median(&(0..reps).map(sample).collect::<Vec<_>>()));
    figures["bytes_per_key"] = json!(row.bits_per_key / 8.0);
    for (kind, asked) in [("hit", &present), ("miss", &absent)] {
        let mut read = probes(&present, asked);
        read.sort_unstable();
        let [p999, max] = at_shares(&read, [0.999, 1.0]);
        figures[format!("{kind}_probes_p999")] = json!(p999);
        figures[format!("{kind}_probes_max")] = json!(max);
    }
    let mut map = (row.subject.build)(row.keys, 0.0);
    map.insert(&present, Mode::Single);
    let mut times = latencies(map.as_ref(), &present);
    times.sort_unstable();
    let times = at_shares(&times, [0.5, 0.99, 0.999, 1.0]);
    for (name, time) in ["ns_p50", "ns_p99", "ns_p999", "ns_max"].into_iter().zip(times) {
        figures[name] = json!(each(time, 1));
    }
    figures
}

/// The times of single lookups. The answer decides which key comes next, so that no lookup starts
/// before the previous one has finished.
fn latencies(map: &dyn Filter, keys: &[u64]) -> Vec<Duration> {
    let mut at = 0;
    let once = |number| {
        let start = Instant::now();
        let found = map.find(&keys[at..=at], Mode::Single);
        let time = start.elapsed();
        let mixed = splitmix64(number ^ (found as u64) << 63);
        at = usize::try_from(mixed % keys.len() as u64).unwrap_or(0);
        time
    };
    (0..LOOKUPS).map(once).collect()
}
