//! The parts of a model test: a filter to build, keys to use, operations to apply.
//!
//! All of it is plain data, so that a failing case can be printed, shrunk and written down as a
//! test. For fuzzing, [`Case::decode`] turns any bytes into a case, and similar bytes into similar
//! cases.

use koel::{Builder, CuckooFilter, Key, KeyData, KeyHash, Merge, Prefer};

use crate::keys;
use crate::{addressing::Addressing, patches::shaped};

/// The number of keys: few enough that they repeat, but more than the slots of a small filter.
pub const KEYS: u16 = 256;

/// One of the [`KEYS`] keys of a case, by number.
pub type KeyNumber = u8;

/// The kind of keys in a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Universe {
    /// The integers 0 to 255, hashed by the filter.
    Integers,
    /// Uniform hashes.
    Uniform,
    /// Hashes that collide: in one bucket pair, in one home bucket, or in one entry.
    Crowded,
}

/// A key as a filter gets it: an integer, or a ready hash.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CaseKey {
    Integer(u64),
    Hash(KeyHash),
}

impl Key for CaseKey {
    fn with<R>(&self, read: impl FnOnce(KeyData<'_>) -> R) -> R {
        match self {
            Self::Integer(number) => number.with(read),
            Self::Hash(hash) => hash.with(read),
        }
    }
}

/// How to build the filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Distinct keys.
    pub capacity: u64,
    /// Requested false-positive rate.
    pub rate: f64,
    /// Which codec.
    pub prefer: Prefer,
    /// SipHash instead of XXH3.
    pub keyed: bool,
    /// `None` for the default.
    pub counter_limit: Option<u64>,
    /// Segment bits and buckets per segment, for shapes that no builder chooses.
    pub shape: Option<(u8, u32)>,
    /// The kind of keys.
    pub universe: Universe,
}

/// One step. Keys are given by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Adds a copy of each of these keys until one is refused, by single calls and in a batch.
    Insert(Vec<KeyNumber>),
    /// Adds a key unless it is present.
    InsertUnique(KeyNumber),
    /// Removes a copy if the key has one. If the filter reports the key as absent, tries and must
    /// fail.
    Remove(KeyNumber),
    /// Removes all copies of these keys, the first copy of each also in a batch.
    RemoveAll(Vec<KeyNumber>),
    /// Compares the count.
    Count(KeyNumber),
    /// Removes every key.
    Clear,
    /// Writes the bytes and reads them back.
    Reload,
    /// Opens the bytes in place and compares every answer.
    View,
    /// Merges a filter with these keys, each this many times, into this one; if `as_view`, as a
    /// view of its bytes.
    Merge {
        /// Keys and copies of the other filter.
        other: Vec<(KeyNumber, u8)>,
        /// How counts are combined.
        counts: Merge,
        /// Whether the other filter is a view.
        as_view: bool,
    },
    /// Compares everything.
    Check,
}

/// A filter and the operations on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The filter.
    pub setup: Setup,
    /// The operations, in order.
    pub ops: Vec<Op>,
}

impl Setup {
    /// The empty filter.
    ///
    /// # Panics
    /// If no filter can be built with this setup.
    #[must_use]
    pub fn build(&self) -> CuckooFilter {
        let builder = self.builder();
        match self.shape {
            None => builder.build().expect("a setup names a filter that can be built"),
            Some((segment_bits, buckets)) => shaped(&builder, segment_bits, buckets),
        }
    }

    fn builder(&self) -> Builder<CuckooFilter> {
        let builder = CuckooFilter::builder(self.capacity, self.rate).prefer(self.prefer);
        let builder = if self.keyed { builder.sip_key([7; 16]) } else { builder.seed(7) };
        match self.counter_limit {
            Some(limit) => builder.counter_limit(limit),
            None => builder,
        }
    }

    /// Whether the filter promises room for its capacity of distinct keys. It does not for crafted
    /// keys, a reduced number of counters, or a number of buckets set by this module.
    #[must_use]
    pub fn promises_capacity(&self) -> bool {
        self.universe != Universe::Crowded && self.shape.is_none() && self.counter_limit.is_none()
    }

    /// The hashes of the keys, by number.
    #[must_use]
    pub fn hashes(&self, filter: &CuckooFilter) -> Vec<u64> {
        let uniform = keys::hashes(11, u64::from(KEYS));
        match self.universe {
            Universe::Integers => {
                (0..KEYS).map(|key| keys::address(filter.hasher().hash(&u64::from(key)))).collect()
            }
            Universe::Uniform => uniform.collect(),
            Universe::Crowded => {
                let addressing = Addressing::of(&filter.to_bytes());
                let one = keys::splitmix64(12);
                let home = addressing.pair(one).0;
                // 64 of each kind; where a kind has fewer, it starts again.
                let same_entry =
                    uniform.clone().flat_map(|h| keys::sharing_entry(&addressing, h).take(4));
                let same_pair = keys::sharing_pair(&addressing, one).cycle();
                let same_home = keys::sharing_home(&addressing, home).cycle();
                let kinds = same_entry.zip(same_pair).zip(same_home).zip(uniform.clone().skip(64));
                kinds.take(64).flat_map(|(((a, b), c), d)| [a, b, c, d]).collect()
            }
        }
    }
}

impl Case {
    /// Decodes a case: a setup of six bytes, then operations of one byte and their arguments.
    /// Missing bytes are 0.
    #[must_use]
    pub fn decode(bytes: &[u8], max_ops: usize) -> Self {
        let mut bytes = bytes.iter().copied();
        let setup = decode_setup([(); 6].map(|()| bytes.next().unwrap_or(0)));
        let mut ops = Vec::new();
        while ops.len() < max_ops
            && let Some(op) = decode_op(&mut bytes)
        {
            ops.push(op);
        }
        Self { setup, ops }
    }
}

fn decode_setup([capacity, rate, kind, limit, shape, universe]: [u8; 6]) -> Setup {
    Setup {
        capacity: 1 + u64::from(capacity % 64),
        rate: [0.03, 0.01, 0.001, 1e-5, 1e-8][usize::from(rate) % 5],
        prefer: if kind & 1 == 0 { Prefer::Small } else { Prefer::Fast },
        keyed: kind & 2 != 0,
        counter_limit: Some(u64::from(limit % 8)).filter(|&limit| limit <= 4),
        shape: (shape & 1 == 1).then_some(((shape >> 1) % 3, 1 + u32::from(shape >> 3) % 9)),
        universe: [Universe::Integers, Universe::Uniform, Universe::Crowded]
            [usize::from(universe) % 3],
    }
}

/// `count` keys starting with `first`, wrapping around after the last key.
#[must_use]
pub fn run(first: KeyNumber, count: u8) -> Vec<KeyNumber> {
    (0..count).map(|i| first.wrapping_add(i)).collect()
}

/// `None` at the end of the bytes.
fn decode_op(bytes: &mut impl Iterator<Item = u8>) -> Option<Op> {
    let kind = bytes.next()?;
    let mut next = || bytes.next().unwrap_or(0);
    Some(match kind % 32 {
        0..8 => Op::Insert(vec![next()]),
        8 | 9 => Op::Insert(vec![next(); usize::from(next() % 8)]),
        10..13 => Op::Insert(run(next(), next() % 32)),
        13..15 => Op::InsertUnique(next()),
        15..22 => Op::Remove(next()),
        22..24 => Op::RemoveAll(run(next(), next() % 32)),
        24 => Op::Count(next()),
        25 => Op::Clear,
        26 => Op::Reload,
        27 => Op::View,
        28..31 => Op::Merge {
            as_view: kind & 32 != 0,
            counts: if kind & 64 == 0 { Merge::Sum } else { Merge::Max },
            other: (0..next() % 12).map(|_| (next(), next())).collect(),
        },
        _ => Op::Check,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn any_bytes_decode_to_a_case_whose_filter_can_be_built() {
        for seed in 0..2000 {
            let bytes: Vec<u8> =
                keys::hashes(seed, seed % 40).flat_map(|hash| hash.to_le_bytes()).collect();
            let case = Case::decode(&bytes, 20);
            let filter = case.setup.build();
            assert!(case.ops.len() <= 20);
            assert_eq!(case.setup.hashes(&filter).len(), usize::from(KEYS));
        }
    }

    #[test]
    fn crowded_keys_share_entries_and_pairs() {
        let mut bytes = [9, 2, 0, 7, 0, 2];
        for rate in [2, 4] {
            bytes[1] = rate;
            let setup = Case::decode(&bytes, 0).setup;
            let filter = setup.build();
            let addressing = Addressing::of(&filter.to_bytes());
            let hashes = setup.hashes(&filter);
            let entries: BTreeSet<_> = hashes.iter().map(|&hash| addressing.entry(hash)).collect();
            assert!(entries.len() < 220);
            let crowd = addressing.pair(keys::splitmix64(12)).0;
            assert!(hashes.iter().filter(|&&hash| addressing.pair(hash).0 == crowd).count() >= 100);
        }
    }
}
