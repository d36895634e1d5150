//! Estimates what two filters have in common, without their keys.
//!
//! Two filters of one shape and hash have equal entries for equal keys. So the entries of both, and
//! those of one alone, are counted exactly. The number of *keys* is an estimate, because distinct
//! keys share an entry now and then: with `U` possible entries, `n` keys have `U (1 - exp(-n/U))`
//! distinct entries on average. [`CuckooFilter::distinct_estimate`] is the inverse. Then
//!
//! ```text
//!     common = first + second - union
//! ```
//!
//! **Errors.** Let a keys be in the first filter only, b in the second only, and c in both. Pairs
//! of keys that share an entry change the estimate of c: one key of a and one of b, or two of c.
//! There are about `a b / U` and `c c / 2 U` such pairs. Their number has a Poisson distribution,
//! so the variance of the estimate is the number of pairs. The other estimates follow likewise.
//!
//! **Bounds.** Some figures are exact: how many copies each filter has (`len`), so also by how much
//! the copies that one lacks outnumber those that the other lacks. No estimate contradicts them: a
//! filter has no more keys than copies, and no more keys of its own than copies that the other
//! lacks. And no estimate lowers the number of entries that have no partner: a difference that is
//! seen is reported.
//!
//! **Growth.** In filters that have grown, two entries are common if one is a prefix of the other;
//! `state/relate.rs` pairs them, so that each has one partner. `U` is then the number of equally
//! likely entries with which as many pairs would match by chance: once for one entry of each
//! filter, and once for two entries of the same filter.
//!
//! **Stash.** Keys in the stash of one filter are looked up in the other.
//!
//! **Corrections** are content too: they change answers. Those that one filter lacks are counted
//! exactly, beside the keys.
//!
//! **Cost.** O(buckets) of both filters, and memory for the entries of one segment of each.

use core::fmt;

use crate::address::geometry::{CORES, Geometry};
use crate::error::MergeError;
use crate::image::{shape, sizing};
use crate::state::store::Store;
use crate::state::{Lengths, Overlap, relate};
use crate::table::{GrowingLocation, Place};
use crate::{CuckooFilter, Key};

/// An entry of a filter. All keys that share it have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilterEntry {
    /// The smaller number of the two buckets that the entry may be in. In a filter that has grown,
    /// the bucket that it is in.
    pub bucket: u64,
    /// The fingerprint. In a filter that has grown, as this bucket stores it.
    pub fingerprint: u64,
    /// The number of keys inserted and not removed, with copies.
    pub count: u64,
}

/// An estimate with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The most likely value.
    pub value: f64,
    /// The truth is within this of the value in two of three cases, and within twice this in 19 of
    /// 20. In filters that have grown, the value may be off by another percent of the keys.
    pub standard_error: f64,
}

/// The value, "+-" and the standard error, with the precision of the format (`{:.1}`) or no digits.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(0);
        write!(f, "{:.digits$} +- {:.digits$}", self.value, self.standard_error)
    }
}

/// How two filters relate. Made by [`CuckooFilter::compare`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The number of distinct entries of each filter, without those that belong to no key.
    distinct: [u64; 2],
    /// The number of distinct entries that have a partner in the other filter.
    common: u64,
    /// The number of keys in each filter, with copies.
    len: [u64; 2],
    /// The number of copies that each filter has and the other lacks. The difference of both is
    /// that of `len`.
    surplus: [u64; 2],
    /// The number of corrections that each filter has and the other lacks.
    corrections: [u64; 2],
    /// For each filter, the number of equally likely entries of which as many keys would have as
    /// many distinct ones.
    possible: [f64; 2],
    /// The number of equally likely entries of which both would have as many in common by chance.
    across: f64,
}

impl Comparison {
    /// The comparison of filters with these entries and their `len`. `possible` returns the number
    /// of equally likely entries for entries of these lengths.
    fn of(overlap: &Overlap, len: [u64; 2], possible: impl Fn([&Lengths; 2]) -> f64) -> Self {
        let [copies, distinct] = overlap.keys(len);
        let [first, second] = &overlap.lengths;
        let mut found = Self {
            distinct: distinct.alone.map(|alone| distinct.common.saturating_add(alone)),
            common: distinct.common,
            len,
            surplus: [0; 2],
            corrections: [0; 2],
            possible: [first, second].map(|own| possible([own, own])),
            across: possible([first, second]),
        };
        let (keys, common) = found.unbounded();
        let own = [0, 1].map(|i| (keys[i] - common).min(copies.alone[i] as f64));
        // A key of one filter alone is hidden where one of the other alone has its entry.
        let hidden = rounded(own[0] * own[1] / found.across);
        let shared = |i: usize| len[i].saturating_sub(copies.alone[i].saturating_add(hidden));
        // Both have equally many copies of what they share.
        let shared = shared(0).min(shared(1));
        found.surplus = len.map(|copies| copies - shared);
        found
    }

    /// The number of distinct keys in both filters.
    #[must_use]
    pub fn common(&self) -> Estimate {
        let [a, b, c] = self.parts();
        self.estimate(c, a * b + c * c / 2.0)
    }

    /// The number of distinct keys in either filter.
    #[must_use]
    pub fn union(&self) -> Estimate {
        let union = self.parts().iter().sum::<f64>();
        self.estimate(union, union * union / 2.0)
    }

    /// The number of distinct keys in the first filter and not in the second.
    #[must_use]
    pub fn only_first(&self) -> Estimate {
        let [a, b, c] = self.parts();
        self.estimate(a, a * (a / 2.0 + b + c))
    }

    /// The number of distinct keys in the second filter and not in the first.
    #[must_use]
    pub fn only_second(&self) -> Estimate {
        let [a, b, c] = self.parts();
        self.estimate(b, b * (b / 2.0 + a + c))
    }

    /// The Jaccard index, 0 to 1: common keys divided by keys in either filter. 1 for two empty
    /// filters.
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

    /// The number of keys, with copies, that the first filter has and the second lacks. At least
    /// [`only_first`](Self::only_first), and exact unless different keys share an entry.
    #[must_use]
    pub fn surplus_first(&self) -> u64 {
        self.surplus[0]
    }

    /// The number of keys, with copies, that the second filter has and the first lacks. At least
    /// [`only_second`](Self::only_second), and exact unless different keys share an entry.
    #[must_use]
    pub fn surplus_second(&self) -> u64 {
        self.surplus[1]
    }

    /// The number of [corrections](CuckooFilter::refute) that the first filter has and the second
    /// lacks. Exact.
    #[must_use]
    pub fn corrections_first(&self) -> u64 {
        self.corrections[0]
    }

    /// The number of corrections that the second filter has and the first lacks. Exact.
    #[must_use]
    pub fn corrections_second(&self) -> u64 {
        self.corrections[1]
    }

    /// Whether a copy of a key or a correction is in one filter only, as far as entries tell.
    #[must_use]
    pub fn shows_change(&self) -> bool {
        self.surplus != [0; 2] || self.corrections != [0; 2]
    }

    /// Keys of each filter and of both, as the entries alone suggest.
    fn unbounded(&self) -> ([f64; 2], f64) {
        let [first, second] = self.distinct;
        let across = |distinct| shape::distinct_keys(distinct, self.across);
        let common = across(first) + across(second) - across(first + second - self.common);
        let keys = [0, 1].map(|i| {
            let keys = shape::distinct_keys(self.distinct[i], self.possible[i]);
            keys.min(self.len[i] as f64)
        });
        (keys, common.clamp(0.0, keys[0].min(keys[1])))
    }

    /// Keys of the first filter only, of the second only, and of both, as the numbers of copies
    /// allow.
    fn parts(&self) -> [f64; 3] {
        let (keys, common) = self.unbounded();
        let own = self.surplus.map(|copies| copies as f64);
        let shared = (self.len[0] - self.surplus[0]) as f64;
        let common = common.max(keys[0] - own[0]).max(keys[1] - own[1]);
        let common = common.min(shared).min(keys[0]).min(keys[1]);
        let seen = self.distinct.map(|entries| entries.saturating_sub(self.common) as f64);
        let only = |i: usize| (keys[i] - common).max(seen[i]).min(own[i]);
        [only(0), only(1), common]
    }

    /// An estimate that changes with each of `pairs` pairs of keys that happen to share an entry.
    fn estimate(&self, value: f64, pairs: f64) -> Estimate {
        let variance = pairs.max(0.0) / self.across;
        // To a millionth of a key.
        Estimate { value, standard_error: sizing::square_root(variance * 1e12) / 1e6 }
    }
}

impl<S: Store> CuckooFilter<S> {
    /// All distinct entries, in an order that depends on the bytes alone. O(buckets).
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
        // A table of one size names an entry by the smaller of its two buckets.
        let (table, addresses) = (&self.body.table, self.body.table.addresses());
        table.distinct_entries().map(move |entry| {
            let other =
                if table.grows() { entry.bucket } else { addresses.other_base(&entry.prefix) };
            let bucket = entry.bucket.min(other);
            FilterEntry { bucket, fingerprint: entry.slot, count: self.body.count_of(&entry) }
        })
    }

    /// The two buckets of a key, the home bucket first, each with the slot that stands for the key
    /// there. For the page in `web/`, which draws a table.
    #[doc(hidden)]
    pub fn locate<K: Key + ?Sized>(&self, key: &K) -> [(u64, u64); 2] {
        let addresses = self.body.table.addresses();
        let place = GrowingLocation::locate(addresses, self.body.address(key));
        let ((home, other), [first, second]) = (place.pair(), place.fingerprints(addresses));
        [(home, first), (other, second)]
    }

    /// How many copies of entries belong to no key. O([counters](Self::distinct_counters)).
    ///
    /// Only a filter that [has grown](Self::has_grown) has any. Growth puts an entry that has no
    /// bit left into both halves of its bucket, and a removal takes out the half of its key only.
    /// Such entries take slots and raise the false-positive rate, which
    /// [`false_positive_rate`](Self::false_positive_rate) counts. The removal of the last key takes
    /// them out, and [`clear`](CuckooFilter::clear) does; nothing else.
    #[must_use]
    pub fn leftovers(&self) -> u64 {
        let held = self.body.held();
        let leftovers = held.saturating_sub(u128::from(self.len()));
        u64::try_from(leftovers).unwrap_or(u64::MAX)
    }

    /// Compares this filter, the first, with `other`, the second. O(buckets), and memory for
    /// the entries of a segment of 2 MiB, or an eighth of a filter that has grown. Call
    /// [`verify`](Self::verify) first on a view that you do not trust.
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
    /// [`MergeError::Incompatible`] and [`MergeError::Sizes`] if the filters differ in layout,
    /// size, hash, route or the first two application bytes: then their entries cannot be compared.
    /// [`MergeError::NoMemory`].
    pub fn compare<T: Store>(&self, other: &CuckooFilter<T>) -> Result<Comparison, MergeError> {
        let (ours, theirs) = (&self.body, &other.body);
        ours.check_alike(theirs)?;
        let overlap = relate(ours, theirs)?;
        let has_grown = self.has_grown() || other.has_grown();
        let base = ours.table.base();
        let compared = Comparison::of(&overlap, [self.len(), other.len()], |lengths| {
            if has_grown { 1.0 / chance(base, lengths) } else { ours.possible_entries() }
        });
        let corrections = [self.corrections_beyond(other), other.corrections_beyond(self)];
        Ok(Comparison { corrections, ..compared })
    }

    /// How many of its [corrections](CuckooFilter::refute) another filter with the same hash does
    /// not have. O(corrections). After a merge, it tells how many the union lacks.
    ///
    /// ```
    /// let mut blocked = koel::CuckooFilter::builder(1000, 0.03).build()?;
    /// (0..1000_u64).try_for_each(|key| blocked.insert(&key))?;
    /// let before = blocked.clone();
    /// let made = blocked.refute_many(&(1000..2000_u64).collect::<Vec<_>>())?;
    /// assert_eq!(blocked.corrections_beyond(&before), made);
    /// assert_eq!(before.corrections_beyond(&blocked), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn corrections_beyond<T: Store>(&self, other: &CuckooFilter<T>) -> u64 {
        self.body.state.side.corrections_beyond(&other.body.state.side)
    }
}

/// The nearest whole number to one that is not negative.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "is not negative")]
fn rounded(value: f64) -> u64 {
    (value + 0.5) as u64
}

/// The share of pairs of entries, one of each filter, that match by chance, in tables built with
/// these addresses.
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
