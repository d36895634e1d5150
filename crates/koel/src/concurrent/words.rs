//! Atomic words, one for each bucket of a concurrent filter.
//!
//! A bucket of up to 32 bits has a word of 32, a wider one a word of 64. The bits above the bucket
//! stay zero. Callers see every word as 64 bits.

use alloc::boxed::Box;

use super::sync::{AtomicU32, AtomicU64, Ordering};
use crate::mem::prefetch::prefetch;

/// The words of a table. The representation gives the width a tag of its own, as for `AnyPacking`.
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
    /// Words for buckets of `bucket_bits` bits.
    pub(super) fn new(bucket_bits: u32, buckets: impl Iterator<Item = u64>) -> Self {
        if bucket_bits <= u32::BITS {
            Self::Half(buckets.map(|bucket| AtomicU32::new(half(bucket))).collect())
        } else {
            Self::Whole(buckets.map(AtomicU64::new).collect())
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
        with_words!(self, words => words[index(bucket)].load(Ordering::Acquire).into())
    }

    /// Loads two buckets, the first one first.
    #[inline]
    pub(super) fn load_pair(&self, (home, other): (u64, u64)) -> [u64; 2] {
        with_words!(self, words => {
            let [home, other] = [&words[index(home)], &words[index(other)]];
            let home = home.load(Ordering::Acquire);
            [home.into(), other.load(Ordering::Acquire).into()]
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
