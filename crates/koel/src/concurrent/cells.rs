//! The buckets of a concurrent filter: one atomic word each, so a bucket changes in one step or not
//! at all.
//!
//! A change loads the words of a pair, lets the packing compute the changed bits, and makes them
//! with one compare-and-swap. That fails if the bucket has changed since, and then everything is
//! computed anew. `mod.rs` says in which order changes must be made, and who may look when.

use alloc::boxed::Box;
use core::slice;

use super::words::{AtomicWords, load, with_words};
use crate::address::geometry::{Geometry, Location, Locations};
use crate::mem::buffer::Buffer;
use crate::mem::vector::{BLOCK, Column, InstructionSet};
use crate::packing::{
    Codec, Exact, Layout, Narrow, Packing, Plain64, Put, SLOTS, Sorted64, Words, either, is_near,
    match_words,
};
use crate::table::room::bits;
use crate::table::search::{EvictionPath, Neighbourhood, Neighbours, Search, Spares};
use crate::table::{Buckets, Table};

/// Buckets and their shape.
pub(super) struct Cells {
    pub(super) geometry: Geometry,
    pub(super) layout: Layout,
    packing: CellPacking,
    words: AtomicWords,
}

/// The packing of the buckets. The representation gives it a tag of its own, as for `AnyPacking`.
#[repr(u8)]
enum CellPacking {
    Plain(Plain64),
    Sorted(Sorted64),
}

/// Evaluates `$work` with `$packing` bound to the packing of `$cells`.
macro_rules! with_packing {
    ($cells:expr, $packing:ident => $work:expr) => {
        match &$cells.packing {
            CellPacking::Plain($packing) => $work,
            CellPacking::Sorted($packing) => $work,
        }
    };
}

impl Cells {
    /// The buckets of `table`, of at most 64 bits each. The table itself where the system has no
    /// memory for a copy.
    pub(super) fn of(table: Table<Buffer>) -> Result<Self, Box<Table<Buffer>>> {
        let (geometry, layout) = (table.base().clone(), table.layout());
        let words = AtomicWords::of(table)?;
        let packing = match layout.codec() {
            Codec::Plain => CellPacking::Plain(Plain64::new(layout)),
            Codec::SemiSorted => CellPacking::Sorted(Sorted64::new(layout)),
        };
        Ok(Self { geometry, layout, packing, words })
    }

    /// The words of all buckets.
    pub(super) fn into_words(self) -> AtomicWords {
        self.words
    }

    /// Empties every bucket.
    pub(super) fn clear(&mut self) {
        self.words.clear();
    }

    pub(super) fn size_in_bytes(&self) -> usize {
        self.words.size_in_bytes()
    }

    /// The bucket as it is now.
    pub(super) fn load(&self, bucket: u64) -> u64 {
        self.words.load(bucket)
    }

    /// Whether either bucket of `location` held its fingerprint when it was read, the first one
    /// first.
    #[inline(always)]
    pub(super) fn contains(&self, location: &Location) -> bool {
        let words = self.words.load_pair(location.buckets());
        let keys = [location.fingerprint; 2];
        with_packing!(self, packing => packing.words_match::<Exact>(words, keys))
    }

    /// [`contains`](Self::contains) for a block of locations, while those of the coming block are
    /// prefetched.
    pub(super) fn contains_block(
        &self,
        set: InstructionSet,
        (ready, coming): (&Locations, &Locations),
        words: &mut Words,
        found: &mut [bool; BLOCK],
    ) {
        let words = slice::from_mut(words);
        let prefetch = |i| self.prefetch_both(coming, i);
        let block = (set, ready, self.size_in_bytes());
        // The width is chosen once for the block.
        with_packing!(self, packing => with_words!(&self.words, cells => {
            match_words::<Exact, _>(packing, block, words, found, prefetch, |i| {
                let (home, alternate) = ready.buckets(i);
                let open = |bucket| [packing.open(load(cells, bucket))];
                [open(home), open(alternate)]
            });
        }));
    }

    /// How many copies the buckets of `location` held when they were read.
    pub(super) fn copies(&self, location: &Location) -> u64 {
        let words = self.words.load_pair(location.buckets());
        let same = location.home == location.alternate;
        with_packing!(self, packing => packing.words_copies(words, same, location.fingerprint))
    }

    /// Fills an empty slot of the emptier bucket, if there are at most `most` copies.
    #[inline]
    pub(super) fn put(&self, location: &Location, most: u64) -> Put {
        let (same, slot) = (location.home == location.alternate, location.fingerprint);
        let put = |words| with_packing!(self, it => it.put_in(words, same, (slot, most)));
        self.change(location, put).map_or_else(|refused| refused, |()| Put::Done)
    }

    /// Empties a slot that holds the fingerprint of `location`. Returns false if neither bucket
    /// held it when it was read.
    #[inline]
    pub(super) fn take(&self, location: &Location) -> bool {
        let (same, slot) = (location.home == location.alternate, location.fingerprint);
        let take = |words| with_packing!(self, it => it.exchange_in(words, same, (slot, 0)));
        self.change(location, |words| take(words).map(|(other, bits, _)| (other, bits)).ok_or(()))
            .is_ok()
    }

    /// Changes one bucket of `location`. `plan` says from the words which one, and its bits to
    /// flip. It is asked again while other threads change the bucket.
    #[inline]
    fn change<E>(
        &self,
        location: &Location,
        plan: impl Fn([u64; 2]) -> Result<(bool, u64), E>,
    ) -> Result<(), E> {
        loop {
            let words = self.words.load_pair(location.buckets());
            let (other, bits) = plan(words)?;
            let (bucket, word) = (either(other, location.buckets().into()), either(other, words));
            if self.words.swap(bucket, word, word ^ bits) {
                return Ok(());
            }
        }
    }

    /// Writes `new` over one slot of `bucket` that holds `old`. Returns false, and writes nothing,
    /// if there is none. 0 is an empty slot.
    pub(super) fn replace(&self, bucket: u64, old: u64, new: u64) -> bool {
        loop {
            let word = self.load(bucket);
            let mut bytes = word.to_le_bytes();
            if !with_packing!(self, packing => packing.replace(&mut bytes, 0, old, new)) {
                return false;
            }
            if self.words.swap(bucket, word, u64::from_le_bytes(bytes)) {
                return true;
            }
        }
    }
}

/// The search for room.
impl Cells {
    /// The shortest path to room for an entry of `location`, whose buckets are full.
    pub(super) fn path(
        &self,
        search: &mut Search,
        location: &Location,
        spares: Spares,
    ) -> Option<EvictionPath> {
        let (base, pair) = (location.base, location.buckets().into());
        let neighbours = |bucket, found: &mut _| self.neighbours(base, bucket, found);
        search.path(self, base, pair, spares, |search| {
            search.one_move(pair, neighbours, |buckets| self.rooms(buckets))
        })
    }

    /// Whether a slot of `bucket` is empty.
    pub(super) fn has_room(&self, bucket: u64) -> bool {
        let bytes = self.load(bucket).to_le_bytes();
        with_packing!(self, packing => packing.has_room(&bytes, 0))
    }

    fn neighbours(&self, base: u64, bucket: u64, found: &mut Neighbours) {
        let bytes = self.load(bucket).to_le_bytes();
        found.slots = with_packing!(self, packing => packing.slots(&bytes, 0));
        found.others = found.slots.map(|slot| self.geometry.alternate(base, bucket, slot));
    }
}

impl Buckets for Cells {
    #[inline]
    fn locate_many(
        &self,
        set: InstructionSet,
        hash: impl FnOnce(&mut Column),
        locations: &mut Locations,
    ) {
        // Buckets are found by their number, so the bits at which they start do not matter.
        self.geometry.locate_many(set, 1, hash, locations);
    }

    #[inline(always)]
    fn prefetch_both(&self, locations: &Locations, i: usize) {
        let (home, alternate) = locations.buckets(i);
        self.words.prefetch(home);
        self.words.prefetch(alternate);
    }
}

/// Buckets as they were read: each step of a path is checked again when it is made.
impl Neighbourhood for Cells {
    fn expand(&self, base: u64, bucket: u64, found: &mut Neighbours) {
        self.neighbours(base, bucket, found);
        found.others.iter().for_each(|&other| self.words.prefetch(other));
    }

    fn rooms(&self, buckets: &[u64; SLOTS]) -> u32 {
        bits(buckets, |&bucket| self.has_room(bucket))
    }

    fn is_near(&self) -> bool {
        is_near(self.size_in_bytes())
    }

    fn holds(&self, bucket: u64, slot: u64) -> bool {
        let bytes = self.load(bucket).to_le_bytes();
        with_packing!(self, packing => packing.slots(&bytes, 0)).contains(&slot)
    }
}
