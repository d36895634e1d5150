//! The buckets of a filter or a maplet, wherever they are: as they were built, or as they have grown.
//!
//! Until the first growth they are in a table of one size. From then on they are in one that grows (from the start, where it was built to grow), and of the first table only
//! the shape remains. What is the same for both is here; who changes buckets must know in which they are.

use crate::buffer::Buffer;
use crate::growth::Grown;
use crate::layout::{Bucket, Layout};
use crate::sizing::Shape;
use crate::table::{Table, table_bytes};

/// The buckets, and their shape.
#[derive(Clone, PartialEq)]
pub(crate) struct Body<B> {
    /// The buckets as they were built, or where they would be.
    pub(crate) table: Table<B>,
    /// The buckets as they have grown.
    pub(crate) grown: Option<Grown<B>>,
}

impl<B: AsRef<[u8]>> Body<B> {
    /// How many there are.
    pub(crate) fn buckets(&self) -> u64 {
        self.grown.as_ref().map_or_else(|| self.table.geometry().buckets(), Grown::buckets)
    }

    /// The packing of the buckets.
    pub(crate) fn layout(&self) -> Layout {
        self.grown.as_ref().map_or_else(|| self.table.layout(), |grown| grown.table().layout())
    }

    /// The shape that they were built with, in the layout that they have.
    pub(crate) fn shape(&self) -> Shape {
        Shape { layout: self.layout(), ..Shape::of(&self.table) }
    }

    /// The decoded bucket.
    pub(crate) fn read(&self, bucket: u64) -> Bucket {
        self.grown.as_ref().map_or_else(|| self.table.read(bucket), |it| it.table().read(bucket))
    }

    /// The bucket as it is stored, where there are no values.
    pub(crate) fn word(&self, bucket: u64) -> u128 {
        self.grown.as_ref().map_or_else(|| self.table.word(bucket), |it| it.table().word(bucket))
    }

    /// The buckets as they are stored.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.grown.as_ref().map_or_else(|| self.table.bytes(), |grown| grown.table().bytes())
    }

    /// Whether all bits behind the last bucket are zero.
    pub(crate) fn is_padded_with_zeros(&self) -> bool {
        self.grown.as_ref().map_or_else(
            || self.table.is_padded_with_zeros(),
            |grown| grown.table().is_padded_with_zeros(),
        )
    }

    /// Whether a table that has grown weighs what it says. O(buckets).
    pub(crate) fn weighs_what_it_says(&self) -> bool {
        self.grown.as_ref().is_none_or(|grown| grown.weigh() == grown.mass())
    }

    /// Whether an entry matches the key with this hash.
    #[inline(always)]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        match &self.grown {
            None => self.table.contains(&self.table.geometry().locate(hash)),
            Some(grown) => grown.contains(hash),
        }
    }

    /// Asks the memory for the buckets of the key with this hash.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        match &self.grown {
            None => self.table.prefetch_place(&self.table.geometry().locate(hash)),
            Some(grown) => grown.prefetch(hash),
        }
    }

    /// The same buckets in memory of their own.
    pub(crate) fn to_owned_body(&self) -> Body<Buffer> {
        match &self.grown {
            None => Body::built(self.table.to_owned_table()),
            Some(grown) => Body::grown(&self.table, grown.to_owned_table()),
        }
    }
}

impl Body<Buffer> {
    /// Empty buckets; `None` where their bytes cannot be addressed or had.
    pub(crate) fn empty(shape: Shape) -> Option<Self> {
        let (geometry, layout) = (shape.geometry(), shape.layout);
        if layout.marks().is_some() {
            let grown = Some(Grown::empty(geometry.clone(), layout)?);
            return Some(Self { table: Table::vacant(geometry, layout), grown });
        }
        let bytes = Buffer::zeroed(table_bytes(layout, shape.buckets())?)?;
        Some(Self::built(Table::new(geometry, layout, bytes)))
    }

    /// Buckets as they were built.
    pub(crate) fn built(table: Table<Buffer>) -> Self {
        Self { table, grown: None }
    }

    /// Buckets that have grown from those of `table`, or will.
    pub(crate) fn grown<B: AsRef<[u8]>>(table: &Table<B>, grown: Grown<Buffer>) -> Self {
        let layout = grown.table().layout();
        Self { table: Table::vacant(table.geometry().clone(), layout), grown: Some(grown) }
    }

    /// Empties every bucket.
    pub(crate) fn clear(&mut self) {
        match &mut self.grown {
            None => self.table.clear(),
            Some(grown) => grown.clear(),
        }
    }
}
