//! Counts events by key: the counting filter, which stores counts in its slots, compared with the
//! filter, which has counters for the copies that are in no slot.
//!
//! The keys follow Zipf's law: the n-th key has a frequency of 1/n, so most are rare and a few are
//! very frequent.

use std::time::Duration;

use koel::{CountingFilter, CuckooFilter, KeyHash};
use serde_json::{Value, json};
use testkit::keys::{hashes, splitmix64};

use crate::clock::{each, timed};

/// The false-positive rate of both filters.
const RATE: f64 = 0.001;
/// The bytes of a counter in memory. In the filter's file it takes 16.
const COUNTER_BYTES: f64 = 25.0;

pub(super) fn measure(events: u64) -> Vec<Value> {
    let (stream, distinct) = zipf(events);
    let figures = |name: String, times: [Duration; 2], file: usize, counters: u64| {
        let [one, batch] = times.map(|time| each(time, events));
        let (counters, keys) = (counters as f64, distinct as f64);
        let bytes = file as f64 + counters * (COUNTER_BYTES - 16.0);
        json!({
            "maplet": name, "ns/event": one, "ns/event, many": batch,
            "bytes/key": bytes / keys, "counters/key": counters / keys,
        })
    };
    let builder = CuckooFilter::builder(distinct, RATE).trust_hashes();
    let [mut filter, mut many] = [(); 2].map(|()| builder.build().expect("a common rate"));
    let one = timed(|| stream.iter().for_each(|key| filter.insert(key).expect("room for all"))).0;
    let batch = timed(|| many.insert_many(&stream).expect("room for all")).0;
    let (name, size) = (format!("filter, {}", filter.layout()), filter.size_in_bytes());
    let mut rows = vec![figures(name, [one, batch], size, filter.distinct_counters())];
    for bits in [4, 8, 16, 24] {
        let builder = CountingFilter::builder(distinct, RATE).count_bits(bits).trust_hashes();
        let [mut filter, mut many] = [(); 2].map(|()| builder.build().expect("a common rate"));
        let insert = |key| {
            filter.insert(key).expect("room for all");
        };
        let one = timed(|| stream.iter().for_each(insert)).0;
        let batch = timed(|| many.insert_many(&stream).expect("room for all")).0;
        let (name, size) =
            (format!("counting filter, {}", filter.layout()), filter.size_in_bytes());
        rows.push(figures(name, [one, batch], size, filter.distinct_counters()));
    }
    rows
}

/// This many events of a tenth as many keys, and the number of distinct keys among them.
fn zipf(events: u64) -> (Vec<KeyHash>, u64) {
    let keys: Vec<_> = hashes(1, (events / 10).max(1)).map(KeyHash::new).collect();
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
