//! Deterministic keys and hashes.
//!
//! Uniform ones come from SplitMix64, so that no test needs a random number. The others collide by
//! construction: they share a bucket pair or an entry, which uniform hashes in a test almost never
//! do.
//!
//! Source: G. Steele, D. Lea, C. Flood, Fast Splittable Pseudorandom Number Generators (OOPSLA
//! 2014).

use koel::KeyHash;

use crate::addressing::Addressing;

pub(crate) const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The `counter`-th output of SplitMix64 started at 0.
#[must_use]
pub fn splitmix64(counter: u64) -> u64 {
    mix(counter.wrapping_add(1).wrapping_mul(GAMMA))
}

/// The output function of SplitMix64.
pub(crate) fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The address of a ready hash in a filter that mixes hashes: "Route" in docs/FORMAT.md.
#[must_use]
pub fn address(hash: KeyHash) -> u64 {
    mix(hash.get())
}

/// The ready hash with this address in a filter that mixes hashes.
#[must_use]
pub fn at(address: u64) -> KeyHash {
    // Inverts the steps of `mix` in reverse order.
    let z = address ^ (address >> 31) ^ (address >> 62);
    let z = z.wrapping_mul(0x3196_42b2_d24d_8ec3);
    let z = (z ^ (z >> 27) ^ (z >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    KeyHash::new(z ^ (z >> 30) ^ (z >> 60))
}

/// The ready hashes with these addresses.
#[must_use]
pub fn all_at(addresses: &[u64]) -> Vec<KeyHash> {
    addresses.iter().map(|&address| at(address)).collect()
}

/// `count` distinct uniform hashes. Equal seeds give equal hashes; a shorter run is a prefix of a
/// longer one.
pub fn hashes(seed: u64, count: u64) -> impl Iterator<Item = u64> + Clone {
    let start = splitmix64(seed);
    (0..count).map(move |i| mix(start.wrapping_add(i.wrapping_mul(GAMMA))))
}

/// One of each pair from `first` and `second`, chosen by a coin, so that a branch predictor is
/// right only half of the time.
pub fn by_chance(
    seed: u64,
    first: impl Iterator<Item = u64>,
    second: impl Iterator<Item = u64>,
) -> impl Iterator<Item = u64> {
    let both = first.zip(second).zip(hashes(seed, u64::MAX));
    both.map(|((first, second), coin)| if coin % 2 == 0 { first } else { second })
}

/// Up to 200 hashes with the home bucket and fingerprint of `hash`: no filter of this shape can
/// distinguish them.
pub fn sharing_entry(addressing: &Addressing, hash: u64) -> impl Iterator<Item = u64> + Clone {
    let first = addressing.hash_of(addressing.pair(hash).0, addressing.fingerprint(hash));
    (0..200).map(move |i| first + i)
}

/// One hash for every fingerprint with the core of `hash`, and so with its bucket pair.
pub fn sharing_pair(addressing: &Addressing, hash: u64) -> impl Iterator<Item = u64> + Clone {
    let (home, _) = addressing.pair(hash);
    let fraction_bits = addressing.fraction_bits();
    let core = addressing.fingerprint(hash) >> fraction_bits;
    let addressing = *addressing;
    (0..1 << fraction_bits)
        .map(move |fraction| addressing.hash_of(home, (core << fraction_bits) | fraction))
}

/// One hash for every core, all with home bucket `bucket`: their alternate buckets are spread over
/// the segment.
pub fn sharing_home(addressing: &Addressing, bucket: u64) -> impl Iterator<Item = u64> + Clone {
    let addressing = *addressing;
    (1..64).map(move |core| addressing.hash_of(bucket, core << addressing.fraction_bits()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use koel::{CuckooFilter, Prefer};
    use std::collections::BTreeSet;

    fn empty(prefer: Prefer, rate: f64) -> CuckooFilter {
        CuckooFilter::builder(20_000, rate).prefer(prefer).build().unwrap()
    }

    #[test]
    fn the_generator_gives_the_published_outputs_and_repeats_itself() {
        assert_eq!(splitmix64(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(splitmix64(1), 0x6e78_9e6a_a1b9_65f4);
        assert!(hashes(7, 10).eq(hashes(7, u64::MAX).take(10)));
        assert_eq!(hashes(7, 1000).chain(hashes(8, 1000)).collect::<BTreeSet<_>>().len(), 2000);
    }

    #[test]
    fn the_hash_at_an_address_has_that_address() {
        for word in hashes(5, 1000).chain([0, 1, u64::MAX]) {
            assert_eq!(address(at(word)), word);
            assert_eq!(at(address(KeyHash::new(word))), KeyHash::new(word));
        }
    }

    #[test]
    fn half_come_from_either_side_and_the_next_is_unpredictable() {
        let is_first: Vec<bool> =
            by_chance(3, 0..10_000, 10_000..20_000).map(|key| key < 10_000).collect();
        assert!(by_chance(3, 0..10_000, 10_000..20_000).zip(0..).all(|(key, i)| key % 10_000 == i));
        let share = |holds: &dyn Fn(&[bool]) -> bool| {
            is_first.windows(2).filter(|pair| holds(pair)).count() as f64 / 9999.0
        };
        // Five standard deviations of the share of this many coins are 0.025.
        for share in [share(&|pair| pair[0]), share(&|pair| pair[0] == pair[1])] {
            assert!((share - 0.5).abs() < 0.025, "{share}");
        }
    }

    #[test]
    fn hashes_that_share_an_entry_are_one_key_to_a_filter() {
        for (prefer, rate) in [(Prefer::Small, 0.03), (Prefer::Small, 1e-8), (Prefer::Fast, 1e-4)] {
            let mut filter = empty(prefer, rate);
            let addressing = Addressing::of(&filter.to_bytes());
            for hash in hashes(1, 100) {
                filter.clear();
                filter.insert(&at(hash)).unwrap();
                let twins: BTreeSet<u64> = sharing_entry(&addressing, hash).collect();
                assert_eq!(twins.len(), 200);
                assert!(twins.iter().all(|&twin| filter.count(&at(twin)) == 1));
            }
        }
    }

    #[test]
    fn a_pair_of_buckets_has_no_slot_for_the_ninth_hash_that_shares_it() {
        let mut filter = empty(Prefer::Small, 1e-6);
        let addressing = Addressing::of(&filter.to_bytes());
        for hash in hashes(2, 50).filter(|&hash| addressing.pair(hash).0 != addressing.pair(hash).1)
        {
            filter.clear();
            let sharing = sharing_pair(&addressing, hash).take(9);
            sharing.for_each(|hash| filter.insert(&at(hash)).unwrap());
            assert_eq!((filter.slots_in_use(), filter.stashed_keys()), (8, 1));
        }
    }

    #[test]
    fn hashes_that_share_a_home_all_have_it() {
        let addressing = Addressing::of(&empty(Prefer::Fast, 0.01).to_bytes());
        for bucket in [0, 1, addressing.buckets() - 1] {
            assert!(
                sharing_home(&addressing, bucket).all(|hash| addressing.pair(hash).0 == bucket)
            );
            assert_eq!(sharing_home(&addressing, bucket).collect::<BTreeSet<_>>().len(), 63);
        }
    }
}
