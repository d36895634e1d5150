//! What two filters have in common, without their keys.
//!
//! Two filters of one shape and hash give equal keys equal entries. So the entries that both hold,
//! and those that only one does, can be counted exactly; how many *keys* that makes has to be
//! estimated, because different keys share an entry now and then: with `U` possible entries, `n`
//! keys make `U (1 - exp(-n/U))` different ones on average ([`CuckooFilter::distinct_estimate`] is
//! the inverse). The number of common keys is what the estimates for both filters exceed that for
//! their union by.
//!
//! Errors: let a keys be in the first filter only, b in the second only and c in both. The estimate
//! of c is changed by pairs of keys that share an entry: one key of a and one of b, or two of c.
//! There are about `a b / U` and `c c / 2 U` such pairs. Their number follows a Poisson
//! distribution, so its variance is as large, and that is the variance of the estimate. The other
//! estimates follow in the same way.
//!
//! In filters that have grown, an entry of one counts as common when one of the other continues it
//! or is continued by it. `U` is then worked out backwards, as the number of equally likely entries
//! with which as many pairs would match by chance: once for an entry of each filter, and once for
//! two entries of either filter, by which its keys are estimated.
//!
//! Cost: O(buckets) of both filters.

use core::fmt;

use crate::CuckooFilter;
use crate::address::geometry::{CORES, Geometry};
use crate::error::MergeError;
use crate::image::{shape, sizing};
use crate::state::counters::ReadCounters;
use crate::state::store::Store;
use crate::state::{Lengths, Reader, Surplus, reading};
use crate::table::{Addressing, Cuckoo, grows};

/// An entry as it is stored, for all the keys that share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilterEntry {
    /// The bucket with the smaller number of the two that the entry may be in; in a filter that has
    /// grown, the one that it is in.
    pub bucket: u64,
    /// What is stored of the key; in a filter that has grown, in this bucket.
    pub fingerprint: u64,
    /// Keys inserted and not removed, copies included.
    pub count: u64,
}

/// A number worked out from a sample of chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The most likely value.
    pub value: f64,
    /// In two cases of three the truth is not further away than this, in 19 of 20 not further than
    /// twice this. In filters that have grown, the value is off by up to a percent of the keys in
    /// either filter besides.
    pub standard_error: f64,
}

/// Value, "+-" and standard error, with the precision of the format (`{:.1}`), or none.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(0);
        write!(f, "{:.digits$} +- {:.digits$}", self.value, self.standard_error)
    }
}

/// The entries of two filters side by side. Made by [`CuckooFilter::compare`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Different entries of the first filter, and of the second one.
    distinct: [u64; 2],
    /// Different entries of the first filter that are in the second one too.
    common: u64,
    /// Copies that the first filter has more of than the second, and the other way round.
    surplus: [u64; 2],
    /// Entries of which each filter would have as many by as many keys, were each as likely as any
    /// other.
    possible: [f64; 2],
    /// The same for entries that both have by chance.
    across: f64,
}

impl Comparison {
    /// What two filters have; `possible` says how many entries could have matched by chance,
    /// between entries of such lengths.
    fn of(surpluses: &[Surplus; 2], possible: impl Fn([&Lengths; 2]) -> f64) -> Self {
        let [first, second] = surpluses;
        let lengths = [&first.lengths, &second.lengths];
        Self {
            distinct: [first.distinct, second.distinct],
            common: first.common,
            surplus: [first.surplus, second.surplus],
            possible: lengths.map(|own| possible([own, own])),
            across: possible(lengths),
        }
    }

    /// How many different keys are in both filters.
    #[must_use]
    pub fn common(&self) -> Estimate {
        let [a, b, c] = self.parts();
        self.estimate(c, a * b + c * c / 2.0)
    }

    /// How many different keys are in either filter.
    #[must_use]
    pub fn union(&self) -> Estimate {
        let union = self.parts().iter().sum::<f64>();
        self.estimate(union, union * union / 2.0)
    }

    /// How many different keys are in the first filter and not in the second.
    #[must_use]
    pub fn only_first(&self) -> Estimate {
        let [a, b, c] = self.parts();
        self.estimate(a, a * (a / 2.0 + b + c))
    }

    /// How many different keys are in the second filter and not in the first.
    #[must_use]
    pub fn only_second(&self) -> Estimate {
        let [a, b, c] = self.parts();
        self.estimate(b, b * (b / 2.0 + a + c))
    }

    /// The Jaccard index: common keys by keys in either filter, 0 to 1; 1 for two empty filters.
    #[must_use]
    pub fn jaccard(&self) -> Estimate {
        let [a, b, c] = self.parts();
        let union = self.union().value;
        if union == 0.0 {
            return Estimate { value: 1.0, standard_error: 0.0 };
        }
        let share = c / union;
        let common = a * b + c * c / 2.0;
        let both = c * c / 2.0 - a * b;
        let variance = common - 2.0 * share * both + share * share * union * union / 2.0;
        let Estimate { standard_error, .. } = self.estimate(c, variance);
        Estimate { value: share, standard_error: standard_error / union }
    }

    /// Keys, copies included, that the first filter has more of than the second: what would have to
    /// be added to the second. Exact but for keys that share an entry.
    #[must_use]
    pub fn surplus_first(&self) -> u64 {
        self.surplus[0]
    }

    /// Keys, copies included, that the second filter has more of than the first.
    #[must_use]
    pub fn surplus_second(&self) -> u64 {
        self.surplus[1]
    }

    /// Keys of the first filter only, of the second only, of both; an estimate below 0 is 0.
    fn parts(&self) -> [f64; 3] {
        let [first, second] = self.distinct;
        let across = |distinct| shape::distinct_keys(distinct, self.across);
        let common = across(first) + across(second) - across(first + second - self.common);
        let [first, second] =
            [0, 1].map(|i| shape::distinct_keys(self.distinct[i], self.possible[i]));
        [first - common, second - common, common].map(|keys| keys.max(0.0))
    }

    /// With so many pairs of keys by whose chance to share an entry the value is off.
    fn estimate(&self, value: f64, pairs: f64) -> Estimate {
        let variance = pairs.max(0.0) / self.across;
        // To a millionth of a key.
        Estimate { value, standard_error: sizing::square_root(variance * 1e12) / 1e6 }
    }
}

impl<S: Store> CuckooFilter<S> {
    /// The entries, each once, in an order that depends on the bytes alone. O(buckets).
    ///
    /// ```
    /// let mut filter = koel::CuckooFilter::with_capacity(100);
    /// filter.insert_many(&["ada", "grace", "ada"])?;
    /// let mut counts: Vec<u64> = filter.entries().map(|entry| entry.count).collect();
    /// counts.sort();
    /// assert_eq!(counts, [1, 2]);
    /// # Ok::<(), koel::FullError>(())
    /// ```
    pub fn entries(&self) -> impl Iterator<Item = FilterEntry> {
        let (buckets, state) = (&self.body.buckets, &self.body.state);
        let fixed = buckets.fixed().map(|table| entries(Reader { table, state }));
        let growing = buckets.growing().map(|table| entries(Reader { table, state }));
        fixed.into_iter().flatten().chain(growing.into_iter().flatten())
    }

    /// Counts what this filter, the first, and `other`, the second, have in common. Call
    /// [`verify`](Self::verify) first on a view that you do not trust. O(buckets).
    ///
    /// ```
    /// use koel::CuckooFilter;
    ///
    /// let mut monday = CuckooFilter::with_capacity(9000);
    /// let mut tuesday = CuckooFilter::with_capacity(9000);
    /// monday.try_extend(0_u64..6000)?;
    /// tuesday.try_extend(3000_u64..9000)?;
    /// let days = monday.compare(&tuesday)?;
    /// let common = days.common();
    /// assert!((common.value - 3000.0).abs() < 5.0 * common.standard_error + 1.0);
    /// assert!((days.jaccard().value - 1.0 / 3.0).abs() < 0.01);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`MergeError::Incompatible`] where the filters differ in layout, size, hash or route: their
    /// entries say nothing about each other.
    pub fn compare<T: Store>(&self, other: &CuckooFilter<T>) -> Result<Comparison, MergeError> {
        self.check_compatible(other)?;
        let (ours, theirs) = (&self.body, &other.body);
        let surpluses = reading!(ours, first => reading!(theirs, second => {
            [first.surplus_over(second), second.surplus_over(first)]
        }));
        Ok(if self.has_grown() || other.has_grown() {
            let base = ours.buckets.base();
            Comparison::of(&surpluses, |lengths| 1.0 / chance(base, lengths))
        } else {
            Comparison::of(&surpluses, |_| ours.possible_entries())
        })
    }
}

/// The entries of a table, each once: one of one size has them by the smaller number of their two
/// buckets.
fn entries<T: Cuckoo, C: ReadCounters>(
    reader: Reader<'_, T, C>,
) -> impl Iterator<Item = FilterEntry> {
    let addresses = reader.table.table().geometry();
    reader.table.table().distinct_entries().map(move |entry| {
        let other = if grows::<T>() { entry.bucket } else { addresses.other_base(&entry.prefix) };
        let bucket = entry.bucket.min(other);
        FilterEntry { bucket, fingerprint: entry.slot, count: reader.count_of(&entry) }
    })
}

/// Of pairs of entries, one of each filter, the share that may belong to the same key by chance
/// alone, in tables that were built with these addresses.
fn chance(base: &Geometry, [ours, theirs]: [&Lengths; 2]) -> f64 {
    let pairs =
        |&(a, b): &(usize, usize)| ours[a] as f64 * theirs[b] as f64 / (1_u64 << a.min(b)) as f64;
    let all = (0..64).flat_map(|a| (0..64).map(move |b| (a, b)));
    let total = |lengths: &Lengths| lengths.iter().sum::<u64>().max(1) as f64;
    let matching = all.map(|lengths| pairs(&lengths)).sum::<f64>();
    // Pairs of base buckets and cores, all equally likely.
    let locations = CORES as f64 * base.buckets() as f64 / 2.0;
    matching / (total(ours) * total(theirs) * locations)
}
