//! Threads that write, one that iterates and copies, compaction and syncs in the background, and
//! power failures.
//!
//! The n-th batch of a thread sets two keys and one of sixteen to n. So a state tells how far the
//! thread was, and whether the state ever existed. An iteration must show one moment. A crash clone
//! must have every write that was acknowledged as durable before it was taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use koel_store::{Batch, Durability, LogOptions, LogStore};
use testkit::storage::{MemoryFolder, Random, State};
use testkit::threads::SetOnDrop;

use crate::trial::{count, first_seed, iterate, report};

const THREADS: usize = 4;
const SLOTS: u64 = 16;
const FIRST: u64 = 1000;
const SECOND: u64 = 1001;

/// The progress of each thread.
#[derive(Debug, Default)]
struct Progress {
    begun: [AtomicU64; THREADS],
    acknowledged: [AtomicU64; THREADS],
    stop: AtomicBool,
}

fn read(counters: &[AtomicU64; THREADS]) -> [u64; THREADS] {
    counters.each_ref().map(|counter| counter.load(Ordering::SeqCst))
}

fn key(thread: usize, slot: u64) -> Vec<u8> {
    [(thread as u64).to_le_bytes(), slot.to_le_bytes()].concat()
}

fn options() -> LogOptions {
    LogOptions::default().segment_bytes(8192).background_compaction(true).bytes_per_sync(1024)
}

fn write(store: &LogStore, progress: &Progress, thread: usize) {
    let mut random = Random::new(thread as u64);
    for number in 1.. {
        if progress.stop.load(Ordering::SeqCst) {
            return;
        }
        progress.begun[thread].store(number, Ordering::SeqCst);
        let mut batch = Batch::new();
        for slot in [FIRST, number % SLOTS, SECOND] {
            batch.put(&key(thread, slot), &number.to_le_bytes()).unwrap();
        }
        let synced = random.chance(30);
        let durability = if synced { Durability::Synced } else { Durability::None };
        store.write(&batch, durability).unwrap();
        if synced {
            progress.acknowledged[thread].store(number, Ordering::SeqCst);
        }
    }
}

/// Returns the progress of each thread in a state, which must have existed.
fn progress_in(state: &State, context: &str) -> [u64; THREADS] {
    let number = |thread, slot| {
        let value = state.get(&key(thread, slot));
        value.map_or(0, |value| u64::from_le_bytes(value[..].try_into().unwrap()))
    };
    std::array::from_fn(|thread| {
        let last = number(thread, FIRST);
        assert_eq!(last, number(thread, SECOND), "{context}: half a batch of thread {thread}");
        for slot in 0..SLOTS {
            // The greatest number up to `last` with this remainder.
            let expected = (last + SLOTS - slot) / SLOTS * SLOTS + slot;
            let expected = expected.saturating_sub(SLOTS);
            assert_eq!(number(thread, slot), expected, "{context}: thread {thread}, slot {slot}");
        }
        last
    })
}

fn assert_between(low: [u64; THREADS], found: [u64; THREADS], high: [u64; THREADS], what: &str) {
    for thread in 0..THREADS {
        assert!(
            low[thread] <= found[thread] && found[thread] <= high[thread],
            "{what}: thread {thread}, {} not in {}..={}",
            found[thread],
            low[thread],
            high[thread]
        );
    }
}

fn crash(folder: &MemoryFolder, progress: &Progress, random: &mut Random, what: &str) {
    let kept = [0, 50, 100][random.below(3)];
    let low = read(&progress.acknowledged);
    let clone = folder.crash_clone(kept, random.next_u64());
    let high = read(&progress.begun);
    let opened = options().background_compaction(false).open_in(Arc::new(clone));
    let store = opened.unwrap_or_else(|error| panic!("{what}, {kept} % kept: {error}"));
    let state = iterate(&store).unwrap_or_else(|error| panic!("{what}, {kept} % kept: {error}"));
    assert_between(low, progress_in(&state, what), high, what);
}

/// The lower bound of an iteration is one less than the last started write, which may be in
/// progress.
fn iteration(store: &LogStore, progress: &Progress, what: &str) {
    let low = read(&progress.begun).map(|begun| begun.saturating_sub(1));
    let state = iterate(store).unwrap();
    let high = read(&progress.begun);
    assert_between(low, progress_in(&state, what), high, what);
}

/// A copy has every write that was acknowledged before, and a prefix of the others.
fn copy(store: &LogStore, progress: &Progress, what: &str) {
    let folder = MemoryFolder::new();
    let low = read(&progress.begun).map(|begun| begun.saturating_sub(1));
    store.checkpoint_in(&folder).unwrap();
    let high = read(&progress.begun);
    let copy = options().background_compaction(false).open_in(Arc::new(folder)).unwrap();
    assert_between(low, progress_in(&iterate(&copy).unwrap(), what), high, what);
    assert!(copy.verify(|_, _| ()).unwrap().damages.is_empty(), "{what}");
}

fn run(seed: u64) {
    let (folder, progress) = (MemoryFolder::new(), Progress::default());
    let store = options().open_in(Arc::new(folder.clone())).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, progress) = (&store, &progress);
            scope.spawn(move || write(store, progress, thread));
        }
        let stop = SetOnDrop(&progress.stop);
        let mut random = Random::new(seed);
        for round in 0..10 {
            let what = format!("seed {seed}, round {round}");
            crash(&folder, &progress, &mut random, &format!("{what}, crash"));
            iteration(&store, &progress, &format!("{what}, iteration"));
            copy(&store, &progress, &format!("{what}, copy"));
        }
        drop(stop);
    });
    let all = read(&progress.begun);
    assert_eq!(progress_in(&iterate(&store).unwrap(), "at the end"), all);
    store.close().unwrap();
    let store = options().open_in(Arc::new(folder)).unwrap();
    assert_eq!(progress_in(&iterate(&store).unwrap(), "opened again"), all);
}

#[test]
fn threads_lose_nothing_and_iterations_show_one_moment() {
    let runs = count(12, 1_000);
    for seed in (first_seed()..).take(usize::try_from(runs).unwrap()) {
        run(seed);
    }
    report("threads", &format!("{runs} runs of {THREADS} threads, 10 crash clones each: 0 lost"));
}
