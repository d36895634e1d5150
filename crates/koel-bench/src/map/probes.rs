//! How many groups a lookup in hashbrown's map reads, worked out from outside.
//!
//! hashbrown 0.17 keeps its entries in a row, the last one first, so the address of an entry is its index. A lookup begins at the index that is the low
//! bits of the hash and looks at 16 control bytes at once (8 without SSE2), then 16 further on, then 32, until it finds the key or a group
//! with an empty place. With the indices of all entries known, every lookup can be walked again without the map. Where the row begins
//! is not known: it is the place from which the most entries are found in their first group.

use std::hash::BuildHasher;
use std::ptr;

use hashbrown::HashMap;

const GROUP: usize = if cfg!(target_feature = "sse2") { 16 } else { 8 };

/// Which places of a table are in use, and by which key.
struct Places {
    keys: Vec<Option<u64>>,
}

/// Groups that a lookup of each key reads.
pub(super) fn of<S: BuildHasher>(map: &HashMap<u64, u64, S>, keys: &[u64]) -> Vec<u32> {
    let places = Places::of(map);
    keys.iter().map(|&key| places.groups(key, map.hasher().hash_one(key))).collect()
}

impl Places {
    fn of<S: BuildHasher>(map: &HashMap<u64, u64, S>) -> Self {
        // An eighth stays empty.
        let places = (map.capacity() * 8 / 7).next_power_of_two();
        let address = |key: &u64| ptr::from_ref(key).addr() / size_of::<(u64, u64)>();
        let last = map.keys().map(address).max().unwrap_or(0);
        let all = || map.keys().map(|key| (*key, last - address(key)));
        let in_first_group = |begin: &usize| {
            let first = |&(key, index): &(u64, usize)| {
                let start = starting_place(map.hasher().hash_one(key), places);
                (index + begin).wrapping_sub(start) & (places - 1) < GROUP
            };
            all().take(10_000).filter(first).count()
        };
        // The first entry may have empty places before it.
        let begin = (0..64).max_by_key(in_first_group).unwrap_or(0);
        let mut keys = vec![None; places];
        all().for_each(|(key, index)| keys[(index + begin) & (places - 1)] = Some(key));
        Self { keys }
    }

    /// Groups read until `key` or an empty place is among them.
    fn groups(&self, key: u64, hash: u64) -> u32 {
        let mask = self.keys.len() - 1;
        let mut start = starting_place(hash, self.keys.len());
        for groups in 1.. {
            let group = (start..start + GROUP).map(|place| self.keys[place & mask]);
            if group.into_iter().any(|held| held.is_none_or(|held| held == key)) {
                return groups;
            }
            start += GROUP * groups as usize;
        }
        unreachable!("an eighth of the places is empty");
    }
}

#[expect(clippy::cast_possible_truncation, reason = "only the low bits count")]
fn starting_place(hash: u64, places: usize) -> usize {
    hash as usize & (places - 1)
}
