//! A table of one size: `Geometry` says where a key may live.

use core::marker::PhantomData;

use super::block::is_near;
use super::{
    Addressing, Cuckoo, CuckooMut, EntryTest, Match, Prefix, Prefixes, Put, Removed, Table, Taken,
    byte_index, position,
};
use crate::buffer::Buffer;
use crate::geometry::{CORE_BITS, Column, Geometry, Place, Places};
use crate::layout::{Form, Lanes, Quad, Word};
use crate::placement::{End, Neighbourhood, Neighbours, Plan, Search, Spares, Ways};
use crate::unchecked;
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
    /// The place of the key with this hash, and whether either bucket holds its fingerprint. Not an `Option`, for which a caller that only counts gets a branch on the data.
    #[inline(always)]
    #[expect(unsafe_code, reason = "loads without a check")]
    pub(crate) fn find(&self, hash: u64) -> (Place, bool) {
        let place = self.geometry.locate(hash);
        let is_there = match self.lanes.form() {
            // SAFETY: `locate` gives buckets below `geometry.buckets()`.
            Form::Plain => unsafe { self.contains_in::<false>(&place) },
            // SAFETY: as above.
            Form::Sorted => unsafe { self.contains_in::<true>(&place) },
            Form::Quad => self.contains_quad(place.home, place.alternate, place.fingerprint),
            _ => self.contains_wide(place.home, place.alternate, place.fingerprint),
        };
        (place, is_there)
    }

    /// Cold, so that no register is saved for it where buckets have at most 64 bits.
    #[cold]
    #[inline(never)]
    fn contains_wide(&self, home: u64, alternate: u64, fingerprint: u64) -> bool {
        in_form!(self, pair_matches_in((home, alternate), [fingerprint; 2]))
    }

    /// The same for slots of 64 bits, which need none of the registers that the other forms do.
    #[cold]
    #[inline(never)]
    fn contains_quad(&self, home: u64, alternate: u64, fingerprint: u64) -> bool {
        self.pair_matches_in::<Quad, false>((home, alternate), [fingerprint; 2])
    }

    /// # Safety
    /// Both buckets of the place are in the table.
    #[inline(always)]
    #[expect(
        unsafe_code,
        reason = "loads without a check, which are a sixth of a lookup in a large table"
    )]
    unsafe fn contains_in<const SORTED: bool>(&self, place: &Place) -> bool {
        let load = |bucket: u64| {
            let (byte, shift) = self.position_of::<SORTED>(bucket);
            // SAFETY: the caller says that it is in the table, and `new` has seen that all of its buckets are in `bytes`, with 16 bytes behind them.
            unsafe { unchecked::read(self.bytes.as_ref(), byte) >> shift }
        };
        let words = self.lanes.opened::<SORTED>([load(place.home), load(place.alternate)]);
        Geometry::pair_matches::<SORTED>(&self.lanes, words, [place.fingerprint; 2])
    }

    /// The byte that a bucket starts in, and at which of its bits.
    #[inline(always)]
    fn position_of<const SORTED: bool>(&self, bucket: u64) -> (usize, u32) {
        let bits = self.lanes.bucket_bits();
        if SORTED { position::<true>(bucket * bits) } else { (byte_index(bucket * (bits / 8)), 0) }
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

    /// Asks the memory for the buckets that the entries of both buckets of a place could move to, where both are full: that is where a search begins.
    #[inline(always)]
    pub(crate) fn prefetch_ways(&self, places: &Places, i: usize) {
        if in_form!(self, are_full(places.bits(i))) {
            self.prefetch_others(&places.get(i));
        }
    }

    #[inline(always)]
    fn are_full<W: Word, const SORTED: bool>(&self, [home, alternate]: [u64; 2]) -> bool {
        !(self.has_room_at::<W, SORTED>(home) | self.has_room_at::<W, SORTED>(alternate))
    }

    #[inline(never)]
    fn prefetch_others(&self, place: &Place) {
        let (home, alternate) = place.buckets();
        for bucket in [home, alternate] {
            let others = self.neighbours(place.base, bucket).others;
            others.iter().for_each(|&other| self.prefetch(other * self.lanes.bucket_bits()));
        }
    }

    #[inline(never)]
    fn way_to_room_in<W: Word, const SORTED: bool>(
        &self,
        search: &mut Search,
        place: &Place,
        spares: Spares,
    ) -> Option<Plan> {
        search.plan(&InForm::<B, W, SORTED> { table: self, word: PhantomData }, place, spares)
    }

    /// The slots of a full bucket, which is in the segment that starts at `base`, each with its other bucket.
    pub(crate) fn neighbours(&self, base: u64, bucket: u64) -> Neighbours {
        in_form!(self, neighbours_in(base, bucket))
    }

    #[inline(always)]
    fn neighbours_in<W: Word, const SORTED: bool>(&self, base: u64, bucket: u64) -> Neighbours {
        let slots = self.slots_in::<W, SORTED>(bucket);
        Neighbours::of(slots, &self.geometry, (base, bucket))
    }
}

/// Entries that match a key are equal: all have its fingerprint.
impl Prefixes for Geometry {
    type Location = Place;
    const GROWS: bool = false;

    fn base(&self) -> &Self {
        self
    }

    #[inline(always)]
    fn locate(&self, hash: u64) -> Place {
        self.locate(hash)
    }

    fn location(&self, prefix: Prefix) -> Option<Place> {
        let bits = self.fraction_bits();
        let fraction = prefix.string & !(u64::MAX << bits);
        Some(self.place_of(prefix.base, prefix.core << bits | fraction))
    }

    #[inline(always)]
    fn pair(place: &Place) -> (u64, u64) {
        place.buckets()
    }

    #[inline(always)]
    fn fingerprints(&self, place: &Place) -> [u64; 2] {
        [place.fingerprint; 2]
    }

    #[inline(always)]
    fn is_match(_: &Place, _: &Prefix) -> bool {
        true
    }

    #[inline]
    fn prefix(&self, bucket: u64, fingerprint: u64) -> Prefix {
        let length = self.fraction_bits();
        let string = fingerprint & !(u64::MAX << length);
        Prefix { core: fingerprint >> length, base: bucket, string, length }
    }

    fn moved(&self, bucket: u64, fingerprint: u64) -> Option<(u64, u64)> {
        Some((self.place_of(bucket, fingerprint).alternate, fingerprint))
    }

    fn other_base(&self, prefix: &Prefix) -> u64 {
        self.place_of(prefix.base, prefix.core << self.fraction_bits()).alternate
    }

    fn bucket_of(&self, base: u64, _: &Prefix) -> Option<u64> {
        Some(base)
    }

    fn identity(&self, prefix: &Prefix) -> u64 {
        let bits = self.fraction_bits();
        let place = self.place_of(prefix.base, prefix.core << bits | prefix.string);
        place.identity(bits + CORE_BITS)
    }

    fn common_identity(&self, place: &Place) -> Option<u64> {
        Some(place.identity(self.fraction_bits() + CORE_BITS))
    }

    fn named(&self, identity: u64) -> Option<Prefix> {
        let bits = self.fraction_bits() + CORE_BITS;
        let (bucket, fingerprint) = (identity >> bits, identity & !(u64::MAX << bits));
        if bucket >= self.buckets() || fingerprint == 0 {
            return None;
        }
        let prefix = self.prefix(bucket, fingerprint);
        (Prefixes::identity(self, &prefix) == identity).then_some(prefix)
    }
}

impl<B: AsRef<[u8]>> Cuckoo for Table<B> {
    type Bytes = B;
    type Addresses = Geometry;

    #[inline(always)]
    fn table(&self) -> &Self {
        self
    }

    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        self.find(hash).1
    }
}

impl CuckooMut for Table<Buffer> {
    #[inline(always)]
    fn put_key(&mut self, hash: u64, value: u64, most: u64) -> (Place, Put) {
        let (place, mut at) = self.at_hash(hash);
        let slot = at.layout().slot(place.fingerprint, value);
        (place, at.put(slot, most))
    }

    fn put(&mut self, place: &Place, value: u64, most: u64) -> Put {
        let slot = self.layout.slot(place.fingerprint, value);
        self.at(place.buckets()).put(slot, most)
    }

    #[inline(always)]
    fn take_key(&mut self, hash: u64, value: u64, is_counted: impl FnOnce(u64) -> bool) -> Removed {
        let (place, mut at) = self.at_hash(hash);
        let layout = at.layout();
        // Where there is a count, an entry is in the buckets too.
        if is_counted(place.identity(layout.fingerprint_bits())) {
            return Removed::Counted;
        }
        if value > layout.largest_value() {
            return Removed::Nothing;
        }
        at.take(layout.slot(place.fingerprint, value)).into()
    }

    #[inline(always)]
    fn revalue_key(&mut self, hash: u64, old: u64, new: u64) -> bool {
        let (place, mut at) = self.at_hash(hash);
        let layout = at.layout();
        let [old, new] = [old, new].map(|value| layout.slot(place.fingerprint, value));
        at.exchange(old, new) != Taken::Nothing
    }

    fn write(&mut self, entry: &Match, slot: u64) {
        self.replace(entry.bucket, entry.slot, slot);
    }

    fn way_to_room(
        &self,
        search: &mut Search,
        place: &Place,
        spares: Spares,
        _: Option<&EntryTest<'_>>,
    ) -> Option<Plan> {
        in_form!(self, way_to_room_in(search, place, spares))
    }

    fn carry_out(&mut self, plan: &Plan, place: &Place, value: u64) {
        if let (End::Empty(room), Some(&(_, last))) = (plan.end, plan.moves.last()) {
            self.replace(room, 0, last);
        }
        self.shift(&plan.moves, self.layout.slot(place.fingerprint, value));
    }

    fn open(&self, place: &Place, bucket: u64, _: Option<&EntryTest<'_>>, ways: &mut Ways) {
        ways.add(self.neighbours(place.base, bucket));
    }
}

/// A table whose form is known, so that a search asks for it once.
struct InForm<'a, B, W, const SORTED: bool> {
    table: &'a Table<B>,
    word: PhantomData<W>,
}

impl<B: AsRef<[u8]>, W: Word, const SORTED: bool> Neighbourhood for InForm<'_, B, W, SORTED> {
    #[inline(always)]
    fn neighbours(&self, base: u64, bucket: u64) -> Neighbours {
        self.table.neighbours_in::<W, SORTED>(base, bucket)
    }

    #[inline(always)]
    fn prefetch(&self, bucket: u64) {
        self.table.prefetch(bucket * self.table.lanes.bucket_bits());
    }

    #[inline(always)]
    fn is_near(&self) -> bool {
        is_near(self.table.bytes.as_ref().len())
    }

    #[inline(always)]
    fn has_room(&self, bucket: u64) -> bool {
        self.table.has_room_in::<W, SORTED>(bucket)
    }

    fn is_spare(&self, bucket: u64, slot: u64) -> bool {
        let fingerprint = self.table.layout.fingerprint_of(slot);
        let place = self.table.geometry.place_of(bucket, fingerprint);
        self.table.copies_in::<W, SORTED>(&place, slot) > 1
    }
}
