//! A table that grows: which entries match a key, and how a bucket is split.
//!
//! Entries are marked fingerprints (packing/marked.rs) under the addresses of `LinearHashing`. The
//! two buckets of a key may stand for different numbers of bits, so a key has a fingerprint for
//! each.

use super::linear_hashing::{GrowingLocation, LeveledBucket, LinearHashing};
use super::{Addressing, Prefix, Prefixes, Put, Table, table_bytes};
use crate::mem::buffer::Buffer;
use crate::mem::prefetch::prefetch;
use crate::packing::{Bucket, Layout, Packing, Prefixed, SLOTS, byte_index, with_packing};

impl<B: AsRef<[u8]>> Table<B, LinearHashing> {
    /// Whether either bucket of the key with this hash has an entry that matches it. O(1): two
    /// loads, no branch on the data.
    ///
    /// Asks the memory for both buckets before it waits for one. A processor runs a few hundred
    /// instructions beyond a read that waits, and so many are between the reads of one lookup and
    /// those of the next: so the next one asks while this one waits.
    #[inline(always)]
    pub(crate) fn contains_hash(&self, hash: u64) -> bool {
        let location = self.geometry.locate(hash);
        for leveled in location.leveled_buckets {
            prefetch(self.bytes(), byte_index(leveled.bucket * self.bucket_bits / 8));
        }
        let keys = self.keys(&location);
        with_packing!(&self.packing, packing => {
            let starts = self.starts(packing, location.buckets());
            packing.matches::<Prefixed>(self.bytes(), starts, keys)
        })
    }

    /// The longest fingerprint that the key of `location` has in each of its buckets.
    #[inline(always)]
    pub(crate) fn keys(&self, location: &GrowingLocation) -> [u64; 2] {
        let Prefix { core, string, .. } = location.prefix;
        location
            .leveled_buckets
            .map(|leveled| self.geometry.marked().longest(core, string >> leveled.level))
    }

    /// The longest fingerprint that the prefix of `location` has in each of its buckets.
    #[inline(always)]
    pub(crate) fn fingerprints(&self, location: &GrowingLocation) -> [u64; 2] {
        location.leveled_buckets.map(|leveled| self.geometry.fingerprint(&location.prefix, leveled))
    }
}

impl Table<Buffer, LinearHashing> {
    /// A table as it is when nothing is in it; `None` where its bytes cannot be addressed or had.
    pub(crate) fn stretched(geometry: LinearHashing, layout: Layout) -> Option<Self> {
        let bytes = table_bytes(layout, geometry.buckets())?;
        Some(Self::new(geometry, layout, Buffer::zeroed(bytes, true)?))
    }

    /// Fills an empty slot of the emptier bucket of `location` with the longest fingerprint and
    /// `value`, where at most `most` entries match.
    #[inline]
    pub(crate) fn put_at(
        &mut self,
        location: &GrowingLocation,
        value: u64,
        most: u64,
    ) -> Result<LeveledBucket, Put> {
        let keys = self.fingerprints(location);
        let slots = keys.map(|key| self.layout.slot(key, value));
        let chosen = with_packing!(&self.packing, packing => {
            let starts = self.starts(packing, location.buckets());
            put(packing, self.bytes.as_mut(), starts, (keys, slots), most)
        })?;
        Ok(location.leveled_buckets[chosen])
    }

    /// Splits the next bucket of the level. Hands void entries, which are in both halves from now
    /// on, to `doubled`.
    pub(crate) fn split_next(&mut self, doubled: &mut impl FnMut(&LinearHashing, Prefix)) {
        let (lower, upper) = (self.geometry.next_to_split(), self.geometry.buckets());
        let needed = table_bytes(self.layout, upper + 1);
        assert!(
            needed.is_some_and(|bytes| bytes <= self.bytes().len()),
            "`extend` makes room first"
        );
        let from = self.geometry.origin(lower);
        let mut halves = [[0; SLOTS]; 2];
        for (i, slot) in self.read(lower).0.into_iter().enumerate().filter(|&(_, slot)| slot != 0) {
            let (fingerprint, value) =
                (self.layout.fingerprint_of(slot), self.layout.value_of(slot));
            match self.geometry.half(&from, fingerprint) {
                Some((upper, rest)) => {
                    halves[usize::from(upper)][i] = self.layout.slot(rest, value);
                }
                None => {
                    halves.iter_mut().for_each(|half| half[i] = slot);
                    doubled(&self.geometry, self.geometry.prefix(lower, fingerprint));
                }
            }
        }
        self.write(lower, Bucket(halves[0]));
        self.write(upper, Bucket(halves[1]));
        self.geometry.advance();
        self.end += self.bucket_bits;
    }

    /// Makes room behind the last bucket for so many more; false, and nothing changed, where that
    /// cannot be addressed or had.
    pub(crate) fn extend(&mut self, buckets: u64) -> bool {
        let total = self.geometry.buckets() + buckets;
        table_bytes(self.layout, total).is_some_and(|bytes| self.bytes.grow(bytes))
    }
}

/// Fills an empty slot of the emptier bucket of a pair, the first or the second, with the slot for
/// that one, where at most `most` entries match the keys.
#[inline(always)]
fn put<P: Packing>(
    packing: &P,
    bytes: &mut [u8],
    starts: [u64; 2],
    (keys, slots): ([u64; 2], [u64; 2]),
    most: u64,
) -> Result<usize, Put> {
    if packing.matches::<Prefixed>(bytes, starts, keys) {
        let copies = packing.candidates::<Prefixed>(bytes, starts, keys).count_left() as u64;
        if copies > most {
            return Err(Put::Repeated(copies));
        }
    }
    let vacancies = starts.map(|start| packing.vacancies(bytes, start));
    let chosen = usize::from(vacancies[1] > vacancies[0]);
    if vacancies[chosen] == 0 {
        return Err(Put::Full);
    }
    packing.replace(bytes, starts[chosen], 0, slots[chosen]);
    Ok(chosen)
}
