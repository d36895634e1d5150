//! The guide: which runs may hold a key, for all runs at once.
//!
//! A `koel::Maplet` maps the hash of a key to the ids of the runs that have it, one slot for each
//! distinct key of a run: 11 bits of fingerprint and 5 of id. A lookup reads two buckets, however
//! many runs there are. A pair of buckets has room for eight entries, and some keys are in more
//! runs: the rest is in the stash of the maplet, exactly.
//!
//! * A guide never changes. The next one is made from a copy, and readers keep theirs until they
//!   are done.
//! * It follows the runs: it may not know the youngest ones yet, which every read asks then. Its
//!   ids are its own.
//! * It never misses a run that it knows and that has the key. An absent key has 0.004 candidates
//!   on average.
//! * It is not the truth: it is built from the hashes of the tables, and can be built again at any
//!   time. Without one, a read asks every run. `file` keeps it for the next opening.
//! * Every key of a run was added at least once for each time that its hash is among the hashes of
//!   the run. So pairs can be moved and removed one by one, though equal ones cannot be told apart.
//!
//! Cost for each million pairs: 2 MB; a millisecond for a copy, one for new ids, 100 ms to build.
//! docs/decisions/0027-guide.md has the figures.

mod file;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::{array, iter};

use koel::{KeyHash, Maplet, Values};

pub(super) use self::file::{KnownRun, Owner};

use crate::Error;
use crate::kernel::memory::push;

/// A mask of the ids of runs.
pub(super) type Ids = u32;

/// The most false candidates of an absent key, on average.
const RATE: f64 = 0.004;
/// Pairs are added and removed in batches of this many.
const BATCH: usize = 4096;

/// How a guide is built.
#[derive(Clone, Copy, Debug)]
pub(super) struct GuideOptions {
    /// Bits of the id of a run, 2 to 5: fewer than 5 are for tests.
    pub(super) id_bits: u32,
    /// The least number of pairs that it has room for.
    pub(super) least: u64,
}

impl Default for GuideOptions {
    fn default() -> Self {
        Self { id_bits: 5, least: 1 << 16 }
    }
}

impl GuideOptions {
    /// The number of runs that can have an id: ids are less than this.
    pub(super) fn most_runs(&self) -> u32 {
        1 << self.id_bits
    }
}

/// The hashes of the keys of a run.
pub(super) trait HashedKeys {
    /// The number of the run.
    fn number(&self) -> u64;

    /// How many there are.
    fn keys(&self) -> u64;

    /// Passes them to `take`, piece by piece, until it returns false.
    fn each_piece(&self, take: &mut dyn FnMut(&[u64]) -> Result<bool, Error>) -> Result<(), Error>;
}

/// A merge that a guide is to follow.
#[derive(Debug)]
pub(super) struct Merge {
    /// The numbers of the runs that were merged.
    pub(super) inputs: Vec<u64>,
    /// The number of the run that they became, and how many keys it has.
    pub(super) output: Option<(u64, u64)>,
    /// The hash of a key once for each input that had the key, but one fewer if the output has it;
    /// `None` if there were too many to keep.
    pub(super) surplus: Option<Vec<u64>>,
}

/// What an id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Free,
    /// A run, by its number, and its pairs.
    Run(u64, u64),
    /// A run that has gone. Its pairs are still there.
    Gone,
}

/// Which runs may hold a key.
#[derive(Debug)]
pub(super) struct Guide {
    maplet: Maplet,
    /// What each id stands for.
    names: Vec<Name>,
    options: GuideOptions,
}

impl Guide {
    /// The guide to these runs, youngest first. Reads all hashes. Runs that are damaged or
    /// unreadable are left out, and so are the oldest if there are more than ids.
    pub(super) fn build<K: HashedKeys>(runs: &[K], options: GuideOptions) -> Result<Self, Error> {
        let most = usize::try_from(options.most_runs()).unwrap_or(usize::MAX);
        let mut runs: Vec<&K> = runs.iter().take(most).collect();
        let mut capacity = capacity_for(pairs_of(&runs), options.least);
        loop {
            let (mut guide, pairs) = (Self::empty(capacity, options)?, pairs_of(&runs));
            let (mut place, mut added) = (0, Ok(true));
            while place < runs.len() && matches!(added, Ok(true)) {
                added = guide.add_run(runs[place], pairs);
                place += 1;
            }
            match added {
                Ok(true) => return Ok(guide),
                // Ends when more room would not help: see `is_crowded`.
                Ok(false) => capacity = grown(capacity),
                Err(error) if is_of_run(&error) => drop(runs.remove(place - 1)),
                Err(error) => return Err(error),
            }
        }
    }

    /// The guide to `runs`, youngest first, which these merges and others have made of the runs
    /// that it knows; `None` if that is as much as it can know.
    ///
    /// A merge of runs that it knows changes ids and removes the surplus pairs. Any other new run
    /// is added key by key. If too many pairs of runs that have gone are left, or there is no room,
    /// it is built anew.
    pub(super) fn following<K: HashedKeys>(
        &self,
        runs: &[K],
        merges: &[Arc<Merge>],
    ) -> Result<Option<Self>, Error> {
        let is_live = |number| runs.iter().any(|run| run.number() == number);
        let has_gone = self.named().any(|(number, _)| !is_live(number));
        let has_ids = self.names.iter().any(|name| !matches!(name, Name::Run(..)));
        let is_new = |run: &&K| self.id_of(run.number()).is_none();
        let mut new = Vec::new();
        if has_ids || has_gone {
            // What cannot be read whole is not added in part.
            new.extend(runs.iter().filter(is_new).filter(|run| is_readable(*run)));
        }
        let pairs: u64 = runs.iter().map(HashedKeys::keys).sum();
        if new.is_empty() && !has_gone && !self.is_outgrown::<K>(pairs, &[]) {
            return Ok(None);
        }
        let mut next = self.try_clone()?;
        merges.iter().for_each(|merge| next.follow_merge(merge));
        next.forget(is_live);
        new.retain(|run| next.id_of(run.number()).is_none());
        let mut is_outgrown = next.is_outgrown(pairs, &new);
        for run in new.into_iter().take(next.free_ids()) {
            is_outgrown = is_outgrown || !next.add_run(run, pairs)?;
        }
        if is_outgrown { Self::build(runs, self.options) } else { Ok(next) }.map(Some)
    }

    /// Follows a merge, if it knows all inputs.
    fn follow_merge(&mut self, merge: &Merge) {
        let ids = merge.inputs.iter().try_fold(0, |ids: Ids, &input| {
            let id = self.id_of(input)?;
            Some(ids | 1 << id)
        });
        let has_result = merge.output.is_some() || merge.surplus.is_some();
        let (Some(ids), true) = (ids, has_result) else { return };
        let Some(id) = each_id(ids).next() else { return };
        self.relabel(ids, id);
        // Without the surplus, pairs of keys that are in two inputs are left twice.
        self.remove(merge.surplus.as_deref().unwrap_or_default(), id);
        each_id(ids).for_each(|id| self.names[usize::from(id)] = Name::Free);
        if let Some((number, keys)) = merge.output {
            self.names[usize::from(id)] = Name::Run(number, keys);
        }
    }

    /// Forgets the runs that are no longer there. Their pairs stay.
    fn forget(&mut self, is_live: impl Fn(u64) -> bool) {
        for name in &mut self.names {
            if matches!(name, Name::Run(number, _) if !is_live(*number)) {
                *name = Name::Gone;
            }
        }
    }

    /// Whether it is to be built anew for so many pairs in all, if these runs are added.
    fn is_outgrown<K: HashedKeys>(&self, pairs: u64, new: &[&K]) -> bool {
        let (capacity, least) = (self.maplet.capacity(), self.options.least);
        let named: u64 = self.named().map(|(_, pairs)| pairs).sum();
        // Fewer than expected: then it would miss some.
        let Some(stale) = self.pairs().checked_sub(named) else { return true };
        let lacks_ids = !new.is_empty() && self.free_ids() == 0;
        self.pairs().saturating_add(pairs_of(new)) > capacity
            || capacity > least && pairs.saturating_mul(3) < capacity
            || stale > (pairs + least) / 4
            || lacks_ids && self.names.contains(&Name::Gone)
    }

    /// The number and the pairs of each run that it knows.
    fn named(&self) -> impl Iterator<Item = (u64, u64)> {
        self.names.iter().filter_map(|name| match *name {
            Name::Run(number, pairs) => Some((number, pairs)),
            Name::Free | Name::Gone => None,
        })
    }

    fn free_ids(&self) -> usize {
        self.names.iter().filter(|name| **name == Name::Free).count()
    }

    /// The id of a run, if it knows the run.
    pub(super) fn id_of(&self, number: u64) -> Option<u8> {
        let is_it = |name: &Name| matches!(name, Name::Run(run, _) if *run == number);
        self.names.iter().position(is_it).and_then(|id| u8::try_from(id).ok())
    }

    fn empty(capacity: u64, options: GuideOptions) -> Result<Self, Error> {
        let builder = Maplet::builder(capacity, RATE, options.id_bits).trust_hashes();
        let bytes = capacity.saturating_mul(2);
        let maplet = builder.build().map_err(|_| Error::OutOfMemory { bytes })?;
        let names = (0..options.most_runs()).map(|_| Name::Free).collect();
        Ok(Self { maplet, names, options })
    }

    fn try_clone(&self) -> Result<Self, Error> {
        let bytes = self.bytes();
        let maplet = self.maplet.try_clone().map_err(|_| Error::OutOfMemory { bytes })?;
        Ok(Self { maplet, names: self.names.clone(), options: self.options })
    }

    /// The runs that may hold the key with this hash.
    #[inline]
    pub(super) fn candidates(&self, hash: u64) -> Ids {
        mask(self.maplet.get(&KeyHash::new(hash)))
    }

    /// [`candidates`](Self::candidates) for each of `hashes`, in the same order.
    pub(super) fn candidates_of_many(&self, hashes: &[u64], mut found: impl FnMut(Ids)) {
        let mut values: [Values<'_>; 64] = array::from_fn(|_| Values::default());
        for hashes in hashes.chunks(values.len()) {
            let values = &mut values[..hashes.len()];
            let mut keys = [KeyHash::new(0); 64];
            keys.iter_mut().zip(hashes).for_each(|(key, &hash)| *key = KeyHash::new(hash));
            self.maplet.get_many(&keys[..hashes.len()], values);
            values.iter_mut().for_each(|values| found(mask(std::mem::take(values))));
        }
    }

    /// Adds a run, if an id is free. Returns false if it is to be built anew for this many `pairs`
    /// in all.
    fn add_run<K: HashedKeys>(&mut self, run: &K, pairs: u64) -> Result<bool, Error> {
        let Some(id) = self.names.iter().position(|name| *name == Name::Free) else {
            return Ok(true);
        };
        self.names[id] = Name::Run(run.number(), run.keys());
        self.add(low_byte(id as u64), run, pairs)
    }

    /// Adds the keys of a run. Stops and returns false if a larger maplet is needed for this many
    /// `pairs` in all.
    fn add<K: HashedKeys>(&mut self, id: u8, keys: &K, pairs: u64) -> Result<bool, Error> {
        let (mut batch, ids, mut has_room) = (Vec::new(), [u64::from(id); BATCH], true);
        keys.each_piece(&mut |hashes| {
            for hashes in hashes.chunks(BATCH) {
                batch.clear();
                hashes.iter().try_for_each(|&hash| push(&mut batch, KeyHash::new(hash)))?;
                // Full before it is outgrown: pairs of runs that have gone are left.
                has_room &= self.maplet.insert_many(&batch, &ids[..batch.len()]).is_ok();
            }
            Ok(has_room && !self.is_crowded(pairs))
        })?;
        Ok(has_room && !self.is_crowded(pairs))
    }

    /// Whether more than 0.01 % of the pairs are in the stash, and a larger maplet may help: not at
    /// half the load. Each of them costs a search of some 0.2 ms, and merged runs stay on disk
    /// until the guide has followed.
    fn is_crowded(&self, pairs: u64) -> bool {
        let crowded = self.maplet.stashed_pairs();
        crowded > 16 + pairs / 10_000 && self.maplet.capacity() / 2 < pairs
    }

    fn relabel(&mut self, old: Ids, new: u8) {
        let ids: Vec<u64> = each_id(old).map(u64::from).collect();
        if self.maplet.relabel(&ids, new.into()).is_err() {
            // The engine gives only ids below `most_runs`.
            unreachable!("the id {new} is too wide");
        }
    }

    /// Removes a pair of each hash and the run.
    fn remove(&mut self, surplus: &[u64], id: u8) {
        let ids = [u64::from(id); BATCH];
        let (mut batch, mut removed) = ([KeyHash::new(0); BATCH], [false; BATCH]);
        for hashes in surplus.chunks(BATCH) {
            let len = hashes.len();
            batch.iter_mut().zip(hashes).for_each(|(key, &hash)| *key = KeyHash::new(hash));
            self.maplet.remove_many(&batch[..len], &ids[..len], &mut removed[..len]);
        }
    }

    /// The number of pairs of a hash and a run.
    pub(super) fn pairs(&self) -> u64 {
        self.maplet.len()
    }

    /// The bytes that it takes in memory.
    pub(super) fn bytes(&self) -> u64 {
        self.maplet.size_in_bytes() as u64
    }

    /// The number of pairs that it has room for.
    pub(super) fn capacity(&self) -> u64 {
        self.maplet.capacity()
    }

    /// The number of pairs in the stash.
    pub(super) fn side_len(&self) -> u64 {
        self.maplet.stashed_pairs()
    }

    /// The mean number of candidates of an absent key.
    pub(super) fn false_candidates(&self) -> f64 {
        self.maplet.false_candidates()
    }
}

/// The ids in a mask, ascending.
pub(super) fn each_id(mut ids: Ids) -> impl Iterator<Item = u8> {
    iter::from_fn(move || {
        let id = ids.trailing_zeros();
        ids &= ids.wrapping_sub(1);
        u8::try_from(id).ok().filter(|&id| u32::from(id) < Ids::BITS)
    })
}

#[inline]
fn mask(values: Values<'_>) -> Ids {
    values.fold(0, |ids, id| ids | 1 << id)
}

fn pairs_of<K: HashedKeys>(runs: &[&K]) -> u64 {
    runs.iter().map(|run| run.keys()).sum()
}

/// Whether all hashes of a run can be read.
fn is_readable<K: HashedKeys>(run: &K) -> bool {
    run.each_piece(&mut |_| Ok(true)).is_ok()
}

/// Whether an error is that of a run, which is left out then.
fn is_of_run(error: &Error) -> bool {
    matches!(error, Error::Damaged { .. } | Error::Io { action: "read" | "open", .. })
}

/// The first of the sizes that a guide may have with room for so many pairs.
fn capacity_for(pairs: u64, least: u64) -> u64 {
    let mut capacity = least;
    while capacity < pairs {
        capacity = grown(capacity);
    }
    capacity
}

/// The next size: a quarter more.
fn grown(capacity: u64) -> u64 {
    capacity.saturating_add(capacity / 4 + 1)
}

#[expect(clippy::cast_possible_truncation, reason = "the id of a run, which is below 32")]
const fn low_byte(id: u64) -> u8 {
    id as u8
}
