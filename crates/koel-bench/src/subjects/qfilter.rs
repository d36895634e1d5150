//! `qfilter` 0.3: a rank-and-select quotient filter, slots rounded up to a power of two, at most 95
//! % full. It stores duplicates, as Koel does (`insert_duplicated`). Memory as the crate reports
//! it.

use qfilter::Filter as Quotient;

use crate::subject::{Filter, tally, until_refused};

pub(super) struct Rival(pub(super) Quotient);

pub(super) fn build(keys: usize, rate: f64) -> Box<dyn Filter> {
    Box::new(Rival(Quotient::new(keys as u64, rate).expect("sizes of the bench can be built")))
}

impl Filter for Rival {
    fn insert(&mut self, keys: &[u64]) -> usize {
        until_refused(keys, |key| self.0.insert_duplicated(key).is_ok())
    }

    fn find(&self, keys: &[u64]) -> usize {
        tally(keys, |key| self.0.contains(key))
    }

    fn delete(&mut self, keys: &[u64]) -> usize {
        tally(keys, |key| self.0.remove(key))
    }

    fn bytes(&self) -> usize {
        self.0.memory_usage()
    }

    /// Its capacity is 95 % of its slots, which are a power of two.
    fn slots(&self) -> Option<usize> {
        usize::try_from(self.0.capacity()).ok().map(usize::next_power_of_two)
    }
}
