//! `koel store tour`: a demonstration of a store on a real file that checks every promise.
//!
//! The file is the running program, unless another is named: it always exists, and it has several
//! megabytes. All numbers are counted or measured in the same run. A broken promise makes the exit
//! code 2, so the tour is also a test.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use koel_store::content::{Archive, Chunking};
use koel_store::{Durability, Error, LogStore, Options};

use super::tour_ordered;
use crate::cmd::tour::story::{self, Story};
use crate::failure::{Failure, Outcome};
use crate::quantity::{bytes, grouped, three_digits, to_u64};

/// The length of a small record in bytes.
const RECORD: usize = 64;
const ABSENT: u64 = 200_000;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  koel store tour
  koel store tour /usr/lib/libLLVM.so
  koel store tour --ordered

The tour takes a few seconds. It uses four times the size of the file in TMPDIR, and frees it.

Exit codes: 0 every promise was kept, 2 one was broken.")]
pub(crate) struct Args {
    /// File to use instead of this program
    file: Option<PathBuf>,

    /// Show an ordered store, with pieces of the file as values
    #[arg(long)]
    ordered: bool,
}

/// A running tour: its text, its temporary folder, and the bytes of the file.
struct Tour {
    story: Story,
    folder: tempfile::TempDir,
    original: Vec<u8>,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let path = match &args.file {
        Some(file) => file.clone(),
        None => std::env::current_exe()
            .map_err(|error| Failure::read(Path::new("this program"), error))?,
    };
    if args.ordered {
        return tour_ordered::run(&path);
    }
    let original = fs::read(&path).map_err(|error| Failure::read(&path, error))?;
    let folder =
        tempfile::tempdir().map_err(|error| Failure::write(&std::env::temp_dir(), error))?;
    let mut tour = Tour { story: Story::default(), folder, original };
    tour.story.chapter(
        "A real file",
        &format!("{}: {} bytes.", path.display(), grouped(tour.original.len() as u64)),
    )?;
    tour.files()?;
    let store = tour.records()?;
    tour.lookups(&store)?;
    let store = tour.delete_and_compact(store)?;
    tour.reopen(store)?;
    tour.flip()?;
    tour.story.end(
        "Try it with your own files:\n\n   \
         koel store import FILE --db DIR && koel store ls --db DIR",
    )
}

impl Tour {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn failure(&self, error: impl Into<koel_store::content::ArchiveError>) -> Failure {
        let db = self.folder.path().to_owned();
        Failure::Store { db, error: Box::new(error.into()) }
    }

    fn open(&self, name: &str) -> Result<LogStore, Failure> {
        let options = Options::default().segment_bytes(8 << 20).background_compaction(false);
        options.open(self.path(name)).map_err(|error| self.failure(error))
    }

    /// Imports the file twice and exports it.
    fn files(&mut self) -> Result<(), Failure> {
        let length = self.original.len() as u64;
        self.story.chapter(
            "Import and export",
            "The file is imported: split into chunks of 16 KiB, each stored under its BLAKE3 hash. \
             Equal chunks are stored once.",
        )?;
        let archive = Archive::new(self.open("files")?);
        let started = Instant::now();
        let first = archive.import("original", &self.original[..], Chunking::default());
        let first = first.map_err(|error| self.failure(error))?;
        let once = archive.store().stats().log_bytes;
        self.story.say(&format!(
            "{} chunks, {} of them distinct, were stored in {}. They take {} on disk.",
            grouped(first.chunks),
            grouped(first.new_chunks),
            story::time(started),
            bytes(once)
        ))?;
        self.story.promise(
            once <= first.new_bytes + first.new_bytes / 50 + 4096,
            "a store takes at most 2 % more than the distinct chunks",
        )?;
        let again = archive.import("again", &self.original[..], Chunking::default());
        let again = again.map_err(|error| self.failure(error))?;
        let added = archive.store().stats().log_bytes - once;
        self.story.say(&format!(
            "Imported again under another name, the file takes {} more.",
            bytes(added)
        ))?;
        self.story.promise(
            again.new_chunks == 0 && added <= length / 200 + 4096,
            "a chunk that is in the store is not stored again",
        )?;
        let (out, started) = (self.path("exported"), Instant::now());
        archive.export_file("again", &out).map_err(|error| self.failure(error))?;
        self.story.say(&format!("Exported in {}.", story::time(started)))?;
        let copy = fs::read(&out).map_err(|error| Failure::read(&out, error))?;
        self.story.promise(copy == self.original, "the exported file equals the imported one")
    }

    /// Stores the pieces of the file as small records with their numbers as keys.
    fn records(&mut self) -> Result<LogStore, Failure> {
        self.story.chapter(
            "Small records",
            &format!(
                "The file is split into pieces of {RECORD} bytes. Each is stored as a record with \
                 its number as the key."
            ),
        )?;
        let (store, started) = (self.open("records")?, Instant::now());
        for (number, record) in (0_u64..).zip(self.original.chunks(RECORD)) {
            let put = store.put(&number.to_le_bytes(), record, Durability::None);
            put.map_err(|error| self.failure(error))?;
        }
        store.sync().map_err(|error| self.failure(error))?;
        let (stats, count) = (store.stats(), self.count());
        self.story.say(&format!(
            "{} records were stored in {}. They take {} on disk. The index takes {} of memory, \
             {:.1} bytes per record.",
            grouped(count),
            story::time(started),
            bytes(stats.log_bytes),
            bytes(stats.index_bytes),
            stats.index_bytes as f64 / count as f64
        ))?;
        self.story.promise(stats.keys == count, "every record is counted once")?;
        Ok(store)
    }

    fn count(&self) -> u64 {
        self.original.len().div_ceil(RECORD) as u64
    }

    /// Looks up every record and many absent keys, and counts the reads.
    fn lookups(&mut self, store: &LogStore) -> Result<(), Failure> {
        let (count, started) = (self.count(), Instant::now());
        let before = store.stats().reads;
        let correct = self.correct(store, |_| true)?;
        let reads = store.stats().reads - before;
        let each = started.elapsed().as_secs_f64() * 1e6 / count as f64;
        self.story.say(&format!(
            "Every record is looked up: {} reads for {} lookups, {} us per lookup.",
            grouped(reads),
            grouped(count),
            three_digits(each)
        ))?;
        self.story.promise(correct == count, "every record is found with the correct value")?;
        self.story.promise(
            reads <= count + to_u64(count as f64 * 1e-3) + 2,
            "a lookup of a record costs one read",
        )?;
        let (before, started) = (store.stats().reads, Instant::now());
        for number in count..count + ABSENT {
            let found = store.contains(&number.to_le_bytes());
            if found.map_err(|error| self.failure(error))? {
                return self.story.promise(false, "an absent key is not found");
            }
        }
        let reads = store.stats().reads - before;
        self.story.say(&format!(
            "Then {} absent keys are looked up: {} reads, {} us per lookup.",
            grouped(ABSENT),
            grouped(reads),
            three_digits(started.elapsed().as_secs_f64() * 1e6 / ABSENT as f64)
        ))?;
        // At the promised rate, 2 are expected, and more than 8 occur in less than 1 of 1000 runs.
        self.story.promise(reads <= 8, "at most 1 in 100,000 absent keys costs a read")
    }

    /// The number of records that are correct: present with their value, or absent.
    fn correct(&self, store: &LogStore, present: impl Fn(u64) -> bool) -> Result<u64, Failure> {
        let mut correct = 0;
        for (number, record) in (0_u64..).zip(self.original.chunks(RECORD)) {
            let found = store.get(&number.to_le_bytes()).map_err(|error| self.failure(error))?;
            let expected = present(number).then_some(record);
            correct += u64::from(found.as_deref() == expected);
        }
        Ok(correct)
    }

    /// Deletes half of the records, compacts the store, and stores the records again.
    fn delete_and_compact(&mut self, store: LogStore) -> Result<LogStore, Failure> {
        let count = self.count();
        self.story.chapter("Deletion and compaction", "Every second record is deleted.")?;
        for number in (1..count).step_by(2) {
            let deleted = store.delete(&number.to_le_bytes(), Durability::None);
            deleted.map_err(|error| self.failure(error))?;
        }
        let correct = self.correct(&store, |number| number % 2 == 0)?;
        let before = store.stats().log_bytes;
        store.compact().map_err(|error| self.failure(error))?;
        let after = store.stats().log_bytes;
        self.story.say(&format!(
            "{} records are left. Compaction reduced the log from {} to {}.",
            grouped(store.stats().keys),
            bytes(before),
            bytes(after)
        ))?;
        self.story
            .promise(correct == count, "deleted records are gone, and all others are there")?;
        let correct = self.correct(&store, |number| number % 2 == 0)?;
        self.story.promise(
            correct == count && after < before,
            "compaction frees space and changes no record",
        )?;
        for (number, record) in (0_u64..).zip(self.original.chunks(RECORD)).skip(1).step_by(2) {
            let put = store.put(&number.to_le_bytes(), record, Durability::None);
            put.map_err(|error| self.failure(error))?;
        }
        self.story.say(
            "Then the deleted records are stored again, and the file is joined from its records.",
        )?;
        let copy = self.joined_records(&store).map_err(|error| self.failure(error))?;
        self.story.promise(copy == self.original, "the result equals the file, byte for byte")?;
        Ok(store)
    }

    fn joined_records(&self, store: &LogStore) -> Result<Vec<u8>, Error> {
        let mut copy = Vec::with_capacity(self.original.len());
        for number in 0..self.count() {
            copy.extend(store.get(&number.to_le_bytes())?.unwrap_or_default());
        }
        Ok(copy)
    }

    fn reopen(&mut self, store: LogStore) -> Result<(), Failure> {
        self.story.chapter("Reopening", "The store is closed and opened again.")?;
        store.close().map_err(|error| self.failure(error))?;
        let started = Instant::now();
        let store = self.open("records")?;
        self.story.say(&format!(
            "It opened in {} with {} records.",
            story::time(started),
            grouped(store.stats().keys)
        ))?;
        let correct = self.correct(&store, |_| true)?;
        self.story.promise(correct == self.count(), "every record is there after reopening")?;
        store.close().map_err(|error| self.failure(error))
    }

    /// Flips a bit of the largest file and verifies the store.
    fn flip(&mut self) -> Result<(), Failure> {
        self.story.chapter(
            "A flipped bit",
            "Disks can corrupt data. One bit in the middle of the store's largest file is flipped, \
             and the store is verified.",
        )?;
        let path =
            self.largest("records").map_err(|error| Failure::read(self.folder.path(), error))?;
        let mut damaged = fs::read(&path).map_err(|error| Failure::read(&path, error))?;
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        fs::write(&path, &damaged).map_err(|error| Failure::write(&path, error))?;
        let store = self.open("records")?;
        let verified = store.verify(|_, _| ()).map_err(|error| self.failure(error))?;
        let damage = verified.damages.first().map(ToString::to_string);
        self.story.say(&format!("It reports: {}.", damage.as_deref().unwrap_or("no damage")))?;
        self.story.promise(verified.damages.len() == 1, "a flipped bit is found and located")
    }

    fn largest(&self, name: &str) -> std::io::Result<PathBuf> {
        let mut largest = (0, PathBuf::new());
        for entry in fs::read_dir(self.path(name))? {
            let entry = entry?;
            largest = largest.max((entry.metadata()?.len(), entry.path()));
        }
        Ok(largest.1)
    }
}
