//! The other filters: how each is built and called, and how much memory it has.
//!
//! Rivals that accept a hasher are measured with their default and with that of `mix.rs`.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use atomic_cuckoo_filter::CuckooFilterBuilder;
use cuckoofilter::CuckooFilter;
use fastbloom::BloomFilter;
use koel::KeyHasher;
use qfilter::Filter as Quotient;
use scalable_cuckoo_filter::ScalableCuckooFilterBuilder;
use valkey_cuckoo::CuckooFilter as ValkeyFilter;
use xorf::{BinaryFuse8, BinaryFuse16, Filter as _};

use super::mix::BuildMix;
use crate::subject::{Calls, Filter};

/// A filter without deletes has this call.
pub(crate) fn no_delete<F>(_: &mut F, _: u64) -> bool {
    false
}

/// `cuckoofilter` 0.5: 8-bit fingerprints, buckets rounded up to a power of two. Memory as the
/// crate reports it: one byte per slot, plus the struct itself.
pub(super) fn cuckoofilter<H: Hasher + Default + 'static>(
    keys: usize,
    _rate: f64,
) -> Box<dyn Filter> {
    let calls = Calls::new(
        CuckooFilter::<H>::with_capacity(keys),
        |filter, key| filter.add(&key).is_ok(),
        |filter, key| filter.contains(&key),
        |filter, key| filter.delete(&key),
    );
    let calls = calls.with_bytes(CuckooFilter::memory_usage);
    Box::new(calls.with_slots(|filter| Some(filter.memory_usage() - size_of_val(filter))))
}

/// `valkey-cuckoo` 0.2: a fork of `cuckoofilter` whose `try_add` undoes a failed insert. Memory as
/// the crate reports it; one byte per slot.
pub(super) fn valkey_cuckoo<H: Hasher + Default + 'static>(
    keys: usize,
    _rate: f64,
) -> Box<dyn Filter> {
    let calls = Calls::new(
        ValkeyFilter::<H>::with_capacity(keys),
        |filter, key| filter.try_add(&key).is_ok(),
        |filter, key| filter.contains(&key),
        |filter, key| filter.delete(&key),
    );
    let calls = calls.with_bytes(ValkeyFilter::memory_usage);
    Box::new(calls.with_slots(|filter| Some(filter.as_bytes().len())))
}

/// `scalable_cuckoo_filter` 0.5: any fingerprint width, buckets rounded up to a power of two, and
/// an additional table when that is full. Memory as the crate reports it: its tables and its list
/// of items that found no slot, which are a few more slots.
pub(super) fn scalable_cuckoo<H: Hasher + Clone + Default + 'static>(
    keys: usize,
    rate: f64,
) -> Box<dyn Filter> {
    let builder = ScalableCuckooFilterBuilder::new().initial_capacity(keys);
    let calls = Calls::new(
        builder.false_positive_probability(rate).hasher(H::default()).finish::<u64>(),
        |filter, key| {
            filter.insert(&key);
            true
        },
        |filter, key| filter.contains(&key),
        |filter, key| filter.remove(&key),
    );
    let calls =
        calls.with_bytes(|filter| usize::try_from(filter.bits().div_ceil(8)).unwrap_or(usize::MAX));
    Box::new(calls.with_slots(|filter| Some(filter.capacity())).grows())
}

/// `atomic-cuckoo-filter` 0.3: 4, 8, 16 or 32-bit fingerprints, lock-free, buckets rounded up to a
/// power of two.
pub(super) fn atomic_cuckoo<H: Hasher + Default + Send + Sync + 'static>(
    keys: usize,
    rate: f64,
) -> Box<dyn Filter> {
    Box::new(atomic_cuckoo_shared::<H>(keys, rate))
}

/// The same for threads: clones are the same filter. Memory: slots times fingerprint bits, as its
/// source allocates them.
pub(crate) fn atomic_cuckoo_shared<H: Hasher + Default + Send + Sync + 'static>(
    keys: usize,
    rate: f64,
) -> impl Filter + Clone + Send + 'static {
    let bits = fingerprint_bits(rate);
    let builder = CuckooFilterBuilder::<H>::default().capacity(keys).fingerprint_size(bits);
    let filter = builder.build().expect("a width that the crate has");
    let calls = Calls::new(
        (Arc::new(filter), bits),
        |(filter, _), key| filter.insert(&key).is_ok(),
        |(filter, _), key| filter.contains(&key),
        |(filter, _), key| filter.remove(&key),
    );
    let calls = calls.with_bytes(|(filter, bits)| filter.capacity() * bits / 8);
    calls.with_slots(|(filter, _)| Some(filter.capacity()))
}

/// The narrowest fingerprint that meets the rate. A lookup compares eight slots, at most 95 % of
/// them in use. Each matches an absent key with probability 1 / (2^bits - 1), since fingerprint 0
/// means an empty slot.
fn fingerprint_bits(rate: f64) -> usize {
    let right = |bits: &usize| 1.0 - ((*bits as f64).exp2() - 1.0).recip();
    let keeps = |bits: &usize| 1.0 - right(bits).powf(8.0 * 0.95) <= rate;
    [4, 8, 16].into_iter().find(keeps).unwrap_or(32)
}

/// `qfilter` 0.3: a rank-and-select quotient filter, slots rounded up to a power of two, at most 95
/// % full.
pub(super) fn qfilter(keys: usize, rate: f64) -> Box<dyn Filter> {
    quotient(Quotient::new(keys as u64, rate).expect("sizes of the bench can be built"))
}

/// It stores duplicates, as Koel does (`insert_duplicated`). Memory as the crate reports it. Its
/// capacity is 95 % of its slots, which are a power of two.
pub(super) fn quotient(filter: Quotient) -> Box<dyn Filter> {
    let calls = Calls::new(
        filter,
        |filter, key| filter.insert_duplicated(key).is_ok(),
        |filter, key| filter.contains(key),
        |filter, key| filter.remove(key),
    );
    let slots =
        |filter: &Quotient| usize::try_from(filter.capacity()).ok().map(usize::next_power_of_two);
    Box::new(calls.with_bytes(Quotient::memory_usage).with_slots(slots))
}

/// `fastbloom` 0.17: a Bloom filter. Memory: its bits.
pub(super) fn fastbloom(keys: usize, rate: f64) -> Box<dyn Filter> {
    bloom(BloomFilter::with_false_pos(rate).seed(&1).expected_items(keys))
}

pub(super) fn fastbloom_mix(keys: usize, rate: f64) -> Box<dyn Filter> {
    let builder = BloomFilter::with_false_pos(rate).hasher(BuildMix::default());
    bloom(builder.expected_items(keys))
}

fn bloom<S: BuildHasher + 'static>(filter: BloomFilter<S>) -> Box<dyn Filter> {
    let calls = Calls::new(
        filter,
        |filter, key| {
            filter.insert(&key);
            true
        },
        |filter, key| filter.contains(&key),
        no_delete,
    );
    Box::new(calls.with_bytes(|filter| filter.num_bits().div_ceil(8)))
}

/// `sbbf-rs-safe` 0.3: a split block Bloom filter, one 256-bit block per key. It takes hashes,
/// which are XXH3-64 here, as in Koel. Memory: its bytes.
pub(super) fn sbbf(keys: usize, rate: f64) -> Box<dyn Filter> {
    let bits = (4..64).find(|&bits| block_rate(bits as f64) <= rate).unwrap_or(64);
    let calls = Calls::new(
        (sbbf_rs_safe::Filter::new(bits, keys), KeyHasher::default()),
        |(filter, hasher), key| {
            filter.insert_hash(hasher.hash(&key).get());
            true
        },
        |(filter, hasher), key| filter.contains_hash(hasher.hash(&key).get()),
        no_delete,
    );
    Box::new(calls.with_bytes(|(filter, _)| filter.as_bytes().len()))
}

/// The false-positive rate at this many bits per key. The number of keys in a block has a Poisson
/// distribution, and each key sets one bit in each of the block's eight 32-bit words.
fn block_rate(bits_per_key: f64) -> f64 {
    let mean = 256.0 / bits_per_key;
    let mut weight = (-mean).exp();
    let mut rate = 0.0;
    for keys in 0..1000 {
        let word_hit = 1.0 - (31.0_f64 / 32.0).powi(keys);
        rate += weight * word_hit.powi(8);
        weight *= mean / f64::from(keys + 1);
    }
    rate
}

/// `xorf` 0.13: binary fuse filters of 8 or 16 bits, whichever is closer to the rate, built once
/// from all keys. Memory: their fingerprints.
pub(super) fn xorf(_keys: usize, rate: f64) -> Box<dyn Filter> {
    // Replaced by the build.
    const FEW: &[u64] = &[1, 2, 3];
    macro_rules! fuse {
        ($Fuse:ident, $bytes:expr) => {{
            let build = |keys: &[u64]| $Fuse::try_from(keys).ok();
            let few = build(FEW).expect("a filter of a few keys");
            let has = |filter: &$Fuse, key: u64| filter.contains(&key);
            let calls = Calls::new(few, no_delete, has, no_delete).bulk(build);
            Box::new(calls.with_bytes(|filter| filter.fingerprints.len() * $bytes))
        }};
    }
    // Between 2^-8 and 2^-16.
    if rate < 1.0 / 4096.0 { fuse!(BinaryFuse16, 2) } else { fuse!(BinaryFuse8, 1) }
}

#[cfg(test)]
mod tests {
    use testkit::keys::hashes;

    use super::*;
    use crate::subject::Mode;
    use crate::subjects::Mix;

    #[test]
    fn atomic_cuckoo_gets_as_few_bits_as_keep_the_rate_in_a_full_table() {
        let keys: Vec<_> = hashes(1, 62_259).collect();
        let absent: Vec<_> = hashes(2, 1_000_000).collect();
        for (rate, bits) in [(0.03, 8), (0.029, 16), (0.000_2, 16), (0.000_1, 32)] {
            let mut filter = atomic_cuckoo::<Mix>(keys.len(), rate);
            assert_eq!(filter.insert(&keys, Mode::Single), keys.len(), "{rate}");
            assert_eq!(filter.bytes() * 8, 65_536 * bits, "{rate}");
            assert!(filter.find(&absent, Mode::Single) as f64 / 1e6 <= rate, "{rate}");
        }
    }
}
