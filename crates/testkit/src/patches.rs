//! Patches of unknown bytes: a fuzzer's input becomes the lists of a patch for a small filter. What
//! the library makes of it must be what docs/FORMAT.md says.
//!
//! [`lists`] is a second reader of the format, and a filter is an exact multiset here. With it, any
//! lists get the right digests and a right checksum, so that they are read to their end.

pub mod lists;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use koel::{Builder, CuckooFilter, FilterView, PatchError, PatchSummary, Prefer, Store};
use xxhash_rust::xxh3::xxh3_64;

use crate::addressing::{Addressing, Entry};
use crate::audit::audit;
use crate::exercise::{bounds, is_one_line};
use crate::image;
use crate::keys::{self, GAMMA, address, at, mix};

/// Bytes of the frame.
pub const FRAME: usize = 72;
const CHECKSUM_AT: usize = 64;

/// All that a filter holds: entries by order, the stash and the corrections, with counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content(pub [BTreeMap<u64, u64>; 3]);

impl Content {
    /// What a filter of one size holds.
    #[must_use]
    pub fn of(filter: &CuckooFilter<impl Store>) -> Self {
        let image = filter.to_bytes();
        let addressing = Addressing::of(&image);
        let order = |lower, fingerprint| {
            addressing.order_of(addressing.name_of(Entry { lower, fingerprint }))
        };
        let entries = filter.entries();
        let orders = entries.map(|it| (order(it.bucket, it.fingerprint), it.count)).collect();
        let corrections = image::corrections(&image).into_iter().map(|address| (address, 1));
        Self([orders, image::stash(&image), corrections.collect()])
    }

    /// The order-free digest.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let hash = |list: u64, key: u64| mix(key.wrapping_add((list + 1).wrapping_mul(GAMMA)));
        let of_list = |(list, keys): (u64, &BTreeMap<u64, u64>)| {
            let hashes = keys.iter().map(|(&key, &count)| hash(list, key).wrapping_mul(count));
            hashes.fold(0, u64::wrapping_add)
        };
        (0..).zip(&self.0).map(of_list).fold(0, u64::wrapping_add)
    }

    /// Keys, copies included. `None` if they pass 2^64 - 1.
    #[must_use]
    pub fn keys(&self) -> Option<u64> {
        let mut copies = self.0[..2].iter().flat_map(BTreeMap::values);
        copies.try_fold(0, |sum: u64, &copies| sum.checked_add(copies))
    }

    /// With the numbers that stand for entries in a patch: their orders without the end.
    fn numbered(&self, addressing: &Addressing) -> Self {
        let mut numbered = self.clone();
        let orders = self.0[0].iter();
        numbered.0[0] = orders.map(|it| (it.0 >> addressing.end_of_names(), *it.1)).collect();
        numbered
    }

    /// The content of a filter with this addressing that has these numbers; `None` if it could not
    /// hold it, whatever its room.
    fn of_numbers(self, addressing: &Addressing) -> Option<Self> {
        let ([numbers, stash, corrections], end) = (self.0, addressing.end_of_names());
        let is_answered = corrections.keys().any(|address| stash.contains_key(address));
        let order = |number: u64| {
            let order = (number.leading_zeros() >= end).then(|| number << end | 1 << (end - 1))?;
            // Reversed twice, it is the name again.
            addressing.is_name(addressing.order_of(order)).then_some(order)
        };
        let orders = numbers.into_iter().map(|(number, count)| Some((order(number)?, count)));
        let orders = orders.collect::<Option<_>>().filter(|_| !is_answered)?;
        Some(Self([orders, stash, corrections]))
    }
}

/// A patch with these lists, which makes the content of a filter this one.
#[must_use]
pub fn sealed(filter: &CuckooFilter<impl Store>, lists: &[u8], new: &Content) -> Vec<u8> {
    let mut header = filter.to_bytes()[..image::HEADER_BYTES].to_vec();
    image::zero(&mut header, &image::CONTENT);
    image::zero(&mut header, &["seed", "body checksum", "header checksum"]);
    let settings = address(filter.hasher().hash(&header));
    let old = Content::of(filter);
    let keys = [old.keys().unwrap_or(0), new.keys().unwrap_or(0)];
    let words = [settings, old.digest(), new.digest(), keys[0], keys[1], 0];
    let mut patch = b"koelptch\x03\0\0\0\0\0\0\0".to_vec();
    patch.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    patch.extend_from_slice(&[0; 8]);
    patch.extend_from_slice(lists);
    reseal(&mut patch);
    patch
}

/// Makes the checksum valid. Does nothing if there is no room for a frame.
pub fn reseal(patch: &mut [u8]) {
    if patch.len() >= FRAME {
        let sum = xxh3_64(&[&patch[..CHECKSUM_AT], &patch[FRAME..]].concat());
        patch[CHECKSUM_AT..FRAME].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Tries bytes from a fuzzer: as a patch, and as the lists of one. The first byte chooses the
/// filter.
///
/// # Panics
/// If the library and the format disagree, or if a patched filter is not sound.
pub fn fuzzed_bytes(bytes: &[u8]) {
    static BASES: OnceLock<Vec<CuckooFilter>> = OnceLock::new();
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let bases = BASES.get_or_init(bases);
    let base = &bases[usize::from(first) % bases.len()];
    assert!(base.patched(bytes).is_err_and(|error| is_one_line(&error.to_string())));
    any_lists(base, bytes);
}

/// Checks what comes of any lists. What a patch makes takes operations at their bounds.
///
/// # Panics
/// As [`fuzzed_bytes`].
pub fn any_lists(base: &CuckooFilter, bytes: &[u8]) {
    let addressing = Addressing::of(&base.to_bytes());
    let new = lists::read(bytes, &Content::of(base).numbered(&addressing));
    let new = new.and_then(|it| it.of_numbers(&addressing));
    let patch = sealed(base, bytes, new.as_ref().unwrap_or(&Content::default()));
    let patched = base.patched(&patch);
    match (new, patched) {
        (Some(new), Ok(patched)) => {
            assert_is(&patched, &new);
            bounds::one(&patched, xxh3_64(bytes));
            assert!(PatchSummary::of(&patch).is_ok_and(|it| Some(it.new_keys) == new.keys()));
        }
        (None, Err(PatchError::Forged)) | (_, Err(PatchError::Full(_))) => {}
        (new, patched) => panic!("{new:?}, but {patched:?}"),
    }
}

/// Checks that a filter holds this, and is sound.
///
/// # Panics
/// If it does not.
pub fn assert_is(filter: &CuckooFilter, content: &Content) {
    assert!(Content::of(filter) == *content);
    assert_eq!(Some(filter.len()), content.keys());
    assert_eq!(filter.verify(), Ok(()));
    let image = filter.to_bytes();
    assert_eq!(audit(&image), Ok(()));
    let view = FilterView::open(&image).expect("its own bytes");
    assert!(view.len() == filter.len() && view.corrections() == filter.corrections());
}

/// Small filters: empty and filled ones, of one segment and of several, with copies, with a stash
/// and with corrections.
#[must_use]
pub fn bases() -> Vec<CuckooFilter> {
    let mut all = Vec::new();
    for (rate, prefer, secret) in
        [(0.03, Prefer::Small, false), (1e-5, Prefer::Fast, true), (1e-8, Prefer::Small, false)]
    {
        let builder = CuckooFilter::builder(60, rate).prefer(prefer).counter_limit(9);
        let builder = if secret { builder.sip_key([3; 16]) } else { builder };
        for (segment_bits, buckets) in [(0, 3), (2, 4)] {
            let empty = shaped(&builder, segment_bits, buckets);
            let pair = Addressing::of(&empty.to_bytes());
            let mut filter = empty.clone();
            for (i, hash) in
                keys::sharing_pair(&pair, 5).take(14).chain(keys::hashes(1, 30)).enumerate()
            {
                let times = if i % 9 == 0 { 4 } else { 1 };
                (0..times).for_each(|_| either_way(filter.insert(&at(hash))));
            }
            let mut wrong = filter.clone();
            let absent =
                keys::hashes(1, 30).filter_map(|hash| keys::sharing_entry(&pair, hash).nth(7));
            absent.for_each(|hash| either_way(wrong.refute(&at(hash))));
            all.extend([empty, filter, wrong]);
        }
    }
    all
}

/// Accepts a refusal as well: where there is no room.
pub fn either_way<T, E>(result: Result<T, E>) {
    match result {
        Ok(_) | Err(_) => {}
    }
}

/// An empty filter of so many segments and buckets.
#[must_use]
pub fn shaped(builder: &Builder<CuckooFilter>, segment_bits: u8, buckets: u32) -> CuckooFilter {
    let whole = builder.build().expect("settings that can be built").to_bytes();
    CuckooFilter::from_bytes(&image::reshape(&whole, segment_bits, buckets))
        .expect("reshaped filters are sound")
}

/// The inputs that fuzzing starts from: a filter and the lists of a patch for it.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let (bases, mut seeds) = (bases(), Vec::new());
    for (number, base) in (0_u8..).zip(&bases) {
        let patches = bases.iter().filter_map(|other| base.patch_to(other).ok());
        seeds.extend(patches.map(|patch| [&[number], &patch[FRAME..]].concat()));
    }
    seeds
}

#[cfg(test)]
mod tests {
    use koel::FullError;

    use super::*;

    #[test]
    fn the_bases_have_stashes_corrections_and_copies_and_the_seeds_are_patches() {
        let bases = bases();
        for has in
            [CuckooFilter::stashed_keys, CuckooFilter::corrections, CuckooFilter::distinct_counters]
        {
            assert!(bases.iter().filter(|base| has(base) > 0).count() > 2);
        }
        let seeds = seeds();
        assert!(seeds.len() > 2 * bases.len(), "{}", seeds.len());
    }

    /// The lists of a patch that stashes the keys of so many addresses from 0 on: a bit for each.
    fn stashing(count: usize) -> Vec<u8> {
        let gamma = |number: usize| {
            let width = number.ilog2() as usize;
            let low = (0..width).map(move |i| number >> i & 1 == 1);
            std::iter::repeat_n(false, width).chain([true]).chain(low)
        };
        let mut directory = vec![true; 4];
        directory.extend(gamma(count + 1).chain([false; 6]).chain(gamma(count / 8)));
        directory.extend([true; 4]);
        let byte =
            |bits: &[bool]| (0..).zip(bits).fold(0, |byte, (i, &bit)| byte | u8::from(bit) << i);
        let mut lists: Vec<u8> = directory.chunks(8).map(byte).collect();
        lists.resize(lists.len() + count / 8, 0xff);
        lists
    }

    #[test]
    fn a_patch_makes_no_more_than_its_bytes_and_the_old_filter_allow() {
        let base = CuckooFilter::builder(1000, 0.001).counter_limit(u64::MAX).build();
        let base = base.expect("settings that can be built");
        for count in [8, 800_000] {
            let (lists, mut new) = (stashing(count), Content::default());
            new.0[1] = (0..count as u64).map(|address| (address, 1)).collect();
            assert!(lists::read(&lists, &Content::of(&base)).as_ref() == Some(&new));
            match base.patched(&sealed(&base, &lists, &new)) {
                Ok(patched) if count == 8 => assert_is(&patched, &new),
                Err(PatchError::Full(FullError::Counters { limit })) => {
                    assert!(count > 8 && limit < 70_000, "{limit}");
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// A few changed bits of sound lists, as a fuzzer makes them.
    #[test]
    fn changed_lists_make_what_the_format_says() {
        let (mut sound, mut all) = (0, 0);
        for (number, seed) in (0..).zip(seeds()) {
            let base = &bases()[usize::from(seed[0])];
            for hash in keys::hashes(number, 40) {
                let mut lists = seed[1..].to_vec();
                for i in 0..1 + hash % 3 {
                    let bit = usize::try_from((hash >> (8 + 16 * i)) % (8 * lists.len() as u64));
                    let bit = bit.expect("a small number");
                    lists[bit / 8] ^= 1 << (bit % 8);
                }
                any_lists(base, &lists);
                let numbered = Content::of(base).numbered(&Addressing::of(&base.to_bytes()));
                sound += usize::from(lists::read(&lists, &numbered).is_some());
                all += 1;
            }
        }
        assert!(sound > 100 && sound < all / 2, "{sound} of {all}");
    }
}
