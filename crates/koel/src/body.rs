//! The buckets of a filter or a maplet, wherever they are: as they were built, or as they have grown.
//!
//! Until the first growth they are in a table of one size. From then on they are in one that grows (from the start, where it was built to grow). What is the same for both is
//! here; who changes buckets must know in which they are.

use crate::buffer::Buffer;
use crate::geometry::Geometry;
use crate::growth::Grown;
use crate::layout::{Bucket, Layout};
use crate::sizing::Shape;
use crate::table::{Table, table_bytes};

/// The buckets.
#[derive(Clone)]
pub(crate) enum Body<B> {
    /// As they were built.
    Built(Table<B>),
    /// As they have grown.
    Grown(Grown<B>),
}

impl<B: AsRef<[u8]>> Body<B> {
    /// The table that they were built in, if they are there still.
    pub(crate) fn built(&self) -> Option<&Table<B>> {
        match self {
            Self::Built(table) => Some(table),
            Self::Grown(_) => None,
        }
    }

    /// The table that grows, if they are in one.
    pub(crate) fn grown(&self) -> Option<&Grown<B>> {
        match self {
            Self::Built(_) => None,
            Self::Grown(grown) => Some(grown),
        }
    }

    /// The addresses that they were built with.
    pub(crate) fn base(&self) -> &Geometry {
        match self {
            Self::Built(table) => table.geometry(),
            Self::Grown(grown) => grown.addresses().base(),
        }
    }

    /// How many there are.
    pub(crate) fn buckets(&self) -> u64 {
        match self {
            Self::Built(table) => table.geometry().buckets(),
            Self::Grown(grown) => grown.buckets(),
        }
    }

    /// The packing of the buckets.
    pub(crate) fn layout(&self) -> Layout {
        match self {
            Self::Built(table) => table.layout(),
            Self::Grown(grown) => grown.table().layout(),
        }
    }

    /// The shape that they were built with, in the layout that they have.
    pub(crate) fn shape(&self) -> Shape {
        Shape::of(self.base(), self.layout())
    }

    /// The decoded bucket.
    pub(crate) fn read(&self, bucket: u64) -> Bucket {
        match self {
            Self::Built(table) => table.read(bucket),
            Self::Grown(grown) => grown.table().read(bucket),
        }
    }

    /// The bucket as it is stored, where there are no values.
    pub(crate) fn word(&self, bucket: u64) -> u128 {
        match self {
            Self::Built(table) => table.word(bucket),
            Self::Grown(grown) => grown.table().word(bucket),
        }
    }

    /// The buckets as they are stored.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Built(table) => table.bytes(),
            Self::Grown(grown) => grown.table().bytes(),
        }
    }

    /// Whether all bits behind the last bucket are zero.
    pub(crate) fn is_padded_with_zeros(&self) -> bool {
        match self {
            Self::Built(table) => table.is_padded_with_zeros(),
            Self::Grown(grown) => grown.table().is_padded_with_zeros(),
        }
    }

    /// Whether a table that has grown weighs what it says. O(buckets).
    pub(crate) fn weighs_what_it_says(&self) -> bool {
        self.grown().is_none_or(|grown| grown.weigh() == grown.mass())
    }

    /// Whether an entry matches the key with this hash.
    #[inline(always)]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        match self {
            Self::Built(table) => table.contains_hash(hash),
            Self::Grown(grown) => grown.contains(hash),
        }
    }

    /// Asks the memory for the buckets of the key with this hash.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        match self {
            Self::Built(table) => table.prefetch_place(&table.geometry().locate(hash)),
            Self::Grown(grown) => grown.prefetch(hash),
        }
    }

    /// The same buckets in memory of their own, to grow in if they `grow`.
    pub(crate) fn to_owned_body(&self, grow: bool) -> Body<Buffer> {
        match self {
            Self::Built(table) => Body::Built(table.to_owned_table(grow)),
            Self::Grown(grown) => Body::Grown(grown.to_owned_table()),
        }
    }

    /// What the buckets are to become that are being widened; `None` where none are. What is written is never midway.
    pub(crate) fn widened(&self) -> Option<Body<Buffer>> {
        let grown = self.grown().filter(|grown| grown.is_midway())?;
        let mut whole = grown.to_owned_table();
        whole.finish_widening();
        Some(Body::Grown(whole))
    }
}

/// Equal when all of them are wide.
impl PartialEq for Body<Buffer> {
    fn eq(&self, other: &Self) -> bool {
        let whole = [self.widened(), other.widened()];
        match (whole[0].as_ref().unwrap_or(self), whole[1].as_ref().unwrap_or(other)) {
            (Self::Built(ours), Self::Built(theirs)) => ours == theirs,
            (Self::Grown(ours), Self::Grown(theirs)) => ours == theirs,
            _ => false,
        }
    }
}

impl Body<Buffer> {
    /// Empty buckets, in memory to grow in if they `grow`; `None` where their bytes cannot be addressed or had.
    pub(crate) fn empty(shape: Shape, grow: bool) -> Option<Self> {
        let (geometry, layout) = (shape.geometry(), shape.layout);
        if layout.marks().is_some() {
            return Grown::empty(geometry, layout).map(Self::Grown);
        }
        let bytes = Buffer::zeroed(table_bytes(layout, shape.buckets())?, grow)?;
        Some(Self::Built(Table::new(geometry, layout, bytes)))
    }

    /// The table that grows: the one that they are in, or what `begin` makes of the one that they were built in, and that is no more.
    pub(crate) fn grown_by<E>(
        &mut self,
        begin: impl FnOnce(&mut Table<Buffer>) -> Result<Grown<Buffer>, E>,
    ) -> Result<&mut Grown<Buffer>, E> {
        if let Self::Built(table) = self {
            *self = Self::Grown(begin(table)?);
        }
        match self {
            Self::Grown(grown) => Ok(grown),
            Self::Built(_) => unreachable!("they left it above"),
        }
    }

    /// Empties every bucket.
    pub(crate) fn clear(&mut self) {
        match self {
            Self::Built(table) => table.clear(),
            Self::Grown(grown) => grown.clear(),
        }
    }
}
