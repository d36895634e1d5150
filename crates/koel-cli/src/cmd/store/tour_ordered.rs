//! `koel store tour --ordered`: a demonstration of an ordered store on a real list that checks
//! every promise.
//!
//! The keys are the domains of the list in this program; the values are pieces of a file. The store
//! gets them in many parts, and each part becomes a run. So a key can be in any of them, and the
//! guide has to say in which. At the end, Bloom filters answer the same questions, one a run.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use fastbloom::BloomFilter;
use koel::Maplet;
use koel_store::{CompactionPolicy, Durability, Error, LsmOptions, LsmStore, Trace};

use crate::cmd::tour::names;
use crate::cmd::tour::story::{self, Story};
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::quantity::{bytes, counted, grouped, to_u64};
use crate::sizing::build_failure;

/// The number of runs before the merge.
const RUNS: usize = 16;
/// Bytes of a value.
const VALUE: usize = 100;
const ABSENT: usize = 200_000;
/// The most false candidates of an absent key that the guide promises, on average.
const FALSE_CANDIDATES: f64 = 0.004;
/// Bits of a Bloom filter for each key, as in most stores.
const BLOOM_BITS: usize = 10;
const DELETED: usize = 1000;

/// A running tour: its text, its folder, and what the store should hold.
struct Tour {
    story: Story,
    folder: tempfile::TempDir,
    /// The list, in an order in which neighbours go to different runs.
    list: Vec<String>,
    absent: Vec<String>,
    expected: BTreeMap<String, Vec<u8>>,
}

pub(super) fn run(file: &Path) -> Result<Outcome, Failure> {
    let pieces = fs::read(file).map_err(|error| Failure::read(file, error))?;
    let listed = names::listed()
        .map_err(|error| Failure::read(Path::new("the list in this program"), error))?;
    let set: HashSet<String> = listed.iter().cloned().collect();
    let absent = names::absent(&set).take(ABSENT).collect();
    let value = |number: usize| {
        let start = number * VALUE % pieces.len().max(1);
        pieces[start..pieces.len().min(start + VALUE)].to_vec()
    };
    let expected = listed.iter().enumerate().map(|(i, name)| (name.clone(), value(i))).collect();
    let folder =
        tempfile::tempdir().map_err(|error| Failure::write(&std::env::temp_dir(), error))?;
    let list = (0..RUNS).flat_map(|run| listed.iter().skip(run).step_by(RUNS).cloned()).collect();
    let mut tour = Tour { story: Story::default(), folder, list, absent, expected };
    let store = tour.load(file)?;
    tour.ways(&store)?;
    tour.bloom_filters(&store)?;
    tour.merge(&store)?;
    tour.snapshot(&store)?;
    tour.ranges(&store)?;
    tour.crash(store)?;
    tour.story.end(
        "Try it with your own records:\n\n   \
         koel store create DIR --ordered && koel store put KEY VALUE --db DIR",
    )
}

impl Tour {
    fn failure(&self, error: Error) -> Failure {
        let db = self.folder.path().to_owned();
        Failure::Store { db, error: Box::new(error.into()) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Stores the list in parts, with a run for each.
    fn load(&mut self, file: &Path) -> Result<LsmStore, Failure> {
        self.story.chapter(
            "A real list in runs",
            &format!(
                "The keys are {} domains that offer disposable e-mail addresses. Their values are \
                 pieces of {VALUE} bytes of {}. The list is stored in {RUNS} parts. After each \
                 part, what is in memory is written to a sorted file, a run.",
                grouped(self.list.len() as u64),
                file.display()
            ),
        )?;
        // Nothing is merged until the tour asks for it.
        let options = LsmOptions::default().policy(CompactionPolicy::Tiered).ratio(32);
        let store = options.background(false).open(self.path("store"));
        let store = store.map_err(|error| self.failure(error))?;
        let started = Instant::now();
        for part in self.list.chunks(self.list.len().div_ceil(RUNS)) {
            for name in part {
                let put = store.put(name.as_bytes(), &self.expected[name], Durability::None);
                put.map_err(|error| self.failure(error))?;
            }
            store.flush().map_err(|error| self.failure(error))?;
        }
        let stats = store.stats();
        self.story.say(&format!(
            "Stored in {}: {} in {}. The guide, one cuckoo table for all runs, takes {} of memory.",
            story::time(started),
            bytes(stats.table_bytes()),
            counted(stats.runs.len() as u64, "run"),
            bytes(stats.guide_bytes)
        ))?;
        output::print("\n")?;
        for (run, place) in stats.runs.iter().zip(1..) {
            let (keys, size) = (grouped(run.keys), bytes(run.bytes));
            output::print(&format!("   run {place:2}  {keys} keys  {size}\n"))?;
        }
        output::print("\n")?;
        self.story.promise(stats.runs.len() == RUNS, "each flush makes one run")?;
        Ok(store)
    }

    /// Prints the ways of some keys, and counts the runs that all keys ask.
    fn ways(&mut self, store: &LsmStore) -> Result<(), Failure> {
        self.story.chapter(
            "The way of a key",
            "To find a key, the store looks into two buckets of the guide. The entries that match \
             say which runs may have the key. These are asked, the youngest first.",
        )?;
        let trace = |key: &str| store.trace(key.as_bytes());
        let (mut asked, mut found) = (0_u64, 0_u64);
        for name in &self.list {
            let way = trace(name).map_err(|error| self.failure(error))?;
            (asked, found) = (asked + way.asked.len() as u64, found + u64::from(way.found));
        }
        let (mut in_vain, mut example) = (0_u64, None);
        for name in &self.absent {
            let way = trace(name).map_err(|error| self.failure(error))?;
            in_vain += way.asked.len() as u64;
            if !way.asked.is_empty() && example.is_none() {
                example = Some(name);
            }
            found += u64::from(way.found);
        }
        let shown = [self.list.first(), self.absent.first(), example];
        for name in shown.into_iter().flatten() {
            let way = trace(name).map_err(|error| self.failure(error))?;
            output::print(&format!("\n   {name}\n{}", described(&way)))?;
        }
        output::print("\n")?;
        let (keys, absent) = (self.list.len() as u64, self.absent.len() as u64);
        self.story.say(&format!(
            "Asked for all {} keys: {} runs were asked. Asked for {} absent names: {} runs were \
             asked in vain, {:.4} for each name.",
            grouped(keys),
            grouped(asked),
            grouped(absent),
            grouped(in_vain),
            in_vain as f64 / absent as f64
        ))?;
        self.story.promise(found == keys, "every key is found, and no absent name")?;
        self.story.promise(
            asked <= keys + keys / 100,
            "a key asks one run, whatever the number of runs",
        )?;
        // Twice the promise: never above it by chance.
        self.story.promise(
            in_vain <= to_u64(2.0 * FALSE_CANDIDATES * absent as f64),
            "at most 8 of 1,000 absent names ask a run",
        )
    }

    /// Asks a Bloom filter for each run for the same names.
    fn bloom_filters(&mut self, store: &LsmStore) -> Result<(), Failure> {
        self.story.chapter(
            "A Bloom filter for each run",
            &format!(
                "Most stores have a Bloom filter for each run, here of {BLOOM_BITS} bits a key. The \
                 same absent names are asked of {RUNS} such filters (crate fastbloom), and of one \
                 table like the guide."
            ),
        )?;
        let parts: Vec<_> = self.list.chunks(self.list.len().div_ceil(RUNS)).collect();
        let filters: Vec<BloomFilter> = parts
            .iter()
            .map(|part| {
                let filter = BloomFilter::with_num_bits(BLOOM_BITS * part.len()).seed(&0);
                filter.items(part.iter())
            })
            .collect();
        let maplet = Maplet::builder(self.list.len() as u64, FALSE_CANDIDATES, 5).build();
        let mut maplet = maplet.map_err(|error| build_failure(&error))?;
        for (part, run) in parts.iter().zip(0..) {
            maplet.try_extend(part.iter().map(|name| (name.as_str(), run))).map_err(|error| {
                Failure::Broken(format!("the table of the tour is full: {error}"))
            })?;
        }
        let started = Instant::now();
        let by_blooms: usize = (self.absent.iter())
            .map(|name| filters.iter().filter(|filter| filter.contains(name)).count())
            .sum();
        let bloom_time = started.elapsed();
        let started = Instant::now();
        let by_guide: usize = self.absent.iter().map(|name| maplet.get(name.as_str()).len()).sum();
        let guide_time = started.elapsed();
        let bloom_bytes: usize = filters.iter().map(|filter| filter.num_bits() / 8).sum();
        output::print(&format!(
            "\n   {:22} {:>8}  {:>8}  {:>15}  {:>9}\n",
            "", "memory", "probes", "runs in vain", "time"
        ))?;
        let each = |time: std::time::Duration| time.as_secs_f64() * 1e9 / ABSENT as f64;
        let rows = [
            ("16 Bloom filters", bloom_bytes as u64, RUNS, by_blooms, each(bloom_time)),
            ("the guide", store.stats().guide_bytes, 1, by_guide, each(guide_time)),
        ];
        for (name, memory, probes, in_vain, time) in rows {
            let share = in_vain as f64 / ABSENT as f64;
            let (memory, time) = (bytes(memory), format!("{time:.0} ns"));
            output::print(&format!(
                "   {name:22} {memory:>8}  {probes:>8}  {share:>15.4}  {time:>9}\n"
            ))?;
        }
        output::print("\n")?;
        self.story.promise(
            by_guide * 10 < by_blooms,
            "the guide sends ten times fewer names to a run than Bloom filters",
        )
    }

    fn merge(&mut self, store: &LsmStore) -> Result<(), Failure> {
        self.story.chapter("Merging", "All runs are merged into one.")?;
        let started = Instant::now();
        store.compact().map_err(|error| self.failure(error))?;
        let stats = store.stats();
        self.story.say(&format!(
            "Merged in {}: {} in {}.",
            story::time(started),
            bytes(stats.table_bytes()),
            counted(stats.runs.len() as u64, "run")
        ))?;
        if let Some(name) = self.list.first() {
            let way = store.trace(name.as_bytes()).map_err(|error| self.failure(error))?;
            output::print(&format!("\n   {name}\n{}\n", described(&way)))?;
        }
        let correct = self.correct(store)?;
        self.story.promise(
            correct && stats.runs.len() == 1,
            "a merge leaves one run, and changes no record",
        )
    }

    /// Whether the store has exactly the expected records.
    fn correct(&self, store: &LsmStore) -> Result<bool, Failure> {
        let mut expected = self.expected.iter();
        for entry in store.iter().map_err(|error| self.failure(error))? {
            let (key, value) = entry.map_err(|error| self.failure(error))?;
            let same = |(name, text): (&String, &Vec<u8>)| name.as_bytes() == key && *text == value;
            if !expected.next().is_some_and(same) {
                return Ok(false);
            }
        }
        Ok(expected.next().is_none())
    }

    /// Deletes some records; a snapshot still has them.
    fn snapshot(&mut self, store: &LsmStore) -> Result<(), Failure> {
        self.story.chapter(
            "A snapshot",
            &format!(
                "A snapshot is taken, and {} records are deleted. Then everything is merged again.",
                grouped(DELETED as u64)
            ),
        )?;
        let snapshot = store.snapshot();
        let deleted: Vec<String> = self.list.iter().take(DELETED).cloned().collect();
        for name in &deleted {
            store.delete(name.as_bytes(), Durability::None).map_err(|error| self.failure(error))?;
        }
        store.compact().map_err(|error| self.failure(error))?;
        let mut kept = true;
        for name in &deleted {
            let value = snapshot.get(name.as_bytes()).map_err(|error| self.failure(error))?;
            kept &= value.as_ref() == self.expected.get(name);
        }
        drop(snapshot);
        for name in &deleted {
            self.expected.remove(name);
        }
        self.story.promise(kept, "a snapshot sees what was there, even after a merge")?;
        let correct = self.correct(store)?;
        self.story.promise(correct, "the store has all records but the deleted ones")
    }

    /// Lists a prefix, both ways.
    fn ranges(&mut self, store: &LsmStore) -> Result<(), Failure> {
        let prefix = "mail";
        self.story.chapter(
            "A range",
            &format!("The keys that start with \"{prefix}\" are listed, in order and in reverse."),
        )?;
        let entries = || store.prefix(prefix.as_bytes()).map_err(|error| self.failure(error));
        let started = Instant::now();
        let forward: Vec<_> = entries()?.filter_map(Result::ok).collect();
        let time = story::time(started);
        let mut backward: Vec<_> = entries()?.rev().filter_map(Result::ok).collect();
        backward.reverse();
        let expected = self.expected.iter().filter(|(name, _)| name.starts_with(prefix));
        let same = expected
            .map(|(name, value)| (name.as_bytes(), value.as_slice()))
            .eq(forward.iter().map(|(key, value)| (key.as_slice(), value.as_slice())));
        let both = forward == backward;
        self.story.say(&format!("{} in {time}.", counted(forward.len() as u64, "record")))?;
        self.story.promise(same && both, "a range has its records in order, from both ends")
    }

    /// Copies the files of the open store, as a crash would leave them, and opens the copy.
    fn crash(&mut self, store: LsmStore) -> Result<(), Failure> {
        self.story.chapter(
            "A crash",
            "A last record is stored, synced to the disk. The files are copied while the store is \
             open, as if the process had been killed. The copy is opened.",
        )?;
        let (name, value) = ("example.org", b"the last one".to_vec());
        let put = store.put(name.as_bytes(), &value, Durability::Synced);
        put.map_err(|error| self.failure(error))?;
        self.expected.insert(name.to_owned(), value);
        let (from, to) = (self.path("store"), self.path("copy"));
        copy_files(&from, &to).map_err(|error| Failure::write(&to, error))?;
        store.close().map_err(|error| self.failure(error))?;
        let started = Instant::now();
        let copy = LsmStore::open(&to).map_err(|error| self.failure(error))?;
        self.story.say(&format!("It opened in {}.", story::time(started)))?;
        let correct = self.correct(&copy)?;
        copy.close().map_err(|error| self.failure(error))?;
        self.story.promise(correct, "after a crash every synced record is there")
    }
}

/// The way of a key, a line for each step.
fn described(way: &Trace) -> String {
    let runs = counted(way.runs, "run");
    let mut text = match way.asked.len() {
        0 => format!("      two buckets: none of {runs} is a candidate\n"),
        count => format!("      two buckets: {count} of {runs} to ask\n"),
    };
    for asked in &way.asked {
        let what =
            if asked.has_key { "has the key" } else { "does not have it: a false candidate" };
        text += &format!("      run {} {what}\n", asked.place + 1);
    }
    text
}

fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir(to)?;
    for file in fs::read_dir(from)? {
        let file = file?;
        fs::copy(file.path(), to.join(file.file_name()))?;
    }
    Ok(())
}
