//! Where damage was found in a file, since it was opened.
//!
//! Whatever meets damage notes it here: reads, iterators, verification, compaction. So an import
//! does not rely on a record that is known to be damaged, and a compaction tries what it would
//! otherwise leave alone. Nothing of this is on disk: damage that was noted by another process is
//! found again when it is read.
//!
//! Memory: one entry for each damaged place, where places that touch count as one.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

use super::threads::lock;

/// The damaged places of a file. Threads can share it.
#[derive(Debug, Default)]
pub(crate) struct DamagedPlaces(Mutex<BTreeMap<u64, Place>>);

/// Where a damaged place ends, and what is wrong at its start.
#[derive(Clone, Copy, Debug)]
struct Place {
    end: u64,
    what: &'static str,
}

impl DamagedPlaces {
    /// Notes that these bytes are damaged.
    pub(crate) fn add(&self, bytes: Range<u64>, what: &'static str) {
        let mut places = lock(&self.0);
        let (mut start, mut place) = (bytes.start, Place { end: bytes.end, what });
        while let Some((&other, &Place { end, what })) = places.range(..=place.end).next_back() {
            if end < start {
                break;
            }
            places.remove(&other);
            place.end = place.end.max(end);
            if other <= start {
                (start, place.what) = (other, what);
            }
        }
        places.insert(start, place);
    }

    /// Returns the first place, and what is wrong there.
    pub(crate) fn first(&self) -> Option<(u64, &'static str)> {
        lock(&self.0).first_key_value().map(|(start, place)| (*start, place.what))
    }

    /// Returns all places in order.
    pub(crate) fn all(&self) -> Vec<Range<u64>> {
        lock(&self.0).iter().map(|(start, place)| *start..place.end).collect()
    }

    /// Returns whether a byte is known to be damaged.
    #[cfg(any(unix, test))]
    pub(crate) fn has(&self, offset: u64) -> bool {
        let places = lock(&self.0);
        places.range(..=offset).next_back().is_some_and(|(_, place)| offset < place.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::storage::Random;

    #[test]
    fn every_byte_that_was_added_is_there_and_no_other() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let (places, mut model) = (DamagedPlaces::default(), [false; 300]);
            for _ in 0..random.below(12) {
                let start = random.below(250);
                let end = start + 1 + random.below(50);
                places.add(start as u64..end as u64, "hurt");
                model[start..end].fill(true);
            }
            for (offset, damaged) in (0..).zip(model) {
                assert_eq!(places.has(offset), damaged, "{seed}: {offset}");
            }
            let first = model.iter().position(|damaged| *damaged);
            assert_eq!(places.first().map(|it| it.0), first.map(|it| it as u64), "{seed}");
        }
    }

    #[test]
    fn the_first_damage_keeps_its_description() {
        let places = DamagedPlaces::default();
        places.add(80..160, "second");
        places.add(40..80, "first");
        places.add(48..56, "inside");
        assert_eq!(places.first(), Some((40, "first")));
    }
}
