//! Exact answers beside the table, by address: the *stash* of keys that found no slot, and
//! *corrections* for keys that are known to be absent.
//!
//! * **Stash.** A key whose two buckets are full, where no eviction path leads to an empty slot, is
//!   kept here with the number of its copies. Honest keys hardly ever are: a few in millions, where
//!   buckets are being widened. Keys that somebody chose for one pair of buckets all are, and then
//!   cost what is said below instead of growth.
//! * **Corrections.** An address with 0 copies: `contains` is false for it, whatever entry matches.
//! * **Addresses** have 64 bits and do not change when a table grows. Two keys with one address
//!   share an answer: one pair in 2^64.
//! * **Invariant.** No address of a key that is in has 0 copies: an insert takes its correction
//!   back.
//!
//! In memory: a B-tree, since a hash table would be slow for chosen keys, and a bitmap in front of
//! it with at least 16 bits for each address. So a lookup of another key seldom searches the tree.
//! About 30 bytes each. In a file: two ascending arrays, of 16 bytes for each stashed key and 8 for
//! each correction, read in place by binary search. Lookups in filters without any do not look.
//!
//! Source of the stash: A. Kirsch, M. Mitzenmacher, U. Wieder, More Robust Hashing: Cuckoo Hashing
//! with a Stash (SIAM J. Comput. 2009).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::error::{ImageError, require};
use crate::image::{CORRECTION_BYTES, RECORD_BYTES};
use crate::mem::buffer::is_available;
use crate::state::record::{decode, tree_bytes};

/// Bytes that an address takes in memory, at most.
const BYTES_EACH: usize = 40;
/// Bits of the bitmap for each address.
const BITS_EACH: usize = 16;
/// Words of the smallest bitmap.
const FEWEST_WORDS: usize = 8;

/// Reading exact answers, in memory or in a file.
pub trait ReadExact: PartialEq {
    /// The type in memory, which can be changed.
    type Owned: ReadExact + Default;
    /// A copy in memory. `None` if there is no memory for it.
    fn to_owned_exact(&self) -> Option<Self::Owned>;
    /// The number of keys in the stash, and of corrections.
    fn lens(&self) -> [u64; 2];
    /// The number of copies beside the table of the key with this address. `None` without an exact
    /// answer, 0 for a correction.
    fn copies(&self, address: u64) -> Option<u64>;
    /// The stash, ascending, with copies.
    fn stash(&self) -> impl Iterator<Item = (u64, u64)>;
    /// The addresses of the corrections, ascending.
    fn corrections(&self) -> impl Iterator<Item = u64>;

    /// Whether there are no exact answers.
    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.lens() == [0; 2]
    }

    /// Bytes that the answers have allocated, about.
    fn allocated_bytes(&self) -> usize {
        0
    }

    /// Whether a key is in, if entries of the table say `found`. Only the stash changes a no, so a
    /// miss asks nothing where there are only corrections.
    fn settle(&self, address: u64, found: bool) -> bool {
        if !found && self.lens()[0] == 0 {
            return false;
        }
        self.copies(address).map_or(found, |copies| copies > 0)
    }

    /// Checks the stash and the corrections.
    ///
    /// # Errors
    /// [`ImageError`] for the first address that this crate would not have written.
    fn verify(&self) -> Result<(), ImageError> {
        let mut last = None;
        for (address, copies) in self.stash() {
            require("stashed key", address, last < Some(address))?;
            require("stashed copies", copies, copies > 0)?;
            last = Some(address);
        }
        let mut last = None;
        for address in self.corrections() {
            let is_alone = self.copies(address) == Some(0);
            require("correction", address, last < Some(address) && is_alone)?;
            last = Some(address);
        }
        Ok(())
    }
}

/// No exact answers: maplets and expiring filters have none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NoExact;

impl ReadExact for NoExact {
    type Owned = Self;

    fn to_owned_exact(&self) -> Option<Self> {
        Some(Self)
    }

    #[inline(always)]
    fn lens(&self) -> [u64; 2] {
        [0; 2]
    }

    fn copies(&self, _: u64) -> Option<u64> {
        None
    }

    fn stash(&self) -> impl Iterator<Item = (u64, u64)> {
        core::iter::empty()
    }

    fn corrections(&self) -> impl Iterator<Item = u64> {
        core::iter::empty()
    }
}

impl From<StoredExact<'_>> for NoExact {
    fn from(_: StoredExact<'_>) -> Self {
        Self
    }
}

/// The exact answers of an owned filter.
#[derive(Clone, Debug, Default)]
pub struct Exact {
    /// Copies by address, 0 for a correction.
    copies: BTreeMap<u64, u64>,
    corrections: u64,
    /// A bit for each address that got an answer. Its length is a power of two, or 0.
    marks: Vec<u64>,
}

/// Compares the answers only: bits may be left over from removed ones.
impl PartialEq for Exact {
    fn eq(&self, other: &Self) -> bool {
        self.copies == other.copies
    }
}

impl Exact {
    /// The answers with these copies by address, 0 for a correction. `None` if there is no memory.
    pub(crate) fn of(answers: Vec<(u64, u64)>) -> Option<Self> {
        let bytes = answers.len().saturating_mul(BYTES_EACH);
        is_available(bytes).then(|| answers.into_iter().collect())
    }

    /// Whether a key may have an exact answer. Never false where it has one.
    #[inline]
    pub(crate) fn may_have(&self, address: u64) -> bool {
        let (word, bit) = self.position(address);
        self.marks.get(word).map_or(!self.copies.is_empty(), |word| word & bit != 0)
    }

    /// Adds copies of a key to the stash, in place of a correction if it has one. The caller has
    /// checked that its count does not overflow.
    pub(crate) fn stash_copies(&mut self, address: u64, copies: u64) {
        if copies > 0 {
            self.lift(address);
            *self.answer(address) += copies;
        }
    }

    /// Takes one copy of a key out of the stash. False if it has none there.
    pub(crate) fn take(&mut self, address: u64) -> bool {
        match self.copies.get_mut(&address) {
            None | Some(0) => return false,
            Some(1) => self.forget(address),
            Some(copies) => *copies -= 1,
        }
        true
    }

    /// Makes a correction for a key without an exact answer.
    pub(crate) fn correct(&mut self, address: u64) {
        let before = self.copies.len();
        self.answer(address);
        self.corrections += (self.copies.len() - before) as u64;
    }

    /// Takes the correction of a key back, if it has one.
    pub(crate) fn lift(&mut self, address: u64) {
        if self.copies.get(&address) == Some(&0) {
            self.corrections -= 1;
            self.forget(address);
        }
    }

    fn forget(&mut self, address: u64) {
        self.copies.remove(&address);
        if self.copies.is_empty() {
            *self = Self::default();
        }
    }

    /// The answer for an address, 0 if it is new.
    fn answer(&mut self, address: u64) -> &mut u64 {
        self.widen_marks();
        self.mark(address);
        self.copies.entry(address).or_insert(0)
    }

    /// Doubles the bitmap if it is too small for one more address. Without memory for that it stays
    /// as it is, and more lookups search the tree.
    fn widen_marks(&mut self) {
        let bits = self.marks.len() * u64::BITS as usize;
        if bits > self.copies.len().saturating_mul(BITS_EACH) {
            return;
        }
        let (words, mut marks) = ((2 * self.marks.len()).max(FEWEST_WORDS), Vec::new());
        if marks.try_reserve_exact(words).is_ok() {
            marks.resize(words, 0);
            self.marks = marks;
            let copies = core::mem::take(&mut self.copies);
            copies.keys().for_each(|&address| self.mark(address));
            self.copies = copies;
        }
    }

    fn mark(&mut self, address: u64) {
        let (word, bit) = self.position(address);
        self.marks.get_mut(word).into_iter().for_each(|word| *word |= bit);
    }

    /// The word and the bit of an address: the top bits of a product.
    #[inline]
    fn position(&self, address: u64) -> (usize, u64) {
        let product = address.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let words = usize::try_from(product >> 32).unwrap_or(0) & self.marks.len().wrapping_sub(1);
        (words, 1 << (product >> 26 & 63))
    }
}

impl FromIterator<(u64, u64)> for Exact {
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(answers: I) -> Self {
        let mut exact = Self::default();
        for (address, copies) in answers {
            if copies > 0 {
                exact.stash_copies(address, copies);
            } else {
                exact.correct(address);
            }
        }
        exact
    }
}

impl ReadExact for Exact {
    type Owned = Self;

    fn to_owned_exact(&self) -> Option<Self> {
        is_available(self.copies.len().saturating_mul(BYTES_EACH)).then(|| self.clone())
    }

    #[inline(always)]
    fn lens(&self) -> [u64; 2] {
        [self.copies.len() as u64 - self.corrections, self.corrections]
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    fn allocated_bytes(&self) -> usize {
        tree_bytes(self.copies.len()) + self.marks.capacity() * size_of::<u64>()
    }

    fn copies(&self, address: u64) -> Option<u64> {
        if self.may_have(address) { self.copies.get(&address).copied() } else { None }
    }

    fn stash(&self) -> impl Iterator<Item = (u64, u64)> {
        self.copies.iter().map(|(&address, &copies)| (address, copies)).filter(|it| it.1 > 0)
    }

    fn corrections(&self) -> impl Iterator<Item = u64> {
        self.copies.iter().filter(|&(_, &copies)| copies == 0).map(|(&address, _)| address)
    }
}

/// The exact answers of a file, read in place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StoredExact<'a> {
    stash: &'a [[u8; RECORD_BYTES]],
    corrections: &'a [[u8; CORRECTION_BYTES]],
}

impl<'a> StoredExact<'a> {
    /// The answers in these bytes, whose lengths are multiples of a record's.
    pub(crate) fn new(stash: &'a [u8], corrections: &'a [u8]) -> Self {
        Self { stash: stash.as_chunks().0, corrections: corrections.as_chunks().0 }
    }
}

impl ReadExact for StoredExact<'_> {
    type Owned = Exact;

    fn to_owned_exact(&self) -> Option<Exact> {
        let answers = self.stash.len().saturating_add(self.corrections.len());
        let corrections = self.corrections().map(|address| (address, 0));
        is_available(answers.saturating_mul(BYTES_EACH))
            .then(|| self.stash().chain(corrections).collect())
    }

    #[inline(always)]
    fn lens(&self) -> [u64; 2] {
        [self.stash.len() as u64, self.corrections.len() as u64]
    }

    fn copies(&self, address: u64) -> Option<u64> {
        let stashed = self.stash.binary_search_by_key(&address, |record| decode(record).0);
        match stashed {
            Ok(index) => Some(decode(&self.stash[index]).1),
            Err(_) => {
                let corrections = self.corrections;
                corrections
                    .binary_search_by_key(&address, |bytes| u64::from_le_bytes(*bytes))
                    .map_or(None, |_| Some(0))
            }
        }
    }

    fn stash(&self) -> impl Iterator<Item = (u64, u64)> {
        self.stash.iter().map(decode)
    }

    fn corrections(&self) -> impl Iterator<Item = u64> {
        self.corrections.iter().map(|bytes| u64::from_le_bytes(*bytes))
    }
}

/// The most keys in the stash, and the most corrections: a file counts them in 32 bits.
pub(crate) const MOST: u64 = u32::MAX as u64;
