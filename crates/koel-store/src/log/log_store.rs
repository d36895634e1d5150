//! The public type of the log store: its lock, its threads, and its methods.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::compact::{self, CompactReport};
use super::iter::{Iter, Keys};
use super::options::LogOptions;
use super::pick::Policy;
use super::read::ValueReader;
use super::store::{LogStats, Store};
use super::write::Mismatch;
use crate::Error;
use crate::kernel::access::FolderLock;
use crate::kernel::batch::Batch;
use crate::kernel::disk::DiskFolder;
use crate::kernel::files::Folder;
use crate::kernel::log_end::{Durability, LogPosition};
use crate::kernel::poison::Poison;
use crate::kernel::pool::Pool;
use crate::kernel::recovery::OpenReport;
use crate::kernel::salvage::{SalvageReport, VerifyReport};
use crate::kernel::segment::FIRST_RECORD;
use crate::kernel::store_files::StoreKind;
use crate::kernel::threads::{Signal, Threads};

/// A crash-safe key-value store: an append-only log on disk, and an index in memory of about 9
/// bytes per key.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// use koel_store::{Batch, Durability, LogStore};
///
/// let store = LogStore::open(folder.path())?;
/// store.put(b"ada", b"1815", Durability::Synced)?;
/// assert_eq!(store.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
///
/// let mut batch = Batch::new();
/// batch.put(b"grace", b"1906")?.delete(b"ada")?;
/// store.write(&batch, Durability::None)?;
/// assert!(!store.contains(b"ada")?);
/// store.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Crash safety
/// After a crash the store has a prefix of its writes, in order, and each batch completely or not
/// at all. The prefix includes every write up to the last one acknowledged with
/// [`Durability::Synced`], and up to the last [`sync`](Self::sync).
///
/// # Damage
/// A checksum covers every byte and its position. Damage is an error of `open` or of the read that
/// meets it, with the file and the offset. It never leads to a wrong value, nor to a key that is
/// missing without an error, with one exception: a log that was cut between two records at its end
/// looks as after a crash before the later ones, unless the store was closed.
/// [`open_report`](Self::open_report) tells what a crash tore off.
///
/// # Limits
/// Keys are not ordered, so there are no range queries. Several processes can have a store open
/// only if all are read-only ([`LogOptions::read_only`]). Keys and values have 0 bytes to 4 GiB.
///
/// # Cost
/// * `get` of a present key: one read of a file, two for a record that is much longer than the
///   average, and one more for each 64 KiB of a longer value. `get` of an absent key: none, except
///   in less than 1 of 100,000 cases.
/// * `put`: one write, or one for each 256 KiB of a value above 64 KiB. An overwrite also takes a
///   read.
/// * All methods take `&self`. Reads of keys never wait for writes; an iteration begins after the
///   write under way, and writes wait for each other. Readers may see a write before it is
///   acknowledged.
#[derive(Debug)]
pub struct LogStore {
    store: Arc<Store>,
    threads: Threads,
    /// Held until the store is dropped.
    _lock: FolderLock,
}

impl LogOptions {
    /// Opens the store in the folder at `path`, or creates it.
    ///
    /// # Errors
    /// * [`Error::Locked`] if the store is open already.
    /// * [`Error::NoStore`] if there is none and it is to be opened read-only.
    /// * [`Error::Damaged`] if its files are not as they were written.
    /// * [`Error::OldManifest`] or [`Error::OtherStore`] if some of its files come from elsewhere.
    /// * [`Error::OutOfMemory`] if there is no memory for the index, and I/O errors.
    pub fn open(self, path: impl AsRef<Path>) -> Result<LogStore, Error> {
        let read_only = self.read_only;
        DiskFolder::with(path.as_ref(), read_only, |folder| self.open_in(Arc::new(folder)))
    }

    /// Opens the store in a [`Folder`].
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(self, folder: Arc<dyn Folder>) -> Result<LogStore, Error> {
        let folder: Arc<dyn Folder> = Arc::new(Pool::new(folder, self.max_open_files));
        let lock = FolderLock::take(&*folder)?;
        let store = Arc::new(Store::open(folder, &self)?);
        let mut opened = LogStore { store, threads: Threads::default(), _lock: lock };
        opened.start_threads(&self)?;
        opened.open_report().tell(StoreKind::Log);
        Ok(opened)
    }
}

impl LogStore {
    /// Opens the store in the folder at `path` with default [`LogOptions`], or creates it.
    ///
    /// # Errors
    /// As [`LogOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        LogOptions::default().open(path)
    }

    fn start_threads(&mut self, options: &LogOptions) -> Result<(), Error> {
        let Self { store, threads, .. } = self;
        let poison: fn(&Store) -> &Poison = |store| &store.log.poison;
        if options.read_only {
            return Ok(());
        }
        if options.background {
            let rate = options.compaction_rate;
            let compact = move |store: &Store| compact::compact_when_due(store, rate);
            threads.start("koel-compaction", store, poison, compact)?;
        }
        if options.bytes_per_sync < store.segment_bytes {
            threads.start("koel-sync", store, poison, |store| store.log.sync_when_due())?;
        }
        Ok(())
    }

    /// Returns the value of `key`: [what it costs](Self#cost).
    ///
    /// # Errors
    /// [`Error::Damaged`] if the record is not as it was written, and I/O errors.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.store.get(key)
    }

    /// Returns the value of `key` as a stream, for values that should not be in memory as a whole.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_reader(&self, key: &[u8]) -> Result<Option<ValueReader>, Error> {
        self.store.reader(key)
    }

    /// Returns whether `key` has a value. Like `get` it reads the record, since only the key in
    /// there is proof.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn contains(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.store.locate(key, self.store.hash(key))?.is_some())
    }

    /// Returns whether a key may have a value, without reading: one in 100,000 absent keys may. A
    /// record that this process knows to be damaged does not count.
    #[cfg(unix)]
    pub(crate) fn may_have(&self, key: &[u8]) -> bool {
        self.store.may_have(key)
    }

    /// Returns whether damage was met since the store was opened.
    pub(crate) fn has_known_damage(&self) -> bool {
        self.store.segments.all().iter().any(|segment| segment.damage().is_some())
    }

    /// Returns the keys of live records that are known to be damaged, as far as they are readable.
    pub(crate) fn keys_of_damaged(&self) -> Result<Vec<Vec<u8>>, Error> {
        self.store.keys_of_damaged()
    }

    /// Sets the value of `key`.
    ///
    /// # Errors
    /// * [`Error::InDoubt`] if the write was made but perhaps not durably. After any other error it
    ///   was not made.
    /// * [`Error::Poisoned`] after a failed write, [`Error::ReadOnly`], [`Error::TooLong`].
    /// * [`Error::Damaged`] if the record that it replaces is damaged, and no hint tells whose it
    ///   was.
    /// * I/O errors.
    pub fn put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<(), Error> {
        self.store.put(key, value, durability)
    }

    /// Sets the value of `key` to the `len` bytes that `value` yields, in constant memory.
    ///
    /// Other writes wait until the value has been read, so buffer a slow source first. If the
    /// reader panics in the middle of a long value, the store takes no more writes until it is
    /// opened again, as after a failed write.
    ///
    /// # Errors
    /// [`Error::Source`] if the reader fails or ends early; then nothing was written. Otherwise as
    /// [`put`](Self::put).
    pub fn put_reader(
        &self,
        key: &[u8],
        len: u64,
        mut value: impl Read,
        durability: Durability,
    ) -> Result<(), Error> {
        self.store.write_from(key, len, &mut value, durability)
    }

    /// Deletes `key`. Returns whether it had a value.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&self, key: &[u8], durability: Durability) -> Result<bool, Error> {
        self.store.delete(key, durability)
    }

    /// Sets the value of `key` to `new`, if it is `expected`; `None` stands for an absent key. So
    /// `new` deletes it, or creates it if none was expected. No other write comes between.
    ///
    /// Reads the value under the lock of writers. If it is not the expected one, nothing was
    /// written, and [`Mismatch`] has it: compute a new value from that, and try again.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// use koel_store::{Durability, LogStore};
    ///
    /// let store = LogStore::open(folder.path())?;
    /// let exchange =
    ///     |expected, new| store.compare_exchange(b"job", expected, new, Durability::None);
    /// assert!(exchange(None, Some(b"worker 1"))?.is_ok());
    /// let other = exchange(None, Some(b"worker 2"))?.unwrap_err();
    /// assert_eq!(other.current.as_deref(), Some(&b"worker 1"[..]));
    /// assert!(exchange(Some(b"worker 1"), None)?.is_ok());
    /// assert!(!store.contains(b"job")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The value in a mismatch is what a `get` would return: it may not be durable yet.
    ///
    /// # Errors
    /// As [`put`](Self::put). [`Error::Damaged`] if the present value cannot be read, whatever a
    /// hint tells; `put` and `delete` replace it without reading it.
    pub fn compare_exchange(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
        durability: Durability,
    ) -> Result<Result<(), Mismatch>, Error> {
        self.store.compare_exchange(key, expected, new, durability)
    }

    /// Applies a batch. After a crash the store has all of it or nothing.
    ///
    /// # Errors
    /// [`Error::BatchTooLarge`] if several records do not fit into one segment together. Otherwise
    /// as [`put`](Self::put).
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

    /// Returns an iterator over all keys and values of this moment, in the order in which they were
    /// written. Waits for a write that is under way.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(&self.store)
    }

    /// Returns an iterator over all keys of this moment, in the order in which they were written.
    #[must_use]
    pub fn keys(&self) -> Keys<'_> {
        Keys::new(&self.store)
    }

    /// Frees the space of overwritten and deleted records: rewrites every segment of which 5 % or
    /// more is reclaimable. Also frees memory of the index, if less than half of it is in use.
    /// Reads and writes go on meanwhile. Segments without a live record come first: to remove them
    /// needs no space, so it works on a full disk.
    ///
    /// Segments that are known to be damaged are rewritten without the damaged bytes if nothing
    /// needs these: the records there were overwritten or deleted. Damage is known if a read, an
    /// iterator or [`verify`](Self::verify) of this store met it.
    ///
    /// # Errors
    /// * [`Error::Damaged`] if a damaged record is still needed, or it is not known whether it is,
    ///   after all other segments were compacted. That segment is left as it is.
    /// * [`Error::Poisoned`] after a failed write, and I/O errors. A file that could not be removed
    ///   is removed when the store is next opened.
    pub fn compact(&self) -> Result<CompactReport, Error> {
        self.compact_with_progress(|_| ())
    }

    /// Compacts as [`compact`](Self::compact) does. Calls `copied` with the bytes of each copied
    /// record.
    pub(crate) fn compact_with_progress(
        &self,
        mut copied: impl FnMut(u64),
    ) -> Result<CompactReport, Error> {
        let mut report = self.remove_dead()?;
        self.store.seal_for_compaction()?;
        report += self.store.compact(Policy::THOROUGH, &mut |_, bytes| {
            if bytes > 0 {
                copied(bytes);
            }
            true
        })?;
        Ok(report)
    }

    /// Removes the segments without a live record. That needs no space, so it comes before
    /// everything that does.
    pub(crate) fn remove_dead(&self) -> Result<CompactReport, Error> {
        self.store.remove_dead()
    }

    /// Copies the store as it is now into the folder at `path`, which is empty or does not exist:
    /// a backup, or a copy to try something on.
    ///
    /// The copy is an ordinary store with every write that was acknowledged before the call. All of
    /// it is durable. It shares the files of full segments by hard links, if both folders are on
    /// one file system; then it takes space only for the last segment, and as the two differ.
    /// Otherwise it copies them. Reads, writes and compaction go on meanwhile.
    ///
    /// ```
    /// # let folders = tempfile::tempdir()?;
    /// # let (path, copy) = (folders.path().join("store"), folders.path().join("copy"));
    /// use koel_store::{Durability, LogStore};
    ///
    /// let store = LogStore::open(&path)?;
    /// store.put(b"ada", b"1815", Durability::None)?;
    /// store.checkpoint(&copy)?;
    /// store.delete(b"ada", Durability::None)?;
    /// assert!(LogStore::open(&copy)?.contains(b"ada")?);
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
    /// Every sound record is applied again, in log order, and then this store is compacted. The
    /// report lists what could not be read. Keys whose last value is unreadable are left out and
    /// counted, if the hint of the segment tells which they are. Without a hint they may have an
    /// older value, or be back after their deletion.
    ///
    /// If the damaged store held an archive, call
    /// [`Archive::repair`](crate::content::Archive::repair) next. O(bytes). Calls `progress` with
    /// the bytes read so far and in total.
    ///
    /// ```
    /// # let folders = tempfile::tempdir()?;
    /// # let (old, new) = (folders.path().join("old"), folders.path().join("new"));
    /// use koel_store::{Durability, LogStore};
    ///
    /// let store = LogStore::open(&old)?;
    /// store.put(b"ada", b"1815", Durability::Synced)?;
    /// store.close()?;
    /// std::fs::remove_file(old.join("MANIFEST"))?;
    /// assert!(LogStore::open(&old).is_err());
    ///
    /// let store = LogStore::open(&new)?;
    /// let report = store.salvage(&old, |_, _| ())?;
    /// assert_eq!(report.damages[0].file, "MANIFEST");
    /// assert_eq!(store.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Locked`] if the damaged store is open, [`Error::NoStore`] if there is no such
    /// folder, [`Error::Newer`], those of a write to this store, and I/O errors. Damage is not an
    /// error but part of the report.
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

    /// Returns statistics of this moment. O(segments).
    #[must_use]
    pub fn stats(&self) -> LogStats {
        self.store.stats()
    }

    /// Returns what opening the store found.
    #[must_use]
    pub fn open_report(&self) -> &OpenReport {
        &self.store.open_report
    }

    /// Makes everything durable, and writes down where every file ends, so that from now on a
    /// missing end is an error. If only the latter fails, as on a full disk, that is no error: all
    /// is durable then. Dropping the store does the same, and ignores errors.
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

    /// Returns the end of the log.
    pub(crate) fn end(&self) -> LogPosition {
        self.store.log.end().position()
    }

    /// Closes the store without the records after this end of the log, as a crash could have left
    /// it. Of segments that were filled since, the records stay: a later segment says that they
    /// were durable.
    pub(crate) fn close_at(mut self, end: LogPosition) -> Result<(), Error> {
        self.stop_threads();
        // Nothing is written any more, not even when this is dropped.
        drop(self.store.log.poison.set(Error::ReadOnly));
        let Some(active) = self.store.log.end().file.clone() else { return Ok(()) };
        let is_older = active.number == end.segment;
        let offset = if is_older { end.offset } else { FIRST_RECORD };
        if active.end() > offset {
            active.truncate(offset)?;
            active.sync()?;
        }
        Ok(())
    }

    fn stop_threads(&mut self) {
        self.store.segment_filled.send(Signal::Stop);
        self.store.log.sync_due.send(Signal::Stop);
        self.threads.join();
    }

    #[cfg(test)]
    pub(super) fn store(&self) -> &Arc<Store> {
        &self.store
    }
}

impl<'a> IntoIterator for &'a LogStore {
    type Item = Result<(Vec<u8>, Vec<u8>), Error>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl Drop for LogStore {
    fn drop(&mut self) {
        self.stop_threads();
        drop(self.store.close());
    }
}
