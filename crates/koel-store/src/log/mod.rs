//! The log store: keys and values of any size in an append-only log that a cuckoo table indexes.
//!
//! | file | what it is |
//! |---|---|
//! | `options.rs` | how a store is opened, and how durable a write is |
//! | `store.rs` | what the parts share, and the order of locks |
//! | `segments.rs` | the live segments; locations |
//! | `index.rs` | hash -> locations, in memory |
//! | `batch.rs`, `write.rs` | writing |
//! | `read.rs`, `value.rs`, `iter.rs` | reading: one key, a stream, all keys |
//! | `view.rs` | the store as it was at one moment, while it is written to |
//! | `open.rs`, `reenter.rs`, `hint.rs` | opening: what is believed, what is damage, what was torn |
//! | `damaged.rs` | what is known of a record that cannot be read |
//! | `compact.rs`, `pick.rs` | giving space back |
//! | `background.rs` | the threads that compact, and sync a segment while it fills |
//! | `verify.rs`, `stats.rs` | looking at all of it |
//! | `salvage.rs` | what can be read of a store that does not open |

mod background;
mod batch;
mod compact;
mod damaged;
mod hint;
mod index;
mod iter;
mod open;
mod options;
mod pick;
mod read;
mod reenter;
mod salvage;
mod segments;
mod stats;
mod store;
mod value;
mod verify;
mod view;
mod write;

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::Error;
use crate::kernel::disk::DiskFolder;
use crate::kernel::files::Folder;
use crate::kernel::pool::Pool;

pub use batch::Batch;
pub use compact::Compacted;
pub use iter::{Iter, Keys};
pub use open::{Opened, Torn};
pub use options::{Durability, Options};
pub use salvage::Salvaged;
pub use stats::Stats;
pub use value::ValueReader;
pub use verify::{Damage, Verified};

use pick::Policy;
use store::{Call, Store};

/// A key-value store on the disk: an append-only log, and an index in memory of about 9 bytes per key.
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
/// # What survives
/// After a crash the store holds a prefix of what was written, in order, with batches whole or absent; at least everything up to the last write acknowledged with
/// [`Durability::Synced`], or up to the last [`sync`](Self::sync).
///
/// # What does not go unnoticed
/// Every byte is under a checksum that also covers where it is. Damage is an error of `open`, or of the read that meets it, and names the file and the offset; never a wrong value, never a key
/// silently missing. What a crash tore off is reported by [`opened`](Self::opened).
///
/// # What it does not do
/// Keys have no order: there are no ranges. One process at a time has it open, or several for reading alone ([`Options::read_only`]). Keys and values of 0 bytes to 4 GiB.
///
/// # Cost
/// `get` of a present key: one read of a file, of an absent one: none, but for less than one in 100,000. `put`: one write, of a value above 64 KiB one for each 256 KiB, and a read where a key is overwritten. All methods take
/// `&self`; reads wait for nobody, writes for one another. A write that was not acknowledged yet may already be seen.
#[derive(Debug)]
pub struct LogStore {
    store: Arc<Store>,
    threads: Vec<JoinHandle<()>>,
    /// Held until the end.
    _lock: Guard,
}

/// The lock of the folder.
struct Guard {
    _lock: Box<dyn Send + Sync>,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Guard")
    }
}

fn lock_of(folder: &dyn Folder) -> Result<Guard, Error> {
    let lock = folder.lock().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Error::Locked,
        _ => Error::io("lock", "the folder")(error),
    })?;
    Ok(Guard { _lock: lock })
}

impl LogStore {
    /// Opens the store in the folder at `path` with the usual [`Options`], or creates it.
    ///
    /// # Errors
    /// [`Error::Locked`] where it is open already, [`Error::Damaged`] where its files are not as they were written, [`Error::OldManifest`] or [`Error::OtherStore`] where only some of them come from a copy,
    /// those of the system.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Options::default().open(path)
    }

    fn open_in(folder: Arc<dyn Folder>, options: &Options) -> Result<Self, Error> {
        let folder: Arc<dyn Folder> = Arc::new(Pool::new(folder, options.open_files));
        let lock = lock_of(&*folder)?;
        let store = Arc::new(Store::open(folder, options)?);
        let mut opened = Self { store, threads: Vec::new(), _lock: lock };
        opened.start_threads(options).map_err(Error::io("start a thread for", "the folder"))?;
        Ok(opened)
    }

    fn start_threads(&mut self, options: &Options) -> io::Result<()> {
        let store = &self.store;
        if options.read_only {
            return Ok(());
        }
        if options.background {
            self.threads.push(background::compact(store.clone(), options.compaction_rate)?);
        }
        if store.sync_behind < store.segment_bytes {
            self.threads.push(background::sync(store.clone())?);
        }
        Ok(())
    }

    /// The value of `key`. One read of a file if there is one, none if not.
    ///
    /// # Errors
    /// [`Error::Damaged`] where the record is not as it was written, those of the system.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.store.get(key)
    }

    /// The value of `key` as a stream, for values that should not be in memory as a whole.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_reader(&self, key: &[u8]) -> Result<Option<ValueReader>, Error> {
        self.store.reader(key)
    }

    /// Whether `key` has a value. As `get`, it reads the record, since only the key in there is proof.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn contains(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.store.locate(key, self.store.hash(key))?.is_some())
    }

    /// Gives `key` a value, in place of the one it has.
    ///
    /// # Errors
    /// [`Error::Poisoned`] once a write has failed, [`Error::ReadOnly`], [`Error::TooLong`], [`Error::Damaged`] where the record it replaces is, and its segment has no hint to tell whose it was; those of the system.
    pub fn put(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<(), Error> {
        self.store.put(key, value, durability)
    }

    /// Gives `key` the value of `len` bytes that `value` yields, in constant memory. Other writes wait until it has been read, so spool what comes slowly. A reader that panics
    /// in the middle of a long value ends all writing until the store is opened again, as a write that fails does.
    ///
    /// # Errors
    /// [`Error::Source`] where the reader fails or ends too early, and then nothing was written; otherwise as [`put`](Self::put).
    pub fn put_reader(
        &self,
        key: &[u8],
        len: u64,
        mut value: impl Read,
        durability: Durability,
    ) -> Result<(), Error> {
        self.store.write_from(key, len, &mut value, durability)
    }

    /// Removes `key`: whether it had a value.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&self, key: &[u8], durability: Durability) -> Result<bool, Error> {
        self.store.delete(key, durability)
    }

    /// Carries out a batch: all of it or, after a crash, nothing.
    ///
    /// # Errors
    /// [`Error::BatchTooLarge`] for several records that do not fit into one segment together; otherwise as [`put`](Self::put).
    pub fn write(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        self.store.write(batch, durability)
    }

    /// Makes everything written so far durable.
    ///
    /// # Errors
    /// [`Error::Poisoned`] once a write has failed, unless everything that was acknowledged is durable already; those of the system.
    pub fn sync(&self) -> Result<(), Error> {
        self.store.sync()
    }

    /// All keys and values of this moment, in the order in which they were written.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(&self.store)
    }

    /// All keys of this moment, as [`iter`](Self::iter) without the values.
    #[must_use]
    pub fn keys(&self) -> Keys<'_> {
        Keys::new(&self.store)
    }

    /// Gives back the space of what was overwritten and deleted: every segment of which a twentieth or more would go is rewritten. Gives back memory of the index too, where less than half of
    /// what it has grown to is in use. Reads and writes go on meanwhile.
    ///
    /// # Errors
    /// [`Error::Damaged`] where a segment to be compacted is, when all others have been; it stays as it is, and is not tried again before the store is opened anew.
    /// [`Error::Poisoned`] once a write has failed, those of the system. A file that could not be removed is removed when the store is opened.
    pub fn compact(&self) -> Result<Compacted, Error> {
        self.compact_and_tell(|_| ())
    }

    /// [`compact`](Self::compact); `copied` is told of the bytes of each record that is copied.
    pub(crate) fn compact_and_tell(&self, mut copied: impl FnMut(u64)) -> Result<Compacted, Error> {
        self.store.seal_for_compaction()?;
        self.store.compact(Policy::THOROUGH, &mut |_, bytes| {
            if bytes > 0 {
                copied(bytes);
            }
            true
        })
    }

    /// Reads everything, and checks all there is to check. O(bytes); reads and writes go on meanwhile. `progress` is told how many bytes were read, of how many.
    ///
    /// # Errors
    /// Those of the system; damage is not an error here but what is reported.
    pub fn verify(&self, progress: impl FnMut(u64, u64)) -> Result<Verified, Error> {
        self.store.verify(progress)
    }

    /// Takes over what can still be read of the damaged store in the folder at `damaged`, in which nothing is changed: every sound record is carried out here once more, in the order of the log, and then this store, which should be
    /// a new one, is compacted. What cannot be read is listed. The keys that were there are left out and counted where the hint of their segment tells which they are; without a hint they may have an older value, or be back where they had
    /// been deleted. Where the damaged store had files of an archive, [`Archive::mend`](crate::content::Archive::mend) comes next. O(bytes). `progress` is told how many bytes were read, of how many.
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
    /// let salvaged = store.salvage(&old, |_, _| ())?;
    /// assert_eq!(salvaged.damages[0].file, "MANIFEST");
    /// assert_eq!(store.get(b"ada")?.as_deref(), Some(&b"1815"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Locked`] where the damaged store is open, [`Error::Newer`], those of a write to this one, those of the system. Damage is not an error here but what is reported.
    pub fn salvage(
        &self,
        damaged: impl AsRef<Path>,
        progress: impl FnMut(u64, u64),
    ) -> Result<Salvaged, Error> {
        self.salvage_in(&DiskFolder::only_to_read(damaged.as_ref()), progress)
    }

    /// [`salvage`](Self::salvage) of a store in a folder of any kind.
    ///
    /// # Errors
    /// As [`salvage`](Self::salvage).
    pub fn salvage_in(
        &self,
        damaged: &dyn Folder,
        progress: impl FnMut(u64, u64),
    ) -> Result<Salvaged, Error> {
        let _lock = lock_of(damaged)?;
        self.store.salvage(damaged, progress)
    }

    /// Figures of this moment. O(segments).
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.store.stats()
    }

    /// What opening the store found.
    #[must_use]
    pub fn opened(&self) -> &Opened {
        &self.store.opened
    }

    /// Makes everything durable, and writes down where every file ends, so that from now on not even a missing end goes unnoticed. Dropping the store
    /// does the same, and keeps errors to itself.
    ///
    /// # Errors
    /// [`Error::Poisoned`] once a write has failed, those of the system.
    pub fn close(mut self) -> Result<(), Error> {
        self.end_threads();
        self.store.finish()
    }

    fn end_threads(&mut self) {
        self.store.filled.ring(Call::Stop);
        self.store.unsynced.ring(Call::Stop);
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
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
        self.end_threads();
        drop(self.store.finish());
    }
}

#[cfg(test)]
mod tests;
