//! The hot paths in a table that grows: entries are marked fingerprints (packing/marked.rs). They
//! match the keys that they are a prefix of. The two buckets of a key may stand for different
//! numbers of bits, so a key has a fingerprint for each.
//!
//! **False-positive rate.** An entry of n bits beyond its bucket matches one key in 2^n. The rate
//! is known exactly at every moment: it follows from the match weight, the sum of 2^-length over
//! all entries.

use super::{Entry, GrowingLocation, LinearHashing, Place, Prefix, Put, Table, Taken};
use crate::address::geometry::Locations;
use crate::mem::buffer::Buffer;
use crate::mem::prefetch::prefetch;
use crate::packing::{Exact, Layout, Matching, Packing, Prefixed, SLOTS, byte_index, with_packing};

impl<B: AsRef<[u8]>> Table<B> {
    /// The sum of 2^-length of all entries, in units of 2^-64; 0 in a table of one size.
    pub(crate) fn match_weight(&self) -> u128 {
        self.match_weight
    }

    /// The match weight, computed from the buckets. O(buckets).
    pub(crate) fn computed_weight(&self) -> u128 {
        if !self.grows() {
            return 0;
        }
        self.entries().map(|entry| self.addresses.weight(entry.prefix.length)).sum()
    }

    /// Entries that match an absent key on average in a table that grows.
    pub(crate) fn matches_of_an_absent_key(&self) -> f64 {
        self.addresses.matches_of_an_absent_key(self.match_weight)
    }

    /// Whether an entry matches the key of a location in a table that grows.
    ///
    /// Prefetches both buckets before it waits for one. A processor runs a few hundred instructions
    /// ahead of a read that waits. That is as many as lie between the reads of two lookups, so the
    /// next lookup prefetches while this one waits.
    #[inline(always)]
    pub(super) fn contains_location(&self, location: &GrowingLocation) -> bool {
        for leveled in location.leveled_buckets {
            prefetch(self.bytes(), byte_index(leveled.bucket * self.bucket_bits / 8));
        }
        let keys = self.addresses.keys(location);
        with_packing!(&self.packing, packing => {
            let starts = self.starts(location.buckets());
            packing.matches::<Prefixed>(self.bytes(), starts, keys)
        })
    }

    /// [`contains`](Self::contains) in a table that grows. Not inlined, so that lookups in tables
    /// of one size save no register for it.
    #[inline(never)]
    pub(super) fn contains_grown(&self, address: u64) -> bool {
        self.contains_location(&self.addresses.located(address))
    }

    /// [`find_pair`](Self::find_pair) in a table that grows.
    #[inline(never)]
    pub(super) fn find_grown_pair(&self, address: u64) -> Option<((u64, u64), [u64; 2])> {
        let location = self.addresses.located(address);
        let is_there = self.contains_location(&location);
        is_there.then(|| (location.buckets(), self.addresses.keys(&location)))
    }

    /// The longest entry that matches and has this value, and how many do.
    #[inline]
    fn longest_with(&self, location: &GrowingLocation, value: u64) -> Option<(Entry, u64)> {
        let mut matches = 0;
        let has_value = |entry: &Entry| self.layout.value_of(entry.slot) == value;
        let with_value = self.matches(location).filter(has_value);
        let longest = with_value.inspect(|_| matches += 1).max_by_key(|entry| entry.prefix.length);
        longest.map(|entry| (entry, matches))
    }
}

/// Also right in a table of one size, where all code but the hot paths uses it.
impl Place for GrowingLocation {
    const GROWS: bool = true;

    /// Not inlined, so that changes of tables of one size save no register for it.
    #[inline(never)]
    fn locate(addresses: &LinearHashing, address: u64) -> Self {
        addresses.located(address)
    }

    #[inline]
    fn in_block(addresses: &LinearHashing, locations: &Locations, i: usize) -> Self {
        Self::locate(addresses, locations.address(i))
    }

    fn general(&self, _: &LinearHashing) -> Self {
        *self
    }

    fn relocated(&self, addresses: &LinearHashing) -> Self {
        addresses.location(self.prefix).unwrap_or(*self)
    }

    #[inline]
    fn pair(&self) -> (u64, u64) {
        self.buckets()
    }

    #[inline]
    fn fingerprints(&self, addresses: &LinearHashing) -> [u64; 2] {
        self.leveled_buckets.map(|leveled| addresses.fingerprint(&self.prefix, leveled))
    }

    #[inline]
    fn prefix(addresses: &LinearHashing, bucket: u64, fingerprint: u64) -> Prefix {
        addresses.prefix(bucket, fingerprint)
    }

    /// What matches a fingerprint may have more bits than the prefix.
    #[inline]
    fn is_match(&self, prefix: &Prefix) -> bool {
        prefix.is_start_of(&self.prefix)
    }

    #[inline(always)]
    fn other_buckets(
        addresses: &LinearHashing,
        layout: Layout,
        // The origin of a bucket tells its segment.
        _: u64,
        bucket: u64,
        mut slots: [u64; SLOTS],
    ) -> [u64; SLOTS] {
        let origin = addresses.origin(bucket);
        for slot in &mut slots {
            *slot = addresses.other_bucket(&origin, layout.fingerprint_of(*slot));
        }
        slots
    }

    #[inline(never)]
    fn look_up<B: AsRef<[u8]>>(table: &Table<B>, address: u64) -> (Self, bool) {
        let location = table.addresses.located(address);
        (location, table.contains_location(&location))
    }

    fn put(&self, table: &mut Table<Buffer>, value: u64, most: u64) -> Put {
        let keys = self.fingerprints(&table.addresses);
        let slots = keys.map(|key| table.layout.slot(key, value));
        let (grows, starts) = (table.grows(), table.starts(self.buckets()));
        let chosen = with_packing!(&table.packing, packing => {
            let bytes = table.bytes.as_mut();
            if grows {
                put::<_, Prefixed>(packing, bytes, starts, (keys, slots), most)
            } else {
                put::<_, Exact>(packing, bytes, starts, (keys, slots), most)
            }
        });
        match chosen {
            Ok(which) => {
                let length = table.addresses.stored_length(self, which);
                table.match_weight += table.addresses.weight(length);
                Put::Done
            }
            Err(refused) => refused,
        }
    }

    #[inline]
    fn take(
        &self,
        table: &mut Table<Buffer>,
        value: u64,
        is_counted: Option<impl FnOnce(u64) -> bool>,
    ) -> Option<Taken> {
        let Some((longest, matches)) = table.longest_with(self, value) else {
            return Some(Taken::Absent);
        };
        if is_counted.is_some_and(|is_counted| is_counted(table.name(&longest))) {
            return None;
        }
        table.overwrite(&longest, 0);
        Some(if matches == 1 { Taken::Last } else { Taken::Copy })
    }

    fn revalue(&self, table: &mut Table<Buffer>, old: u64, new: u64) -> bool {
        let Some((longest, _)) = table.longest_with(self, old) else { return false };
        let slot = table.layout.slot(table.layout.fingerprint_of(longest.slot), new);
        table.overwrite(&longest, slot);
        true
    }
}

/// Fills an empty slot of the emptier bucket of a pair with the slot for that bucket, if at most
/// `most` entries match the keys. Returns which bucket it was.
#[inline(always)]
fn put<P: Packing, M: Matching>(
    packing: &P,
    bytes: &mut [u8],
    starts: [u64; 2],
    (keys, slots): ([u64; 2], [u64; 2]),
    most: u64,
) -> Result<usize, Put> {
    if packing.matches::<M>(bytes, starts, keys) {
        let copies = packing.candidates::<M>(bytes, starts, keys).count_left() as u64;
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
