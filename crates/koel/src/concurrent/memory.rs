//! The words of a concurrent filter: one atomic word for each bucket, taken from a plain table and
//! given back.
//!
//! A bucket of 64 bits is a word of the table, so such a table keeps its memory in both directions.
//! That needs no `unsafe`: when `Vec::into_iter().map(..).collect()` maps to a type of the same
//! size and alignment, std collects into the same allocation. A test checks that it does. Buckets
//! of other widths are copied. Under `cfg(loom)` every bucket is, because loom's atomics are
//! larger.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytemuck::Zeroable;
use bytemuck::allocation::try_zeroed_vec;

use super::sync::{AtomicU32, AtomicU64};
use crate::mem::buffer::Buffer;
use crate::packing::{Layout, low_word};
use crate::table::Table;

/// The words of all buckets. Two words of zeros may follow: the padding of the table.
pub(super) enum AtomicWords {
    /// Buckets of at most 32 bits.
    Half(Box<[AtomicU32]>),
    /// Wider ones.
    Whole(Box<[AtomicU64]>),
}

impl AtomicWords {
    /// The buckets of `table`, of at most 64 bits each. `None` where the system has no memory for a
    /// copy.
    pub(super) fn of(table: Table<Buffer>) -> Option<Self> {
        let bits = table.layout().bucket_bits();
        Some(if bits <= u32::BITS {
            Self::Half(mapped(buckets_of(&table)?, AtomicU32::new))
        } else if bits < u64::BITS {
            Self::Whole(mapped(buckets_of(&table)?, AtomicU64::new))
        } else {
            let words = table.into_bytes().into_words()?;
            Self::Whole(mapped(words, |word| AtomicU64::new(u64::from_le(word))))
        })
    }

    /// The bytes of a table of `layout`, if its buckets are whole words.
    pub(super) fn into_bytes(self, layout: Layout) -> Option<Buffer> {
        match self {
            Self::Whole(words) if layout.bucket_bits() == u64::BITS => {
                let words = mapped(words.into_vec(), |word| word.into_inner().to_le());
                Some(Buffer::from_words(words.into_vec()))
            }
            _ => None,
        }
    }
}

/// The buckets of a table, each in a word of its own.
fn buckets_of<W: Zeroable + TryFrom<u64>>(table: &Table<Buffer>) -> Option<Vec<W>> {
    let count = table.geometry().buckets();
    let mut words = try_zeroed_vec(usize::try_from(count).ok()?).ok()?;
    for (word, bucket) in words.iter_mut().zip(0..count) {
        *word = W::try_from(low_word(table.word(bucket))).ok()?;
    }
    Some(words)
}

/// Every word as `map` gives it, in the same memory where the types allow it.
fn mapped<W, V>(words: Vec<W>, map: impl Fn(W) -> V) -> Box<[V]> {
    words.into_iter().map(map).collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::address::geometry::Geometry;
    use crate::packing::Codec;
    use crate::table::table_bytes;

    fn table(codec: Codec, width: u32) -> Table<Buffer> {
        let layout = Layout::new(codec, width, 0).unwrap();
        let bytes = Buffer::zeroed(table_bytes(layout, 1000).unwrap(), false).unwrap();
        Table::new(Geometry::new(0, 1000, width), layout, bytes)
    }

    #[test]
    fn words_of_64_bits_keep_their_memory_and_others_are_copied() {
        for (codec, width, stays) in [
            (Codec::Plain, 16, true),
            (Codec::SemiSorted, 17, true),
            (Codec::Plain, 12, false),
            (Codec::Plain, 8, false),
            (Codec::SemiSorted, 9, false),
        ] {
            let mut table = table(codec, width);
            table.set_word(7, 0x1234);
            let (layout, before) = (table.layout(), table.bytes().to_vec());
            let start = table.bytes().as_ptr().addr();
            let words = AtomicWords::of(table).unwrap();
            let at = match &words {
                AtomicWords::Half(words) => words.as_ptr().addr(),
                AtomicWords::Whole(words) => words.as_ptr().addr(),
            };
            let back = words.into_bytes(layout);
            assert_eq!(back.is_some(), stays, "{layout}");
            if let Some(bytes) = back {
                assert_eq!((at, bytes.as_ref().as_ptr().addr()), (start, start), "{layout}");
                assert!(bytes.as_ref() == before);
            }
        }
    }
}
