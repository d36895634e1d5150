//! Atomic words, one for each bucket of a concurrent filter.
//!
//! A bucket of up to 32 bits has a word of 32, a wider one a word of 64. The bits above the bucket
//! stay zero. Callers see every word as 64 bits.
//!
//! A bucket of 64 bits is a word of the plain table, so such a table keeps its memory in both
//! directions. That needs no `unsafe`: when `Vec::into_iter().map(..).collect()` maps to a type of
//! the same size and alignment, std collects into the same allocation. A test checks that it does.
//! Buckets of other widths are copied. Under `cfg(loom)` every bucket is, because loom's atomics
//! are larger.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytemuck::Zeroable;
use bytemuck::allocation::try_zeroed_vec;

use super::sync::{AtomicU32, AtomicU64, Ordering};
use crate::mem::buffer::Buffer;
use crate::mem::prefetch::prefetch;
use crate::packing::{Layout, low_word};
use crate::table::Table;

/// The words of a table. Two words of zeros may follow: the padding of the plain table. The
/// representation gives the width a tag of its own, as for `AnyPacking`.
#[repr(u8)]
pub(super) enum AtomicWords {
    Half(Box<[AtomicU32]>),
    Whole(Box<[AtomicU64]>),
}

/// Evaluates `$work` with `$words` bound to the words in `$any`, whatever their width.
macro_rules! with_words {
    ($any:expr, $words:ident => $work:expr) => {
        match $any {
            AtomicWords::Half($words) => $work,
            AtomicWords::Whole($words) => $work,
        }
    };
}
pub(super) use with_words;

impl AtomicWords {
    /// The buckets of `table`, of at most 64 bits each. The table itself where the system has no
    /// memory for a copy.
    pub(super) fn of(table: Table<Buffer>) -> Result<Self, Box<Table<Buffer>>> {
        let (geometry, layout) = (table.base().clone(), table.layout());
        if layout.bucket_bits() <= u32::BITS {
            let words = buckets_of(&table).ok_or_else(|| Box::new(table))?;
            return Ok(Self::Half(mapped(words, AtomicU32::new)));
        }
        if layout.bucket_bits() < u64::BITS {
            let words = buckets_of(&table).ok_or_else(|| Box::new(table))?;
            return Ok(Self::Whole(mapped(words, AtomicU64::new)));
        }
        let words = table.into_bytes().into_words();
        let words = words.map_err(|bytes| Box::new(Table::fixed(geometry, layout, bytes)))?;
        Ok(Self::Whole(mapped(words, |word| AtomicU64::new(u64::from_le(word)))))
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

    /// Empties every bucket.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Half(words) => words.iter_mut().for_each(|word| *word = AtomicU32::new(0)),
            Self::Whole(words) => words.iter_mut().for_each(|word| *word = AtomicU64::new(0)),
        }
    }

    pub(super) fn size_in_bytes(&self) -> usize {
        with_words!(self, words => size_of_val(&**words))
    }

    /// Prefetches a bucket.
    #[inline]
    pub(super) fn prefetch(&self, bucket: u64) {
        with_words!(self, words => prefetch(words, index(bucket)));
    }

    /// Loads a bucket. What was done before the bucket was written is visible from here on.
    #[inline]
    pub(super) fn load(&self, bucket: u64) -> u64 {
        with_words!(self, words => load(words, bucket))
    }

    /// Loads two buckets, the first one first.
    #[inline]
    pub(super) fn load_pair(&self, (home, other): (u64, u64)) -> [u64; 2] {
        with_words!(self, words => {
            let [home, other] = [&words[index(home)], &words[index(other)]];
            let home = home.value();
            [home, other.value()]
        })
    }

    /// Writes `new` if the bucket is still `old`. Returns whether it was.
    #[inline]
    pub(super) fn swap(&self, bucket: u64, old: u64, new: u64) -> bool {
        let (at, success, failure) = (index(bucket), Ordering::AcqRel, Ordering::Relaxed);
        match self {
            Self::Half(words) => {
                words[at].compare_exchange(half(old), half(new), success, failure).is_ok()
            }
            Self::Whole(words) => words[at].compare_exchange(old, new, success, failure).is_ok(),
        }
    }
}

/// A word of either width.
pub(super) trait Word {
    /// Its value. What was done before it was written is visible from here on.
    fn value(&self) -> u64;
}

impl Word for AtomicU32 {
    #[inline]
    fn value(&self) -> u64 {
        self.load(Ordering::Acquire).into()
    }
}

impl Word for AtomicU64 {
    #[inline]
    fn value(&self) -> u64 {
        self.load(Ordering::Acquire)
    }
}

/// Loads a bucket.
#[inline]
pub(super) fn load(words: &[impl Word], bucket: u64) -> u64 {
    words[index(bucket)].value()
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the buckets are in memory")]
pub(super) fn index(bucket: u64) -> usize {
    bucket as usize
}

/// The low half of a word, which holds all bits of a bucket of at most 32.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the bucket has no other bits")]
fn half(word: u64) -> u32 {
    word as u32
}

/// The buckets of a table, each in a word of its own.
fn buckets_of<W: Zeroable + TryFrom<u64>>(table: &Table<Buffer>) -> Option<Vec<W>> {
    let count = table.buckets();
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

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::address::geometry::Geometry;
    use crate::packing::Codec;
    use crate::table::table_bytes;

    fn table(codec: Codec, width: u32) -> Table<Buffer> {
        let layout = Layout::new(codec, width, 0).unwrap();
        let bytes = Buffer::zeroed(table_bytes(layout, 1000).unwrap(), false).unwrap();
        Table::fixed(Geometry::new(0, 1000, width), layout, bytes)
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
            let Ok(words) = AtomicWords::of(table) else { panic!("memory for the words") };
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
