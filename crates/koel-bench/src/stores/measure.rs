//! Measures one store, from the first put to reopening it.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cpu_time::{ProcessTime, ThreadTime};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::keys::splitmix64;

use super::Subject;
use super::entries::{Entries, key};
use super::process::{Written, copy_folder, disk_bytes, wait_for_rest};
use super::subject::Store;
use crate::clock::{clock, each, half_and_p99, median};
use crate::{Failure, machine};

/// The gets of each kind are divided into this many parts; the CPU time of one get is their median.
const PARTS: u64 = 5;
/// The bytes per key that an index may take in memory: the goal that Koel's was given.
pub(super) const INDEX_BYTES: u64 = 9;
/// The number of values that are compared in full after the store is reopened.
const COMPARED: u64 = 10_000;
/// The number of entries of a scan.
pub(super) const SCANNED: usize = 100;

/// The parameters of every measurement.
pub(super) struct Plan {
    pub(super) entries: Entries,
    pub(super) queries: u64,
    /// The folder in which temporary folders are made.
    pub(super) parent: PathBuf,
}

/// Single gets in random order, in nanoseconds.
pub(super) struct Gets {
    /// CPU time of one get, averaged over a run: the processor may start on the next get while this
    /// one waits for memory.
    pub(super) cpu: f64,
    /// The median and the 99th percentile of gets timed singly, less the clock. Reading the clock
    /// keeps gets from overlapping, so this is the latency a caller sees.
    pub(super) timed: [f64; 2],
    /// How often `counter` went up for each get.
    pub(super) counted: Option<f64>,
}

impl Plan {
    pub(super) fn folder(&self) -> Result<TempDir, Failure> {
        Ok(TempDir::with_prefix_in("koel-bench-", &self.parent)?)
    }

    /// The figures of a store. Ratios are relative to the bytes of keys and values; resident bytes
    /// are those in excess of what there were before the store was opened.
    pub(super) fn measure(&self, subject: &Subject) -> Result<Value, Failure> {
        let mut row = json!({ "store": subject.name });
        let folder = self.folder()?;
        let [before, _] = machine::resident_bytes();
        let store = (subject.open)(folder.path(), self.entries.keys)?;
        self.load(&*store, &mut row)?;
        row["disk"] = json!(self.share(disk_bytes(folder.path())?));
        self.ask_both(&*store, &mut row)?;
        row["scan_us"] = json!(subject.scans.then(|| self.scan(&*store)).transpose()?);
        let index = store.index_bytes().map(|bytes| bytes as f64 / self.entries.keys as f64);
        row["index_bytes_per_key"] = json!(index);
        let [now, _] = machine::resident_bytes();
        row["resident_mib"] = json!(now.saturating_sub(before) as f64 / f64::from(1 << 20));
        // The files of a store that is open but idle: what is there after the process was killed.
        let killed = self.folder()?;
        copy_folder(folder.path(), killed.path())?;
        let start = Instant::now();
        store.close()?;
        row["close_s"] = json!(start.elapsed().as_secs_f64());
        for (field, folder) in [("open_s", folder), ("open_killed_s", killed)] {
            let start = Instant::now();
            let store = (subject.open)(folder.path(), 0)?;
            row[field] = json!(start.elapsed().as_secs_f64());
            self.compare(&*store)?;
            store.close()?;
        }
        Ok(row)
    }

    /// From the first put until everything is durable and the threads of the store are idle. The
    /// CPU time is that of all threads, less what making an entry and reading the clock take
    /// without a store. That of the busiest group includes the work of a sync, but no wait for the
    /// disk or for a processor.
    fn load(&self, store: &dyn Store, row: &mut Value) -> Result<(), Failure> {
        let micros = |time: Duration| each(time, self.entries.keys) / 1e3;
        let own = ThreadTime::now();
        self.entries.put_all(store.batch(), |entries| {
            black_box(entries);
            Ok(())
        })?;
        let own = micros(own.elapsed());
        let (written, cpu, start) = (Written::now(), ProcessTime::now(), Instant::now());
        let slowest = self.entries.put_all(store.batch(), |entries| store.write(entries))?;
        store.sync()?;
        let rate = self.entries.keys as f64 / start.elapsed().as_secs_f64();
        wait_for_rest();
        row["load_cpu_us"] = json!(micros(cpu.elapsed()) - own);
        row["load_own_us"] = json!(own);
        row["thousands_per_second"] = json!(rate / 1e3);
        let [longest, busiest] = slowest.map(|time| time.as_secs_f64() * 1e3);
        row["longest_write_ms"] = json!(longest);
        row["busiest_ms"] = json!(busiest);
        let written = Written::now().since(written);
        row["written"] = json!(self.share(written.calls));
        row["written_pages"] = json!(self.share(written.pages));
        Ok(())
    }

    /// Bytes relative to those of all keys and values.
    pub(super) fn share(&self, bytes: u64) -> f64 {
        bytes as f64 / self.entries.bytes() as f64
    }

    /// Gets present keys, then absent ones.
    pub(super) fn ask_both(&self, store: &dyn Store, row: &mut Value) -> Result<(), Failure> {
        let mut ask = |kind: &str, present, number: &dyn Fn(u64) -> u64| {
            let gets = self.ask(store, present, number, |store| store.reads())?;
            row[format!("{kind}_cpu_ns")] = json!(gets.cpu);
            row[format!("{kind}_p50_ns")] = json!(gets.timed[0]);
            row[format!("{kind}_p99_ns")] = json!(gets.timed[1]);
            row[format!("reads_per_{kind}")] = json!(gets.counted);
            Ok::<_, Failure>(())
        };
        ask("hit", true, &|query| self.entries.present(query))?;
        ask("miss", false, &|query| self.entries.absent(query))
    }

    /// Gets the keys whose numbers `number` yields, all present or all absent.
    pub(super) fn ask(
        &self,
        store: &dyn Store,
        present: bool,
        number: &dyn Fn(u64) -> u64,
        counter: fn(&dyn Store) -> Option<u64>,
    ) -> Result<Gets, Failure> {
        let get = |query| store.get(&key(number(query)), &mut touch);
        let found = |from: u64, count: u64| -> Result<u64, Failure> {
            (from..from + count).try_fold(0, |found, query| Ok(found + u64::from(get(query)?)))
        };
        // Warms the caches first.
        found(0, self.queries)?;
        let before = counter(store);
        let part = self.queries.div_ceil(PARTS);
        let mut cpu = Vec::new();
        for round in 1..=PARTS {
            let start = ThreadTime::now();
            let count = found(self.queries + round * part, part)?;
            cpu.push(each(start.elapsed(), part));
            if count != if present { part } else { 0 } {
                return Err(format!("{count} of {part} keys found, all present: {present}").into());
            }
        }
        let counted = before.zip(counter(store));
        let counted = counted.map(|(before, now)| (now - before) as f64 / (PARTS * part) as f64);
        let mut times = Vec::new();
        for query in 0..self.queries {
            let key = key(number(query + 3 * self.queries));
            let start = Instant::now();
            black_box(store.get(&key, &mut touch)?);
            times.push(start.elapsed());
        }
        Ok(Gets { cpu: median(&cpu), timed: half_and_p99(times), counted })
    }

    /// The CPU time of a scan in microseconds: the median of parts.
    fn scan(&self, store: &dyn Store) -> Result<f64, Failure> {
        let part = self.queries.div_ceil(PARTS * SCANNED as u64);
        let mut cpu = Vec::new();
        for round in 0..=PARTS {
            let start = ThreadTime::now();
            for query in 0..part {
                let number = self.entries.present(round * part + query);
                if store.scan(&key(number), SCANNED, &mut touch)? == 0 {
                    return Err(format!("a scan from entry {number} found nothing").into());
                }
            }
            cpu.push(each(start.elapsed(), part) / 1e3);
        }
        // The first part warms the caches.
        Ok(median(&cpu[1..]))
    }

    /// Checks that values are intact and absent keys have none.
    fn compare(&self, store: &dyn Store) -> Result<(), Failure> {
        for query in 0..COMPARED {
            let number = self.entries.present(query);
            expect(store, number, Some(self.entries.value(number)))?;
            expect(store, self.entries.absent(query), None)?;
        }
        Ok(())
    }

    /// Costs that are not the store's, or lower bounds of them, in nanoseconds: two readings of the
    /// clock; making a key; two random cache lines of a table as large as an index may be,
    /// prefetched together and timed as single gets are.
    pub(super) fn overhead(&self) -> Result<[f64; 3], Failure> {
        let start = ThreadTime::now();
        for query in 0..self.queries {
            black_box(key(self.entries.present(query)));
        }
        let key = each(start.elapsed(), self.queries);
        let lines =
            vec![[1_u8; 64]; usize::try_from((self.entries.keys * INDEX_BYTES).div_ceil(64))?];
        let at = |number: u64| usize::try_from(splitmix64(number) % lines.len() as u64);
        let mut times = Vec::new();
        for query in 0..self.queries {
            let (one, other) = (at(query)?, at(!query)?);
            let start = Instant::now();
            black_box(lines[one][0] & lines[other][0]);
            times.push(start.elapsed());
        }
        Ok([clock(), key, half_and_p99(times)[0]])
    }
}

/// Gets a key by its number, and fails unless it has this value or, if there is none, is absent.
pub(super) fn expect(store: &dyn Store, number: u64, value: Option<&[u8]>) -> Result<(), Failure> {
    let mut same = false;
    let found = store.get(&key(number), &mut |found| same = Some(found) == value)?;
    match (found, value) {
        (false, None) => Ok(()),
        (true, Some(_)) if same => Ok(()),
        (true, Some(_)) => Err(format!("entry {number} has a wrong value").into()),
        (true, None) => Err(format!("entry {number} was found and is absent").into()),
        (false, Some(_)) => Err(format!("entry {number} is missing").into()),
    }
}

/// Reads the first byte of a value.
pub(super) fn touch(value: &[u8]) {
    black_box(value.first());
}
