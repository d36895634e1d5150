//! The guide: which runs may hold a key, for all runs at once.
//!
//! A `koel::Maplet` maps the hash of a key to the ids of the runs that have it, one slot for each
//! distinct key of a run: 11 bits of fingerprint and 5 of id. A lookup reads two buckets, however
//! many runs there are. What finds no slot is in an exact map (`side.rs`).
//!
//! * A guide never changes. A flush or a merge makes the next one from a copy, and readers keep
//!   theirs until they are done.
//! * It never misses a run that has the key. An absent key has 0.004 candidates on average.
//! * It is not the truth: it is built from the hashes of the tables, and can be built again at any
//!   time. Without one, a read asks every run.
//! * Every key of a run was added once for each time that its hash is among the hashes of the run.
//!   So pairs can be moved and removed one by one, though equal ones cannot be told apart.
//!
//! Cost for each million pairs: 2 MB; a millisecond for a copy, one for new ids, 100 ms to build.
//! docs/decisions/0027-guide.md has the figures.

mod side;
#[cfg(test)]
mod tests;

use std::{array, iter};

use koel::{InsertError, KeyHash, Maplet, Values};
use side::Side;

use super::table::Table;
use crate::Error;
use crate::kernel::memory::push;

/// A mask of the ids of runs.
pub(super) type Ids = u32;

/// The most false candidates of an absent key, on average.
const RATE: f64 = 0.004;
/// Pairs are added and removed in batches of this many.
const BATCH: usize = 4096;
/// A pair that finds no slot although its hash has fewer candidates than this lacks room. With more
/// the key is in many runs, and a larger maplet would not help.
const MANY_RUNS: usize = 4;

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
    /// How many there are.
    fn keys(&self) -> u64;

    /// Passes them to `take`, piece by piece, until it returns false.
    fn each_piece(&self, take: &mut dyn FnMut(&[u64]) -> Result<bool, Error>) -> Result<(), Error>;
}

impl HashedKeys for Table {
    fn keys(&self) -> u64 {
        self.info().keys
    }

    fn each_piece(&self, take: &mut dyn FnMut(&[u64]) -> Result<bool, Error>) -> Result<(), Error> {
        let (mut hashes, mut piece) = (self.hashes(), Vec::new());
        while hashes.next(&mut piece)? && take(&piece)? {}
        Ok(())
    }
}

/// Which runs may hold a key.
#[derive(Debug)]
pub(super) struct Guide {
    maplet: Maplet,
    side: Side,
    /// Pairs that went to the side for lack of room since it was built.
    crowded: u64,
    options: GuideOptions,
}

impl Guide {
    /// The guide of these runs and their ids. Reads all hashes.
    pub(super) fn build<K: HashedKeys + ?Sized>(
        runs: &[(u8, &K)],
        options: GuideOptions,
    ) -> Result<Self, Error> {
        let pairs = pairs_of(runs);
        let mut capacity = capacity_for(pairs, options.least);
        loop {
            let mut guide = Self::empty(capacity, options)?;
            let mut has_room = true;
            for &(id, keys) in runs {
                has_room = has_room && guide.add(id, keys, pairs)?;
            }
            if has_room {
                return Ok(guide);
            }
            // Ends when more room would not help: see `is_crowded`.
            capacity = grown(capacity);
        }
    }

    fn empty(capacity: u64, options: GuideOptions) -> Result<Self, Error> {
        let builder = Maplet::builder(capacity, RATE, options.id_bits).trust_hashes();
        let bytes = capacity.saturating_mul(2);
        let maplet = builder.build().map_err(|_| Error::OutOfMemory { bytes })?;
        Ok(Self { maplet, side: Side::default(), crowded: 0, options })
    }

    fn try_clone(&self) -> Result<Self, Error> {
        let bytes = self.bytes();
        let maplet = self.maplet.try_clone().map_err(|_| Error::OutOfMemory { bytes })?;
        let side = self.side.try_clone().map_err(|_| Error::OutOfMemory { bytes })?;
        Ok(Self { maplet, side, crowded: self.crowded, options: self.options })
    }

    /// The runs that may hold the key with this hash.
    #[inline]
    pub(super) fn candidates(&self, hash: u64) -> Ids {
        mask(self.maplet.get(&KeyHash::new(hash))) | self.side.ids(hash)
    }

    /// [`candidates`](Self::candidates) for each of `hashes`, in the same order.
    pub(super) fn candidates_of_many(&self, hashes: &[u64], mut found: impl FnMut(Ids)) {
        let mut values: [Values; 64] = array::from_fn(|_| Values::default());
        for hashes in hashes.chunks(values.len()) {
            let values = &mut values[..hashes.len()];
            let mut keys = [KeyHash::new(0); 64];
            keys.iter_mut().zip(hashes).for_each(|(key, &hash)| *key = KeyHash::new(hash));
            self.maplet.get_many(&keys[..hashes.len()], values);
            for (values, &hash) in values.iter().zip(hashes) {
                found(mask(values.clone()) | self.side.ids(hash));
            }
        }
    }

    /// The guide after a flush or an ingestion: `all` runs are those of this guide and a new one.
    pub(super) fn with_run<K: HashedKeys + ?Sized>(
        &self,
        (id, keys): (u8, &K),
        all: &[(u8, &K)],
    ) -> Result<Self, Error> {
        let pairs = pairs_of(all);
        if pairs > self.maplet.capacity() {
            return Self::build(all, self.options);
        }
        let mut next = self.try_clone()?;
        let has_room = next.add(id, keys, pairs)?;
        if has_room && next.pairs() == pairs { Ok(next) } else { Self::build(all, self.options) }
    }

    /// The guide after a merge of the runs `inputs`. `all` are the runs afterwards.
    ///
    /// `output` may have the id of an input; `None` if the merge left no entries. `surplus` has the
    /// hash of a key once for each input that had the key, but one fewer if the output has it. If
    /// there were too many of them to keep, the guide is built anew.
    pub(super) fn with_merge<K: HashedKeys + ?Sized>(
        &self,
        inputs: Ids,
        output: Option<u8>,
        surplus: Option<&[u64]>,
        all: &[(u8, &K)],
    ) -> Result<Self, Error> {
        let pairs = pairs_of(all);
        let is_sparse = self.maplet.capacity() > self.options.least
            && pairs.saturating_mul(3) < self.maplet.capacity();
        let (Some(surplus), false) = (surplus, is_sparse) else {
            return Self::build(all, self.options);
        };
        let mut next = self.try_clone()?;
        if let Some(id) = output.or_else(|| each_id(inputs).next()) {
            next.relabel(inputs, id)?;
            next.remove(surplus, id);
        }
        if next.pairs() == pairs { Ok(next) } else { Self::build(all, self.options) }
    }

    /// Adds the keys of a run. Stops and returns false if a larger maplet is needed for this many
    /// `pairs` in all.
    fn add<K: HashedKeys + ?Sized>(&mut self, id: u8, keys: &K, pairs: u64) -> Result<bool, Error> {
        let (mut batch, ids) = (Vec::new(), [u64::from(id); BATCH]);
        keys.each_piece(&mut |hashes| {
            for hashes in hashes.chunks(BATCH) {
                batch.clear();
                for &hash in hashes {
                    // A key in many runs: the search for a slot would be in vain again.
                    if self.side.ids(hash) != 0 {
                        self.add_to_side(hash, id)?;
                    } else {
                        push(&mut batch, KeyHash::new(hash))?;
                    }
                }
                self.insert(&batch, &ids)?;
            }
            Ok(!self.is_crowded(pairs))
        })?;
        Ok(!self.is_crowded(pairs))
    }

    /// Inserts a batch into the maplet, and what finds no slot into the side map.
    fn insert(&mut self, mut batch: &[KeyHash], ids: &[u64; BATCH]) -> Result<(), Error> {
        while !batch.is_empty() {
            let before = self.maplet.len();
            match self.maplet.insert_many(batch, &ids[..batch.len()]) {
                Ok(()) => return Ok(()),
                Err(InsertError::Full(_)) => {}
                // The engine gives only ids below `most_runs`.
                Err(error) => unreachable!("{error}"),
            }
            // A batch has at most `BATCH` keys.
            let inserted = usize::try_from(self.maplet.len() - before).unwrap_or(BATCH);
            let (hash, rest) = (batch[inserted], &batch[inserted + 1..]);
            self.crowded += u64::from(self.maplet.get(&hash).len() < MANY_RUNS);
            self.add_to_side(hash.get(), low_byte(ids[0]))?;
            batch = rest;
        }
        Ok(())
    }

    fn add_to_side(&mut self, hash: u64, id: u8) -> Result<(), Error> {
        let bytes = self.side.bytes();
        self.side.add(hash, id).map_err(|_| Error::OutOfMemory { bytes })
    }

    /// Whether more than 1 % of the hashes are in the side map for lack of room, and a larger
    /// maplet would help. At half the load it would not.
    fn is_crowded(&self, pairs: u64) -> bool {
        let crowded = self.crowded.min(self.side.len());
        crowded > 16 + pairs / 100 && self.maplet.capacity() / 2 < pairs
    }

    fn relabel(&mut self, old: Ids, new: u8) -> Result<(), Error> {
        let ids: Vec<u64> = each_id(old).map(u64::from).collect();
        if self.maplet.relabel(&ids, new.into()).is_err() {
            // The engine gives only ids below `most_runs`.
            unreachable!("the id {new} is too wide");
        }
        let bytes = self.side.bytes();
        self.side.relabel(old, new).map_err(|_| Error::OutOfMemory { bytes })
    }

    /// Removes a pair of each hash and the run.
    fn remove(&mut self, surplus: &[u64], id: u8) {
        let ids = [u64::from(id); BATCH];
        let (mut batch, mut removed) = ([KeyHash::new(0); BATCH], [false; BATCH]);
        for hashes in surplus.chunks(BATCH) {
            let mut len = 0;
            for &hash in hashes {
                if !self.side.remove(hash, id) {
                    batch[len] = KeyHash::new(hash);
                    len += 1;
                }
            }
            self.maplet.remove_many(&batch[..len], &ids[..len], &mut removed[..len]);
        }
    }

    /// The number of pairs of a hash and a run.
    fn pairs(&self) -> u64 {
        self.maplet.len() + self.side.pairs()
    }

    /// The bytes that it takes in memory.
    pub(super) fn bytes(&self) -> u64 {
        self.maplet.size_in_bytes() as u64 + self.side.bytes()
    }

    /// The number of pairs that it has room for.
    pub(super) fn capacity(&self) -> u64 {
        self.maplet.capacity()
    }

    /// The number of hashes in the side map.
    pub(super) fn side_len(&self) -> u64 {
        self.side.len()
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
fn mask(values: Values) -> Ids {
    values.fold(0, |ids, id| ids | 1 << id)
}

fn pairs_of<K: HashedKeys + ?Sized>(runs: &[(u8, &K)]) -> u64 {
    runs.iter().map(|(_, keys)| keys.keys()).sum()
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
