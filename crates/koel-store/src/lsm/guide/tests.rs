//! A guide against the exact runs of each hash: flushes, merges that drop keys, hot keys, keys that
//! share fingerprints and buckets, and few bits of id.

use std::collections::BTreeMap;

use testkit::keys::{hashes, splitmix64};

use super::*;

/// The hashes of a run, as many times as keys have them.
type Run = Vec<u64>;

impl HashedKeys for Run {
    fn keys(&self) -> u64 {
        self.len() as u64
    }

    fn each_piece(&self, take: &mut dyn FnMut(&[u64]) -> Result<bool, Error>) -> Result<(), Error> {
        for piece in self.chunks(100) {
            if !take(piece)? {
                break;
            }
        }
        Ok(())
    }
}

/// Runs with a guide, and random steps.
struct Model {
    guide: Guide,
    runs: BTreeMap<u8, Run>,
    options: GuideOptions,
    state: u64,
    most_in_side: u64,
}

fn all_of(runs: &BTreeMap<u8, Run>) -> Vec<(u8, &Run)> {
    runs.iter().map(|(&id, run)| (id, run)).collect()
}

impl Model {
    fn new(id_bits: u32, seed: u64) -> Self {
        let options = GuideOptions { id_bits, least: 16 };
        let guide = Guide::build::<Run>(&[], options).unwrap();
        Self { guide, runs: BTreeMap::new(), options, state: seed, most_in_side: 0 }
    }

    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.state = self.state.wrapping_add(1);
        splitmix64(self.state) % end
    }

    fn free_id(&self) -> Option<u8> {
        let ids = 0..u8::try_from(self.options.most_runs()).unwrap();
        ids.clone().find(|id| !self.runs.contains_key(id))
    }

    /// Adds a run. Merges first if no id is free.
    fn flush(&mut self, run: Run) {
        let Some(id) = self.free_id() else {
            self.merge(Ids::MAX, 0);
            return self.flush(run);
        };
        self.runs.insert(id, run);
        let all = all_of(&self.runs);
        self.guide = self.guide.with_run((id, &self.runs[&id]), &all).unwrap();
        self.check();
    }

    /// Merges the runs of a mask. Drops one key in `drops` if that is not 0.
    fn merge(&mut self, mask: Ids, drops: u64) {
        let inputs: Vec<u8> = each_id(mask).filter(|id| self.runs.contains_key(id)).collect();
        let ids = inputs.iter().fold(0, |ids, id| ids | 1 << id);
        let (mut output, mut surplus) = (Run::new(), Run::new());
        let mut merged = BTreeMap::<u64, u64>::new();
        for id in &inputs {
            let run = self.runs.remove(id).unwrap();
            // Two keys with one hash count twice: here as two keys of the output as well.
            let mut counts = BTreeMap::<u64, u64>::new();
            run.iter().for_each(|&hash| *counts.entry(hash).or_default() += 1);
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
        let id = inputs.first().copied().filter(|_| !output.is_empty());
        let id = if self.below(2) == 0 { id } else { id.and(self.free_id()) };
        let surplus = (self.below(4) != 0).then_some(surplus.as_slice());
        id.map(|id| self.runs.insert(id, output));
        self.guide = self.guide.with_merge(ids, id, surplus, &all_of(&self.runs)).unwrap();
        self.check();
    }

    /// Checks that no run of any hash is missed, and that nothing is left of what was removed.
    fn check(&mut self) {
        self.most_in_side = self.most_in_side.max(self.guide.side_len());
        let mut expected = BTreeMap::<u64, Ids>::new();
        for (id, run) in &self.runs {
            run.iter().for_each(|&hash| *expected.entry(hash).or_default() |= 1 << id);
        }
        let all: Vec<u64> = expected.keys().copied().collect();
        let mut found = Vec::new();
        self.guide.candidates_of_many(&all, |ids| found.push(ids));
        for ((hash, ids), many) in expected.into_iter().zip(found) {
            let found = self.guide.candidates(hash);
            assert_eq!(found & ids, ids, "a run of {hash:x} is missed");
            assert_eq!(found, many);
        }
        let pairs: usize = self.runs.values().map(Vec::len).sum();
        assert_eq!(self.guide.pairs(), pairs as u64);
        assert!(self.guide.capacity() <= 16.max(4 * pairs as u64), "never shrinks");
        let live = self.runs.keys().fold(0, |ids, id| ids | 1 << id);
        let stale = self.guide.maplet.entries().filter(|entry| live >> entry.value & 1 == 0);
        assert_eq!(stale.count(), 0);
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
                let mut run: Run =
                    pool.iter().copied().filter(|_| model.below(share + 1) == 0).collect();
                if model.below(8) == 0 {
                    run.extend(pool.iter().take(20));
                }
                match model.below(3) {
                    0 => {
                        let mask = Ids::try_from(model.below(1 << 32)).unwrap();
                        let drops = model.below(4);
                        model.merge(mask, drops);
                    }
                    _ => model.flush(run),
                }
            }
            assert!(!tight || model.most_in_side > 30, "{}", model.most_in_side);
            model.merge(Ids::MAX, 1);
            assert_eq!((model.guide.pairs(), model.guide.maplet.len()), (0, 0));
        }
    }
}

#[test]
fn hot_keys_in_all_runs_take_one_side_entry_each_and_no_growth() {
    let hot: Run = hashes(2, 1000).collect();
    let mut model = Model::new(5, 1);
    for _ in 0..32 {
        model.flush(hot.clone());
    }
    assert!(model.guide.side_len() <= 1000);
    assert!(model.guide.capacity() < 3 * 32_000, "{}", model.guide.capacity());
    model.merge(Ids::MAX, 0);
    assert_eq!((model.guide.pairs(), model.runs.len()), (1000, 1));
}

#[test]
fn sizes_and_false_candidates_keep_the_promise() {
    let options = GuideOptions::default();
    let run = |seed| hashes(seed, 20_000).collect::<Run>();
    let runs: Vec<Run> = (0..20).map(|seed| run(seed + 10)).collect();
    let mut all = Vec::new();
    let mut guide = Guide::build::<Run>(&[], options).unwrap();
    for (id, run) in (0..).zip(&runs) {
        all.push((id, run));
        guide = guide.with_run((id, run), &all).unwrap();
        let bits = guide.bytes() as f64 * 8.0 / guide.pairs() as f64;
        assert!(bits <= 21.3 || guide.capacity() == options.least, "{bits} bits a pair");
        assert!(guide.false_candidates() <= RATE);
        let absent = hashes(9, 100_000);
        let wrong: u32 = absent.map(|hash| guide.candidates(hash).count_ones()).sum();
        assert!(f64::from(wrong) <= 1.15 * RATE * 1e5, "{wrong} of 100,000");
    }
    assert!(guide.side_len() < 40, "{}", guide.side_len());
}
