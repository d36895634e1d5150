//! One store from the first put to being opened again.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cpu_time::{ProcessTime, ThreadTime};
use tempfile::TempDir;

use super::entries::{Entries, Key, key};
use super::process::{Written, disk_bytes, wait_for_rest};
use super::subject::{Open, Store};
use crate::clock::median;
use crate::limits::memory::{LINE, Memory, Pages};
use crate::{Failure, machine};
use testkit::keys::splitmix64;

/// The gets of a kind are made in so many parts; the CPU time of one is the median of them.
const PARTS: u64 = 5;
/// The CPU time of this thread is read after so many entries: often enough to see a pause of a millisecond, seldom enough to cost nothing.
const GROUP: u64 = 64;
/// What an index may take of a key, in memory: as was wanted of Koel's.
pub(super) const INDEX_BYTES: u64 = 9;
/// Values that are compared whole after the store was opened again.
const COMPARED: u64 = 10_000;

/// What every store is measured with.
pub(super) struct Plan {
    pub(super) entries: Entries,
    pub(super) queries: u64,
    /// Where the temporary folders are made.
    pub(super) parent: PathBuf,
}

/// What was found out about one store. Ratios are to the bytes of keys and values.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) load: Load,
    pub(super) disk: f64,
    pub(super) hit: Gets,
    pub(super) miss: Gets,
    pub(super) index_bytes_per_key: Option<f64>,
    /// Bytes more than before the store was opened.
    pub(super) resident_bytes: u64,
    pub(super) close: Duration,
    pub(super) open: Duration,
}

/// From the first put until everything is durable and the threads of the store rest.
pub(super) struct Load {
    /// Of all threads, microseconds an entry, less [`own`](Self::own).
    pub(super) cpu: f64,
    /// What making an entry and reading the clock take of that, without a store.
    pub(super) own: f64,
    /// Entries a second until everything was durable.
    pub(super) rate: f64,
    /// Until the slowest write came back.
    pub(super) longest: Duration,
    /// The most CPU time that [`GROUP`] entries, or a batch, took of this thread: the work of a sync is in it, waiting for the disk or for a processor is not.
    pub(super) busiest: Duration,
    pub(super) called: f64,
    pub(super) paged: f64,
}

/// Single gets in random order, in nanoseconds.
pub(super) struct Gets {
    /// CPU time of one, on average over a run of them: a processor may begin with the next one while this one waits for the memory.
    pub(super) cpu: f64,
    /// Timed singly, less the clock; so is `p99`. The readings keep one get from overlapping with another: this is how long a caller waits.
    pub(super) half: f64,
    pub(super) p99: f64,
    /// Records read from files.
    pub(super) reads: Option<f64>,
}

/// What is not a store's in these figures, or cannot be less, in nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Overhead {
    /// The clock read twice.
    pub(super) clock: f64,
    /// The making of a key.
    pub(super) key: f64,
    /// Two random cache lines of a large index, read at once and timed as single gets are.
    pub(super) lines: f64,
}

impl Plan {
    pub(super) fn measure<S: Store>(
        &self,
        name: &'static str,
        open: Open<S>,
    ) -> Result<Row, Failure> {
        let folder = TempDir::with_prefix_in("koel-bench-", &self.parent)?;
        let [before, _] = machine::resident_bytes();
        let store = open(folder.path(), self.entries.keys)?;
        let load = self.load(&store)?;
        let disk = disk_bytes(folder.path())? as f64 / self.entries.bytes() as f64;
        let hit = self.ask(&store, true, |query| self.entries.present(query))?;
        let miss = self.ask(&store, false, |query| self.entries.absent(query))?;
        let index = store.index_bytes().map(|bytes| bytes as f64 / self.entries.keys as f64);
        let [now, _] = machine::resident_bytes();
        let start = Instant::now();
        store.close()?;
        let close = start.elapsed();
        let start = Instant::now();
        let store = open(folder.path(), 0)?;
        let open = start.elapsed();
        self.compare(&store)?;
        store.close()?;
        Ok(Row {
            name,
            load,
            disk,
            hit,
            miss,
            index_bytes_per_key: index,
            resident_bytes: now.saturating_sub(before),
            close,
            open,
        })
    }

    fn load<S: Store>(&self, store: &S) -> Result<Load, Failure> {
        let own = ThreadTime::now();
        self.put_all(S::BATCH, |entries| {
            black_box(entries);
            Ok(())
        })?;
        let own = self.micros_an_entry(own.elapsed());
        let (written, cpu, start) = (Written::now(), ProcessTime::now(), Instant::now());
        let (longest, busiest) = self.put_all(S::BATCH, |entries| store.write(entries))?;
        store.sync()?;
        let rate = self.entries.keys as f64 / start.elapsed().as_secs_f64();
        wait_for_rest();
        let cpu = self.micros_an_entry(cpu.elapsed()) - own;
        let written = Written::now().since(written);
        let ratio = |bytes: u64| bytes as f64 / self.entries.bytes() as f64;
        let (called, paged) = (ratio(written.calls), ratio(written.pages));
        Ok(Load { cpu, own, rate, longest, busiest, called, paged })
    }

    /// Hands all entries to `write`, so many at once: the longest write, and the busiest group of them.
    fn put_all<'a>(
        &'a self,
        at_once: usize,
        mut write: impl FnMut(&[(Key, &'a [u8])]) -> Result<(), Failure>,
    ) -> Result<(Duration, Duration), Failure> {
        let mut batch: Vec<(Key, &[u8])> = Vec::with_capacity(at_once);
        let (mut longest, mut busiest) = (Duration::ZERO, Duration::ZERO);
        let (mut before, mut busy) = (Instant::now(), ThreadTime::now());
        for number in 0..self.entries.keys {
            batch.push((key(number), self.entries.value(number)));
            if batch.len() == at_once || number + 1 == self.entries.keys {
                write(&batch)?;
                batch.clear();
                let now = Instant::now();
                let time = now - before;
                before = now;
                longest = longest.max(time);
            }
            if number % GROUP == GROUP - 1 {
                busiest = busiest.max(busy.elapsed());
                busy = ThreadTime::now();
            }
        }
        Ok((longest, busiest))
    }

    fn micros_an_entry(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e6 / self.entries.keys as f64
    }

    /// Gets of the keys with the numbers that `number` gives, all present or all absent.
    fn ask<S: Store>(
        &self,
        store: &S,
        present: bool,
        number: impl Fn(u64) -> u64,
    ) -> Result<Gets, Failure> {
        let found = |from: u64, count: u64| -> Result<u64, Failure> {
            let mut found = 0;
            for query in from..from + count {
                found += u64::from(store.get(&key(number(query)), first_byte)?.is_some());
            }
            Ok(found)
        };
        // Caches fill first.
        found(0, self.queries)?;
        let reads = store.reads();
        let part = self.queries.div_ceil(PARTS);
        let mut cpu = Vec::new();
        for round in 1..=PARTS {
            let start = ThreadTime::now();
            let count = found(self.queries + round * part, part)?;
            cpu.push(start.elapsed().as_secs_f64() * 1e9 / part as f64);
            if count != if present { part } else { 0 } {
                return Err(format!("{count} of {part} keys found, all present: {present}").into());
            }
        }
        let difference = |(before, after): (u64, u64)| (after - before) as f64;
        let reads = reads.zip(store.reads()).map(difference);
        let mut times = Vec::new();
        for query in 0..self.queries {
            let key = key(number(query + 3 * self.queries));
            let start = Instant::now();
            black_box(store.get(&key, first_byte)?);
            times.push(start.elapsed().as_nanos());
        }
        let clock = clock();
        times.sort_unstable();
        let at = |percent: usize| {
            let time = times[(times.len() - 1) * percent / 100] as f64;
            (time - clock).max(0.0)
        };
        let reads = reads.map(|reads| reads / (PARTS * part) as f64);
        Ok(Gets { cpu: median(&cpu), half: at(50), p99: at(99), reads })
    }

    /// Values are whole, and absent keys have none.
    fn compare<S: Store>(&self, store: &S) -> Result<(), Failure> {
        for query in 0..COMPARED {
            let number = self.entries.present(query);
            let same = store.get(&key(number), |value| value == self.entries.value(number))?;
            if same != Some(true) {
                return Err(format!("entry {number} is wrong after opening: {same:?}").into());
            }
            if store.get(&key(self.entries.absent(query)), |_| ())?.is_some() {
                return Err("an absent key was found after opening".into());
            }
        }
        Ok(())
    }

    /// What the same runs cost without a store.
    pub(super) fn overhead(&self) -> Result<Overhead, Failure> {
        let start = ThreadTime::now();
        for query in 0..self.queries {
            black_box(key(self.entries.present(query)));
        }
        let key = start.elapsed().as_secs_f64() * 1e9 / self.queries as f64;
        Ok(Overhead { clock: clock(), key, lines: self.two_lines()? })
    }

    /// Two random cache lines of a table as large as an index may be, asked for at once and timed singly: p50 less the clock, in nanoseconds.
    fn two_lines(&self) -> Result<f64, Failure> {
        let bytes = (self.entries.keys * INDEX_BYTES).next_multiple_of(LINE as u64);
        let memory = Memory::new(usize::try_from(bytes)?, Pages::Huge)?;
        let lines = memory.lines();
        let at = |number: u64| usize::try_from(splitmix64(number) % lines.len() as u64);
        let mut times = Vec::new();
        for query in 0..self.queries {
            let (one, other) = (at(query)?, at(!query)?);
            let start = Instant::now();
            black_box(lines[one][0] & lines[other][0]);
            times.push(start.elapsed().as_nanos() as f64);
        }
        Ok(median(&times) - clock())
    }
}

/// The clock read twice, in nanoseconds.
fn clock() -> f64 {
    let times = (0..100_000).map(|_| Instant::now().elapsed().as_nanos() as f64);
    median(&times.collect::<Vec<_>>())
}

/// The value is touched.
fn first_byte(value: &[u8]) -> u8 {
    value.first().copied().unwrap_or(0)
}
