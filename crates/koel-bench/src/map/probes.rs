//! Counts the groups that a lookup in hashbrown's map reads, worked out from outside.
//!
//! hashbrown 0.17 stores its entries in an array in reverse order, so the address of an entry gives
//! its index. A lookup starts at the index in the low bits of the hash and reads 16 control bytes
//! at once (8 without SSE2), then 16 further on, then 32, until it finds the key or a group with an
//! empty slot. Given the indices of all entries, every lookup can be replayed without the map. The
//! start of the array is unknown: it is taken to be the address for which the most entries are
//! found in their first group.

use std::hash::BuildHasher;
use std::ptr;

use hashbrown::HashMap;

const GROUP: usize = if cfg!(target_feature = "sse2") { 16 } else { 8 };

/// The occupied slots of a table, each with its key.
struct Slots {
    keys: Vec<Option<u64>>,
}

/// The number of groups that a lookup of each key reads.
pub(super) fn of<S: BuildHasher>(map: &HashMap<u64, u64, S>, keys: &[u64]) -> Vec<u32> {
    let slots = Slots::of(map);
    keys.iter().map(|&key| slots.groups(key, map.hasher().hash_one(key))).collect()
}

impl Slots {
    fn of<S: BuildHasher>(map: &HashMap<u64, u64, S>) -> Self {
        // One slot in eight stays empty.
        let slots = (map.capacity() * 8 / 7).next_power_of_two();
        let address = |key: &u64| ptr::from_ref(key).addr() / size_of::<(u64, u64)>();
        let last = map.keys().map(address).max().unwrap_or(0);
        let all = || map.keys().map(|key| (*key, last - address(key)));
        let in_first_group = |begin: &usize| {
            let first = |&(key, index): &(u64, usize)| {
                let start = starting_slot(map.hasher().hash_one(key), slots);
                (index + begin).wrapping_sub(start) & (slots - 1) < GROUP
            };
            all().take(10_000).filter(first).count()
        };
        // Empty slots may precede the first entry.
        let begin = (0..64).max_by_key(in_first_group).unwrap_or(0);
        let mut keys = vec![None; slots];
        all().for_each(|(key, index)| keys[(index + begin) & (slots - 1)] = Some(key));
        Self { keys }
    }

    /// The number of groups read until `key` or an empty slot is found.
    fn groups(&self, key: u64, hash: u64) -> u32 {
        let mask = self.keys.len() - 1;
        let mut start = starting_slot(hash, self.keys.len());
        for groups in 1.. {
            let group = (start..start + GROUP).map(|slot| self.keys[slot & mask]);
            if group.into_iter().any(|held| held.is_none_or(|held| held == key)) {
                return groups;
            }
            start += GROUP * groups as usize;
        }
        unreachable!("one slot in eight is empty");
    }
}

#[expect(clippy::cast_possible_truncation, reason = "only the low bits count")]
fn starting_slot(hash: u64, slots: usize) -> usize {
    hash as usize & (slots - 1)
}
