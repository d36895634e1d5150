//! `threads`: one filter shared by several threads, in wall-clock time.
//!
//! Compares `koel-concurrent` with the alternatives: the plain filter without writers, the same
//! behind a lock of the standard library, and `atomic-cuckoo-filter`. Lookups ask for present and
//! absent keys in random order, which cannot be predicted. In `mixed`, one operation in ten inserts
//! or removes a key of the thread's own. Every repetition starts with another filter. Other work on
//! the machine shows up here first, so each figure has its spread beside it.

use std::collections::hash_map::DefaultHasher;
use std::hint::black_box;
use std::sync::{Arc, Barrier, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::Instant;

use koel::{ConcurrentFilter, CuckooFilter, Prefer};
use serde_json::{Value, json};
use testkit::keys::{by_chance, hashes};

use crate::args::ThreadsArgs;
use crate::clock::{median, mops, spread};
use crate::filters::in_turn;
use crate::subject::{Calls, Filter, Mode, SLICE};
use crate::subjects::{Mix, atomic_cuckoo_shared};
use crate::table::{grouped, print};
use crate::{Failure, machine};

/// The number of lookups in a mixed round.
const LOOKUPS: usize = 288;
/// The number of keys inserted before these lookups and removed after them, so that one operation
/// in ten is an insert or a remove.
const WRITES: usize = 16;
/// The least number of keys per thread. Filters have room for a tenth more, which holds what all
/// threads insert in a round.
const KEYS_A_THREAD: u64 = 10 * WRITES as u64;

/// Seeds of the key streams: present keys, absent keys, the coin that chooses between them and,
/// from here on, those of each thread.
const PRESENT: u64 = 1;
const ABSENT: u64 = 2;
const COIN: u64 = 3;
const OWN: u64 = 10;

/// Makes another handle of one filter, for a thread.
type Handles = Box<dyn Fn() -> Box<dyn Filter + Send>>;

/// A filter that threads can share.
struct Subject {
    name: &'static str,
    mode: Mode,
    /// Whether it can be changed.
    writes: bool,
    /// Builds the filter with these keys in it, for this false-positive rate, with room for a
    /// tenth more.
    build: fn(&[u64], f64) -> Handles,
}

const fn subject(name: &'static str, mode: Mode, build: fn(&[u64], f64) -> Handles) -> Subject {
    Subject { name, mode, writes: true, build }
}

/// A lock is taken for each key, as by threads that handle one key at a time.
macro_rules! behind_a_lock {
    ($Lock:ident, $read:ident, $write:ident) => {
        |keys, rate| {
            handles(Calls::new(
                Arc::new($Lock::new(filled_plain(keys, rate))),
                |filter, key| {
                    filter.$write().unwrap_or_else(PoisonError::into_inner).insert(&key).is_ok()
                },
                |filter, key| filter.$read().unwrap_or_else(PoisonError::into_inner).contains(&key),
                |filter, key| filter.$write().unwrap_or_else(PoisonError::into_inner).remove(&key),
            ))
        }
    };
}

static SUBJECTS: [Subject; 8] = [
    subject("koel-concurrent", Mode::Single, concurrent),
    subject("koel-concurrent", Mode::Batch, concurrent),
    Subject { writes: false, ..subject("koel-plain", Mode::Single, plain) },
    Subject { writes: false, ..subject("koel-plain", Mode::Batch, plain) },
    subject("koel-mutex", Mode::Single, behind_a_lock!(Mutex, lock, lock)),
    subject("koel-rwlock", Mode::Single, behind_a_lock!(RwLock, read, write)),
    subject("atomic-cuckoo-filter", Mode::Single, |keys, rate| {
        filled(atomic_cuckoo_shared::<DefaultHasher>(capacity(keys), rate), keys)
    }),
    subject("atomic-cuckoo-filter+mix", Mode::Single, |keys, rate| {
        filled(atomic_cuckoo_shared::<Mix>(capacity(keys), rate), keys)
    }),
];

/// Fills a filter whose clones are the same filter.
fn filled(mut filter: impl Filter + Clone + Send + 'static, keys: &[u64]) -> Handles {
    assert_eq!(filter.insert(keys, Mode::Batch), keys.len(), "room for a tenth more");
    handles(filter)
}

fn handles(filter: impl Filter + Clone + Send + 'static) -> Handles {
    Box::new(move || Box::new(filter.clone()))
}

fn capacity(keys: &[u64]) -> usize {
    keys.len() + keys.len() / 10
}

fn empty(keys: &[u64], rate: f64) -> ConcurrentFilter {
    let builder = ConcurrentFilter::builder(capacity(keys) as u64, rate).prefer(Prefer::Fast);
    builder.build().expect("rates and sizes of the bench can be built")
}

fn concurrent(keys: &[u64], rate: f64) -> Handles {
    let calls = Calls::new(
        Arc::new(empty(keys, rate)),
        |filter, key| filter.insert(&key).is_ok(),
        |filter, key| filter.contains(&key),
        |filter, key| filter.remove(&key),
    );
    let calls = calls.many(
        |filter, keys| if filter.insert_many(keys).is_ok() { keys.len() } else { 0 },
        |filter, keys, found| filter.contains_many(keys, found),
        |filter, keys, removed| filter.remove_many(keys, removed),
    );
    filled(calls, keys)
}

/// A plain filter with the same buckets.
fn filled_plain(keys: &[u64], rate: f64) -> CuckooFilter {
    let mut filter = empty(keys, rate).into_filter().expect("buckets that stay in place");
    filter.insert_many(keys).expect("room for these and a tenth more");
    filter
}

fn plain(keys: &[u64], rate: f64) -> Handles {
    let filter = Arc::new(filled_plain(keys, rate));
    let calls = Calls::new(filter, |_, _| false, |filter, key| filter.contains(&key), |_, _| false);
    handles(calls.many(
        |_, _| 0,
        |filter, keys, found| filter.contains_many(keys, found),
        |_, _, _| (),
    ))
}

/// One figure: millions of operations per second of all threads, one sample per repetition.
struct Row {
    subject: &'static Subject,
    /// Only lookups, or changes among them.
    mixed: bool,
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
    for subject in &SUBJECTS {
        for mixed in [false, true].into_iter().filter(|mixed| !mixed || subject.writes) {
            let row = |&threads| Row { subject, mixed, threads, samples: Vec::new() };
            rows.extend(args.threads.iter().map(row));
        }
    }
    for repetition in 0..args.output.reps {
        for row in in_turn(rows.len(), repetition) {
            rows[row].measure(&present, args.fpr, &asked, operations);
        }
    }
    Ok(rows)
}

impl Row {
    /// Runs `operations` operations on each of the threads, in whole slices or rounds, from when
    /// the first thread starts to when the last one finishes. The threads read the clock
    /// themselves: if they occupy all processors, the thread that started them may have to wait.
    fn measure(&mut self, present: &[u64], rate: f64, asked: &[u64], operations: usize) {
        let (mixed, subject) = (self.mixed, self.subject);
        let handle = (subject.build)(present, rate);
        let ready = &Barrier::new(self.threads);
        let run = move |thread, mut filter: Box<dyn Filter + Send>| {
            ready.wait();
            let begin = Instant::now();
            let done = work(filter.as_mut(), subject, mixed, thread, asked, operations);
            (done, begin, Instant::now())
        };
        let (done, begin, end) = thread::scope(|scope| {
            let filters: Vec<_> = (0..self.threads).map(|_| handle()).collect();
            let start = |(thread, filter)| scope.spawn(move || run(thread, filter));
            let running: Vec<_> = filters.into_iter().enumerate().map(start).collect();
            let done = running.into_iter().map(|thread| thread.join().expect("a thread that ends"));
            let together = |(a, begin, end): (usize, Instant, Instant), (b, other, last)| {
                (a + b, begin.min(other), end.max(last))
            };
            done.reduce(together).expect("a thread at least")
        });
        self.samples.push(mops(done, end - begin));
    }

    fn json(&self, keys: u64) -> Value {
        json!({
            "filter": self.subject.name, "mode": self.subject.mode.name(), "keys": keys,
            "work": if self.mixed { "mixed" } else { "lookups" }, "threads": self.threads,
            "mops": median(&self.samples), "spread": spread(&self.samples),
        })
    }
}

/// An endless cycle of slices of `asked`; each thread starts elsewhere.
fn slices(asked: &[u64], thread: usize, length: usize) -> impl Iterator<Item = &[u64]> {
    let count = asked.len() / length;
    let first = thread * count / 3;
    (first..).map(move |i| &asked[i % count * length..][..length])
}

/// Lookups and, if `mixed`, inserts and removes of keys of the thread's own. Returns the number of
/// operations: at least so many, in whole rounds.
fn work(
    filter: &mut dyn Filter,
    subject: &Subject,
    mixed: bool,
    thread: usize,
    asked: &[u64],
    operations: usize,
) -> usize {
    let (lookups, writes) = if mixed { (LOOKUPS, WRITES) } else { (asked.len().min(SLICE), 0) };
    let rounds = operations.div_ceil(lookups + 2 * writes);
    let own: Vec<u64> = hashes(OWN + thread as u64, (rounds * writes) as u64).collect();
    for (round, slice) in slices(asked, thread, lookups).take(rounds).enumerate() {
        let own = &own[round * writes..][..writes];
        assert_eq!(filter.insert(own, subject.mode), own.len(), "room for a tenth more");
        black_box(filter.find(slice, subject.mode));
        let removed = filter.delete(own, subject.mode);
        let is_koel = subject.name.starts_with("koel");
        assert!(!is_koel || removed == own.len(), "a key that was inserted is missing");
    }
    rounds * (lookups + 2 * writes)
}
