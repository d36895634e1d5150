//! Questions to a table of one size: where a key may be is what `Geometry` says.

use super::{Addressing, Table};
use crate::geometry::{Column, Geometry, Place, Places, low_half};
use crate::layout::{Form, Lanes, Quad, SLOTS, Word};
use crate::placement::Neighbourhood;
use crate::vector::InstructionSet;

/// An entry matches the key whose fingerprint it is.
impl Addressing for Geometry {
    #[inline]
    fn buckets(&self) -> u64 {
        self.buckets()
    }

    #[inline]
    fn locate_many(
        &self,
        set: InstructionSet,
        bucket_bits: u64,
        hash: impl FnOnce(&mut Column),
        places: &mut Places,
    ) {
        self.locate_many(set, bucket_bits, hash, places);
    }

    #[inline(always)]
    fn keys(places: &Places, i: usize) -> [u64; 2] {
        [places.fingerprints()[i]; 2]
    }

    #[inline(always)]
    fn matching<W: Word, const SORTED: bool>(lanes: &Lanes, word: W, key: u64) -> W {
        lanes.alike::<W, SORTED>(word, lanes.pattern::<W, SORTED>(key))
    }

    /// The keys are one: a fingerprint is the same in both buckets.
    #[inline(always)]
    fn pair_matches<const SORTED: bool>(
        lanes: &Lanes,
        words: [(u64, u64); 2],
        [key, _]: [u64; 2],
    ) -> bool {
        lanes.pair_has::<SORTED>(words, key)
    }

    #[inline(always)]
    fn matching_byte<const SORTED: bool>(
        lanes: &Lanes,
        words: [(u64, u64); 2],
        [key, _]: [u64; 2],
    ) -> u8 {
        lanes.match_byte::<SORTED>(words, lanes.pattern::<u64, SORTED>(key))
    }
}

impl<B: AsRef<[u8]>> Table<B> {
    /// Whether either bucket of `place` holds its fingerprint. O(1): two loads, no branch on the data.
    #[inline(always)]
    pub(crate) fn contains(&self, place: &Place) -> bool {
        let (pair, fingerprint) = (place.buckets(), place.fingerprint);
        match self.lanes.form() {
            Form::Plain => self.pair_matches_in::<u64, false>(pair, [fingerprint; 2]),
            Form::Sorted => self.pair_matches_in::<u64, true>(pair, [fingerprint; 2]),
            _ => self.contains_wide(pair, fingerprint),
        }
    }

    /// Cold, so that no register is saved for it where buckets have at most 64 bits.
    #[cold]
    fn contains_wide(&self, pair: (u64, u64), fingerprint: u64) -> bool {
        in_form!(self, pair_matches_in(pair, [fingerprint; 2]))
    }

    /// How many entries of the pair of buckets equal `slot`.
    pub(crate) fn copies(&self, place: &Place, slot: u64) -> u64 {
        in_form!(self, copies_in(place, slot))
    }

    fn copies_in<W: Word, const SORTED: bool>(&self, place: &Place, slot: u64) -> u64 {
        self.pair::<W, SORTED>(self.bits(place), slot).copies(&self.lanes)
    }

    /// The bits of the table that the two buckets of `place` start at.
    #[inline(always)]
    pub(crate) fn bits(&self, place: &Place) -> [u64; 2] {
        let (home, alternate) = place.buckets();
        [home, alternate].map(|bucket| bucket * self.lanes.bucket_bits())
    }

    /// Asks the memory for the two buckets of `place`.
    #[inline]
    pub(crate) fn prefetch_place(&self, place: &Place) {
        self.bits(place).iter().for_each(|&bit| self.prefetch(bit));
    }

    #[inline(always)]
    fn neighbours_in<W: Word, const SORTED: bool>(&self, base: u64, bucket: u64) -> ([u64; SLOTS], [u64; SLOTS]) {
        let local = low_half(bucket - base);
        let slots = self.slots_in::<W, SORTED>(bucket);
        let mut others = slots;
        for other in &mut others {
            let fingerprint = self.layout.fingerprint_of(*other);
            *other = base + u64::from(self.geometry.alternate(local, fingerprint));
        }
        (slots, others)
    }

    /// The place of every entry, those stored twice only once. O(buckets).
    pub(crate) fn distinct_entries(&self) -> impl Iterator<Item = Place> {
        let segment_buckets = self.geometry.segment_buckets();
        let segments = (0..self.geometry.buckets()).step_by(segment_buckets as usize);
        segments.flat_map(move |base| {
            (0..segment_buckets).flat_map(move |home| self.first_entries(base, home))
        })
    }

    /// The entries of a bucket that stand in no slot before, of this bucket or of an earlier one.
    fn first_entries(&self, base: u64, home: u32) -> impl Iterator<Item = Place> {
        let bucket = self.read(base + u64::from(home)).0;
        (0..bucket.len()).filter_map(move |i| {
            let slot = bucket[i];
            let fingerprint = self.layout.fingerprint_of(slot);
            let alternate = self.geometry.alternate(home, fingerprint);
            let place = Place { base, home, alternate, fingerprint };
            let earlier = || self.read(base + u64::from(alternate)).copies(slot) > 0;
            let repeated = bucket[..i].contains(&slot) || (alternate < home && earlier());
            (slot != 0 && !repeated).then_some(place)
        })
    }
}

/// A table whose form is known.
struct InForm<'a, B, W, const SORTED: bool>(&'a Table<B>, core::marker::PhantomData<W>);

impl<B: AsRef<[u8]>> Table<B> {
    pub(crate) fn way_to_room(&self, search: &mut crate::placement::Search, place: &Place, spares: crate::placement::Spares) -> Option<crate::placement::Plan> {
        in_form!(self, way_to_room_in(search, place, spares))
    }

    #[inline(never)]
    fn way_to_room_in<W: Word, const SORTED: bool>(&self, search: &mut crate::placement::Search, place: &Place, spares: crate::placement::Spares) -> Option<crate::placement::Plan> {
        search.plan(&InForm::<B, W, SORTED>(self, core::marker::PhantomData), place, spares)
    }

    pub(crate) fn neighbours(&self, base: u64, bucket: u64) -> ([u64; SLOTS], [u64; SLOTS]) {
        in_form!(self, neighbours_in(base, bucket))
    }
}

impl<B: AsRef<[u8]>, W: Word, const SORTED: bool> Neighbourhood for InForm<'_, B, W, SORTED> {
    #[inline(always)]
    fn neighbours(&self, base: u64, bucket: u64) -> ([u64; SLOTS], [u64; SLOTS]) {
        self.0.neighbours_in::<W, SORTED>(base, bucket)
    }

    #[inline(always)]
    fn prefetch(&self, bucket: u64) {
        self.0.prefetch(bucket * self.0.lanes.bucket_bits());
    }

    #[inline(always)]
    fn has_room(&self, bucket: u64) -> bool {
        self.0.has_room_in::<W, SORTED>(bucket)
    }

    fn is_spare(&self, bucket: u64, slot: u64) -> bool {
        let fingerprint = self.0.layout.fingerprint_of(slot);
        self.0.copies(&self.0.geometry.place_of(bucket, fingerprint), slot) > 1
    }
}
