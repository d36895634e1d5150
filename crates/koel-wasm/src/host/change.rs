//! What builds, changes, merges and compares filters: all that koel-filter/reader does without.

use alloc::vec::Vec;
use core::mem;

use koel::{BuildError, CuckooFilter, KeyHash, Merge, Prefer};

use super::ask::reading;
use super::{Host, Keys, first, malformed, zeroed};
use crate::failure::Failure;

/// What a filter is built with.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Distinct keys to make room for.
    pub capacity: u64,
    /// The false-positive rate.
    pub error_rate: f64,
    /// Keys that a growing filter has room for at first. 0: one table of the whole capacity.
    pub grow_from: u64,
    /// Whether a filter of the whole capacity grows when it is full.
    pub growable: bool,
    /// Whether to optimise for speed instead of size.
    pub fast: bool,
    /// The seed of the hash.
    pub seed: u64,
    /// The secret of the hash, instead of a seed.
    pub secret: Option<[u8; 16]>,
}

impl Settings {
    fn build(&self) -> Result<CuckooFilter, BuildError> {
        let prefer = if self.fast { Prefer::Fast } else { Prefer::Small };
        let builder = CuckooFilter::builder(self.capacity, self.error_rate);
        let builder = match self.secret {
            Some(secret) => builder.prefer(prefer).sip_key(secret),
            None => builder.prefer(prefer).seed(self.seed),
        };
        match (self.grow_from, self.growable) {
            (0, false) => builder.build(),
            (0, true) => builder.growable().build(),
            (keys, _) => builder.grow_from(keys).build(),
        }
    }
}

/// What the last batch has added.
#[derive(Debug)]
pub(super) struct Added {
    /// How many keys are done.
    done: usize,
    /// Whether each of these was added.
    added: Vec<bool>,
}

impl Added {
    pub(super) const NONE: Self = Self { done: 0, added: Vec::new() };
}

impl Host {
    /// Builds an empty filter, and returns its handle.
    ///
    /// # Errors
    /// If the library refuses the settings.
    pub fn build(&mut self, settings: &Settings) -> Result<u32, Failure> {
        let filter = settings.build()?;
        self.keep(filter)
    }

    /// The filter of a handle, to change it, and the input buffer.
    pub(crate) fn change(&mut self, handle: u32) -> Result<(&mut CuckooFilter, &[u8]), Failure> {
        Ok((self.filters.get_mut(handle)?, &self.input))
    }

    /// Adds the key in the first `len` bytes of the input buffer.
    ///
    /// # Errors
    /// If the filter is full.
    pub fn add(&mut self, handle: u32, len: usize) -> Result<(), Failure> {
        let (filter, input) = self.change(handle)?;
        Ok(filter.insert(&reading(filter)?.hash(first(input, len)?)?)?)
    }

    /// Removes one copy of such a key. False if no entry matches it.
    ///
    /// # Errors
    /// None that the library has.
    pub fn delete(&mut self, handle: u32, len: usize) -> Result<bool, Failure> {
        let (filter, input) = self.change(handle)?;
        Ok(filter.remove(&reading(filter)?.hash(first(input, len)?)?))
    }

    /// Adds such a key unless it is in. Whether it was added.
    ///
    /// # Errors
    /// If the filter is full.
    pub fn add_unique(&mut self, handle: u32, len: usize) -> Result<bool, Failure> {
        let (filter, input) = self.change(handle)?;
        Ok(filter.insert_unique(&reading(filter)?.hash(first(input, len)?)?)?)
    }

    /// Adds each key of a batch, up to the first one that finds no room.
    ///
    /// # Errors
    /// If the filter is full. [`done`](Self::done) keys are in then.
    pub fn add_many(&mut self, handle: u32, keys: Keys) -> Result<(), Failure> {
        self.batch.done = 0;
        let (filter, input) = self.change(handle)?;
        let before = filter.len();
        let worked = filter.insert_many(&reading(filter)?.hashes(input, keys)?);
        let added = filter.len() - before;
        self.batch.done = usize::try_from(added).unwrap_or(usize::MAX);
        Ok(worked?)
    }

    /// Adds each key of a batch unless it is in, up to the first one that finds no room. Outputs a
    /// byte for each: whether it was added.
    ///
    /// # Errors
    /// If the filter is full. [`done`](Self::done) keys are done then, and
    /// [`put_added`](Self::put_added) outputs their answers.
    pub fn add_unique_many(&mut self, handle: u32, keys: Keys) -> Result<(), Failure> {
        self.batch = Added { done: 0, added: zeroed(keys.len())? };
        self.reserve_output(keys.len())?;
        let mut added = mem::take(&mut self.batch.added);
        let (filter, input) = self.change(handle)?;
        let keys = reading(filter)?.hashes(input, keys)?;
        let worked = filter.insert_unique_many(&keys, &mut added);
        let is_done = |&key: &usize| added[key] || filter.contains(&keys[key]);
        let done = (0..keys.len()).take_while(is_done).count();
        // The library adds some of many keys out of order. None after the one that failed stays.
        for key in (done..keys.len()).filter(|&key| added[key] && worked.is_err()) {
            filter.remove(&keys[key]);
        }
        added.truncate(done);
        self.batch = Added { done, added };
        worked?;
        self.put_added();
        Ok(())
    }

    /// How many keys of the last batch are done: all before the one that failed.
    #[must_use]
    pub fn done(&self) -> usize {
        self.batch.done
    }

    /// Outputs whether each key of the last batch was added. The memory is reserved.
    pub fn put_added(&mut self) {
        let added = mem::take(&mut self.batch.added);
        self.output.clear();
        self.output_flags(&added);
    }

    /// Adds the keys of another filter: with the sum of both counts, or with the larger one.
    ///
    /// # Errors
    /// If both were not built alike, or the union does not fit. Nothing has changed then.
    pub fn merge(&mut self, handle: u32, other: u32, counts: Merge) -> Result<(), Failure> {
        // In a copy, so that both may be one filter. The library copies this one anyway.
        let mut union = self.filter(handle)?.try_clone()?;
        union.merge(self.filter(other)?, counts)?;
        *self.change(handle)?.0 = union;
        Ok(())
    }

    /// Tells the filter that such a key was not added. Whether it got a correction.
    ///
    /// # Errors
    /// If there are as many corrections as slots.
    pub fn refute(&mut self, handle: u32, len: usize) -> Result<bool, Failure> {
        let (filter, input) = self.change(handle)?;
        Ok(filter.refute(&reading(filter)?.hash(first(input, len)?)?)?)
    }

    /// Outputs the hashes of those keys of a batch that are reported, eight bytes each.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn reported(&mut self, handle: u32, keys: Keys) -> Result<(), Failure> {
        let filter = self.filter(handle)?;
        let mut found = zeroed(keys.len())?;
        let hashes = reading(filter)?.hashes(&self.input, keys)?;
        filter.contains_many(&hashes, &mut found);
        self.reserve_output(found.len().saturating_mul(8))?;
        let reported = hashes.iter().zip(found).filter(|(_, found)| *found);
        self.output.extend(reported.flat_map(|(hash, _)| hash.get().to_le_bytes()));
        Ok(())
    }

    /// Refutes the keys with so many hashes in the input buffer, all or none: those of `asked` keys
    /// that are reported. `None` refutes them whatever their number.
    ///
    /// # Errors
    /// If more are reported than chance explains, or if there would be more corrections than slots.
    /// Nothing has changed then.
    pub fn refute_many(
        &mut self,
        handle: u32,
        count: usize,
        asked: Option<u64>,
    ) -> Result<(), Failure> {
        let (filter, input) = self.change(handle)?;
        let bytes = input.as_chunks().0.get(..count).ok_or_else(malformed)?;
        let mut different = Vec::new();
        different.try_reserve_exact(count).map_err(|_| Failure::no_memory())?;
        different.extend(bytes.iter().map(|&hash| u64::from_le_bytes(hash)));
        different.sort_unstable();
        different.dedup();
        if let Some(asked) = asked {
            filter.check_refutation(asked, different.len() as u64)?;
        }
        let hashes: Vec<_> = different.into_iter().map(KeyHash::new).collect();
        filter.force_refute_many(&hashes)?;
        Ok(())
    }

    /// Outputs the patch that makes the filter `new` of this one.
    ///
    /// # Errors
    /// If both were not built alike, or the new keys find no room.
    pub fn patch_to(&mut self, handle: u32, new: u32) -> Result<(), Failure> {
        self.output = self.filter(handle)?.patch_to(self.filter(new)?)?;
        Ok(())
    }

    /// Removes a copy of each key of a batch. Outputs a byte for each: whether it was removed.
    ///
    /// # Errors
    /// If there is no memory for the answers; then nothing was removed.
    pub fn delete_many(&mut self, handle: u32, keys: Keys) -> Result<(), Failure> {
        let mut removed = zeroed(keys.len())?;
        self.reserve_output(removed.len())?;
        let (filter, input) = self.change(handle)?;
        filter.remove_many(&reading(filter)?.hashes(input, keys)?, &mut removed);
        self.output_flags(&removed);
        Ok(())
    }
}
