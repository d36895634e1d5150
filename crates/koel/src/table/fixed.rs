//! A table of one size: `Geometry` is its addressing.

use super::{Addressing, Cuckoo, CuckooMut, Prefix, Put, Table, Taken};
use crate::address::geometry::{CORE_BITS, Geometry, Location, Locations};
use crate::mem::buffer::Buffer;
use crate::mem::unchecked;
use crate::mem::vector::{Column, InstructionSet};
use crate::packing::{AnyPacking, Exact, Layout, Narrow, Packing, SLOTS, with_packing};

impl<B: AsRef<[u8]>> Table<B> {
    /// Where the key with this address may live, and whether either bucket holds its fingerprint.
    /// Returns a tuple: with an `Option`, LLVM adds a data-dependent branch in callers that only
    /// count.
    #[inline(always)]
    #[expect(unsafe_code, reason = "loads without a check")]
    pub(crate) fn find(&self, address: u64) -> (Location, bool) {
        let location = self.geometry.locate(address);
        let is_there = match &self.packing {
            // SAFETY: `locate` gives buckets below `geometry.buckets()`.
            AnyPacking::Plain64(packing) => unsafe { self.contains_unchecked(packing, &location) },
            // SAFETY: as above.
            AnyPacking::Sorted64(packing) => unsafe { self.contains_unchecked(packing, &location) },
            _ => self.contains_wide(location.home, location.alternate, location.fingerprint),
        };
        (location, is_there)
    }

    /// The buckets of the key with this address, and what their slots are compared with. `None` if
    /// no slot matches.
    #[inline(always)]
    pub(crate) fn find_pair(&self, address: u64) -> Option<((u64, u64), [u64; 2])> {
        let (location, is_there) = self.find(address);
        is_there.then(|| (location.buckets(), [location.fingerprint; 2]))
    }

    /// Cold, so that callers save no register for it if buckets have at most 64 bits.
    #[cold]
    #[inline(never)]
    fn contains_wide(&self, home: u64, alternate: u64, fingerprint: u64) -> bool {
        with_packing!(&self.packing, packing => {
            let starts = self.starts((home, alternate));
            packing.matches::<Exact>(self.bytes(), starts, [fingerprint; 2])
        })
    }

    /// # Safety
    /// Both buckets of the location are in the table.
    #[inline(always)]
    #[expect(
        unsafe_code,
        reason = "loads without a check: 51 to 43 ns a lookup in a large table (decision 0006)"
    )]
    unsafe fn contains_unchecked<P: Narrow>(&self, packing: &P, location: &Location) -> bool {
        let load = |bucket: u64| {
            let (byte, shift) = P::position_at(bucket * self.bucket_bits);
            // SAFETY: the caller says that the bucket is in the table. `bytes` has all buckets,
            // with 16 bytes behind them.
            unsafe { unchecked::read(self.bytes.as_ref(), byte) >> shift }
        };
        let words = [load(location.home), load(location.alternate)];
        packing.words_match::<Exact>(words, [location.fingerprint; 2])
    }
}

/// Entries that match a key are equal: all have its fingerprint.
impl Addressing for Geometry {
    type Matching = Exact;
    type Location = Location;
    const GROWS: bool = false;

    fn base(&self) -> &Self {
        self
    }

    #[inline]
    fn buckets(&self) -> u64 {
        self.buckets()
    }

    #[inline]
    fn locate_many(
        &self,
        set: InstructionSet,
        bucket_bits: u64,
        write: impl FnOnce(&mut Column),
        locations: &mut Locations,
    ) {
        self.locate_many(set, bucket_bits, write, locations);
    }

    #[inline]
    fn locate(&self, address: u64) -> Location {
        self.locate(address)
    }

    #[inline]
    fn locate_in_block(&self, locations: &Locations, i: usize) -> Location {
        locations.get(i)
    }

    fn location(&self, prefix: Prefix) -> Option<Location> {
        let bits = self.fraction_bits();
        let fraction = prefix.string & !(u64::MAX << bits);
        Some(self.location_of(prefix.base, prefix.core << bits | fraction))
    }

    #[inline]
    fn pair(location: &Location) -> (u64, u64) {
        location.buckets()
    }

    #[inline]
    fn segment_start(location: &Location) -> u64 {
        location.base
    }

    #[inline]
    fn fingerprints(&self, location: &Location) -> [u64; 2] {
        [location.fingerprint; 2]
    }

    #[inline]
    fn is_match(_: &Location, _: &Prefix) -> bool {
        true
    }

    #[inline]
    fn prefix(&self, bucket: u64, fingerprint: u64) -> Prefix {
        let length = self.fraction_bits();
        let string = fingerprint & !(u64::MAX << length);
        Prefix { core: fingerprint >> length, base: bucket, string, length }
    }

    fn stored_length(&self, _: &Location, _: usize) -> u32 {
        self.fraction_bits()
    }

    fn common_length(&self) -> u32 {
        self.fraction_bits()
    }

    #[inline(always)]
    fn other_buckets(
        &self,
        _: Layout,
        base: u64,
        bucket: u64,
        mut slots: [u64; SLOTS],
    ) -> [u64; SLOTS] {
        // Not a map: that would go through the stack.
        for slot in &mut slots {
            *slot = self.alternate(base, bucket, *slot);
        }
        slots
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

    fn named(&self, identity: u64) -> Option<Prefix> {
        let bits = self.fraction_bits() + CORE_BITS;
        let (bucket, fingerprint) = (identity >> bits, identity & !(u64::MAX << bits));
        if bucket >= self.buckets() || fingerprint == 0 {
            return None;
        }
        let prefix = self.prefix(bucket, fingerprint);
        (Addressing::identity(self, &prefix) == identity).then_some(prefix)
    }
}

impl<B: AsRef<[u8]>> Cuckoo for Table<B> {
    type Bytes = B;
    type Addresses = Geometry;

    #[inline]
    fn table(&self) -> &Self {
        self
    }

    #[inline(always)]
    fn contains(&self, address: u64) -> bool {
        self.find(address).1
    }

    #[inline(always)]
    fn look_up(&self, address: u64) -> (Location, bool) {
        self.find(address)
    }
}

impl CuckooMut for Table<Buffer> {
    #[inline]
    fn table_mut(&mut self) -> &mut Self {
        self
    }

    #[inline(always)]
    fn put(&mut self, location: &Location, value: u64, most: u64) -> Put {
        let slot = self.layout.slot(location.fingerprint, value);
        self.pair_mut(location.buckets()).put(slot, most)
    }

    #[inline(always)]
    fn take(
        &mut self,
        location: &Location,
        value: u64,
        is_counted: impl FnOnce(u64) -> bool,
    ) -> Option<Taken> {
        // If there is a count, an entry is in the buckets too.
        if is_counted(location.identity(self.layout.fingerprint_bits())) {
            return None;
        }
        if value > self.layout.largest_value() {
            return Some(Taken::Absent);
        }
        let slot = self.layout.slot(location.fingerprint, value);
        Some(self.pair_mut(location.buckets()).take(slot))
    }

    #[inline(always)]
    fn revalue(&mut self, location: &Location, old: u64, new: u64) -> bool {
        let [old, new] = [old, new].map(|value| self.layout.slot(location.fingerprint, value));
        self.pair_mut(location.buckets()).exchange(old, new) != Taken::Absent
    }
}
