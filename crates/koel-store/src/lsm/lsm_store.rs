//! The public type of the ordered store: its lock, its threads, and its methods.
//!
//! The threads:
//!
//! * One flushes sealed memtables, and makes the next file of the log in advance.
//! * One makes the guide follow the runs.
//! * Two merge runs, each others than the other.
//! * One syncs the log while it fills, so that little is left for the write that fills it.
//!
//! A failure loses nothing. It is kept for `stats` and for writers that wait. The next signal is
//! the next try of a flush; a merge is tried again after a pause, which grows from failure to
//! failure.

use std::ops::RangeBounds;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::entry::{MAX_KEY, MAX_VALUE};
use super::iter::Range;
use super::memtable::Take;
use super::options::LsmOptions;
use super::range_deletions::KeyRange;
use super::snapshot::{Snapshot, bounds};
use super::store::{LsmStats, Store};
use super::transaction::Transaction;
use crate::Error;
use crate::kernel::access::FolderLock;
use crate::kernel::batch::Batch;
use crate::kernel::disk::DiskFolder;
use crate::kernel::files::Folder;
use crate::kernel::log_end::Durability;
use crate::kernel::pool::Pool;
use crate::kernel::recovery::OpenReport;
use crate::kernel::salvage::{SalvageReport, VerifyReport};
use crate::kernel::store_files::StoreKind;
use crate::kernel::threads::{Signal, Threads};

/// A crash-safe key-value store in the order of its keys: an LSM-tree, guided by one cuckoo table
/// of 2 to 3 bytes per key in memory.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// use koel_store::{Durability, LsmStore};
///
/// let store = LsmStore::open(folder.path())?;
/// store.put(b"lovelace/ada", b"1815", Durability::None)?;
/// store.put(b"hopper/grace", b"1906", Durability::Synced)?;
/// assert_eq!(store.get(b"hopper/grace")?.as_deref(), Some(&b"1906"[..]));
///
/// let mut entries = store.range(&b"a"[..]..&b"m"[..])?;
/// let last = entries.next_back().transpose()?;
/// assert_eq!(last, Some((b"lovelace/ada".to_vec(), b"1815".to_vec())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Shape
/// Writes go to a log and to a memtable, which becomes a sorted table file when it is full. Tables
/// are *runs*: a read asks the memtables and then the runs, youngest first, and merges make few
/// runs of many. One [`koel::Maplet`] for all runs, the *guide*, says which of them may hold a key.
/// So a miss costs the same with 1 run and with 30, and runs can be merged late, which makes writes
/// cheap.
///
/// Nothing waits for the guide. A thread makes it follow the runs, and reads ask each run that it
/// does not know yet. After opening it is read from disk; without a sound file it is built once 256
/// reads have asked every run, in 0.1 us for each key. [`LsmStats::unguided_runs`] tells how many
/// runs it does not know.
///
/// # Crash safety
/// As [`LogStore`](crate::LogStore): after a crash the store has a prefix of its writes, in order,
/// each batch completely or not at all, with every write up to the last one acknowledged with
/// [`Durability::Synced`] and up to the last [`sync`](Self::sync). An ingestion is durable when it
/// returns.
///
/// # Damage
/// A checksum covers every byte and its position. Damage is an error of `open` or of the read that
/// meets it, with the file and the offset. It never leads to a wrong value, nor to a key that is
/// missing without an error, with the exception that [`LogStore`](crate::LogStore#damage) has too.
///
/// # Limits
/// Keys have up to 64 KiB, values up to 256 MiB, batches up to
/// [`LsmOptions::max_batch_bytes`]. Several processes can have a store open only if all are
/// read-only ([`LsmOptions::read_only`]).
///
/// # Cost
/// * `get` of a present key: one block of a table, from the cache or a file. `get` of an absent
///   key: two cache lines, and one block in less than 1 of 200 cases.
/// * `put`: one write of the log, and later about four times its bytes by flushes and merges, in
///   threads of the store.
/// * Memory: up to three memtables (64 MiB each), the cache (64 MiB), the guide, and the root of
///   each table's index.
/// * All methods take `&self`. Reads never wait for writes. Readers may see a write before it is
///   acknowledged.
#[derive(Debug)]
pub struct LsmStore {
    store: Arc<Store>,
    threads: Threads,
    /// Held until the store is dropped.
    _lock: FolderLock,
}

impl LsmOptions {
    /// Opens the store in the folder at `path`, or creates it.
    ///
    /// # Errors
    /// * [`Error::Locked`] if the store is open already.
    /// * [`Error::NoStore`] if there is none and it is to be opened read-only.
    /// * [`Error::WrongKind`] if the folder has a store of another kind.
    /// * [`Error::Damaged`] if its files are not as they were written.
    /// * [`Error::OldManifest`] or [`Error::OtherStore`] if some of its files come from elsewhere.
    /// * [`Error::OutOfMemory`], and I/O errors.
    pub fn open(self, path: impl AsRef<Path>) -> Result<LsmStore, Error> {
        let read_only = self.read_only;
        DiskFolder::with(path.as_ref(), read_only, |folder| self.open_in(Arc::new(folder)))
    }

    /// Opens the store in a [`Folder`].
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(self, folder: Arc<dyn Folder>) -> Result<LsmStore, Error> {
        let folder: Arc<dyn Folder> = Arc::new(Pool::new(folder, self.max_open_files));
        let lock = FolderLock::take(&*folder)?;
        let store = Arc::new(Store::open(folder, self)?);
        let mut opened = LsmStore { store, threads: Threads::default(), _lock: lock };
        let store = &opened.store;
        if !store.options.background || store.state.load().version.runs.is_empty() {
            // Without a guide reads ask every run, which finds the same.
            store.request_guide();
            drop(store.tend_guide());
        }
        if store.options.background {
            start(&opened.store, &mut opened.threads)?;
            opened.store.runs_changed();
        }
        opened.open_report().tell(StoreKind::Lsm);
        Ok(opened)
    }
}

impl LsmStore {
    /// The most bytes that a key can have.
    pub const MAX_KEY_BYTES: u64 = MAX_KEY;
    /// The most bytes that a value can have.
    pub const MAX_VALUE_BYTES: u64 = MAX_VALUE;

    /// Opens the store in the folder at `path` with default [`LsmOptions`], or creates it.
    ///
    /// # Errors
    /// As [`LsmOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        LsmOptions::default().open(path)
    }

    /// Returns the value of `key`.
    ///
    /// # Errors
    /// [`Error::Damaged`] if a block of a table is not as it was written, and I/O errors.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.store.get(key, Take::Value)
    }

    /// Returns the values of several keys as of one moment, in the same order. Faster than one by
    /// one if most of them are absent.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.store.get_many(keys)
    }

    /// Returns whether `key` has a value. Like `get` it reads a block of a table, since only the
    /// key in there is proof.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn contains(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.store.get(key, Take::Nothing)?.is_some())
    }

    /// Sets the value of `key`.
    ///
    /// # Errors
    /// * [`Error::InDoubt`] if the write was made but perhaps not durably. After any other error it
    ///   was not made.
    /// * [`Error::Stalled`] if flushes or merges are too slow, or fail.
    /// * [`Error::Poisoned`] after a failed write, [`Error::ReadOnly`], [`Error::TooLong`].
    /// * I/O errors.
    pub fn put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<(), Error> {
        let mut batch = Batch::new();
        batch.put(key, value)?;
        self.store.write(&batch, durability)
    }

    /// Deletes `key`, whether it has a value or not: reads nothing.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&self, key: &[u8], durability: Durability) -> Result<(), Error> {
        let mut batch = Batch::new();
        batch.delete(key)?;
        self.store.write(&batch, durability)
    }

    /// Deletes all keys of a range.
    ///
    /// Reads up to [`few_entries`](LsmOptions::few_entries) entries of the range, or 1 MiB, and
    /// deletes them one by one if those are all; then other writes to the range can make it look
    /// again. Otherwise, or if it has looked three times, it writes one record. Space comes back as
    /// that of other deletions does: with merges, or with [`compact`](Self::compact).
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// use koel_store::{Durability, LsmStore};
    ///
    /// let store = LsmStore::open(folder.path())?;
    /// for day in ["2026-11-29", "2026-11-30", "2026-12-01"] {
    ///     store.put(day.as_bytes(), b"sunny", Durability::None)?;
    /// }
    /// store.delete_range(.."2026-12", Durability::None)?;
    /// assert_eq!(store.iter()?.count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TooLong`] if a bound is longer than a key can be, [`Error::RangesHeld`], and
    /// [`Error::Damaged`] if what it reads is damaged. Otherwise as [`put`](Self::put).
    pub fn delete_range<K: AsRef<[u8]>>(
        &self,
        keys: impl RangeBounds<K>,
        durability: Durability,
    ) -> Result<(), Error> {
        let (from, to) = bounds(&keys);
        self.delete_keys(KeyRange::between(from, to)?, durability)
    }

    /// Deletes all keys that start with `prefix`, as [`delete_range`](Self::delete_range) does.
    ///
    /// # Errors
    /// As [`delete_range`](Self::delete_range).
    pub fn delete_prefix(&self, prefix: &[u8], durability: Durability) -> Result<(), Error> {
        self.delete_keys(KeyRange::prefix(prefix)?, durability)
    }

    fn delete_keys(&self, keys: Option<KeyRange>, durability: Durability) -> Result<(), Error> {
        match keys {
            Some(keys) => self.store.delete_range(&keys, durability),
            // Earlier writes may have to be made durable.
            None => self.store.write(&Batch::new(), durability),
        }
    }

    /// Applies a batch. After a crash the store has all of it or nothing, and so do reads.
    ///
    /// # Errors
    /// [`Error::BatchTooLarge`] above [`LsmOptions::max_batch_bytes`]. Otherwise as
    /// [`put`](Self::put).
    pub fn write(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        self.store.write(batch, durability)
    }

    /// Makes everything written so far durable.
    ///
    /// # Errors
    /// [`Error::Poisoned`] after a failed write, unless everything acknowledged is durable already;
    /// and I/O errors.
    pub fn sync(&self) -> Result<(), Error> {
        self.store.log.sync()
    }

    /// Adds entries that are sorted by key, without duplicates, as one table. Returns their number.
    ///
    /// For loading: it writes each entry once, while a `put` takes a write of the log, one of a
    /// table and several by merges. All entries appear at once and are durable when it returns;
    /// after an error there are none. Other writes wait until it ends. The iterator may read the
    /// store but must not write to it.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// use koel_store::LsmStore;
    ///
    /// let store = LsmStore::open(folder.path())?;
    /// let squares = (0..1000_u32).map(|n| (format!("{n:04}"), (n * n).to_string()));
    /// assert_eq!(store.ingest(squares)?, 1000);
    /// assert_eq!(store.get(b"0012")?.as_deref(), Some(&b"144"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotSorted`] with the first entry that is out of order, [`Error::TooLong`],
    /// [`Error::Poisoned`], [`Error::ReadOnly`], and I/O errors.
    pub fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64, Error> {
        self.store.ingest(entries)
    }

    /// Returns a view of the store as of this moment.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.store.clone())
    }

    /// Begins a transaction: reads of this moment, and writes that are made together if nothing of
    /// what was read has changed by then.
    #[must_use]
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.store.clone())
    }

    /// Returns the entries of a range of keys as of this moment, in order, from both ends.
    ///
    /// Lazy: it reads blocks as it goes. It borrows nothing, and can outlive the store. While it
    /// lives, the files of the tables that it reads take space on disk, even if they were merged.
    ///
    /// Keys are slices, arrays or vectors, by value. For a pair of bounds of slices, say the type:
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let store = koel_store::LsmStore::open(folder.path())?;
    /// use std::ops::Bound;
    ///
    /// let (from, to) = (Bound::Excluded(&b"a"[..]), Bound::Unbounded);
    /// assert_eq!(store.range::<&[u8]>((from, to))?.count(), 0);
    /// assert_eq!(store.range(*b"a"..*b"z")?.count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Damaged`], and I/O errors. Each entry can be such an error, too. After
    /// [`Error::Damaged`] the iterator normally goes on behind the damaged block; after any other
    /// error it has ended.
    pub fn range<K: AsRef<[u8]>>(&self, keys: impl RangeBounds<K>) -> Result<Range, Error> {
        let (from, to) = bounds(&keys);
        let (state, sequence) = self.store.now();
        self.store.range_in(state, sequence, from, to)
    }

    /// Returns the entries whose keys start with `prefix`, as [`range`](Self::range) does.
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn prefix(&self, prefix: &[u8]) -> Result<Range, Error> {
        let (state, sequence) = self.store.now();
        self.store.prefix_in(state, sequence, prefix)
    }

    /// Returns all entries, as [`range`](Self::range) does.
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn iter(&self) -> Result<Range, Error> {
        self.range::<&[u8]>(..)
    }

    /// Writes everything in memory into tables, durably.
    ///
    /// # Errors
    /// [`Error::Poisoned`] after a failed write, [`Error::ReadOnly`], and I/O errors.
    pub fn flush(&self) -> Result<(), Error> {
        self.store.flush()
    }

    /// Merges everything into one table. Frees the space of overwritten and deleted entries that no
    /// snapshot sees. Reads and writes go on meanwhile. O(bytes).
    ///
    /// # Errors
    /// * [`Error::Damaged`] if a table is damaged. The tables are left as they are. A damaged block
    ///   all keys of which were overwritten is no error; [`LsmStats::damage_skipped`] counts it.
    /// * As [`flush`](Self::flush).
    pub fn compact(&self) -> Result<(), Error> {
        self.store.compact()
    }

    /// Copies the store as it is now into the folder at `path`, which is empty or does not exist:
    /// a backup, or a copy to try something on.
    ///
    /// The copy is an ordinary store. It shares the files of tables by hard links, if both folders
    /// are on one file system; then it takes a moment, and space only as the two differ. Otherwise
    /// it copies them. Reads, writes, flushes and merges go on meanwhile.
    ///
    /// ```
    /// # let folders = tempfile::tempdir()?;
    /// # let (path, copy) = (folders.path().join("store"), folders.path().join("copy"));
    /// use koel_store::{Durability, LsmStore};
    ///
    /// let store = LsmStore::open(&path)?;
    /// store.put(b"ada", b"1815", Durability::None)?;
    /// store.checkpoint(&copy)?;
    /// store.delete(b"ada", Durability::None)?;
    /// assert!(LsmStore::open(&copy)?.contains(b"ada")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotEmpty`], [`Error::Locked`] if the other folder is in use, [`Error::Poisoned`]
    /// after a failed write, and I/O errors. After an error the folder is left empty, if possible.
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        DiskFolder::with(path.as_ref(), false, |folder| self.checkpoint_in(&folder))
    }

    /// Copies the store into a [`Folder`], as [`checkpoint`](Self::checkpoint) does.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    pub fn checkpoint_in(&self, folder: &(dyn Folder + 'static)) -> Result<(), Error> {
        self.store.checkpoint(folder)
    }

    /// Reads and checks everything. O(bytes); reads and writes go on meanwhile. Calls `progress`
    /// with the bytes read so far and in total.
    ///
    /// # Errors
    /// I/O errors. Damage is not an error but part of the report.
    pub fn verify(&self, progress: impl FnMut(u64, u64)) -> Result<VerifyReport, Error> {
        self.store.verify(progress)
    }

    /// Copies what can still be read of the damaged store in the folder at `damaged` into this
    /// store, which should be new. That folder is not changed.
    ///
    /// Everything sound is written again, in order, and then this store is compacted. The report
    /// lists what could not be read. Keys whose last value is unreadable are left out and counted,
    /// if the hashes of their table are readable; otherwise they may have an older value, or be
    /// back after their deletion. O(bytes). Calls `progress` with the number of files read so far
    /// and in total.
    ///
    /// # Errors
    /// [`Error::Locked`] if the damaged store is open, [`Error::NoStore`] if there is no such
    /// folder, [`Error::WrongKind`], [`Error::Newer`], those of a write to this store, and I/O
    /// errors. Damage is not an error but part of the report.
    pub fn salvage(
        &self,
        damaged: impl AsRef<Path>,
        progress: impl FnMut(u64, u64),
    ) -> Result<SalvageReport, Error> {
        DiskFolder::with(damaged.as_ref(), true, |folder| self.salvage_in(&folder, progress))
    }

    /// Salvages the damaged store in a [`Folder`], as [`salvage`](Self::salvage) does.
    ///
    /// # Errors
    /// As [`salvage`](Self::salvage).
    pub fn salvage_in(
        &self,
        damaged: &dyn Folder,
        progress: impl FnMut(u64, u64),
    ) -> Result<SalvageReport, Error> {
        let _lock = FolderLock::take(damaged)?;
        self.store.salvage(damaged, progress)
    }

    /// Returns statistics of this moment.
    #[must_use]
    pub fn stats(&self) -> LsmStats {
        self.store.stats()
    }

    /// Returns what opening the store found.
    #[must_use]
    pub fn open_report(&self) -> &OpenReport {
        &self.store.open_report
    }

    /// Flushes all but a few entries, makes everything durable, and writes down where every file
    /// ends, so that from now on a missing end is an error. Waits for a flush, not for merges.
    /// Dropping the store does the same, and ignores errors.
    ///
    /// Threads that share the store in an `Arc` take it out with `Arc::into_inner`: the last of
    /// them gets it, and closes it.
    ///
    /// # Errors
    /// [`Error::Poisoned`] after a failed write, and I/O errors.
    pub fn close(mut self) -> Result<(), Error> {
        self.stop_threads();
        self.store.close()
    }

    fn stop_threads(&mut self) {
        stop(&self.store);
        self.threads.join();
    }
}

impl Drop for LsmStore {
    fn drop(&mut self) {
        self.stop_threads();
        drop(self.store.close());
    }
}

/// The pause after the first failure of a merge. Each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Starts the threads. [`stop`] ends them.
fn start(store: &Arc<Store>, threads: &mut Threads) -> Result<(), Error> {
    let mut start =
        |name, run: fn(&Store)| threads.start(name, store, |store| &store.log.poison, run);
    start("koel-guide", tend)?;
    if store.log.poison.is_read_only() {
        return Ok(());
    }
    start("koel-flush", flush)?;
    start("koel-merge-1", merge)?;
    start("koel-merge-2", merge)?;
    start("koel-sync", |store| store.log.sync_when_due())?;
    store.threads.flush_due.send(Signal::Work);
    store.threads.merge_due.send(Signal::Work);
    Ok(())
}

/// Tells the threads to end.
fn stop(store: &Store) {
    let threads = &store.threads;
    for wakeup in [&threads.flush_due, &threads.merge_due, &store.log.sync_due, &threads.guide_due]
    {
        wakeup.send(Signal::Stop);
    }
}

fn flush(store: &Store) {
    while store.threads.flush_due.wait() {
        // `stats` has the failure.
        drop(store.flush_sealed());
        store.prepare_log();
    }
}

fn tend(store: &Store) {
    while store.threads.guide_due.wait() {
        // After a failure reads ask more runs. The next change is the next try.
        drop(store.tend_guide());
    }
}

fn merge(store: &Store) {
    let (due, mut pause) = (&store.threads.merge_due, FIRST_PAUSE);
    while due.wait() {
        // After a failed write no merge succeeds.
        while !due.is_stopped() && store.log.poison.check().is_ok() {
            match store.merge_once() {
                Ok(true) => pause = FIRST_PAUSE,
                Ok(false) => break,
                Err(_) => {
                    due.wait_for_stop(pause);
                    pause = (2 * pause).min(LONGEST_PAUSE);
                }
            }
        }
    }
}
