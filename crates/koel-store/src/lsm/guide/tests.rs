//! A guide against the exact runs of each hash: flushes and merges that it follows late, merges
//! that drop keys, hot keys, keys that share fingerprints and buckets, and few bits of id.

use std::collections::{BTreeMap, BTreeSet};

use tempfile::TempDir;
use testkit::keys::{hashes, splitmix64};

use super::*;
use crate::kernel::disk::DiskFolder;
use crate::kernel::files::Folder;
use crate::kernel::manifest::RunEntry;
use crate::kernel::store_files::GUIDE;

/// A run: its number, and its hashes, as many times as keys have them.
#[derive(Clone, Default)]
struct Run(u64, Vec<u64>);

impl HashedKeys for Run {
    fn number(&self) -> u64 {
        self.0
    }

    fn keys(&self) -> u64 {
        self.1.len() as u64
    }

    fn each_piece(&self, take: &mut dyn FnMut(&[u64]) -> Result<bool, Error>) -> Result<(), Error> {
        if self.0 == UNREADABLE {
            return Err(Error::damaged("a run", 0, "it is damaged"));
        }
        for piece in self.1.chunks(100) {
            if !take(piece)? {
                break;
            }
        }
        Ok(())
    }
}

/// The store of all guides here: its salt, and the next number of a file.
const OWNER: Owner = (5, 1000);

/// What the manifest says of runs.
fn known(runs: &[Run]) -> Vec<KnownRun> {
    let entry = |run: &Run| {
        let (number, entries) = (run.0, run.keys());
        RunEntry { number, bytes: entries * 9, entries, first_sequence: 1, last_sequence: number }
    };
    runs.iter().map(|run| (entry(run), run.keys())).collect()
}

/// The number of a run that cannot be read.
const UNREADABLE: u64 = 1 << 40;

/// Runs with a guide that follows them, and random steps.
struct Model {
    guide: Guide,
    /// Youngest first.
    runs: Vec<Run>,
    /// What the guide has not followed yet.
    merges: Vec<Arc<Merge>>,
    last_number: u64,
    state: u64,
    most_in_side: u64,
    disk: DiskFolder,
    /// Whether there is a guide on it.
    is_saved: bool,
    _temporary: TempDir,
}

impl Model {
    fn new(id_bits: u32, seed: u64) -> Self {
        let options = GuideOptions { id_bits, least: 16 };
        let guide = Guide::build::<Run>(&[], options).unwrap();
        let (runs, merges) = (Vec::new(), Vec::new());
        let temporary = tempfile::tempdir().unwrap();
        let disk = DiskFolder::new(temporary.path()).unwrap();
        let (last_number, most_in_side, is_saved) = (0, 0, false);
        let _temporary = temporary;
        Self {
            guide,
            runs,
            merges,
            last_number,
            state: seed,
            most_in_side,
            disk,
            is_saved,
            _temporary,
        }
    }

    /// Saves the guide, or goes on with the one that was saved last, which may know other runs.
    fn save_or_load(&mut self) {
        let known = known(&self.runs);
        if self.below(2) == 0 {
            self.guide.save(&self.disk, OWNER, &known).unwrap();
            self.is_saved = true;
        } else if self.is_saved {
            let loaded = Guide::load(&self.disk, OWNER, &known, self.guide.options).unwrap();
            self.guide = loaded.expect("it is sound");
            self.merges.clear();
        }
    }

    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.state = self.state.wrapping_add(1);
        splitmix64(self.state) % end
    }

    fn run(&mut self, hashes: Vec<u64>) -> Run {
        self.last_number += 1;
        Run(self.last_number, hashes)
    }

    /// Adds a run. The guide follows sooner or later.
    fn flush(&mut self, hashes: Vec<u64>) {
        let run = self.run(hashes);
        self.runs.insert(0, run);
        self.save_or_load();
        if self.below(3) > 0 {
            self.follow();
        }
    }

    /// Merges the runs at the places of a mask. Drops one key in `drops` if that is not 0.
    fn merge(&mut self, mask: u64, drops: u64) {
        let is_input = |place: usize| mask >> (place % 64) & 1 == 1;
        let (mut inputs, mut rest) = (Vec::new(), Vec::new());
        for (place, run) in std::mem::take(&mut self.runs).into_iter().enumerate() {
            if is_input(place) { &mut inputs } else { &mut rest }.push(run);
        }
        self.runs = rest;
        let (mut output, mut surplus) = (Vec::new(), Vec::new());
        let mut merged = BTreeMap::<u64, u64>::new();
        for run in &inputs {
            // Two keys with one hash count twice: here as two keys of the output as well.
            let mut counts = BTreeMap::<u64, u64>::new();
            run.1.iter().for_each(|&hash| *counts.entry(hash).or_default() += 1);
            for (hash, count) in counts {
                let kept = merged.entry(hash).or_default();
                let more = count.saturating_sub(*kept);
                surplus.extend((more..count).map(|_| hash));
                *kept += more;
            }
        }
        for (hash, count) in merged {
            for _ in 0..count {
                let is_dropped = drops > 0 && self.below(drops) == 0;
                let list = if is_dropped { &mut surplus } else { &mut output };
                list.push(hash);
            }
        }
        let surplus = (self.below(4) != 0).then_some(surplus);
        let output = (!output.is_empty()).then(|| self.run(output));
        let inputs = inputs.iter().map(HashedKeys::number).collect();
        let named = output.as_ref().map(|run| (run.number(), run.keys()));
        self.merges.push(Arc::new(Merge { inputs, output: named, surplus }));
        self.runs.extend(output);
        self.save_or_load();
        if self.below(3) > 0 {
            self.follow();
        }
    }

    /// Lets the guide follow all runs, and checks it.
    fn follow(&mut self) {
        let mut rounds = 0;
        while let Some(next) = self.guide.following(&self.runs, &self.merges).unwrap() {
            self.merges.clear();
            self.guide = next;
            rounds += 1;
            assert!(rounds <= 3, "it follows for ever");
        }
        self.check();
    }

    /// Checks that it knows as many runs as it has ids for, misses none of them for any hash, and
    /// keeps little of what has gone.
    fn check(&mut self) {
        self.most_in_side = self.most_in_side.max(self.guide.side_len());
        let known: Vec<_> =
            self.runs.iter().filter_map(|run| Some((self.guide.id_of(run.0)?, run))).collect();
        let most = self.guide.names.len();
        assert_eq!(known.len(), self.runs.len().min(most), "{} runs", self.runs.len());
        let mut expected = BTreeMap::<u64, Ids>::new();
        for (id, run) in &known {
            run.1.iter().for_each(|&hash| *expected.entry(hash).or_default() |= 1 << id);
        }
        let all: Vec<u64> = expected.keys().copied().collect();
        let mut found = Vec::new();
        self.guide.candidates_of_many(&all, |ids| found.push(ids));
        for ((hash, ids), many) in expected.into_iter().zip(found) {
            let found = self.guide.candidates(hash);
            assert_eq!(found & ids, ids, "a run of {hash:x} is missed");
            assert_eq!(found, many);
        }
        let pairs: u64 = known.iter().map(|(_, run)| run.keys()).sum();
        let all: u64 = self.runs.iter().map(HashedKeys::keys).sum();
        assert!((pairs..=pairs + (all + 16) / 4).contains(&self.guide.pairs()), "stale pairs");
        assert!(self.guide.capacity() <= 16.max(4 * all), "never shrinks");
    }
}

/// A pool of hashes; `tight` ones share fingerprints and buckets in small tables.
fn pool(tight: bool) -> Vec<u64> {
    let wide = hashes(1, 3000);
    if tight {
        wide.take(40).flat_map(|hash| (0..8).map(move |i| hash + i)).collect()
    } else {
        wide.collect()
    }
}

#[test]
fn no_run_is_missed_whatever_is_flushed_and_merged() {
    for id_bits in 2..=5 {
        for tight in [false, true] {
            let pool = pool(tight);
            let mut model = Model::new(id_bits, u64::from(id_bits) << 32 | u64::from(tight));
            for _ in 0..120 {
                let share = 1 + model.below(8);
                let mut run: Vec<u64> =
                    pool.iter().copied().filter(|_| model.below(share + 1) == 0).collect();
                if model.below(8) == 0 {
                    run.extend(pool.iter().take(20));
                }
                match model.below(3) {
                    0 => {
                        let mask = model.below(u64::MAX);
                        let drops = model.below(4);
                        model.merge(mask, drops);
                    }
                    _ => model.flush(run),
                }
            }
            assert!(!tight || model.most_in_side > 30, "{}", model.most_in_side);
            model.merge(u64::MAX, 1);
            model.follow();
            assert_eq!((model.guide.named().count(), model.runs.len()), (0, 0));
        }
    }
}

#[test]
fn hot_keys_in_all_runs_are_in_the_stash_and_take_no_growth() {
    let hot: Vec<u64> = hashes(2, 1000).collect();
    let mut model = Model::new(5, 1);
    for _ in 0..32 {
        model.flush(hot.clone());
    }
    model.follow();
    assert!((24_000..25_000).contains(&model.guide.side_len()), "{}", model.guide.side_len());
    assert!(model.guide.capacity() < 3 * 32_000, "{}", model.guide.capacity());
    model.merge(u64::MAX, 0);
    model.follow();
    assert_eq!((model.guide.named().collect::<Vec<_>>(), model.runs.len()), (vec![(33, 1000)], 1));
}

/// Each pair in the stash costs a long search: with 1 % of them, a guide of 6 million pairs took
/// half a minute, and merged runs stayed on disk as long.
#[test]
fn keys_that_are_in_some_runs_get_slots() {
    let all: Vec<u64> = hashes(1, 40_000).collect();
    let mut model = Model::new(5, 1);
    model.flush(all.clone());
    for run in 0..5 {
        let draws: BTreeSet<u64> = hashes(run + 2, 12_000).map(|hash| hash % 40_000).collect();
        model.flush(draws.into_iter().map(|at| all[usize::try_from(at).unwrap()]).collect());
        model.follow();
        let (stashed, pairs) = (model.guide.side_len(), model.guide.pairs());
        assert!(stashed <= 16 + pairs / 10_000, "{stashed} of {pairs}");
    }
}

#[test]
fn a_run_that_cannot_be_read_is_left_out_and_the_others_are_known() {
    let mut model = Model::new(3, 1);
    let unreadable = Run(UNREADABLE, hashes(1, 50).collect());
    for number in 0..20 {
        let mut runs = model.runs.clone();
        runs.insert(runs.len() / 2, unreadable.clone());
        // It is tried again each time, without an end and without taking an id.
        if let Some(next) = model.guide.following(&runs, &model.merges).unwrap() {
            assert_eq!(next.id_of(UNREADABLE), None);
            assert!(next.following(&runs, &[]).unwrap().is_none(), "{number}");
        }
        let built = Guide::build(&runs, model.guide.options).unwrap();
        assert_eq!(built.named().count(), model.runs.len(), "{number}");
        if model.runs.len() == 6 {
            model.merge(u64::MAX, 0);
        }
        model.flush(hashes(number + 2, 40).collect());
        model.follow();
    }
}

#[test]
fn sizes_and_false_candidates_keep_the_promise() {
    let options = GuideOptions::default();
    let run = |seed: u64| Run(seed, hashes(seed + 10, 20_000).collect());
    let runs: Vec<Run> = (0..20).map(run).collect();
    let mut guide = Guide::build::<Run>(&[], options).unwrap();
    for count in 1..=runs.len() {
        guide = guide.following(&runs[..count], &[]).unwrap().expect("a new run");
        let bits = guide.bytes() as f64 * 8.0 / guide.pairs() as f64;
        assert!(bits <= 21.3 || guide.capacity() == options.least, "{bits} bits a pair");
        assert!(guide.false_candidates() <= RATE);
        let absent = hashes(9, 100_000);
        let wrong: u32 = absent.map(|hash| guide.candidates(hash).count_ones()).sum();
        assert!(f64::from(wrong) <= 1.15 * RATE * 1e5, "{wrong} of 100,000");
    }
    assert!(guide.side_len() < 40, "{}", guide.side_len());
}

/// Returns three runs, and a disk with their guide.
fn saved_guide() -> (Vec<Run>, GuideOptions, DiskFolder, TempDir) {
    let runs: Vec<Run> = (1..=3).map(|run| Run(run, hashes(run, 60).collect())).collect();
    let (options, temporary) =
        (GuideOptions { id_bits: 2, least: 16 }, tempfile::tempdir().unwrap());
    let disk = DiskFolder::new(temporary.path()).unwrap();
    Guide::build(&runs, options).unwrap().save(&disk, OWNER, &known(&runs)).unwrap();
    (runs, options, disk, temporary)
}

#[test]
fn a_damaged_guide_is_none() {
    let (runs, options, disk, temporary) = saved_guide();
    let path = temporary.path().join(GUIDE);
    let load = || Guide::load(&disk, OWNER, &known(&runs), options).unwrap();
    assert_eq!(load().expect("it is sound").named().count(), 3);
    let sound = std::fs::read(&path).unwrap();
    for at in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(&path, &bytes).unwrap();
        assert!(load().is_none(), "byte {at} is damaged");
        std::fs::write(&path, &sound[..at]).unwrap();
        assert!(load().is_none(), "cut at {at}");
    }
    std::fs::write(&path, &sound).unwrap();
    for owner in [(OWNER.0 + 1, OWNER.1), (OWNER.0, OWNER.1 - 1)] {
        assert!(Guide::load(&disk, owner, &known(&runs), options).unwrap().is_none(), "{owner:?}");
    }
    Guide::remove_later(&disk, OWNER).unwrap();
    assert!(load().is_some());
    Guide::remove_later(&disk, (OWNER.0, OWNER.1 - 1)).unwrap();
    assert!(!path.exists());
    std::fs::write(&path, &sound).unwrap();
    let other = GuideOptions { id_bits: 3, ..options };
    assert!(Guide::load(&disk, OWNER, &known(&runs), other).unwrap().is_none(), "fewer ids");
    disk.remove(GUIDE).unwrap();
    assert!(load().is_none());
}

#[test]
fn a_saved_guide_knows_a_run_by_all_that_the_manifest_says_of_it() {
    let (runs, options, disk, _temporary) = saved_guide();
    let sound = known(&runs);
    let changes: [fn(&mut KnownRun); 6] = [
        |(run, _)| run.number += 10,
        |(run, _)| run.bytes += 1,
        |(run, _)| run.entries += 1,
        |(run, _)| run.first_sequence += 1,
        |(run, _)| run.last_sequence += 1,
        |(_, keys)| *keys += 1,
    ];
    for change in changes {
        let mut other = sound.clone();
        change(&mut other[1]);
        let guide = Guide::load(&disk, OWNER, &other, options).unwrap().expect("it is sound");
        assert_eq!(guide.named().map(|(number, _)| number).collect::<Vec<_>>(), [1, 3]);
        assert!(guide.names.contains(&Name::Gone));
    }
}
