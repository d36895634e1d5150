//! Room in a filter that grows, made ahead of the keys.
//!
//! A filter that grows by itself is always nearly full, and a new key takes two to three times as long as in one with room. How much will be needed follows from the share of the
//! input that was read: as much for each byte as so far. Where nobody knows the share, as of a pipe, only a filter that is thrown away afterwards should have room: in a file it would be bytes
//! without keys.
//!
//! The bound: at most twice the room that the entries need, and that of the keys about to come, whatever follows. Cost: a comparison for each group of keys.
#![forbid(unsafe_code)]

use koel::CuckooFilter;

use crate::quantity;

/// How far room was made.
#[derive(Debug)]
pub(crate) struct Room {
    /// Entries that were there before the input.
    before: u64,
    /// Entries that there is room for.
    until: u64,
}

impl Room {
    /// For input that goes into this filter.
    pub(crate) fn in_filter(filter: &CuckooFilter) -> Self {
        Self { before: filter.slots_in_use(), until: 0 }
    }

    /// Makes room for so many keys that are coming, and for the rest of the input after `share` of it; for an eighth more where nobody knows how much is to come. Nothing
    /// is done to a filter that does not grow.
    pub(crate) fn make(&mut self, filter: &mut CuckooFilter, coming: u64, share: Option<f64>) {
        let held = filter.slots_in_use();
        if held + coming <= self.until || !filter.is_growable() {
            return;
        }
        let new = (held - self.before.min(held)) as f64;
        let all = |share| self.before.saturating_add(quantity::to_u64(new / share));
        let expected = share.map_or(held + held / 8, all);
        self.until = expected.clamp(held + coming, 2 * held + coming);
        if filter.reserve(self.until - held).is_err() {
            // No addresses for so many: the insert that needs them says so.
            self.until = u64::MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: u64 = 1000;

    /// Slots after groups of keys, of which the first `different` are, and the others come again; with room made by what `share` says of a share.
    fn slots(groups: u64, different: u64, share: impl Fn(f64) -> Option<f64>) -> u64 {
        let mut filter = CuckooFilter::builder(1_000_000, 0.001).grow_from(1000).build().unwrap();
        let mut room = Room::in_filter(&filter);
        for group in 0..groups {
            let first = group % different * GROUP;
            let keys: Vec<u64> = (first..first + GROUP).collect();
            room.make(&mut filter, GROUP, share((group + 1) as f64 / groups as f64));
            filter.insert_unique_many(&keys, &mut vec![false; keys.len()]).unwrap();
            assert!(filter.slots_in_use() <= room.until);
        }
        filter.slots()
    }

    #[test]
    fn room_is_what_the_keys_need_if_they_come_evenly() {
        for groups in [1, 7, 300] {
            let needed = slots(groups, groups, |_| Some(f64::INFINITY));
            assert!(slots(groups, groups, Some) <= needed * 21 / 20, "{groups}");
            assert!(slots(groups, groups, |_| None) <= needed * 6 / 5, "{groups}");
        }
    }

    #[test]
    fn room_is_at_most_twice_what_is_needed_if_they_do_not() {
        for different in [1, 3, 30, 299] {
            let needed = slots(300, different, |_| Some(f64::INFINITY));
            assert!(slots(300, different, Some) <= needed * 21 / 10, "{different}");
        }
    }

    #[test]
    fn no_share_of_the_input_is_too_little_or_too_much() {
        for share in [0.0, f64::MIN_POSITIVE, 1.0, 1e9, f64::NAN] {
            assert!(slots(20, 20, |_| Some(share)) <= 2 * 20 * GROUP * 21 / 20, "{share}");
        }
    }

    #[test]
    fn what_was_there_before_is_not_expected_again() {
        let mut filter = CuckooFilter::builder(1_000_000, 0.001).grow_from(1000).build().unwrap();
        filter.insert_many(&(0..500_000_u64).collect::<Vec<_>>()).unwrap();
        let (before, mut room) = (filter.slots(), Room::in_filter(&filter));
        for group in 0..10 {
            let first = 1_000_000 + group * GROUP;
            let keys: Vec<u64> = (first..first + GROUP).collect();
            room.make(&mut filter, GROUP, Some((group + 1) as f64 / 10.0));
            filter.insert_many(&keys).unwrap();
        }
        assert!(filter.slots() <= before * 103 / 100);
    }

    #[test]
    fn a_filter_of_one_size_stays_what_it_is() {
        let mut filter = CuckooFilter::builder(1000, 0.001).build().unwrap();
        let before = filter.to_bytes();
        Room::in_filter(&filter).make(&mut filter, 5000, Some(0.01));
        assert!(filter.to_bytes() == before);
    }
}
