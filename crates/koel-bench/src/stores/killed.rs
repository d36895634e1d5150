//! Gets after a kill: another process writes entries into a store and is killed while it writes.
//! Then the store is opened here, and its first gets are timed.
//!
//! That process runs the hidden verb `write-until-killed`. It writes entries by their numbers and
//! prints two of these: how many there were at its only sync, after half of the entries, and how
//! many when it could be killed. It is killed at once, and goes on writing until then.
//!
//! * Every entry before the sync must be there with its value, or the measurement fails.
//! * Later ones may be lost, since no store makes single puts durable. "Kept" is the share that
//!   is still there.
//!
//! A kill of the process loses no page that the system has: it is not a power failure.

use std::io::{BufRead, BufReader, Write, stdout};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::slice;
use std::time::Instant;

use serde_json::{Value, json};
use testkit::keys::splitmix64;

use super::entries::{Entries, key};
use super::measure::{Plan, expect};
use super::subject::Store;
use super::{SUBJECTS, Subject};
use crate::Failure;
use crate::args::WriteUntilKilledArgs;
use crate::clock::Times;
use crate::subject::chosen;
use crate::table::Columns;

/// The number of gets of each kind.
pub(super) const GETS: u64 = 2_000;

/// The signal of [`Child::kill`].
const SIGKILL: i32 = 9;

/// The bytes after which a process that nobody kills stops, before it fills the disk.
const PATIENCE: u64 = 1 << 30;

pub(super) const COLUMNS: &Columns = &[
    ("store", "store"),
    ("open_s", "open s"),
    ("hit_mean_us", "hit mean us"),
    ("longest_hit_ms", "longest ms"),
    ("miss_mean_us", "miss mean us"),
    ("longest_miss_ms", "longest ms"),
    ("kept", "kept"),
];

/// The time to open a store whose process was killed when it had written so many bytes, and that of
/// its first gets.
pub(super) fn measure(plan: &Plan, subject: &Subject, bytes: u64) -> Result<Value, Failure> {
    let (folder, entry_bytes) = (plan.folder()?, plan.entries.entry_bytes());
    let keys = bytes.div_ceil(entry_bytes).max(2);
    let value_bytes = entry_bytes - size_of_val(&key(0)) as u64;
    let [synced, written] = write_and_kill(subject.name, folder.path(), keys, value_bytes)?;
    let start = Instant::now();
    let store = (subject.open)(folder.path(), 0)?;
    let open = start.elapsed();
    let (mut hits, mut misses) = (Times::new(), Times::new());
    for query in 0..GETS {
        let there = splitmix64(query) % synced;
        hits.time(|| expect(&*store, there, Some(plan.entries.value(there))))?;
        misses.time(|| expect(&*store, limit(keys, &plan.entries) + query, None))?;
    }
    let kept = kept(&*store, &plan.entries, synced, written)?;
    store.close()?;
    Ok(json!({
        "store": subject.name, "phase": "killed", "open_s": open.as_secs_f64(),
        "hit_mean_us": hits.mean() / 1e3, "longest_hit_ms": hits.longest() as f64 / 1e6,
        "miss_mean_us": misses.mean() / 1e3, "longest_miss_ms": misses.longest() as f64 / 1e6,
        "synced": synced, "written": written, "kept": kept,
    }))
}

/// The number of entries that are never written.
fn limit(keys: u64, entries: &Entries) -> u64 {
    keys + PATIENCE / entries.entry_bytes()
}

/// The share of the entries after the sync that are there, which must have their values.
fn kept(store: &dyn Store, entries: &Entries, synced: u64, written: u64) -> Result<f64, Failure> {
    let mut found = 0;
    for query in 0..GETS {
        let number = synced + splitmix64(!query) % (written - synced).max(1);
        if store.get(&key(number), &mut |_| ())? {
            expect(store, number, Some(entries.value(number)))?;
            found += 1;
        }
    }
    Ok(f64::from(found) / GETS as f64)
}

/// Lets a process write so many entries, and kills it. Returns how many it had synced, and written.
fn write_and_kill(
    store: &str,
    folder: &Path,
    keys: u64,
    value_bytes: u64,
) -> Result<[u64; 2], Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["write-until-killed", store]).arg(folder);
    command.args([keys, value_bytes].map(|number| number.to_string()));
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let numbers = numbers_from(&mut child);
    child.kill()?;
    let status = child.wait()?;
    if status.signal() != Some(SIGKILL) {
        return Err(format!("the process that was to be killed ended by itself: {status}").into());
    }
    numbers
}

/// The two numbers that the process prints.
fn numbers_from(child: &mut Child) -> Result<[u64; 2], Failure> {
    let mut lines = BufReader::new(child.stdout.take().ok_or("it has no output")?).lines();
    let mut number = || -> Result<u64, Failure> {
        Ok(lines.next().ok_or("the process ended before it had written its entries")??.parse()?)
    };
    Ok([number()?, number()?])
}

/// What the process does that is to be killed.
pub(crate) fn write_until_killed(args: &WriteUntilKilledArgs) -> Result<(), Failure> {
    let subject = chosen(SUBJECTS, |store| store.name, slice::from_ref(&args.store))?[0];
    let entries = Entries::new(args.keys, usize::try_from(args.value_bytes)?);
    let store = (subject.open)(&args.folder, args.keys)?;
    let numbers = (0..limit(args.keys, &entries)).map(|number| (number, number));
    let mut written = 0;
    entries.put_each(numbers, store.batch(), |batch| {
        store.write(batch)?;
        let before = written;
        written += batch.len() as u64;
        let reaches = |number| (before + 1..=written).contains(&number);
        if reaches(args.keys / 2) {
            store.sync()?;
            writeln!(stdout(), "{written}")?;
        }
        if reaches(args.keys) {
            writeln!(stdout(), "{written}")?;
        }
        Ok(())
    })?;
    Err("nobody killed this process".into())
}
