//! Counting events by key: a maplet whose values are counts, beside the filter, which has counters for the copies that are in no slot.
//!
//! The keys follow Zipf's law: the n-th comes with a frequency of 1/n, so most come seldom and a few very often. Where a
//! count does not fit into the maplet's value, it goes on in a hash map beside it.

use std::collections::HashMap;

use koel::{CuckooFilter, Maplet};
use testkit::keys::{hashes, splitmix64};

use super::Cells;
use crate::clock::timed;

/// Both err for one absent key in a thousand.
const RATE: f64 = 0.001;
/// What a counter takes in memory. In the filter's file it takes 16.
const COUNTER_BYTES: f64 = 25.0;

pub(super) fn measure(events: u64) -> Vec<Cells> {
    let (stream, distinct) = zipf(events);
    let mut rows = vec![with_filter(&stream, distinct)];
    rows.extend([4, 8, 16, 24].map(|bits| with_maplet(&stream, distinct, bits)));
    rows
}

/// So many events of a tenth as many keys, and how many keys there are among them.
fn zipf(events: u64) -> (Vec<u64>, u64) {
    let keys: Vec<_> = hashes(1, (events / 10).max(1)).collect();
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=keys.len())
        .map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        })
        .collect();
    let mut seen = vec![false; keys.len()];
    let draw = |i| {
        let point = splitmix64(i) as f64 / 2_f64.powi(64) * sum;
        let rank = sums.partition_point(|&sum| sum < point).min(keys.len() - 1);
        seen[rank] = true;
        keys[rank]
    };
    let stream = (0..events).map(draw).collect();
    (stream, seen.iter().filter(|&&seen| seen).count() as u64)
}

fn cells(name: String, nanoseconds: f64, bytes: f64, counters: f64) -> Cells {
    let figures = vec![("ns/event", nanoseconds), ("bytes/key", bytes), ("counters/key", counters)];
    (name, figures)
}

fn with_filter(stream: &[u64], distinct: u64) -> Cells {
    let mut filter = CuckooFilter::builder(distinct, RATE).build().expect("a rate that is usual");
    let (time, ()) =
        timed(|| stream.iter().for_each(|&hash| filter.insert_hash(hash).expect("room for all")));
    let counters = filter.distinct_counters() as f64;
    let bytes = filter.size_in_bytes() as f64 + counters * (COUNTER_BYTES - 16.0);
    let each = time.as_secs_f64() * 1e9 / stream.len() as f64;
    let keys = distinct as f64;
    cells(format!("filter, {}", filter.layout()), each, bytes / keys, counters / keys)
}

fn with_maplet(stream: &[u64], distinct: u64, bits: u32) -> Cells {
    let mut maplet = Maplet::builder(distinct, RATE, bits).build().expect("a rate that is usual");
    let most = (1 << bits) - 1;
    let mut beyond = HashMap::new();
    let (time, ()) = timed(|| {
        for &hash in stream {
            match maplet.get_hash(hash).next() {
                None => maplet.insert_hash(hash, 1).expect("room for all"),
                Some(count) if count == most => *beyond.entry(hash).or_insert(0_u64) += 1,
                Some(count) => assert!(maplet.replace_hash(hash, count, count + 1)),
            }
        }
    });
    let each = time.as_secs_f64() * 1e9 / stream.len() as f64;
    let (keys, counters) = (distinct as f64, beyond.len() as f64);
    let bytes = maplet.size_in_bytes() as f64 + counters * COUNTER_BYTES;
    let name = format!("maplet of counts, {}", maplet.layout());
    cells(name, each, bytes / keys, counters / keys)
}
