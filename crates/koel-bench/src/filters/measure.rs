//! Measures every filter at one size: the keys, the order, the clock.
//!
//! Each repetition starts with another filter, so that none always runs after the same one. At
//! small sizes a filter is built several times per repetition, so that a measurement takes
//! milliseconds. Tables come fresh from the allocator, so inserts include the first touch of the
//! memory, for every filter alike. They do not include the time the host of a virtual machine takes
//! to provide the memory, which is touched once beforehand.
//!
//! Inserts are timed up to a load of 0.95, whatever load a filter is built for, and continue
//! untimed.

use std::time::Duration;

use testkit::keys::{by_chance, hashes};

use crate::clock::{median, mops, spread, timed};
use crate::machine;
use crate::subject::{Filter, Op, Subject};

/// The least number of keys in a repetition, and the most lookups and deletes.
pub(crate) const AT_LEAST: usize = 1_000_000;
const QUERIES: usize = 4_000_000;

/// The load up to which inserts are timed, in percent.
const TIMED_LOAD: usize = 95;

/// Bytes per key that a filter may touch first: a table and, in a bulk build, the hashes.
const TOUCHED_BYTES: usize = 10;

/// Seeds of the key streams: present keys, absent keys, keys to fill up with, and the coin that
/// chooses between present and absent.
const PRESENT: u64 = 1;
const ABSENT: u64 = 2;
const BEYOND: u64 = 3;
const COIN: u64 = 4;

/// Whether to fill each filter again until it refuses a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loads {
    /// Find the load at the first refusal.
    Measure,
    /// Skip it to save time.
    Skip,
}

/// The keys, the same for all filters.
pub(crate) struct Keys {
    pub(crate) present: Vec<u64>,
    absent: Vec<u64>,
    /// As many as the absent keys: at random, each absent key itself or a present one.
    mixed: Vec<u64>,
}

impl Keys {
    pub(crate) fn new(count: usize) -> Self {
        let queries = count.clamp(AT_LEAST, QUERIES) as u64;
        let present: Vec<u64> = hashes(PRESENT, count as u64).collect();
        let absent: Vec<u64> = hashes(ABSENT, queries).collect();
        let again = present.iter().copied().cycle();
        let mixed = by_chance(COIN, again, absent.iter().copied()).collect();
        Self { present, absent, mixed }
    }

    /// A slice of `queries` as long as the list of keys, a different one each round until they run
    /// out.
    fn part<'a>(&self, queries: &'a [u64], round: usize) -> &'a [u64] {
        let length = self.present.len().min(queries.len());
        let parts = queries.len() / length;
        &queries[round % parts * length..][..length]
    }
}

/// The measurements of one subject at one size.
pub(crate) struct Row {
    pub(crate) subject: &'static Subject,
    pub(crate) keys: usize,
    /// Millions of operations per second, one sample per repetition; empty if there is no such
    /// operation.
    samples: [Vec<f64>; Op::ALL.len()],
    pub(crate) bits_per_key: f64,
    false_positives: usize,
    lookups_of_absent: usize,
    /// The share of slots in use at the first refusal.
    pub(crate) load: Option<f64>,
    /// The number of keys that were refused, or not found again.
    pub(crate) lost: usize,
}

impl Row {
    fn new(subject: &'static Subject, keys: usize) -> Self {
        Self {
            subject,
            keys,
            samples: Default::default(),
            bits_per_key: 0.0,
            false_positives: 0,
            lookups_of_absent: 0,
            load: None,
            lost: 0,
        }
    }

    fn samples(&self, op: Op) -> &[f64] {
        &self.samples[op as usize]
    }

    /// The median throughput of an operation.
    pub(crate) fn mops(&self, op: Op) -> Option<f64> {
        let samples = self.samples(op);
        (!samples.is_empty()).then(|| median(samples))
    }

    pub(crate) fn spread(&self, op: Op) -> f64 {
        spread(self.samples(op))
    }

    /// The measured false-positive rate.
    pub(crate) fn fpr(&self) -> Option<f64> {
        let lookups = self.lookups_of_absent;
        (lookups > 0).then(|| self.false_positives as f64 / lookups as f64)
    }
}

/// Measures all subjects with the same number of keys.
pub(crate) fn measure(
    subjects: &[&'static Subject],
    keys: usize,
    rate: f64,
    repetitions: u32,
    loads: Loads,
) -> Vec<Row> {
    let mut rows: Vec<_> = subjects.iter().map(|&subject| Row::new(subject, keys)).collect();
    let keys = Keys::new(keys);
    for repetition in 0..repetitions {
        for row in in_turn(rows.len(), repetition) {
            repeat(&mut rows[row], &keys, rate);
        }
    }
    if loads == Loads::Measure {
        for row in rows.iter_mut().filter(|row| row.subject.find.is_some()) {
            row.load = load_at_refusal(row.subject, rate, &keys);
        }
    }
    rows
}

/// The order of a repetition: rotated by a third each time, so that the neighbours change too.
pub(crate) fn in_turn(count: usize, repetition: u32) -> impl Iterator<Item = usize> {
    let turn = repetition as usize * (count / 3 + 1);
    (0..count).map(move |step| (step + turn) % count)
}

/// Runs one repetition of one subject.
fn repeat(row: &mut Row, keys: &Keys, rate: f64) {
    let rounds = (AT_LEAST / keys.present.len()).clamp(1, 50);
    let mut totals = [(Duration::ZERO, 0); Op::ALL.len()];
    for round in 0..rounds {
        machine::touch(TOUCHED_BYTES * keys.present.len());
        let mut filter = (row.subject.build)(keys.present.len(), rate);
        one_round(row, filter.as_mut(), keys, round, &mut totals);
    }
    for (samples, (time, operations)) in row.samples.iter_mut().zip(totals) {
        if operations > 0 {
            samples.push(mops(operations, time));
        }
    }
}

/// Times inserts, lookups and deletes of one filter, and adds them to `totals`.
fn one_round(
    row: &mut Row,
    filter: &mut dyn Filter,
    keys: &Keys,
    round: usize,
    totals: &mut [(Duration, usize); Op::ALL.len()],
) {
    let mut add = |op: Op, time: Duration, operations: usize| {
        totals[op as usize].0 += time;
        totals[op as usize].1 += operations;
    };
    let accepted = insert(row.subject, filter, &keys.present, &mut add);
    row.bits_per_key = filter.bytes() as f64 * 8.0 / accepted.max(1) as f64;
    let queried = &keys.present[..accepted.min(QUERIES)];
    let Some(mode) = row.subject.find else { return };
    let mut find = |op: Op, keys: &[u64]| {
        let (time, found) = timed(|| filter.find(keys, mode));
        add(op, time, keys.len());
        found
    };
    row.lost = keys.present.len() - accepted + queried.len() - find(Op::Hit, queried);
    let absent = keys.part(&keys.absent, round);
    row.false_positives += find(Op::Miss, absent);
    row.lookups_of_absent += absent.len();
    find(Op::Mix, keys.part(&keys.mixed, round));
    if row.subject.deletes {
        let (time, _) = timed(|| filter.delete(queried, mode));
        add(Op::Delete, time, queried.len());
    }
}

/// Inserts all keys, timed up to [`TIMED_LOAD`], and returns how many were accepted. A bulk build
/// that is not queried afterwards gets only the timed keys.
fn insert(
    subject: &Subject,
    filter: &mut dyn Filter,
    keys: &[u64],
    add: &mut impl FnMut(Op, Duration, usize),
) -> usize {
    let most = filter.slots().map_or(keys.len(), |slots| slots * TIMED_LOAD / 100);
    let (first, rest) = keys.split_at(most.min(keys.len()));
    let (time, accepted) = timed(|| filter.insert(first, subject.insert));
    add(Op::Insert, time, accepted);
    if accepted < first.len() || rest.is_empty() {
        accepted
    } else if subject.find.is_none() {
        keys.len()
    } else {
        accepted + filter.insert(rest, subject.insert)
    }
}

/// The share of slots in use when a filter refuses its first key.
fn load_at_refusal(subject: &Subject, rate: f64, keys: &Keys) -> Option<f64> {
    let mut filter = (subject.build)(keys.present.len(), rate);
    let slots = filter.slots()?;
    let room = slots.saturating_sub(keys.present.len()) as u64 + 100;
    let mut accepted = filter.fill(&keys.present, subject.insert);
    if accepted == keys.present.len() {
        accepted += filter.fill(&hashes(BEYOND, room).collect::<Vec<_>>(), subject.insert);
    }
    Some(accepted as f64 / slots as f64)
}
