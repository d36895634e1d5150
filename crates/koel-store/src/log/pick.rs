//! Which segments are worth compacting.
//!
//! Neighbouring segments are rewritten together, at their own place in the log. The run starts from
//! the segment with the greatest benefit. Neighbours join it if they are small, or if nearly as
//! great a share of their bytes is reclaimable, as long as all that stays fits into one segment. So
//! small segments do not pile up. Reclaimable are dead records and marks; a log of single synced
//! writes has nearly as many bytes of marks as of records.
//!
//! **Benefit.** Rewriting a segment gains its reclaimable bytes and costs the bytes that stay. A
//! segment whose records still die fast should wait, since it soon gains more for less. So the
//! benefit is (gain / cost)^2, divided by how fast a byte that stays dies. That rate has been gain
//! / cost in the time since nothing was dead. What remains is gain / cost times that time, which is
//! counted in sequence numbers. Picked by the share of dead bytes alone, a log in which a few keys
//! are written often costs 2.1 bytes written for each byte appended instead of 1.5 (`koel-bench --
//! overwrites`). Source: D. Lomet, C. Luo, Efficiently Reclaiming Space in a Log Structured Store
//! (ICDE 2021), where the rate is that of the last two overwrites.
//!
//! **Tombstones.** A tombstone of key K says that every earlier record of K is dead. It may be
//! dropped once no earlier record of K exists. Compaction drops every record that was dead when it
//! started, so the segment is then *clean up to* that sequence number: none of its records was dead
//! by then. A segment without dead bytes is clean up to now. So a tombstone hides nothing if every
//! earlier segment is clean up to its sequence number, and is dropped when its own segment is
//! compacted. The rule needs no keys: one number per segment, in the manifest.
//!
//! **Dead segments.** A segment without a live record costs no copy. [`dead`] finds these alone, so
//! that they can be removed where there is no room for copies.
//!
//! **Damage.** A damaged segment is not picked, since it would be picked again and again: a call of
//! `compact` tries it once (`drop_damage.rs`). Tombstones that hide something in it stay too.

use std::ops::Range;
use std::sync::Arc;

use crate::kernel::segment::{FIRST_RECORD, Segment};

/// The thresholds of compaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    /// Do nothing if a smaller percentage of all bytes is reclaimable.
    pub(super) total_percent: u64,
    /// Do not start from a segment of which a smaller percentage is reclaimable.
    pub(super) segment_percent: u64,
    /// If tombstones that hide something reach this percentage of all bytes, clean the segments
    /// before them, however few of their bytes are dead.
    pub(super) tombstone_percent: u64,
    /// Try segments that are known to be damaged again.
    pub(super) tries_damaged: bool,
}

impl Policy {
    /// For the compaction thread.
    pub(super) const BACKGROUND: Self = Self {
        total_percent: 26,
        segment_percent: 25,
        tombstone_percent: 10,
        tries_damaged: false,
    };
    /// For a call of `compact`.
    pub(super) const THOROUGH: Self =
        Self { total_percent: 0, segment_percent: 5, tombstone_percent: 1, tries_damaged: true };
}

/// How the bytes of a segment are used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    bytes: u64,
    /// Bytes that compaction would drop.
    reclaimable: u64,
    /// Bytes of tombstones that a later compaction could drop.
    tombstones: u64,
    /// Up to where the segment is clean, if not up to now.
    uncleaned: Option<u64>,
    /// Sequence numbers since none of it was dead.
    age: u64,
    damaged: bool,
}

impl Usage {
    fn kept(&self) -> u64 {
        self.bytes - self.reclaimable
    }

    /// Returns the reclaimable share of the bytes, in units of 2^-32.
    fn share(&self) -> u128 {
        (u128::from(self.reclaimable) << 32) / u128::from(self.bytes.max(1))
    }

    /// Returns the benefit of rewriting the segment, in units of 2^-32.
    fn benefit(&self) -> u128 {
        // At most 2^34 bytes and 2^56 sequence numbers.
        (u128::from(self.reclaimable) << 32) / u128::from(self.kept().max(1))
            * u128::from(self.age + 1)
    }

    fn is_dead(&self) -> bool {
        !self.damaged && self.kept() <= FIRST_RECORD
    }

    fn reaches(&self, percent: u64) -> bool {
        self.reclaimable > 0 && self.reclaimable * 100 >= self.bytes * percent
    }
}

/// Returns the sequence number up to which all of `segments` are clean, in a log whose last record
/// has sequence number `now`.
pub(super) fn clean_up_to(segments: &[Arc<Segment>], now: u64) -> u64 {
    let clean =
        |segment: &Arc<Segment>| if segment.dead.get() == 0 { now } else { segment.cleaned.get() };
    segments.iter().map(clean).min().unwrap_or(now)
}

/// Returns the usage of each of the sealed segments, which are in log order.
pub(super) fn usages(sealed: &[Arc<Segment>], now: u64) -> Vec<Usage> {
    let (mut floor, mut stays_unclean) = (now, false);
    let usage = |segment: &Arc<Segment>| {
        let (dead, tombstones, bytes) =
            (segment.dead.get(), segment.tombstones.get(), segment.end());
        let hides_nothing = segment.last_sequence.get() <= floor;
        let droppable = dead + segment.marks() + if hides_nothing { tombstones } else { 0 };
        let damaged = segment.damage().is_some();
        let may_be_dropped_later = !damaged && !hides_nothing && !stays_unclean;
        floor = floor.min(clean_up_to(std::slice::from_ref(segment), now));
        stays_unclean |= damaged && dead > 0;
        Usage {
            bytes,
            reclaimable: if damaged { 0 } else { droppable.min(bytes) },
            tombstones: if may_be_dropped_later { tombstones } else { 0 },
            uncleaned: (dead > 0 && !damaged).then(|| segment.cleaned.get()),
            age: now.saturating_sub(segment.cleaned.get().max(segment.last_sequence.get())),
            damaged,
        }
    };
    sealed.iter().map(usage).collect()
}

/// Returns the segments to rewrite next, if that is worthwhile.
pub(super) fn pick(usages: &[Usage], segment_bytes: u64, policy: Policy) -> Option<Range<usize>> {
    let sum = |of: fn(&Usage) -> u64| usages.iter().map(of).sum::<u64>();
    let (bytes, reclaimable) = (sum(|usage| usage.bytes), sum(|usage| usage.reclaimable));
    let log = Usage { bytes, reclaimable, tombstones: 0, uncleaned: None, age: 0, damaged: false };
    let hiding = Usage { reclaimable: sum(|usage| usage.tombstones), ..log };
    if hiding.reaches(policy.tombstone_percent) {
        let uncleaned = |(at, usage): (usize, &Usage)| Some((usage.uncleaned?, at));
        let longest = usages.iter().enumerate().filter_map(uncleaned).min();
        if let Some((_, at)) = longest {
            return Some(with_neighbours(usages, at, segment_bytes, policy));
        }
    }
    if !log.reaches(policy.total_percent) {
        return None;
    }
    let worthwhile =
        usages.iter().enumerate().filter(|(_, usage)| usage.reaches(policy.segment_percent));
    let (best, _) = worthwhile.max_by_key(|(_, usage)| usage.benefit())?;
    Some(with_neighbours(usages, best, segment_bytes, policy))
}

/// Returns the first run of segments without a live record.
pub(super) fn dead(usages: &[Usage]) -> Option<Range<usize>> {
    let start = usages.iter().position(Usage::is_dead)?;
    let length = usages[start..].iter().take_while(|usage| usage.is_dead()).count();
    Some(start..start + length)
}

/// Returns the run around a segment.
fn with_neighbours(
    usages: &[Usage],
    best: usize,
    segment_bytes: u64,
    policy: Policy,
) -> Range<usize> {
    let first = &usages[best];
    let mut run = best..best + 1;
    let mut kept = first.kept();
    let fits = |next: &Usage, kept: u64| {
        let small = next.bytes * 4 <= segment_bytes;
        let as_good = next.reaches(policy.segment_percent) && next.share() * 4 >= first.share() * 3;
        !next.damaged && (small || as_good) && kept + next.kept() <= segment_bytes
    };
    while let Some(next) = usages.get(run.end).filter(|next| fits(next, kept)) {
        kept += next.kept();
        run.end += 1;
    }
    while let Some(next) = run.start.checked_sub(1).map(|at| &usages[at]) {
        if !fits(next, kept) {
            break;
        }
        kept += next.kept();
        run.start -= 1;
    }
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy {
        total_percent: 20,
        segment_percent: 20,
        tombstone_percent: 10,
        tries_damaged: false,
    };

    fn usage(bytes: u64, reclaimable: u64) -> Usage {
        Usage { bytes, reclaimable, tombstones: 0, uncleaned: None, age: 0, damaged: false }
    }

    #[test]
    fn nothing_is_picked_below_the_thresholds() {
        assert_eq!(pick(&[], 1000, POLICY), None);
        assert_eq!(pick(&[usage(1000, 0)], 1000, POLICY), None);
        let few = [usage(1000, 0), usage(1000, 390)];
        assert_eq!(pick(&few, 1000, POLICY), None);
        assert_eq!(pick(&[usage(1000, 0), usage(1000, 400)], 1000, POLICY), Some(1..2));
    }

    #[test]
    fn the_best_segment_is_picked_with_the_neighbours_that_fit() {
        let all = [
            usage(1000, 300), // 700 stay
            usage(1000, 800), // 200 stay
            usage(1000, 900), // 100 stay: the best
            usage(200, 0),    // small
            usage(1000, 50),  // too few
        ];
        assert_eq!(pick(&all, 1000, POLICY), Some(1..4));
    }

    #[test]
    fn a_segment_whose_records_still_die_quickly_waits() {
        // In the first segment, 500 records died while 1000 were written; in the second, 300 while
        // 2000 were.
        let fast = Usage { age: 1000, ..usage(1000, 500) };
        let slow = Usage { age: 2000, ..usage(1000, 300) };
        assert_eq!(pick(&[fast, slow], 600, POLICY), Some(0..1));
        let slow = Usage { age: 3000, ..slow };
        assert_eq!(pick(&[fast, slow], 600, POLICY), Some(1..2));
        // Below the threshold of a fifth it is not picked, however old it is.
        let few = Usage { age: u64::from(u32::MAX), ..usage(1000, 190) };
        assert_eq!(pick(&[fast, few], 600, POLICY), Some(0..1));
    }

    #[test]
    fn the_benefit_of_the_largest_segment_of_the_oldest_log_does_not_overflow() {
        let oldest = Usage { age: (1 << 56) - 1, ..usage(16 << 30, 16 << 30) };
        assert!(oldest.benefit() > Usage { age: (1 << 56) - 2, ..oldest }.benefit());
    }

    #[test]
    fn dead_segments_are_found_without_their_neighbours() {
        let (live, full) = (usage(200, 100), usage(200, 200 - FIRST_RECORD));
        assert_eq!(dead(&[live, full, usage(1000, 1000), live, full]), Some(1..3));
        assert_eq!(dead(&[live, Usage { damaged: true, ..full }]), None);
        assert_eq!(dead(&[usage(200, 200 - FIRST_RECORD - 1)]), None);
    }

    #[test]
    fn a_damaged_segment_does_not_join_a_run() {
        let damaged = Usage { damaged: true, ..usage(200, 0) };
        let all = [usage(200, 0), usage(1000, 900), damaged, usage(200, 0)];
        assert_eq!(pick(&all, 1000, POLICY), Some(0..2));
        assert_eq!(pick(&[damaged; 3], 1000, POLICY), None);
    }

    #[test]
    fn among_segments_with_tombstones_the_one_cleaned_longest_ago_is_picked() {
        let hiding = Usage { tombstones: 300, ..usage(1000, 0) };
        let unclean = |sequence| Usage { uncleaned: Some(sequence), ..usage(1000, 1) };
        let all = [unclean(7), unclean(3), hiding];
        assert_eq!(pick(&all, 1000, POLICY), Some(1..2));
        assert_eq!(pick(&all[1..2], 1000, POLICY), None);
    }
}
