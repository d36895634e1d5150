//! A measurement: what inserts and keys cost at other loads of a growing table.
//!
//! `cargo test --release -p koel --lib -- --ignored --nocapture load_curve` prints the table of
//! docs/decisions/0019-growth-loads.md. Each line is a packing and a load, the nanoseconds of CPU
//! time of an insert on the way from 1,000 to a million keys (single, then in slices of 4096), and
//! bits per key as the geometric mean over the way. Medians of rounds that try each load in turn,
//! so that all loads see the machine's good and bad moments.

extern crate std;

use std::fs;
use std::time::Instant;
use std::vec::Vec;
use std::{print, println};

use crate::table::tried_load;
use crate::{CuckooFilter, Prefer};

const FIRST: u64 = 1000;
const LAST: u64 = 1_000_000;
const ROUNDS: usize = 5;
const SLICE: usize = 4096;

/// CPU time of this thread in nanoseconds, where the system tells it; otherwise of the clock.
fn nanoseconds(start: Instant) -> f64 {
    let told = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let cpu = told.and_then(|line| line.split(' ').next()?.parse().ok());
    cpu.unwrap_or_else(|| start.elapsed().as_secs_f64() * 1e9)
}

fn timed(insert: impl FnOnce()) -> f64 {
    let start = Instant::now();
    let before = nanoseconds(start);
    insert();
    (nanoseconds(start) - before) / LAST as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The geometric mean of bits per key, over sizes that each exceed the one before by a fiftieth.
fn bits_per_key(mut filter: CuckooFilter) -> f64 {
    let (mut logarithms, mut next) = (Vec::new(), FIRST);
    for key in 0..LAST {
        filter.insert(&key).unwrap();
        if key + 1 == next {
            logarithms.push((filter.size_in_bytes() as f64 * 8.0 / next as f64).ln());
            next += next / 50;
        }
    }
    (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
}

#[test]
#[ignore = "a measurement: prints the table of docs/decisions/0019-growth-loads.md"]
fn load_curve() {
    let loads = [750, 775, 800, 825, 850, 870, 885, 900_u64];
    let keys: Vec<u64> = (0..LAST).collect();
    for (name, prefer) in [("small", Prefer::Small), ("fast", Prefer::Fast)] {
        let build =
            || CuckooFilter::builder(LAST, 0.001).prefer(prefer).grow_from(FIRST).build().unwrap();
        let mut times = loads.map(|_| [Vec::new(), Vec::new()]);
        for _ in 0..ROUNDS {
            for (load, [single, batched]) in loads.into_iter().zip(&mut times) {
                tried_load::set(load);
                let mut filter = build();
                single.push(timed(|| keys.iter().for_each(|key| filter.insert(key).unwrap())));
                let mut filter = build();
                let slices = keys.chunks(SLICE);
                batched.push(timed(|| slices.for_each(|some| filter.insert_many(some).unwrap())));
            }
        }
        for (load, times) in loads.into_iter().zip(times) {
            tried_load::set(load);
            print!("{name} {}", load as f64 / 1000.0);
            times.into_iter().for_each(|times| print!(" {:.0}", median(times)));
            println!(" {:.2}", bits_per_key(build()));
        }
    }
    tried_load::set(0);
}
