//! The buckets of a filter or a maplet: a table of one size, or one that grows.
//!
//! Buckets start in a table of one size, and move to a growing one at the first growth. Maplets
//! that are built to grow start in a growing one. Only this file asks which it is.

use core::ops::Range;

use crate::address::geometry::Geometry;
use crate::image::Header;
use crate::image::shape::Shape;
use crate::mem::buffer::Buffer;
use crate::packing::{Bucket, Layout, store};
use crate::table::{Addressing, Cuckoo, CuckooMut, Growing, Table, table_bytes};

/// Buckets that [`Buckets::each_piece`] widens at once: they end with a byte.
const PIECE: usize = 64;
/// Bytes of so many buckets of up to 128 bits, and of the padding behind the last one.
const PIECE_BYTES: usize = PIECE * 16 + 32;

/// The buckets.
#[derive(Clone)]
pub(crate) enum Buckets<B> {
    /// A table of one size.
    Fixed(Table<B>),
    /// A table that grows.
    Growing(Growing<B>),
}

/// Evaluates an expression for the table that the buckets are in.
macro_rules! on_table {
    ($buckets:expr, $table:ident => $work:expr) => {
        match $buckets {
            $crate::state::Buckets::Fixed($table) => $work,
            $crate::state::Buckets::Growing($table) => $work,
        }
    };
}
pub(crate) use on_table;

/// Evaluates an expression for a [`Reader`](super::Reader) of a body.
macro_rules! reading {
    ($body:expr, $reader:ident => $work:expr) => {
        $crate::state::on_table!(&$body.buckets, table => {
            let $reader = $crate::state::Reader { table, state: &$body.state };
            $work
        })
    };
}
pub(crate) use reading;

/// Evaluates an expression for a [`Writer`](super::Writer) of a body.
macro_rules! changing {
    ($body:expr, $writer:ident => $work:expr) => {
        $crate::state::on_table!(&mut $body.buckets, table => {
            let $writer = $crate::state::Writer { table, state: &mut $body.state };
            $work
        })
    };
}
pub(crate) use changing;

impl<B: AsRef<[u8]>> Buckets<B> {
    /// The buckets in `bytes` that a header describes.
    pub(crate) fn of(header: &Header, bytes: B) -> Self {
        let layout = header.layout();
        match header.linear_hashing() {
            Some(addresses) => {
                Self::Growing(Growing::grown(addresses, layout, bytes, header.match_weight()))
            }
            None => Self::Fixed(Table::new(header.geometry(), layout, bytes)),
        }
    }

    /// The table of one size, if the buckets are in one.
    pub(crate) fn fixed(&self) -> Option<&Table<B>> {
        match self {
            Self::Fixed(table) => Some(table),
            Self::Growing(_) => None,
        }
    }

    /// The growing table, if the buckets are in one.
    pub(crate) fn growing(&self) -> Option<&Growing<B>> {
        match self {
            Self::Fixed(_) => None,
            Self::Growing(growing) => Some(growing),
        }
    }

    /// The addresses that the buckets were built with.
    pub(crate) fn base(&self) -> &Geometry {
        on_table!(self, table => table.geometry().base())
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        on_table!(self, table => table.geometry().buckets())
    }

    /// The packing of the buckets.
    #[inline]
    pub(crate) fn layout(&self) -> Layout {
        on_table!(self, table => table.layout())
    }

    /// The shape that the buckets were built with, in their present layout.
    pub(crate) fn shape(&self) -> Shape {
        Shape::of(self.base(), self.layout())
    }

    /// The decoded bucket.
    pub(crate) fn read(&self, bucket: u64) -> Bucket {
        on_table!(self, table => table.read(bucket))
    }

    /// The buckets as they are stored.
    pub(crate) fn bytes(&self) -> &[u8] {
        on_table!(self, table => table.bytes())
    }

    /// Whether an entry matches the key with this address.
    #[inline(always)]
    pub(crate) fn contains(&self, address: u64) -> bool {
        on_table!(self, table => table.contains(address))
    }

    /// A copy in memory of its own, to grow in if it `grows`. `None` where the system has no memory
    /// for it.
    pub(crate) fn to_owned_buckets(&self, grows: bool) -> Option<Buckets<Buffer>> {
        match self {
            Self::Fixed(table) => table.to_owned_table(grows).map(Buckets::Fixed),
            Self::Growing(table) => table.to_owned_table(true).map(Buckets::Growing),
        }
        .map(Buckets::restored)
    }

    fn is_midway(&self) -> bool {
        self.growing().is_some_and(Growing::is_midway)
    }

    /// Passes this range of the bytes of the buckets to `sink` as a file stores them: all of them
    /// wide. Buckets that are still narrow are widened on the stack.
    pub(crate) fn each_piece<E>(
        &self,
        range: Range<usize>,
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.is_midway() {
            return sink(&self.bytes()[range]);
        }
        let (layout, len) = (self.layout(), self.bytes().len());
        let bits = layout.bucket_bits();
        let piece_len = PIECE * bits as usize / 8;
        let skipped = range.start / piece_len;
        let firsts = (0..self.count()).step_by(PIECE).skip(skipped);
        for (first, start) in firsts.zip((skipped * piece_len..range.end).step_by(piece_len)) {
            let mut piece = [0; PIECE_BYTES];
            let end = self.count().min(first + PIECE as u64);
            for bucket in first..end {
                let at = (bucket - first) * u64::from(bits);
                store(&mut piece, at, bits, layout.encode(self.read(bucket)));
            }
            // The last piece has the padding too.
            let piece_end = if end < self.count() { start + piece_len } else { len };
            sink(&piece[range.start.max(start) - start..range.end.min(piece_end) - start])?;
        }
        Ok(())
    }
}

/// Equal if they are when all of them are wide.
impl PartialEq for Buckets<Buffer> {
    fn eq(&self, other: &Self) -> bool {
        let growth = |buckets: &Self| {
            let addresses = buckets.growing().map(Growing::geometry);
            let weight = buckets.growing().map(Growing::match_weight);
            (weight, addresses.map(|it| (it.base().fraction_bits(), it.level(), it.split())))
        };
        if self.shape() != other.shape() || growth(self) != growth(other) {
            return false;
        }
        if !self.is_midway() && !other.is_midway() {
            return self.bytes() == other.bytes();
        }
        let word = |buckets: &Self, bucket| buckets.layout().encode(buckets.read(bucket));
        (0..self.count()).all(|bucket| word(self, bucket) == word(other, bucket))
    }
}

impl Buckets<Buffer> {
    /// These buckets, read from a file, as they were in memory where it was written.
    pub(crate) fn restored(mut self) -> Self {
        if let Self::Growing(table) = &mut self {
            table.narrow_again();
        }
        self
    }

    /// Empty buckets, in memory to grow in if they `grow`. `None` if their bytes cannot be
    /// addressed or allocated.
    pub(crate) fn empty(shape: Shape, grow: bool) -> Option<Self> {
        let (geometry, layout) = (shape.geometry(), shape.layout);
        if layout.marks().is_some() {
            return Growing::empty(geometry, layout).map(Self::Growing);
        }
        let bytes = Buffer::zeroed(table_bytes(layout, shape.buckets())?, grow)?;
        Some(Self::Fixed(Table::new(geometry, layout, bytes)))
    }

    /// The table of one size, if the buckets are in one.
    pub(crate) fn fixed_mut(&mut self) -> Option<&mut Table<Buffer>> {
        match self {
            Self::Fixed(table) => Some(table),
            Self::Growing(_) => None,
        }
    }

    /// The table of one size by value, if the buckets are in one.
    #[cfg(all(feature = "std", target_has_atomic = "64"))]
    pub(crate) fn into_fixed(self) -> Option<Table<Buffer>> {
        match self {
            Self::Fixed(table) => Some(table),
            Self::Growing(_) => None,
        }
    }

    /// Moves the buckets to the growing table that `begin` makes of a table of one size, unless
    /// they are in a growing one already.
    pub(crate) fn grow<E>(
        &mut self,
        begin: impl FnOnce(&mut Table<Buffer>) -> Result<Growing<Buffer>, E>,
    ) -> Result<&mut Growing<Buffer>, E> {
        if let Self::Fixed(table) = self {
            *self = Self::Growing(begin(table)?);
        }
        match self {
            Self::Growing(growing) => Ok(growing),
            Self::Fixed(_) => unreachable!("they left it above"),
        }
    }

    /// Empties every bucket.
    pub(crate) fn clear(&mut self) {
        on_table!(self, table => {
            table.clear();
            table.finish_widening();
        });
    }
}
