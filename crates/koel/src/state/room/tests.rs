//! The work of one insert, counted: slots that searches look at, and buckets of growth.

extern crate std;

use alloc::vec::Vec;

use testkit::addressing::Addressing;
use testkit::keys;

use crate::address::hash::unfinalize;
use crate::table::search::{BUDGET, work};
use crate::{CountingFilter, CuckooFilter, ExpiringFilter, KeyHash, Maplet, Prefer, WhenFull};

fn at(address: u64) -> KeyHash {
    KeyHash::new(unfinalize(address))
}

/// Honest keys, keys of one pair of buckets, and the honest keys again: so a filter has copies.
fn keys(image: &[u8], honest: u64) -> Vec<KeyHash> {
    let addressing = Addressing::of(image);
    let chosen = keys::sharing_pair(&addressing, keys::splitmix64(7)).take(200);
    let all = keys::hashes(1, honest).chain(chosen).chain(keys::hashes(1, honest / 2));
    all.map(at).collect()
}

/// The most buckets of a step.
const MAX_CHUNK: u64 = 4096;

/// The most slots that an insert looked at, added or refused. It adds the buckets of two steps at
/// most.
fn most<F>(
    filter: &mut F,
    keys: &[KeyHash],
    buckets: impl Fn(&F) -> u64,
    mut is_added: impl FnMut(&mut F, &KeyHash) -> bool,
) -> usize {
    let (mut looked, mut added) = (0, 0);
    for key in keys {
        let before = buckets(filter);
        work::take();
        added += usize::from(is_added(filter, key));
        looked = looked.max(work::take());
        let grown = buckets(filter) - before;
        assert!(grown <= (before / 32 + 2).min(2 * MAX_CHUNK), "{grown} buckets at once");
    }
    assert!(added > keys.len() / 2, "{added} of {}", keys.len());
    looked
}

#[test]
fn an_insert_looks_at_few_slots_and_grows_by_two_steps_whatever_the_keys() {
    let mut all = Vec::new();
    for prefer in [Prefer::Small, Prefer::Fast] {
        for (capacity, honest) in [(3000, 3000), (40_000, 41_000)] {
            let builder = CuckooFilter::builder(capacity, 0.001).prefer(prefer);
            for builder in [builder.clone(), builder.clone().growable(), builder.grow_from(1000)] {
                let mut filter = builder.build().unwrap();
                let keys = keys(&filter.to_bytes(), honest);
                let work = most(&mut filter, &keys, CuckooFilter::buckets, |filter, key| {
                    filter.insert(key).is_ok()
                });
                all.push(("filter", work));
            }
        }
    }
    let counting = CountingFilter::builder(3000, 0.001);
    for builder in [counting.clone(), counting.grow_from(1000)] {
        let mut filter = builder.build().unwrap();
        let keys = keys(&filter.to_bytes(), 3000);
        let work = most(&mut filter, &keys, CountingFilter::buckets, |filter, key| {
            filter.insert(key).is_ok()
        });
        all.push(("counting", work));
    }
    let maplet = Maplet::builder(3000, 0.001, 8);
    for builder in [maplet.clone(), maplet.grow_from(1000)] {
        let mut filter = builder.build().unwrap();
        let keys = keys(&filter.to_bytes(), 3000);
        let work = most(
            &mut filter,
            &keys,
            |maplet| maplet.slots() / 4,
            |maplet, key| maplet.insert(key, 1).is_ok(),
        );
        all.push(("maplet", work));
    }
    for when_full in [WhenFull::Fail, WhenFull::EvictOldest] {
        for grows in [false, true] {
            let builder = ExpiringFilter::builder(3000, 0.001).window(1000).when_full(when_full);
            let builder = if grows { builder.grow_from(1000) } else { builder };
            let mut filter = builder.build().unwrap();
            let (keys, mut now) = (keys(&filter.to_bytes(), 9000), 0);
            let work = most(&mut filter, &keys, ExpiringFilter::buckets, |filter, key| {
                now += 1;
                filter.advance(now / 8);
                filter.insert(key).is_ok()
            });
            all.push(("expiring", work));
        }
    }
    for (of, looked) in all {
        // Two searches. A filter looks again for spare copies, an expiring filter for dead entries.
        let again = if ["filter", "expiring"].contains(&of) { 2 } else { 1 };
        assert!(looked <= 2 * again * BUDGET, "{of}: {looked} slots");
    }
}
