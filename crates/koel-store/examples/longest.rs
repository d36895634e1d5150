//! The longest put and the longest get while an ordered store is loaded: what its threads make a
//! caller wait.
//!
//! `cargo run --release -p koel-store --example longest -- FOLDER ENTRIES`, with entries of 116
//! bytes that do not compress. Every 16th put is followed by gets of a present and an absent key.

use std::error::Error;
use std::time::{Duration, Instant};

use koel_store::{Compression, Durability, LsmOptions};

/// What the slowest calls took, the slowest first.
struct Slowest(Vec<(Duration, u64)>);

impl Slowest {
    /// Runs a call, and keeps its time if it is among the slowest.
    fn time<R>(&mut self, number: u64, call: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = call();
        let taken = start.elapsed();
        if taken > self.0.last().map_or(Duration::ZERO, |slowest| slowest.0) {
            self.0.push((taken, number));
            self.0.sort_unstable_by(|one, other| other.cmp(one));
            self.0.truncate(5);
        }
        result
    }
}

/// A random number for each number (splitmix64).
fn random(number: u64) -> u64 {
    let mut bits = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&random(number).to_le_bytes());
    key[8..].copy_from_slice(&number.to_le_bytes());
    key
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(entries)) = (arguments.next(), arguments.next()) else {
        return Err("give a folder and a number of entries".into());
    };
    let entries: u64 = entries.parse()?;
    let store = LsmOptions::default().compression(Compression::None).open(folder)?;
    let (mut puts, mut hits, mut misses) = (Slowest(vec![]), Slowest(vec![]), Slowest(vec![]));
    let start = Instant::now();
    for number in 0..entries {
        let mut value = [0; 100];
        for (part, bytes) in (0..).zip(value.chunks_mut(8)) {
            bytes.copy_from_slice(&random(number << 8 | part).to_le_bytes()[..bytes.len()]);
        }
        puts.time(number, || store.put(&key(number), &value, Durability::None))?;
        if number % 16 == 0 {
            let there = random(number) % (number + 1);
            let found = hits.time(number, || store.get(&key(there)))?;
            assert!(found.is_some(), "entry {there} is lost");
            let found = misses.time(number, || store.get(&key(u64::MAX - number)))?;
            assert!(found.is_none(), "an absent key has a value");
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{entries} entries in {seconds:.1} s, stalled {} ms", {
        store.stats().stalled_micros / 1000
    });
    for (what, slowest) in [("put", puts), ("get, present", hits), ("get, absent", misses)] {
        let ms = |(taken, number): (Duration, u64)| {
            format!("{:.1} ms at {number}", taken.as_secs_f64() * 1000.0)
        };
        println!("{what}: {}", slowest.0.into_iter().map(ms).collect::<Vec<_>>().join(", "));
    }
    let start = Instant::now();
    store.close()?;
    println!("closed in {:.2} s", start.elapsed().as_secs_f64());
    Ok(())
}
