//! The buckets of a concurrent filter: one atomic word each, so that a bucket changes in one step
//! or not at all.
//!
//! A bucket of up to 32 bits lies in 32, a wider one in 64. Here is which of the four forms a table
//! has; what happens to single buckets and to the two of a place is in `packed.rs`; in which order
//! changes have to be made, and who may look when, in `mod.rs`.

use super::memory::AtomicWords;
use super::packed::Packed;
use super::sync::{AtomicU32, AtomicU64};
use crate::address::geometry::{Geometry, Location, Locations};
use crate::mem::buffer::Buffer;
use crate::mem::vector::{BLOCK, Column, InstructionSet};
use crate::packing::{Codec, Layout, Narrow, Plain64, Put, Sorted64, Words, is_near};
use crate::table::search::{Neighbourhood, Neighbours};
use crate::table::{Buckets, Table};

/// Buckets and their shape.
pub(super) struct Cells {
    pub(super) geometry: Geometry,
    pub(super) layout: Layout,
    pub(super) form: Form,
}

/// How buckets are packed. Of two times two kinds, because of four in one the compiler makes a
/// table of places to jump to, which takes a lookup 4 % longer. Each has a tag of its own, as
/// `AnyPacking` says.
#[repr(u8)]
pub(super) enum Form {
    Plain(Width<Plain64>),
    Sorted(Width<Sorted64>),
}

/// Whether they fit into half a word.
#[repr(u8)]
pub(super) enum Width<P> {
    Half(Packed<AtomicU32, P>),
    Whole(Packed<AtomicU64, P>),
}

/// What `$work` gives for the words of `$cells`, which it calls `$packed`: the form is asked for
/// once, whatever is done to a place.
macro_rules! in_form {
    ($cells:expr, $packed:ident => $work:expr) => {{
        use $crate::concurrent::cells::{Form, Width};
        match &$cells.form {
            Form::Plain(Width::Half($packed)) => $work,
            Form::Plain(Width::Whole($packed)) => $work,
            Form::Sorted(Width::Half($packed)) => $work,
            Form::Sorted(Width::Whole($packed)) => $work,
        }
    }};
}

impl<P: Narrow> Width<P> {
    fn new(packing: P, words: AtomicWords) -> Self {
        match words {
            AtomicWords::Half(words) => Self::Half(Packed::new(packing, words)),
            AtomicWords::Whole(words) => Self::Whole(Packed::new(packing, words)),
        }
    }

    fn into_words(self) -> AtomicWords {
        match self {
            Self::Half(packed) => AtomicWords::Half(packed.into_words()),
            Self::Whole(packed) => AtomicWords::Whole(packed.into_words()),
        }
    }
}

impl Cells {
    /// The buckets of `table`, of at most 64 bits each. `None` where the system has no memory for
    /// a copy.
    pub(super) fn of(table: Table<Buffer>) -> Option<Self> {
        let (geometry, layout) = (table.geometry().clone(), table.layout());
        let words = AtomicWords::of(table)?;
        let form = match layout.codec() {
            Codec::Plain => Form::Plain(Width::new(Plain64::new(layout), words)),
            Codec::SemiSorted => Form::Sorted(Width::new(Sorted64::new(layout), words)),
        };
        Some(Self { geometry, layout, form })
    }

    /// The words of all buckets.
    pub(super) fn into_words(self) -> AtomicWords {
        match self.form {
            Form::Plain(packed) => packed.into_words(),
            Form::Sorted(packed) => packed.into_words(),
        }
    }

    pub(super) fn size_in_bytes(&self) -> usize {
        in_form!(self, packed => packed.size_in_bytes())
    }

    pub(super) fn load(&self, bucket: u64) -> u64 {
        in_form!(self, packed => packed.load(bucket))
    }

    pub(super) fn contains_block(
        &self,
        set: InstructionSet,
        locations: (&Locations, &Locations),
        words: &mut Words,
        found: &mut [bool; BLOCK],
    ) {
        in_form!(self, packed => packed.contains_block(set, locations, words, found));
    }

    pub(super) fn copies(&self, location: &Location) -> u64 {
        in_form!(self, packed => packed.copies(location))
    }

    #[inline(always)]
    pub(super) fn put(&self, location: &Location, most: u64) -> Put {
        in_form!(self, packed => packed.put(location, most))
    }

    #[inline(always)]
    pub(super) fn take(&self, location: &Location) -> bool {
        in_form!(self, packed => packed.take(location))
    }

    pub(super) fn has_room(&self, bucket: u64) -> bool {
        in_form!(self, packed => packed.has_room(bucket))
    }

    pub(super) fn holds(&self, bucket: u64, slot: u64) -> bool {
        in_form!(self, packed => packed.holds(bucket, slot))
    }

    pub(super) fn replace(&self, bucket: u64, old: u64, new: u64) -> bool {
        in_form!(self, packed => packed.replace(bucket, old, new))
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
        // Buckets are found by their number: where their bits would be is of no account.
        self.geometry.locate_many(set, 1, hash, locations);
    }

    #[inline(always)]
    fn prefetch_both(&self, locations: &Locations, i: usize) {
        let (home, alternate) = locations.buckets(i);
        self.prefetch(home);
        self.prefetch(alternate);
    }
}

/// As they were read: a plan made of them is checked again when it is carried out.
impl Neighbourhood for Cells {
    fn neighbours(&self, base: u64, bucket: u64) -> Neighbours {
        let slots = in_form!(self, packed => packed.slots(bucket));
        let others = slots.map(|slot| self.geometry.alternate(base, bucket, slot));
        Neighbours { slots, others }
    }

    #[inline(always)]
    fn prefetch(&self, bucket: u64) {
        in_form!(self, packed => packed.prefetch(bucket));
    }

    fn is_near(&self) -> bool {
        is_near(self.size_in_bytes())
    }

    fn has_room(&self, bucket: u64) -> bool {
        self.has_room(bucket)
    }

    /// A bucket that was full when the search came to it may have empty slots by now, and those are
    /// no copies.
    fn is_spare(&self, bucket: u64, slot: u64) -> bool {
        slot != 0 && self.copies(&self.geometry.location_of(bucket, slot)) > 1
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::table::table_bytes;

    /// A search that came to a bucket before others emptied two of its slots took one of them for a
    /// copy of the other, and counted it.
    #[test]
    fn an_empty_slot_is_no_spare_copy() {
        for (codec, width) in [(Codec::Plain, 8), (Codec::Plain, 16), (Codec::SemiSorted, 17)] {
            let layout = Layout::new(codec, width, 0).unwrap();
            let bytes = Buffer::zeroed(table_bytes(layout, 100).unwrap(), false).unwrap();
            let table = Table::new(Geometry::new(0, 100, width), layout, bytes);
            let cells = Cells::of(table).unwrap();
            assert!((0..100).all(|bucket| !cells.is_spare(bucket, 0)));
        }
    }
}
