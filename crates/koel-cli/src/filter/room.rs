//! Grows a filter ahead of its input, which makes inserts two to three times as fast.
//!
//! A filter that grows on demand is always nearly full, and inserts into a nearly full table are
//! slow. The room to reserve follows from the share of the input read so far: the rest is expected
//! to have as many new keys per byte. For a pipe the share is unknown, and an eighth more is
//! reserved. That suits only a filter that is not saved: in a file it would be unused space.
//!
//! Bound: at most twice the room that the entries and the next group of keys need, whatever
//! follows. Cost: one comparison per group of keys.

use koel::CuckooFilter;

use crate::quantity;

/// The room reserved so far.
#[derive(Debug)]
pub(crate) struct Room {
    /// Entries in the filter before the input.
    before: u64,
    /// Entries for which room was reserved.
    until: u64,
}

impl Room {
    /// For input that is inserted into this filter.
    pub(crate) fn in_filter(filter: &CuckooFilter) -> Self {
        Self { before: filter.slots_in_use(), until: 0 }
    }

    /// Reserves room for the next `coming` keys, and for the input after `share` of it.
    ///
    /// If the share is unknown, reserves an eighth more. Does nothing to a fixed filter.
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
            // The room cannot be allocated; the insert that needs it will report that.
            self.until = u64::MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: u64 = 1000;

    /// The slots after all groups of keys. The first `distinct` groups are new, the others repeat
    /// them. `share` maps the true share of the input to the one that is reported.
    fn slots(groups: u64, distinct: u64, share: impl Fn(f64) -> Option<f64>) -> u64 {
        let mut filter = CuckooFilter::builder(1_000_000, 0.001).grow_from(1000).build().unwrap();
        let mut room = Room::in_filter(&filter);
        for group in 0..groups {
            let first = group % distinct * GROUP;
            let keys: Vec<u64> = (first..first + GROUP).collect();
            room.make(&mut filter, GROUP, share((group + 1) as f64 / groups as f64));
            filter.insert_unique_many(&keys, &mut vec![false; keys.len()]).unwrap();
            assert!(filter.slots_in_use() <= room.until);
        }
        filter.slots()
    }

    #[test]
    fn evenly_spread_new_keys_get_the_room_they_need() {
        for groups in [1, 7, 300] {
            let needed = slots(groups, groups, |_| Some(f64::INFINITY));
            assert!(slots(groups, groups, Some) <= needed * 21 / 20, "{groups}");
            assert!(slots(groups, groups, |_| None) <= needed * 6 / 5, "{groups}");
        }
    }

    #[test]
    fn unevenly_spread_new_keys_get_at_most_twice_the_room_they_need() {
        for distinct in [1, 3, 30, 299] {
            let needed = slots(300, distinct, |_| Some(f64::INFINITY));
            assert!(slots(300, distinct, Some) <= needed * 21 / 10, "{distinct}");
        }
    }

    #[test]
    fn any_share_of_the_input_is_accepted() {
        for share in [0.0, f64::MIN_POSITIVE, 1.0, 1e9, f64::NAN] {
            assert!(slots(20, 20, |_| Some(share)) <= 2 * 20 * GROUP * 21 / 20, "{share}");
        }
    }

    #[test]
    fn entries_from_before_do_not_raise_the_estimate() {
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
    fn a_fixed_filter_is_not_changed() {
        let mut filter = CuckooFilter::builder(1000, 0.001).build().unwrap();
        let before = filter.to_bytes();
        Room::in_filter(&filter).make(&mut filter, 5000, Some(0.01));
        assert!(filter.to_bytes() == before);
    }
}
