//! Measures one store, from the first put to reopening it.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cpu_time::{ProcessTime, ThreadTime};
use tempfile::TempDir;

use super::entries::{Entries, Key, key};
use super::process::{Written, copy_folder, disk_bytes, wait_for_rest};
use super::subject::{Open, SCANNED, Scan, Store};
use crate::clock::median;
use crate::{Failure, machine};
use testkit::keys::splitmix64;

/// The gets of each kind are divided into this many parts; the CPU time of one get is their median.
const PARTS: u64 = 5;
/// The CPU time of this thread is read after this many entries: often enough to see a pause of a
/// millisecond, seldom enough to cost nothing.
const GROUP: u64 = 64;
/// The bytes per key that an index may take in memory: the goal that Koel's was given.
pub(super) const INDEX_BYTES: u64 = 9;
/// The number of values that are compared in full after the store is reopened.
const COMPARED: u64 = 10_000;

/// The parameters of every measurement.
pub(super) struct Plan {
    pub(super) entries: Entries,
    pub(super) queries: u64,
    /// The folder in which temporary folders are made.
    pub(super) parent: PathBuf,
}

/// The measurements of one store. Ratios are relative to the bytes of keys and values.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) load: Load,
    pub(super) disk: f64,
    pub(super) hit: Gets,
    pub(super) miss: Gets,
    /// CPU time of a scan of [`SCANNED`] entries in microseconds, for a store with ordered keys.
    pub(super) scan: Option<f64>,
    pub(super) index_bytes_per_key: Option<f64>,
    /// Resident bytes in excess of those before the store was opened.
    pub(super) resident_bytes: u64,
    pub(super) close: Duration,
    pub(super) open: Duration,
    /// Opening a copy of the files that was made while the store was open but idle: what is there
    /// after the process was killed.
    pub(super) open_killed: Duration,
}

/// From the first put until everything is durable and the threads of the store are idle.
pub(super) struct Load {
    /// CPU time of all threads in microseconds per entry, less [`own`](Self::own).
    pub(super) cpu: f64,
    /// The share of that for making an entry and reading the clock, measured without a store.
    pub(super) own: f64,
    /// Entries per second until everything was durable.
    pub(super) rate: f64,
    /// The latency of the slowest write.
    pub(super) longest: Duration,
    /// The highest CPU time of this thread for [`GROUP`] entries, or for a batch. It includes the
    /// work of a sync, but no wait for the disk or for a processor.
    pub(super) busiest: Duration,
    pub(super) called: f64,
    pub(super) paged: f64,
}

/// Single gets in random order, in nanoseconds.
pub(super) struct Gets {
    /// CPU time of one get, averaged over a run: the processor may start on the next get while this
    /// one waits for memory.
    pub(super) cpu: f64,
    /// The median of gets timed singly, less the clock, as is `p99`. Reading the clock keeps gets
    /// from overlapping, so this is the latency a caller sees.
    pub(super) half: f64,
    pub(super) p99: f64,
    /// Records read from files.
    pub(super) reads: Option<f64>,
}

/// Costs that are not the store's, or lower bounds of them, in nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Overhead {
    /// Two readings of the clock.
    pub(super) clock: f64,
    /// Making a key.
    pub(super) key: f64,
    /// Two random cache lines of a large index, read together and timed as single gets are.
    pub(super) lines: f64,
}

impl Plan {
    pub(super) fn measure<S: Store>(
        &self,
        name: &'static str,
        open_store: Open<S>,
        scan: Option<Scan<S>>,
    ) -> Result<Row, Failure> {
        let folder = TempDir::with_prefix_in("koel-bench-", &self.parent)?;
        let [before, _] = machine::resident_bytes();
        let store = open_store(folder.path(), self.entries.keys)?;
        let load = self.load(&store)?;
        let disk = disk_bytes(folder.path())? as f64 / self.entries.bytes() as f64;
        let hit = self.ask(&store, true, |query| self.entries.present(query))?;
        let miss = self.ask(&store, false, |query| self.entries.absent(query))?;
        let scan = scan.map(|scan| self.scan(&store, scan)).transpose()?;
        let index = store.index_bytes().map(|bytes| bytes as f64 / self.entries.keys as f64);
        let [now, _] = machine::resident_bytes();
        let killed = TempDir::with_prefix_in("koel-bench-", &self.parent)?;
        copy_folder(folder.path(), killed.path())?;
        let start = Instant::now();
        store.close()?;
        let close = start.elapsed();
        let start = Instant::now();
        let store = open_store(folder.path(), 0)?;
        let open = start.elapsed();
        self.compare(&store)?;
        store.close()?;
        drop(folder);
        let start = Instant::now();
        let store = open_store(killed.path(), 0)?;
        let open_killed = start.elapsed();
        self.compare(&store)?;
        store.close()?;
        Ok(Row {
            name,
            load,
            disk,
            hit,
            miss,
            scan,
            index_bytes_per_key: index,
            resident_bytes: now.saturating_sub(before),
            close,
            open,
            open_killed,
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

    /// Passes all entries to `write` in batches of this size. Returns the slowest write and the
    /// busiest group.
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

    /// Gets the keys whose numbers `number` yields, all present or all absent.
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
        // Warms the caches first.
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

    /// The CPU time of a scan in microseconds: the median of parts.
    fn scan<S: Store>(&self, store: &S, scan: Scan<S>) -> Result<f64, Failure> {
        let part = self.queries.div_ceil(PARTS * SCANNED as u64);
        let mut cpu = Vec::new();
        for round in 0..=PARTS {
            let start = ThreadTime::now();
            for query in 0..part {
                let number = self.entries.present(round * part + query);
                if scan(store, &key(number))? == 0 {
                    return Err(format!("a scan from entry {number} found nothing").into());
                }
            }
            cpu.push(start.elapsed().as_secs_f64() * 1e6 / part as f64);
        }
        // The first part warms the caches.
        Ok(median(&cpu[1..]))
    }

    /// Checks that values are intact and absent keys have none.
    fn compare<S: Store>(&self, store: &S) -> Result<(), Failure> {
        for query in 0..COMPARED {
            let number = self.entries.present(query);
            let same = store.get(&key(number), |value| value == self.entries.value(number))?;
            if same != Some(true) {
                return Err(format!("entry {number} is wrong after reopening: {same:?}").into());
            }
            if store.get(&key(self.entries.absent(query)), |_| ())?.is_some() {
                return Err("an absent key was found after reopening".into());
            }
        }
        Ok(())
    }

    /// Measures the same runs without a store.
    pub(super) fn overhead(&self) -> Result<Overhead, Failure> {
        let start = ThreadTime::now();
        for query in 0..self.queries {
            black_box(key(self.entries.present(query)));
        }
        let key = start.elapsed().as_secs_f64() * 1e9 / self.queries as f64;
        Ok(Overhead { clock: clock(), key, lines: self.two_lines()? })
    }

    /// Two random cache lines of a table as large as an index may be, prefetched together and timed
    /// singly: the median less the clock, in nanoseconds.
    fn two_lines(&self) -> Result<f64, Failure> {
        let lines =
            vec![[1_u8; 64]; usize::try_from((self.entries.keys * INDEX_BYTES).div_ceil(64))?];
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

/// Two readings of the clock, in nanoseconds.
pub(super) fn clock() -> f64 {
    let times = (0..100_000).map(|_| Instant::now().elapsed().as_nanos() as f64);
    median(&times.collect::<Vec<_>>())
}

/// Touches the value.
fn first_byte(value: &[u8]) -> u8 {
    value.first().copied().unwrap_or(0)
}
