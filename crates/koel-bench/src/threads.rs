//! `threads`: one filter shared by several threads, in wall-clock time.
//!
//! Compares `koel-concurrent` with the alternatives: the plain filter without writers, the same
//! behind a lock of the standard library, and `atomic-cuckoo-filter`. Lookups ask for present and
//! absent keys in random order, which cannot be predicted. In `mixed`, one operation in ten inserts
//! or removes a key of the thread's own. Every repetition starts with another filter. Other work on
//! the machine shows up here first, so each figure has its spread beside it.

mod shared;

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::keys::{by_chance, hashes};

use crate::args::ThreadsArgs;
use crate::clock::{median, mops, spread};
use crate::table::{grouped, print};
use crate::{Failure, machine};
use shared::{SUBJECTS, Shared, Subject};

/// The number of lookups in a mixed round.
const LOOKUPS: usize = 288;
/// The number of keys inserted before these lookups and removed after them, so that one operation
/// in ten is an insert or a remove.
const WRITES: usize = 16;
/// The number of operations in a mixed round.
const ROUND: usize = LOOKUPS + 2 * WRITES;
/// The least number of keys per thread. Filters have room for a tenth more, which holds what all
/// threads insert in a round.
const KEYS_A_THREAD: u64 = 10 * WRITES as u64;

/// Seeds of the key streams: present keys, absent keys, the coin that chooses between them and,
/// from here on, those of each thread.
const PRESENT: u64 = 1;
const ABSENT: u64 = 2;
const COIN: u64 = 3;
const OWN: u64 = 10;

/// The work of the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Lookups,
    Mixed,
}

impl Work {
    const ALL: [Self; 2] = [Self::Lookups, Self::Mixed];

    fn name(self) -> &'static str {
        match self {
            Self::Lookups => "lookups",
            Self::Mixed => "mixed",
        }
    }
}

/// One figure: millions of operations per second of all threads, one sample per repetition.
struct Row {
    subject: &'static Subject,
    work: Work,
    threads: usize,
    samples: Vec<f64>,
}

pub(crate) fn run(args: &ThreadsArgs) -> Result<(), Failure> {
    let least = args.threads.iter().map(|&threads| threads as u64 * KEYS_A_THREAD).max();
    if let Some(least) = least.filter(|&least| args.keys.iter().any(|&keys| keys < least)) {
        return Err(format!("give {} keys or more for this many threads", grouped(least)).into());
    }
    if !args.output.json {
        println!("{}", machine::description());
        println!("Millions of operations per second of all threads in wall-clock time, medians.");
    }
    for &keys in &args.keys {
        machine::require_memory_of(keys)?;
        let rows = measure(args, usize::try_from(keys)?)?;
        if !args.output.json {
            println!("\n{} keys, target false-positive rate {}", grouped(keys), args.fpr);
        }
        let rows: Vec<_> = rows.iter().map(|row| row.json(keys)).collect();
        print(&rows, args.output.json);
    }
    Ok(())
}

fn measure(args: &ThreadsArgs, keys: usize) -> Result<Vec<Row>, Failure> {
    let present: Vec<u64> = hashes(PRESENT, keys as u64).collect();
    let (again, absent) = (present.iter().copied().cycle(), hashes(ABSENT, 2 * keys as u64));
    let asked: Vec<u64> = by_chance(COIN, again, absent).collect();
    let operations = usize::try_from(args.ops)?;
    let mut rows = Vec::new();
    for subject in SUBJECTS {
        for work in Work::ALL {
            if work == Work::Lookups || subject.writes {
                let row = |&threads| Row { subject, work, threads, samples: Vec::new() };
                rows.extend(args.threads.iter().map(row));
            }
        }
    }
    for repetition in 0..args.output.reps as usize {
        for step in 0..rows.len() {
            let count = rows.len();
            let row = &mut rows[(step + repetition * (count / 3 + 1)) % count];
            let filter = (row.subject.build)(&present, args.fpr);
            let (done, time) = run_all(filter.as_ref(), row.work, row.threads, &asked, operations);
            row.samples.push(mops(done, time));
        }
    }
    Ok(rows)
}

/// Runs `operations` operations on each of `threads` threads, in whole slices or rounds. Returns
/// how many were done, and the time from when the first thread started to when the last one
/// finished. The threads read the clock themselves: if they occupy all processors, the thread that
/// started them may have to wait.
fn run_all(
    filter: &dyn Shared,
    work: Work,
    threads: usize,
    asked: &[u64],
    operations: usize,
) -> (usize, Duration) {
    let ready = &Barrier::new(threads);
    let run = |thread| {
        ready.wait();
        let begin = Instant::now();
        let done = match work {
            Work::Lookups => lookups(filter, thread, asked, operations),
            Work::Mixed => mixed(filter, thread, asked, operations),
        };
        (done, begin, Instant::now())
    };
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        let done = running.into_iter().map(|thread| thread.join().expect("a thread that ends"));
        let together = |(a, begin, end): (usize, Instant, Instant), (b, other, last)| {
            (a + b, begin.min(other), end.max(last))
        };
        let (done, begin, end) = done.reduce(together).expect("a thread at least");
        (done, end - begin)
    })
}

/// An endless cycle of slices of `asked`; each thread starts elsewhere.
fn slices(asked: &[u64], thread: usize, length: usize) -> impl Iterator<Item = &[u64]> {
    let count = asked.len() / length;
    let first = thread * count / 3;
    (first..).map(move |i| &asked[i % count * length..][..length])
}

fn lookups(filter: &dyn Shared, thread: usize, asked: &[u64], operations: usize) -> usize {
    let length = asked.len().min(4096);
    let rounds = operations.div_ceil(length);
    for slice in slices(asked, thread, length).take(rounds) {
        black_box(filter.found(slice));
    }
    rounds * length
}

fn mixed(filter: &dyn Shared, thread: usize, asked: &[u64], operations: usize) -> usize {
    let rounds = operations.div_ceil(ROUND);
    let own: Vec<u64> = hashes(OWN + thread as u64, (rounds * WRITES) as u64).collect();
    let slices = slices(asked, thread, LOOKUPS).take(rounds);
    for (own, slice) in own.chunks(WRITES).zip(slices) {
        filter.insert_all(own);
        black_box(filter.found(slice));
        filter.remove_all(own);
    }
    rounds * ROUND
}

impl Row {
    fn json(&self, keys: u64) -> Value {
        json!({
            "filter": self.subject.name, "mode": self.subject.mode.name(), "keys": keys,
            "work": self.work.name(), "threads": self.threads,
            "mops": median(&self.samples), "spread": spread(&self.samples),
        })
    }
}
