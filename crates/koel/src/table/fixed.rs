//! The hot paths in a table of one size: entries that match a key are equal, all have its
//! fingerprint.

use super::{GrowingLocation, LeveledBucket, LinearHashing, Place, Prefix, Put, Table, Taken};
use crate::address::geometry::{Location, Locations};
use crate::mem::buffer::Buffer;
use crate::mem::unchecked;
use crate::packing::{AnyPacking, Exact, Layout, Narrow, Packing, SLOTS, with_packing};

impl<B: AsRef<[u8]>> Table<B> {
    /// Whether an entry matches the key with this address.
    #[inline(always)]
    pub(crate) fn contains(&self, address: u64) -> bool {
        if self.grows() { self.contains_grown(address) } else { self.find(address).1 }
    }

    /// Where the key with this address may live in a table of one size, and whether either bucket
    /// holds its fingerprint. Returns a tuple: with an `Option`, LLVM adds a data-dependent branch
    /// in callers that only count.
    #[inline(always)]
    #[expect(unsafe_code, reason = "loads without a check")]
    pub(crate) fn find(&self, address: u64) -> (Location, bool) {
        let location = self.base().locate(address);
        let is_there = match &self.packing {
            // SAFETY: `locate` gives buckets below `base.buckets()`.
            AnyPacking::Plain64(packing, _) => unsafe {
                self.contains_unchecked(packing, &location)
            },
            // SAFETY: as above.
            AnyPacking::Sorted64(packing, _) => unsafe {
                self.contains_unchecked(packing, &location)
            },
            _ => self.contains_wide(location.home, location.alternate, location.fingerprint),
        };
        (location, is_there)
    }

    /// The buckets of the key with this address, and what their slots are compared with. `None` if
    /// no slot matches.
    #[inline(always)]
    pub(crate) fn find_pair(&self, address: u64) -> Option<((u64, u64), [u64; 2])> {
        if self.grows() {
            return self.find_grown_pair(address);
        }
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

impl Place for Location {
    const GROWS: bool = false;

    #[inline]
    fn locate(addresses: &LinearHashing, address: u64) -> Self {
        addresses.base().locate(address)
    }

    #[inline]
    fn in_block(_: &LinearHashing, locations: &Locations, i: usize) -> Self {
        locations.get(i)
    }

    fn general(&self, addresses: &LinearHashing) -> GrowingLocation {
        let prefix = Self::prefix(addresses, self.home, self.fingerprint);
        let leveled_buckets =
            [self.home, self.alternate].map(|bucket| LeveledBucket { bucket, level: 0 });
        GrowingLocation { prefix, leveled_buckets }
    }

    #[inline]
    fn relocated(&self, _: &LinearHashing) -> Self {
        *self
    }

    #[inline]
    fn pair(&self) -> (u64, u64) {
        self.buckets()
    }

    #[inline]
    fn fingerprints(&self, _: &LinearHashing) -> [u64; 2] {
        [self.fingerprint; 2]
    }

    #[inline]
    fn prefix(addresses: &LinearHashing, bucket: u64, fingerprint: u64) -> Prefix {
        let length = addresses.base().fraction_bits();
        let string = fingerprint & !(u64::MAX << length);
        Prefix { core: fingerprint >> length, base: bucket, string, length }
    }

    #[inline]
    fn is_match(&self, _: &Prefix) -> bool {
        true
    }

    #[inline(always)]
    fn other_buckets(
        addresses: &LinearHashing,
        _: Layout,
        base: u64,
        bucket: u64,
        mut slots: [u64; SLOTS],
    ) -> [u64; SLOTS] {
        // Not a map: that would go through the stack.
        for slot in &mut slots {
            *slot = addresses.base().alternate(base, bucket, *slot);
        }
        slots
    }

    #[inline(always)]
    fn look_up<B: AsRef<[u8]>>(table: &Table<B>, address: u64) -> (Self, bool) {
        table.find(address)
    }

    #[inline(always)]
    fn put(&self, table: &mut Table<Buffer>, value: u64, most: u64) -> Put {
        let slot = table.layout.slot(self.fingerprint, value);
        table.pair_mut(self.buckets()).put(slot, most)
    }

    #[inline(always)]
    fn take(
        &self,
        table: &mut Table<Buffer>,
        value: u64,
        is_counted: Option<impl FnOnce(u64) -> bool>,
    ) -> Option<Taken> {
        // If there is a count, an entry is in the buckets too.
        if is_counted.is_some_and(|is_counted| is_counted(self.name(table.base()))) {
            return None;
        }
        if value > table.layout.largest_value() {
            return Some(Taken::Absent);
        }
        let slot = table.layout.slot(self.fingerprint, value);
        Some(table.pair_mut(self.buckets()).take(slot))
    }

    #[inline(always)]
    fn revalue(&self, table: &mut Table<Buffer>, old: u64, new: u64) -> bool {
        let [old, new] = [old, new].map(|value| table.layout.slot(self.fingerprint, value));
        table.pair_mut(self.buckets()).exchange(old, new) != Taken::Absent
    }
}
