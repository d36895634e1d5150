//! What a filter knows exactly, beside its buckets: three lists of numbers by name.
//!
//! | list | name | number |
//! |---|---|---|
//! | counters | the name of an entry | what its slots do not count of its keys |
//! | stash | the address and the value of a key that found no slot | its copies |
//! | corrections | the address of a key that is known to be absent | none |
//!
//! * **Counters.** An entry has a [name](crate::address::geometry::Geometry::name), which growth
//!   does not change. It may have more copies than slots, or in a counting filter a count that a
//!   slot cannot hold. A counter exists only while an entry of its name is in the buckets. So
//!   `contains` never reads counters.
//! * **Stash.** A key whose two buckets are full, where no eviction path leads to an empty slot, is
//!   kept here; in a maplet with its value, otherwise with 0. Honest keys hardly ever are: a few in
//!   millions, where buckets are being widened. Keys that somebody chose for one pair of buckets
//!   all are, and then cost what is said below instead of growth.
//! * **Corrections.** `contains` is false for their addresses, whatever entry matches. No key that
//!   is in has one: an insert takes it back, and no address is in both lists.
//! * **Addresses** have 64 bits and do not change when a table grows. Two keys with one address
//!   share an answer: one pair in 2^64.
//!
//! **In memory** a list is a B-tree, since a hash table would be slow for chosen keys, and a bitmap
//! in front of it with at least 10 bits for each name, so that a lookup of another name seldom
//! searches the tree. 30 to 55 bytes each. A larger bitmap is filled by the inserts that come
//! after it, [`MARKED_EACH`] names by each: no insert does the work of all. The nodes of the tree
//! are small, and a failure to allocate one ends the process, as in the collections of std. Before
//! many records are made at once, [`Records::fit`] asks whether there is memory for all of them.
//!
//! **In a file** it is an ascending array, read in place by binary search: 16 bytes each, 24 in
//! the stash, 8 for a correction.
//!
//! Source of the stash: A. Kirsch, M. Mitzenmacher, U. Wieder, More Robust Hashing: Cuckoo Hashing
//! with a Stash (SIAM J. Comput. 2009).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::array;
use core::ops::RangeInclusive;

use bytemuck::allocation::try_zeroed_vec;

use crate::error::{FullError, ImageError, require};
use crate::image::SECTIONS;
use crate::mem::buffer::{Buffer, is_available};

/// Bytes that a record takes at most: where names come in order, a node of the tree is half full.
const BYTES_EACH: usize = 60;
/// Bits of the bitmap for each name, from which on a larger one is filled.
const BITS_EACH: usize = 16;
/// Words of the smallest bitmap.
const FEWEST_WORDS: usize = 8;
/// Names that an insert marks in a larger bitmap, of which it begins with the last one again. So it
/// has all when half as many have come.
const MARKED_EACH: usize = 4;

/// The most records in a list of answers: a file counts them in 32 bits.
pub(crate) const MOST_ANSWERS: u64 = u32::MAX as u64;

/// Counters that can be changed.
pub(crate) type Counters = Records<Buffer>;

/// What a record can be named by.
pub(crate) trait Name: Copy + Ord {
    /// Numbers of a name in a file.
    const WORDS: usize;
    fn words(self) -> [u64; 2];
    fn of(words: [u64; 2]) -> Self;
}

/// The name of an entry, or an address.
impl Name for u64 {
    const WORDS: usize = 1;

    fn words(self) -> [u64; 2] {
        [self, 0]
    }

    fn of([name, _]: [u64; 2]) -> Self {
        name
    }
}

/// An address and a value.
pub(crate) type Pair = (u64, u64);

impl Name for Pair {
    const WORDS: usize = 2;

    fn words(self) -> [u64; 2] {
        self.into()
    }

    fn of(words: [u64; 2]) -> Self {
        words.into()
    }
}

/// Numbers by name, ascending. Those of a file are read in place, and copied before a change.
#[derive(Clone)]
pub(crate) struct Records<B, N = u64> {
    len: u64,
    /// The sum of the numbers in memory.
    sum: u128,
    marks: Marks,
    /// A larger bitmap, and the last name up to which it has those of the tree. It also has all
    /// that came since it was made.
    next: Option<(Marks, N)>,
    list: List<B, N>,
}

/// A bit for the first number of each name that got a record in memory; it may be left over from a
/// removed one. The length is a power of two, or 0.
#[derive(Clone, Default)]
struct Marks(Vec<u64>);

#[derive(Clone)]
enum List<B, N> {
    Owned(BTreeMap<N, u64>),
    /// Bytes, and how many of them a record has.
    Stored(B, usize),
}

impl<B, N> Default for Records<B, N> {
    fn default() -> Self {
        let list = List::Owned(BTreeMap::new());
        Self { len: 0, sum: 0, marks: Marks::default(), next: None, list }
    }
}

impl<B: AsRef<[u8]>, N: Name> Records<B, N> {
    /// The records in these bytes, `width` bytes each.
    pub(crate) fn stored(bytes: B, width: usize) -> Self {
        let len = (bytes.as_ref().len() / width) as u64;
        let list = List::Stored(bytes, width);
        Self { len, sum: 0, marks: Marks::default(), next: None, list }
    }

    /// A copy in memory. `None` if there is no memory for it.
    fn copy(&self) -> Option<Records<Buffer, N>> {
        Self::fit(self.len).then(|| self.iter().collect())
    }

    /// Whether the system has memory for so many records, as far as it says so.
    pub(crate) fn fit(records: u64) -> bool {
        usize::try_from(records)
            .is_ok_and(|records| is_available(records.saturating_mul(BYTES_EACH)))
    }

    /// How many there are.
    #[inline(always)]
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The number of this name.
    #[inline]
    pub(crate) fn get(&self, name: N) -> Option<u64> {
        if self.may_have(name) { self.find(name) } else { None }
    }

    #[inline(never)]
    fn find(&self, name: N) -> Option<u64> {
        match &self.list {
            List::Owned(tree) => tree.get(&name).copied(),
            List::Stored(..) => self.range(name..=name).next().map(|(_, number)| number),
        }
    }

    /// Whether there may be a record of this name; in the stash, of its address. Never false where
    /// there is one.
    #[inline]
    pub(crate) fn may_have(&self, name: N) -> bool {
        self.len > 0 && self.marks.may_have(name.words()[0])
    }

    /// The sum of all numbers. O(1) in memory, O(records) in a file.
    pub(crate) fn sum(&self) -> u128 {
        match self.list {
            List::Owned(_) => self.sum,
            List::Stored(ref bytes, width) => sum_of(bytes.as_ref(), width),
        }
    }

    /// All records.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (N, u64)> {
        self.range(N::of([0; 2])..=N::of([u64::MAX; 2]))
    }

    /// The records of these names.
    pub(crate) fn range(&self, names: RangeInclusive<N>) -> impl Iterator<Item = (N, u64)> {
        let (tree, bytes, width) = match &self.list {
            List::Owned(tree) => (Some(tree.range(names.clone())), &[][..], 1),
            List::Stored(bytes, width) => (None, bytes.as_ref(), *width),
        };
        let (mut low, mut high) = (0, bytes.len() / width);
        while low < high {
            let middle = usize::midpoint(low, high);
            let is_below = decode::<N>(&bytes[middle * width..][..width]).0 < *names.start();
            if is_below { low = middle + 1 } else { high = middle }
        }
        let stored = bytes[low * width..].chunks_exact(width).map(decode);
        let owned = tree.into_iter().flatten().map(|(&name, &number)| (name, number));
        // Bytes that nobody has verified may not ascend.
        owned.chain(stored.take_while(move |record| names.contains(&record.0)))
    }

    /// Checks that names ascend, that numbers are above 0, and that each record `holds`.
    ///
    /// # Errors
    /// [`ImageError`] for the first record that this crate would not have written.
    fn verify(
        &self,
        [name, number]: [&'static str; 2],
        holds: impl Fn(N) -> bool,
    ) -> Result<(), ImageError> {
        let mut last = None;
        for (it, count) in self.iter() {
            require(name, it.words()[0], last < Some(it) && holds(it))?;
            require(number, count, count > 0)?;
            last = Some(it);
        }
        Ok(())
    }

    /// Bytes that it has allocated, about: a leaf of the tree has seven records, and room for 11.
    fn allocated_bytes(&self) -> usize {
        let leaves = if let List::Owned(tree) = &self.list { tree.len().div_ceil(7) } else { 0 };
        let next = self.next.as_ref().map_or(0, |(marks, _)| marks.0.capacity());
        leaves * (11 * size_of::<(N, u64)>() + 16)
            + (self.marks.0.capacity() + next) * size_of::<u64>()
    }

    /// The records in memory.
    fn tree(&mut self) -> &mut BTreeMap<N, u64> {
        if let List::Stored(..) = self.list {
            *self = self.iter().collect();
        }
        let List::Owned(tree) = &mut self.list else { unreachable!("it was copied above") };
        tree
    }

    /// Adds `times` to the number of a name and returns the sum. Makes a record if there are fewer
    /// than `limit`.
    ///
    /// # Errors
    /// [`FullError`] where there would be too many records, or where the sum would overflow.
    /// Nothing has changed then.
    pub(crate) fn add(&mut self, name: N, times: u64, limit: u64) -> Result<u64, FullError> {
        let number = self.get(name);
        if number.is_none() && self.len >= limit {
            return Err(FullError::Counters { limit });
        }
        let sum = number.unwrap_or(0).checked_add(times).ok_or(FullError::Overflow)?;
        self.set(name, sum);
        Ok(sum)
    }

    /// Adds `times` to the number of a name, without a limit.
    pub(crate) fn add_all(&mut self, name: N, times: u64) {
        if times > 0 {
            self.set(name, self.get(name).unwrap_or(0).saturating_add(times));
        }
    }

    /// Subtracts one from the number of a name. False without a record.
    #[inline]
    pub(crate) fn take(&mut self, name: N) -> bool {
        self.may_have(name) && self.take_marked(name)
    }

    #[inline(never)]
    fn take_marked(&mut self, name: N) -> bool {
        let number = self.get(name);
        match number {
            None => {}
            Some(1) => drop(self.remove(name)),
            Some(number) => self.set(name, number - 1),
        }
        number.is_some()
    }

    /// Removes the record of a name and returns its number.
    pub(crate) fn remove(&mut self, name: N) -> Option<u64> {
        let removed = if self.may_have(name) { self.tree().remove(&name) } else { None };
        self.len -= u64::from(removed.is_some());
        self.sum -= u128::from(removed.unwrap_or(0));
        if self.len == 0 {
            *self = Self::default();
        }
        removed
    }

    /// Gives a name this number.
    fn set(&mut self, name: N, number: u64) {
        let before = self.tree().insert(name, number);
        self.sum = self.sum + u128::from(number) - u128::from(before.unwrap_or(0));
        if before.is_none() {
            self.len += 1;
            self.mark(name);
        }
    }

    /// Marks a new name. Where the bitmap is too small, begins a larger one or goes on to fill it.
    /// Without memory for that it stays as it is, and more lookups search the tree.
    fn mark(&mut self, name: N) {
        self.marks.mark(name.words()[0]);
        let len = usize::try_from(self.len).unwrap_or(usize::MAX);
        if self.next.is_none() && self.marks.are_few_for(len) {
            self.next = Marks::for_names(len).map(|marks| (marks, N::of([0; 2])));
        }
        let Some((mut next, mut from)) = self.next.take() else { return };
        next.mark(name.words()[0]);
        let mut rest = self.range(from..=N::of([u64::MAX; 2]));
        for (old, _) in rest.by_ref().take(MARKED_EACH) {
            next.mark(old.words()[0]);
            from = old;
        }
        let is_done = rest.next().is_none();
        drop(rest);
        if is_done { self.marks = next } else { self.next = Some((next, from)) }
    }
}

impl Marks {
    /// A bitmap without marks for so many names and as many more. `None` without memory.
    fn for_names(names: usize) -> Option<Self> {
        let words = names.saturating_mul(2 * BITS_EACH).div_ceil(u64::BITS as usize);
        try_zeroed_vec(words.next_power_of_two().max(FEWEST_WORDS)).ok().map(Self)
    }

    fn are_few_for(&self, names: usize) -> bool {
        self.0.len() * (u64::BITS as usize) < names.saturating_mul(BITS_EACH)
    }

    /// Whether a name may be marked. Any may be where there is no bitmap.
    #[inline]
    fn may_have(&self, name: u64) -> bool {
        let (word, bit) = self.position(name);
        self.0.get(word).is_none_or(|word| word & bit != 0)
    }

    fn mark(&mut self, name: u64) {
        let (word, bit) = self.position(name);
        self.0.get_mut(word).into_iter().for_each(|word| *word |= bit);
    }

    /// The word and the bit of a name: bits of a product that depend on all of it.
    #[inline]
    fn position(&self, name: u64) -> (usize, u64) {
        // The low bits of most names are zeros.
        let product = name.rotate_left(32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let word = usize::try_from(product >> 32).unwrap_or(0) & self.0.len().wrapping_sub(1);
        (word, 1 << (product >> 26 & 63))
    }
}

/// The pairs of a stash, wherever it is.
pub(crate) trait Stash: Sync {
    /// The first pair from this one on, of the same key.
    fn next_pair(&self, from: Pair) -> Option<Pair>;
}

impl<B: AsRef<[u8]> + Sync> Stash for Records<B, Pair> {
    fn next_pair(&self, from: Pair) -> Option<Pair> {
        self.range(from..=(from.0, u64::MAX)).next().map(|(pair, _)| pair)
    }
}

/// Records of different names, of which there [is memory](Records::fit) for all.
impl<B: AsRef<[u8]>, N: Name> FromIterator<(N, u64)> for Records<B, N> {
    fn from_iter<I: IntoIterator<Item = (N, u64)>>(records: I) -> Self {
        let mut all = Self::default();
        records.into_iter().for_each(|(name, number)| all.set(name, number));
        all
    }
}

impl<B: AsRef<[u8]>, O: AsRef<[u8]>, N: Name> PartialEq<Records<O, N>> for Records<B, N> {
    fn eq(&self, other: &Records<O, N>) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

/// The sum of the numbers in these records, which are their last eight bytes.
fn sum_of(bytes: &[u8], width: usize) -> u128 {
    let numbers = bytes.chunks_exact(width).filter_map(|record| record.last_chunk());
    numbers.map(|&number| u128::from(u64::from_le_bytes(number))).sum()
}

/// The record in these bytes. A name without a number counts one.
fn decode<N: Name>(record: &[u8]) -> (N, u64) {
    let mut words = record.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word));
    let mut name = [0; 2];
    name[..N::WORDS].fill_with(|| words.next().unwrap_or(0));
    (N::of(name), words.next().unwrap_or(1))
}

/// The bytes of a record, of which a section takes as many as it has for each.
pub(crate) fn encode<N: Name>((name, number): (N, u64)) -> [u8; 24] {
    let mut words = [name.words()[0], name.words()[1], 0];
    words[N::WORDS] = number;
    array::from_fn(|i| words[i / 8].to_le_bytes()[i % 8])
}

/// The three lists.
#[derive(Clone)]
pub(crate) struct Side<B> {
    pub(crate) counters: Records<B>,
    pub(crate) stash: Records<B, Pair>,
    pub(crate) corrections: Records<B>,
}

impl<B> Default for Side<B> {
    fn default() -> Self {
        let [counters, corrections] = [(); 2].map(|()| Records::default());
        Self { counters, stash: Records::default(), corrections }
    }
}

impl<B: AsRef<[u8]>> Side<B> {
    /// The lists in the bytes of a file.
    pub(crate) fn stored([counters, stash, corrections]: [B; 3]) -> Self {
        Self {
            counters: Records::stored(counters, SECTIONS[0]),
            stash: Records::stored(stash, SECTIONS[1]),
            corrections: Records::stored(corrections, SECTIONS[2]),
        }
    }

    /// A copy in memory. `None` if there is no memory for it.
    pub(crate) fn copy(&self) -> Option<Side<Buffer>> {
        let Self { counters, stash, corrections } = self;
        let copies = (counters.copy()?, stash.copy()?, corrections.copy()?);
        Some(Side { counters: copies.0, stash: copies.1, corrections: copies.2 })
    }

    /// Whether any key has an exact answer: one of the stash or of the corrections.
    #[inline(always)]
    pub(crate) fn has_answers(&self) -> bool {
        self.stash.len | self.corrections.len != 0
    }

    /// Whether a key may have an exact answer. Never false where it has one.
    #[inline]
    pub(crate) fn may_answer(&self, address: u64) -> bool {
        self.stash.may_have((address, 0)) || self.corrections.may_have(address)
    }

    /// The number of copies beside the table of the key with this address. `None` without an exact
    /// answer, 0 for a correction.
    pub(crate) fn answer(&self, address: u64) -> Option<u64> {
        match self.stashed(address) {
            0 => self.corrections.get(address).map(|_| 0),
            copies => Some(copies),
        }
    }

    /// The number of copies in the stash of the key with this address; in a maplet, of one pair.
    pub(crate) fn stashed(&self, address: u64) -> u64 {
        if self.stash.may_have((address, 0)) { self.first_copies(address) } else { 0 }
    }

    /// The addresses of the keys in the stash, with their copies.
    pub(crate) fn stashed_keys(&self) -> impl Iterator<Item = (u64, u64)> {
        self.stash.iter().map(|((address, _), copies)| (address, copies))
    }

    #[inline(never)]
    fn first_copies(&self, address: u64) -> u64 {
        let names = (address, 0)..=(address, u64::MAX);
        self.stash.range(names).next().map_or(0, |(_, copies)| copies)
    }

    /// Whether a key is in, if entries of the table say `found`. Only the stash changes a no, so a
    /// miss asks nothing where there are only corrections.
    pub(crate) fn settle(&self, address: u64, found: bool) -> bool {
        if !found && self.stash.len == 0 {
            return false;
        }
        self.answer(address).map_or(found, |copies| copies > 0)
    }

    /// Adds copies of a pair to the stash, in place of a correction if the key has one. The caller
    /// has checked that its count does not overflow.
    pub(crate) fn stash_copies(&mut self, pair: Pair, copies: u64) {
        if copies > 0 {
            self.corrections.remove(pair.0);
            self.stash.add_all(pair, copies);
        }
    }

    /// How many corrections `other` does not have.
    pub(crate) fn corrections_beyond<O: AsRef<[u8]>>(&self, other: &Side<O>) -> u64 {
        let beyond = self.corrections.iter().filter(|it| other.corrections.get(it.0).is_none());
        beyond.count() as u64
    }

    /// Makes a correction for a key without an exact answer.
    pub(crate) fn correct(&mut self, address: u64) {
        self.corrections.set(address, 1);
    }

    /// Checks the lists. `is_name` says whether an entry may have a counter of this name, `largest`
    /// is the largest value in the stash.
    ///
    /// # Errors
    /// [`ImageError`] for the first record that this crate would not have written.
    pub(crate) fn verify(
        &self,
        is_name: impl Fn(u64) -> bool,
        largest: u64,
    ) -> Result<(), ImageError> {
        self.counters.verify(["counter name", "counter value"], is_name)?;
        self.stash.verify(["stashed key", "stashed copies"], |(_, value)| value <= largest)?;
        let is_alone = |address| self.stashed(address) == 0;
        self.corrections.verify(["correction"; 2], is_alone)
    }

    /// Bytes that the lists have allocated, about.
    pub(crate) fn allocated_bytes(&self) -> usize {
        let Self { counters, stash, corrections } = self;
        counters.allocated_bytes() + stash.allocated_bytes() + corrections.allocated_bytes()
    }
}

impl<B: AsRef<[u8]>> PartialEq for Side<B> {
    fn eq(&self, other: &Self) -> bool {
        let Self { counters, stash, corrections } = self;
        *counters == other.counters && *stash == other.stash && *corrections == other.corrections
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of bits set in both bitmaps.
    fn marked(records: &Counters) -> [u32; 2] {
        let ones = |marks: &Marks| marks.0.iter().map(|word| word.count_ones()).sum();
        [ones(&records.marks), records.next.as_ref().map_or(0, |(next, _)| ones(next))]
    }

    #[test]
    fn an_insert_marks_a_few_names_however_many_there_are() {
        let orders: [fn(u64) -> u64; 3] = [
            |number| number,
            |number| u64::MAX - number,
            |number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        ];
        for name in orders {
            let (mut records, mut larger) = (Counters::default(), 0);
            for number in 0..5000 {
                let [small, next] = marked(&records);
                records.add(name(number), number + 1, u64::MAX).unwrap();
                let most = u32::try_from(MARKED_EACH).unwrap() + 1;
                let [now, next_now] = marked(&records);
                assert!(next_now <= next + most, "the larger one of {number}");
                assert!(now <= small + 1 || now <= next + most, "{number}");
                larger += u32::from(records.next.is_some() && next == 0);
                assert_eq!(records.get(name(number / 2)), Some(number / 2 + 1));
            }
            assert_eq!(records.sum(), 5000 * 5001 / 2);
            assert!((0..5000).all(|number| records.may_have(name(number))));
            let others = (0..10_000_u64).map(|number| !number.wrapping_mul(0xbf58_476d_1ce4_e5b9));
            let wrong = others.filter(|&name| records.may_have(name)).count();
            assert!(larger > 3 && wrong < 1500, "{larger} {wrong}");
            assert!((0..5000).all(|number| records.remove(name(number)).is_some()));
            assert_eq!((records.len(), records.sum()), (0, 0));
        }
    }
}
