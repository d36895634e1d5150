//! `koel store tour`: a real file through a store, told as a story, every promise checked on the way.
//!
//! The file is the running program unless one is named: it is there wherever the command is, it is megabytes large, and half of it does not
//! compress. All numbers are counted or measured in that run. A promise that does not hold makes the exit code 2, so the tour is a test too.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use koel_store::content::{Archive, Chunking};
use koel_store::{Durability, Error, LogStore, Options};

use crate::cmd::tour::story::{self, Story};
use crate::failure::{Failure, Outcome};
use crate::quantity::{bytes, grouped, three_digits, to_u64};

/// Bytes of a record in the second half.
const RECORD: usize = 64;
const ABSENT: u64 = 200_000;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Takes a few seconds and as much room in TMPDIR as four times the file, and removes it all. Exit codes: 0 every
promise held, 2 one did not.

Examples:
  koel store tour
  koel store tour /usr/lib/libLLVM.so")]
pub(crate) struct Args {
    /// A file to take instead of this program
    file: Option<PathBuf>,
}

/// The folder of the tour, and the file that goes through it.
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
    tour.questions(&store)?;
    let store = tour.forget_and_remember(store)?;
    tour.reopen(store)?;
    tour.flip()?;
    tour.story.end(
        "Now with files of your own:\n\n   koel store import FILE --db DIR && koel store ls --db DIR",
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

    /// In, in again, and out.
    fn files(&mut self) -> Result<(), Failure> {
        let length = self.original.len() as u64;
        self.story.chapter(
            "In and out",
            "Import it: cut into chunks of 16 KiB, each stored under its BLAKE3 hash, equal ones once.",
        )?;
        let archive = Archive::new(self.open("files")?);
        let started = Instant::now();
        let first = archive.import("original", &self.original[..], Chunking::default());
        let first = first.map_err(|error| self.failure(error))?;
        let once = archive.store().stats().log_bytes;
        self.story.say(&format!(
            "{} chunks, {} of them different, in {}; {} on disk.",
            grouped(first.chunks),
            grouped(first.new_chunks),
            story::time(started),
            bytes(once)
        ))?;
        self.story.promise(
            once <= first.new_bytes + first.new_bytes / 50 + 4096,
            "a store takes at most 2 % more than the different bytes",
        )?;
        let again = archive.import("again", &self.original[..], Chunking::default());
        let again = again.map_err(|error| self.failure(error))?;
        let added = archive.store().stats().log_bytes - once;
        self.story.say(&format!("Imported again under another name: {} more.", bytes(added)))?;
        self.story.promise(
            again.new_chunks == 0 && added <= length / 200 + 4096,
            "what is there already is not stored again",
        )?;
        let (out, started) = (self.path("exported"), Instant::now());
        archive.export_file("again", &out).map_err(|error| self.failure(error))?;
        self.story.say(&format!("Exported in {}.", story::time(started)))?;
        let copy = fs::read(&out).map_err(|error| Failure::read(&out, error))?;
        self.story.promise(copy == self.original, "what comes out is what went in, byte for byte")
    }

    /// The file as small records under their numbers.
    fn records(&mut self) -> Result<LogStore, Failure> {
        self.story.chapter(
            "Small records",
            &format!(
                "Now the file in pieces of {RECORD} bytes, each a record of its own under its number."
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
            "{} records in {}: {} on disk, and an index of {} in memory, {:.1} bytes for each record.",
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

    /// Reads for each answer.
    fn questions(&mut self, store: &LogStore) -> Result<(), Failure> {
        let (count, started) = (self.count(), Instant::now());
        let before = store.stats().reads;
        let right = self.right(store, |_| true)?;
        let reads = store.stats().reads - before;
        let each = started.elapsed().as_secs_f64() * 1e6 / count as f64;
        self.story.say(&format!(
            "Each asked for: {} reads for {} answers, {} us for each.",
            grouped(reads),
            grouped(count),
            three_digits(each)
        ))?;
        self.story.promise(right == count, "every record is found, and is the right one")?;
        self.story.promise(
            reads <= count + to_u64(count as f64 * 1e-3) + 2,
            "an answer costs one read",
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
            "{} absent keys: {} reads, {} us for each.",
            grouped(ABSENT),
            grouped(reads),
            three_digits(started.elapsed().as_secs_f64() * 1e6 / ABSENT as f64)
        ))?;
        // 2 are expected at the rate promised, and 8 are less likely than one run in a thousand.
        self.story.promise(reads <= 8, "an absent key costs no read, but for 1 in 100,000")
    }

    /// How many records are as they should be: there and equal, or absent.
    fn right(&self, store: &LogStore, there: impl Fn(u64) -> bool) -> Result<u64, Failure> {
        let mut right = 0;
        for (number, record) in (0_u64..).zip(self.original.chunks(RECORD)) {
            let found = store.get(&number.to_le_bytes()).map_err(|error| self.failure(error))?;
            let expected = there(number).then_some(record);
            right += u64::from(found.as_deref() == expected);
        }
        Ok(right)
    }

    fn forget_and_remember(&mut self, store: LogStore) -> Result<LogStore, Failure> {
        let count = self.count();
        self.story.chapter("Forgetting and remembering", "Delete every second record.")?;
        for number in (1..count).step_by(2) {
            let deleted = store.delete(&number.to_le_bytes(), Durability::None);
            deleted.map_err(|error| self.failure(error))?;
        }
        let right = self.right(&store, |number| number % 2 == 0)?;
        let before = store.stats().log_bytes;
        store.compact().map_err(|error| self.failure(error))?;
        let after = store.stats().log_bytes;
        self.story.say(&format!(
            "{} are left. Compacted from {} to {}.",
            grouped(store.stats().keys),
            bytes(before),
            bytes(after)
        ))?;
        self.story.promise(right == count, "what is deleted is gone, and nothing else")?;
        let right = self.right(&store, |number| number % 2 == 0)?;
        self.story.promise(
            right == count && after < before,
            "compaction gives space back and changes no answer",
        )?;
        for (number, record) in (0_u64..).zip(self.original.chunks(RECORD)).skip(1).step_by(2) {
            let put = store.put(&number.to_le_bytes(), record, Durability::None);
            put.map_err(|error| self.failure(error))?;
        }
        self.story
            .say("Then put the deleted ones in again, and write the file out of its records.")?;
        let copy = self.joined(&store).map_err(|error| self.failure(error))?;
        self.story.promise(copy == self.original, "it is the file, byte for byte")?;
        Ok(store)
    }

    fn joined(&self, store: &LogStore) -> Result<Vec<u8>, Error> {
        let mut copy = Vec::with_capacity(self.original.len());
        for number in 0..self.count() {
            copy.extend(store.get(&number.to_le_bytes())?.unwrap_or_default());
        }
        Ok(copy)
    }

    fn reopen(&mut self, store: LogStore) -> Result<(), Failure> {
        self.story.chapter("Closed and opened", "Close the store, and open it again.")?;
        store.close().map_err(|error| self.failure(error))?;
        let started = Instant::now();
        let store = self.open("records")?;
        self.story.say(&format!(
            "Open in {}, with {} records.",
            story::time(started),
            grouped(store.stats().keys)
        ))?;
        let right = self.right(&store, |_| true)?;
        self.story.promise(right == self.count(), "all of them are there")?;
        store.close().map_err(|error| self.failure(error))
    }

    /// One bit of the largest file turns over.
    fn flip(&mut self) -> Result<(), Failure> {
        self.story.chapter(
            "A flipped bit",
            "Disks forget. Flip one bit in the middle of the largest file of the store, and verify it.",
        )?;
        let path =
            self.largest("records").map_err(|error| Failure::read(self.folder.path(), error))?;
        let mut damaged = fs::read(&path).map_err(|error| Failure::read(&path, error))?;
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        fs::write(&path, &damaged).map_err(|error| Failure::write(&path, error))?;
        let store = self.open("records")?;
        let verified = store.verify(|_, _| ()).map_err(|error| self.failure(error))?;
        let told = verified.damages.first().map(ToString::to_string);
        self.story.say(&format!("It says: {}.", told.as_deref().unwrap_or("nothing")))?;
        self.story
            .promise(verified.damages.len() == 1, "a flipped bit is found, and its place named")
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
