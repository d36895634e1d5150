//! A table of one size: `Geometry` says where a key may live.

use super::{
    Addressing, Cuckoo, CuckooMut, EntryTest, Match, Prefix, Prefixes, Put, Removed, Table, Taken,
};
use crate::address::geometry::{CORE_BITS, Geometry, Location, Locations};
use crate::mem::buffer::Buffer;
use crate::mem::unchecked;
use crate::mem::vector::{Column, InstructionSet};
use crate::packing::{AnyPacking, Exact, Narrow, Packing, is_near, with_packing};
use crate::table::search::{
    End, EvictionPath, Frontier, Neighbourhood, Neighbours, Search, Spares,
};

/// An entry matches the key whose fingerprint it is.
impl Addressing for Geometry {
    type Matching = Exact;

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
        locations: &mut Locations,
    ) {
        self.locate_many(set, bucket_bits, hash, locations);
    }
}

impl<B: AsRef<[u8]>> Table<B> {
    /// The place of the key with this hash, and whether either bucket holds its fingerprint.
    /// Returns a tuple: with an `Option`, LLVM adds a data-dependent branch in callers that only
    /// count.
    #[inline(always)]
    #[expect(unsafe_code, reason = "loads without a check")]
    pub(crate) fn find(&self, hash: u64) -> (Location, bool) {
        let location = self.geometry.locate(hash);
        let is_there = match &self.packing {
            // SAFETY: `locate` gives buckets below `geometry.buckets()`.
            AnyPacking::Plain64(packing) => unsafe { self.contains_unchecked(packing, &location) },
            // SAFETY: as above.
            AnyPacking::Sorted64(packing) => unsafe { self.contains_unchecked(packing, &location) },
            AnyPacking::Slots64(_) => {
                self.contains_slots64(location.home, location.alternate, location.fingerprint)
            }
            _ => self.contains_wide(location.home, location.alternate, location.fingerprint),
        };
        (location, is_there)
    }

    /// Cold, so that callers save no register for it where buckets have at most 64 bits.
    #[cold]
    #[inline(never)]
    fn contains_wide(&self, home: u64, alternate: u64, fingerprint: u64) -> bool {
        let location = Location { base: 0, home, alternate, fingerprint };
        with_packing!(&self.packing, packing => self.contains_in(packing, &location))
    }

    /// The same for slots of 64 bits, which need fewer registers than the other packings.
    #[cold]
    #[inline(never)]
    fn contains_slots64(&self, home: u64, alternate: u64, fingerprint: u64) -> bool {
        let AnyPacking::Slots64(packing) = &self.packing else { return false };
        self.contains_in(packing, &Location { base: 0, home, alternate, fingerprint })
    }

    #[inline]
    fn contains_in<P: Packing>(&self, packing: &P, location: &Location) -> bool {
        let starts = self.starts(packing, location.buckets());
        packing.matches::<Exact>(self.bytes(), starts, [location.fingerprint; 2])
    }

    /// # Safety
    /// Both buckets of the place are in the table.
    #[inline(always)]
    #[expect(
        unsafe_code,
        reason = "loads without a check: 51 to 43 ns a lookup in a large table (decision 0006)"
    )]
    unsafe fn contains_unchecked<P: Narrow>(&self, packing: &P, location: &Location) -> bool {
        let load = |bucket: u64| {
            let (byte, shift) = P::position(bucket, self.bucket_bits);
            // SAFETY: the caller says that the bucket is in the table, and `bytes` has all buckets
            // with 16 bytes behind them.
            unsafe { unchecked::read(self.bytes.as_ref(), byte) >> shift }
        };
        let words = [load(location.home), load(location.alternate)];
        packing.words_match::<Exact>(words, [location.fingerprint; 2])
    }

    #[inline]
    fn copies_in<P: Packing>(&self, packing: &P, location: &Location, slot: u64) -> u64 {
        packing.copies(self.bytes(), self.starts(packing, location.buckets()), slot)
    }

    /// Asks the memory for the buckets that the entries of both buckets of a place could move to,
    /// where both are full: that is where a search begins.
    #[inline(always)]
    pub(crate) fn prefetch_frontier(&self, locations: &Locations, i: usize) {
        let has_room = with_packing!(&self.packing, packing => {
            let [home, other] = locations.bits(i);
            packing.has_room(self.bytes(), home) | packing.has_room(self.bytes(), other)
        });
        if !has_room {
            self.prefetch_others(&locations.get(i));
        }
    }

    #[inline(never)]
    fn prefetch_others(&self, location: &Location) {
        for bucket in [location.home, location.alternate] {
            let others = self.neighbours(location.base, bucket).others;
            others.iter().for_each(|&other| self.prefetch(other));
        }
    }

    #[inline(never)]
    fn way_in<P: Packing>(
        &self,
        packing: &P,
        search: &mut Search,
        location: &Location,
        spares: Spares,
    ) -> Option<EvictionPath> {
        search.plan(&Packed { table: self, packing }, location, spares)
    }

    /// The slots of a full bucket, which is in the segment that starts at `base`, each with its
    /// other bucket.
    pub(crate) fn neighbours(&self, base: u64, bucket: u64) -> Neighbours {
        with_packing!(&self.packing, packing => {
            Packed { table: self, packing }.neighbours(base, bucket)
        })
    }
}

/// Entries that match a key are equal: all have its fingerprint.
impl Prefixes for Geometry {
    type Location = Location;
    const GROWS: bool = false;

    fn base(&self) -> &Self {
        self
    }

    #[inline(always)]
    fn locate(&self, hash: u64) -> Location {
        self.locate(hash)
    }

    fn location(&self, prefix: Prefix) -> Option<Location> {
        let bits = self.fraction_bits();
        let fraction = prefix.string & !(u64::MAX << bits);
        Some(self.location_of(prefix.base, prefix.core << bits | fraction))
    }

    #[inline(always)]
    fn pair(location: &Location) -> (u64, u64) {
        location.buckets()
    }

    #[inline(always)]
    fn fingerprints(&self, location: &Location) -> [u64; 2] {
        [location.fingerprint; 2]
    }

    #[inline(always)]
    fn is_match(_: &Location, _: &Prefix) -> bool {
        true
    }

    #[inline]
    fn prefix(&self, bucket: u64, fingerprint: u64) -> Prefix {
        let length = self.fraction_bits();
        let string = fingerprint & !(u64::MAX << length);
        Prefix { core: fingerprint >> length, base: bucket, string, length }
    }

    fn moved(&self, bucket: u64, fingerprint: u64) -> Option<(u64, u64)> {
        Some((self.location_of(bucket, fingerprint).alternate, fingerprint))
    }

    fn other_base(&self, prefix: &Prefix) -> u64 {
        self.location_of(prefix.base, prefix.core << self.fraction_bits()).alternate
    }

    fn bucket_of(&self, base: u64, _: &Prefix) -> Option<u64> {
        Some(base)
    }

    fn identity(&self, prefix: &Prefix) -> u64 {
        let bits = self.fraction_bits();
        let location = self.location_of(prefix.base, prefix.core << bits | prefix.string);
        location.identity(bits + CORE_BITS)
    }

    fn common_identity(&self, location: &Location) -> Option<u64> {
        Some(location.identity(self.fraction_bits() + CORE_BITS))
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
    fn put_key(&mut self, hash: u64, value: u64, most: u64) -> (Location, Put) {
        let (location, mut at) = self.at_hash(hash);
        let slot = at.layout().slot(location.fingerprint, value);
        (location, at.put(slot, most))
    }

    fn put(&mut self, location: &Location, value: u64, most: u64) -> Put {
        let slot = self.layout.slot(location.fingerprint, value);
        self.at(location.buckets()).put(slot, most)
    }

    #[inline(always)]
    fn take_key(&mut self, hash: u64, value: u64, is_counted: impl FnOnce(u64) -> bool) -> Removed {
        let (location, mut at) = self.at_hash(hash);
        let layout = at.layout();
        // Where there is a count, an entry is in the buckets too.
        if is_counted(location.identity(layout.fingerprint_bits())) {
            return Removed::Counted;
        }
        if value > layout.largest_value() {
            return Removed::Nothing;
        }
        at.take(layout.slot(location.fingerprint, value)).into()
    }

    #[inline(always)]
    fn revalue_key(&mut self, hash: u64, old: u64, new: u64) -> bool {
        let (location, mut at) = self.at_hash(hash);
        let layout = at.layout();
        let [old, new] = [old, new].map(|value| layout.slot(location.fingerprint, value));
        at.exchange(old, new) != Taken::Nothing
    }

    fn write(&mut self, entry: &Match, slot: u64) {
        self.replace(entry.bucket, entry.slot, slot);
    }

    fn way_to_room(
        &self,
        search: &mut Search,
        location: &Location,
        spares: Spares,
        _: Option<&EntryTest<'_>>,
    ) -> Option<EvictionPath> {
        with_packing!(&self.packing, packing => self.way_in(packing, search, location, spares))
    }

    fn carry_out(&mut self, plan: &EvictionPath, location: &Location, value: u64) {
        if let (End::Empty(room), Some(&(_, last))) = (plan.end, plan.moves.last()) {
            self.replace(room, 0, last);
        }
        self.shift(&plan.moves, self.layout.slot(location.fingerprint, value));
    }

    fn open(
        &self,
        location: &Location,
        bucket: u64,
        _: Option<&EntryTest<'_>>,
        ways: &mut Frontier,
    ) {
        ways.add(self.neighbours(location.base, bucket));
    }
}

/// A table and its packing, which a search asks for once.
struct Packed<'a, B, P> {
    table: &'a Table<B>,
    packing: &'a P,
}

impl<B: AsRef<[u8]>, P: Packing> Neighbourhood for Packed<'_, B, P> {
    #[inline(always)]
    fn neighbours(&self, base: u64, bucket: u64) -> Neighbours {
        let slots = self.table.slots_in(self.packing, bucket);
        Neighbours::of(slots, &self.table.geometry, (base, bucket))
    }

    #[inline]
    fn prefetch(&self, bucket: u64) {
        self.table.prefetch(bucket);
    }

    #[inline]
    fn is_near(&self) -> bool {
        is_near(self.table.bytes().len())
    }

    #[inline(always)]
    fn has_room(&self, bucket: u64) -> bool {
        self.table.has_room_in(self.packing, bucket)
    }

    fn is_spare(&self, bucket: u64, slot: u64) -> bool {
        let fingerprint = self.table.layout.fingerprint_of(slot);
        let location = self.table.geometry.location_of(bucket, fingerprint);
        self.table.copies_in(self.packing, &location, slot) > 1
    }
}
