//! A table that grows: which entries match a key, and how a bucket is split.
//!
//! Entries are marked fingerprints (layout/marked.rs) under the addresses of `Stretch`. The two buckets of a key may stand for different numbers of bits, so a key has a
//! fingerprint for each.

use super::Prefixes;
use super::stretch::{Prefix, Site, Spot, Stretch};
use super::{Addressing, Put, Table, table_bytes};
use crate::buffer::Buffer;
use crate::layout::{Apart, Bucket, Form, Layout, Quad, SLOTS, Word};
use crate::unchecked;

impl<B: AsRef<[u8]>> Table<B, Stretch> {
    /// Whether either bucket of the key with this hash has an entry that matches it. O(1): two loads, no branch on the data.
    #[inline(always)]
    #[expect(unsafe_code, reason = "loads without a check, which are a twentieth of a lookup")]
    pub(crate) fn contains_hash(&self, hash: u64) -> bool {
        let site = self.geometry.locate(hash);
        // SAFETY: `locate` gives buckets below `geometry.buckets()`.
        unsafe { in_any_form!(self, contains_in(&site)) }
    }

    /// Asks the memory for both buckets before it waits for one. A processor runs a few hundred instructions beyond a read that waits, and so many are between the reads of one
    /// lookup and those of the next: so the next one asks while this one waits.
    ///
    /// # Safety
    /// Both buckets are in the table.
    #[inline(always)]
    #[expect(unsafe_code, reason = "loads without a check, which are a twentieth of a lookup")]
    unsafe fn contains_in<W: Word, const SORTED: bool>(&self, site: &Site) -> bool {
        for spot in site.spots {
            self.prefetch_byte(spot.bucket * self.lanes.bucket_bits());
        }
        let keys = self.keys(site);
        // SAFETY: all of the table's buckets are in `bytes`, with 16 bytes behind them: `new` and `split_next` have seen it. `pair_matches_by` reads at most ten from the start of one.
        let read = |byte: usize| unsafe { unchecked::read(self.bytes.as_ref(), byte) };
        self.pair_matches_by::<W, SORTED>(site.buckets(), keys, read)
    }

    /// The longest fingerprint that the key of `site` has in each of its buckets.
    #[inline(always)]
    pub(crate) fn keys(&self, site: &Site) -> [u64; 2] {
        let Prefix { core, string, .. } = site.prefix;
        site.spots.map(|spot| self.geometry.marked().longest(core, string >> spot.level))
    }

    /// The longest fingerprint that the prefix of `site` has in each of its buckets.
    #[inline(always)]
    fn fingerprints(&self, site: &Site) -> [u64; 2] {
        site.spots.map(|spot| self.geometry.fingerprint(&site.prefix, spot))
    }
}

impl Table<Buffer, Stretch> {
    /// A table as it is when nothing is in it; `None` where its bytes cannot be addressed or had.
    pub(crate) fn stretched(geometry: Stretch, layout: Layout) -> Option<Self> {
        let bytes = table_bytes(layout, geometry.buckets())?;
        Some(Self::new(geometry, layout, Buffer::zeroed(bytes, true)?))
    }

    /// Fills an empty slot of the emptier bucket of `site` with the longest fingerprint and `value`, where at most `most` entries match.
    #[inline]
    pub(crate) fn put_at(&mut self, site: &Site, value: u64, most: u64) -> Result<Spot, Put> {
        in_any_form!(self, put_at_in(site, value, most))
    }

    #[inline(always)]
    fn put_at_in<W: Word, const SORTED: bool>(
        &mut self,
        site: &Site,
        value: u64,
        most: u64,
    ) -> Result<Spot, Put> {
        let keys = self.fingerprints(site);
        let pair = site.buckets();
        if self.pair_matches_in::<W, SORTED>(pair, keys) {
            let copies = self.matches_in::<W, SORTED>(pair, keys);
            if copies > most {
                return Err(Put::Repeated(copies));
            }
        }
        let vacancies = [pair.0, pair.1].map(|bucket| self.vacancies_in::<W, SORTED>(bucket));
        let chosen = usize::from(vacancies[1] > vacancies[0]);
        if vacancies[chosen] == 0 {
            return Err(Put::Full);
        }
        let spot = site.spots[chosen];
        self.replace_in::<W, SORTED>(spot.bucket, 0, self.layout.slot(keys[chosen], value));
        Ok(spot)
    }

    /// How many entries of the pair match the key.
    #[cold]
    fn matches_in<W: Word, const SORTED: bool>(&self, pair: (u64, u64), keys: [u64; 2]) -> u64 {
        let words = self.load_pair::<W, SORTED>(pair);
        let matching = |i: usize| self.lanes.matching::<W, SORTED>(words[i], keys[i]);
        let other = if pair.0 == pair.1 { 0 } else { self.lanes.count(matching(1)) };
        self.lanes.count(matching(0)) + other
    }

    /// Splits the next bucket of the level. Hands void entries, which are in both halves from now on, to `doubled`.
    pub(crate) fn split_next(&mut self, doubled: &mut impl FnMut(&Stretch, Prefix)) {
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
    }

    /// Makes room behind the last bucket for so many more; false, and nothing changed, where that cannot be addressed or had.
    pub(crate) fn extend(&mut self, buckets: u64) -> bool {
        let total = self.geometry.buckets() + buckets;
        table_bytes(self.layout, total).is_some_and(|bytes| self.bytes.grow(bytes))
    }

    /// Writes the whole bucket.
    pub(crate) fn write(&mut self, bucket: u64, slots: Bucket) {
        match self.lanes.form() {
            Form::Apart => self.store_apart(bucket, slots.0),
            Form::Quad => self.store::<Quad, false>(bucket, slots.0.into()),
            _ => self.store::<u128, true>(bucket, self.layout.encode(slots)),
        }
    }
}
