//! Counts events by key: the counting filter, which stores counts in its slots, compared with the
//! filter, which has counters for the copies that are in no slot.
//!
//! The keys follow Zipf's law: the n-th key has a frequency of 1/n, so most are rare and a few are
//! very frequent.

use std::time::Duration;

use koel::{CountingFilter, CuckooFilter, KeyHash};
use serde_json::{Value, json};
use testkit::keys::{hashes, splitmix64};

use crate::clock::timed;

/// The false-positive rate of both filters.
const RATE: f64 = 0.001;
/// The bytes of a counter in memory. In the filter's file it takes 16.
const COUNTER_BYTES: f64 = 25.0;

pub(super) fn measure(events: u64) -> Vec<Value> {
    let (stream, distinct) = zipf(events);
    let mut rows = vec![with_filter(&stream, distinct)];
    rows.extend([4, 8, 16, 24].map(|bits| with_counts(&stream, distinct, bits)));
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

fn with_filter(stream: &[KeyHash], distinct: u64) -> Value {
    let build =
        || CuckooFilter::builder(distinct, RATE).trust_hashes().build().expect("a common rate");
    let (mut filter, mut many) = (build(), build());
    let (one, ()) =
        timed(|| stream.iter().for_each(|hash| filter.insert(hash).expect("room for all")));
    let (batch, done) = timed(|| many.insert_many(stream));
    done.expect("room for all");
    let size = filter.size_in_bytes();
    let name = format!("filter, {}", filter.layout());
    cells(name, [one, batch], stream.len(), (size, filter.distinct_counters(), distinct))
}

fn with_counts(stream: &[KeyHash], distinct: u64, bits: u32) -> Value {
    let builder = CountingFilter::builder(distinct, RATE).count_bits(bits).trust_hashes();
    let build = || builder.build().expect("a common rate");
    let (mut filter, mut many) = (build(), build());
    let (one, ()) = timed(|| {
        for hash in stream {
            filter.insert(hash).expect("room for all");
        }
    });
    let (batch, done) = timed(|| many.insert_many(stream));
    done.expect("room for all");
    let size = filter.size_in_bytes();
    let name = format!("counting filter, {}", filter.layout());
    cells(name, [one, batch], stream.len(), (size, filter.distinct_counters(), distinct))
}

/// The times of all events, single and batched; the bytes of the file; counters and keys.
fn cells(
    name: String,
    times: [Duration; 2],
    events: usize,
    (file, counters, keys): (usize, u64, u64),
) -> Value {
    let [one, batch] = times.map(|time| time.as_secs_f64() * 1e9 / events as f64);
    let (counters, keys) = (counters as f64, keys as f64);
    let bytes = file as f64 + counters * (COUNTER_BYTES - 16.0);
    json!({
        "maplet": name, "ns/event": one, "ns/event, many": batch,
        "bytes/key": bytes / keys, "counters/key": counters / keys,
    })
}
