//! Keeps the last days of a series: deletes the older ones as a range, and, to compare, key by key.
//!
//! `cargo run --release -p koel-store --example retention -- ENTRIES` prints what both take: the
//! deletion, the first entry of a range then, and a get among many range deletions. Without an
//! argument it takes 20,000 entries.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use koel_store::{Durability, LsmOptions, LsmStore};

const NONE: Durability = Durability::None;
const DAYS: u64 = 100;

fn key(day: u64, number: u64) -> Vec<u8> {
    format!("{day:03}/{number:08}").into_bytes()
}

/// Runs something, and prints how long it takes.
fn timed<R>(what: &str, run: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = run();
    println!("{what:<50} {:>10.1} us", start.elapsed().as_secs_f64() * 1e6);
    result
}

/// Fills a store with days of entries, deletes the first half with `delete`, and reads.
fn trial(
    name: &str,
    entries: u64,
    delete: impl FnOnce(&LsmStore) -> Result<(), koel_store::Error>,
) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    // Every range is deleted with one record, however few entries it has.
    let store = LsmOptions::default().few_entries(0).open(folder.path())?;
    for number in 0..entries {
        store.put(&key(number * DAYS / entries, number), &[7; 100], NONE)?;
    }
    store.flush()?;
    timed(&format!("{name}: delete"), || delete(&store))?;
    let first = timed(&format!("{name}: first entry"), || store.iter()?.next().transpose())?;
    assert!(first.is_some_and(|(first, _)| first >= key(DAYS / 2, 0)));
    let gets = 10_000;
    let start = Instant::now();
    for number in 0..gets {
        black_box(store.get(&key(DAYS - 1, entries - 1 - number % (entries / DAYS)))?);
    }
    let each = start.elapsed().as_secs_f64() * 1e6 / gets as f64;
    println!("{:<50} {each:>10.2} us", format!("{name}: a get of an entry that is left"));
    timed(&format!("{name}: compact"), || store.compact())?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let argument = std::env::args().nth(1);
    let entries: u64 = argument.map_or(Ok(20_000), |entries| entries.parse())?;
    trial("a range", entries, |store| store.delete_range(..key(DAYS / 2, 0), NONE))?;
    trial("a range for every ten keys", entries, |store| {
        let numbers = (0..entries / 2).step_by(10);
        numbers.into_iter().take(20_000).try_for_each(|number| {
            let day = |number: u64| number * DAYS / entries;
            store.delete_range(key(day(number), number)..key(day(number), number + 9), NONE)
        })?;
        store.delete_range(..key(DAYS / 2, 0), NONE)
    })?;
    trial("key by key", entries, |store| {
        (0..entries / 2)
            .try_for_each(|number| store.delete(&key(number * DAYS / entries, number), NONE))
    })
}
