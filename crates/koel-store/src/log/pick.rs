//! Which segments are worth compacting.
//!
//! Segments that lie side by side are rewritten together, into their own place in the log. Picked is the one that is most worth it, and with it neighbours that are small or have nearly as great a share of bytes that would go, as long as what stays of all
//! of them fits into one segment: so small segments do not pile up. What would go is what is dead, and marks, of which a log of single synced writes has nearly as many bytes as of records.
//!
//! **What it is worth.** To rewrite a segment gains the bytes that go, and costs those that stay. One whose records still die fast should wait, since it will gain more for less soon; of records that are seldom written again, what is dead now is all there will be. So the worth is (gain / cost)^2 by how fast a byte
//! that stays dies, which so far was gain / cost in the time since nothing was dead. That leaves gain / cost times that time, which is counted in sequences. Picked by the share of dead bytes alone, a log of which a few keys are written often costs 2.1 bytes written for each byte appended instead of 1.5
//! (`koel-bench -- overwrites`). Source: D. Lomet, C. Luo, Efficiently Reclaiming Space in a Log Structured Store (ICDE 2021), where the speed is that of the last two overwrites.
//!
//! **When a tombstone may go.** A tombstone of key K says that every record of K in front of it is dead. It may go once no record of K is in front of it. Compaction drops every record that was dead when it began, so a segment *is clean up to* that
//! sequence: no record of it was dead by then. A segment without a dead byte is clean up to now. A tombstone with a sequence up to which every segment in front of it is clean therefore has nothing left to hide, and goes when its own segment is compacted. The rule needs no
//! key: one number per segment, in the manifest.
//!
//! **A damaged segment** stays as it is: it would be picked again and again, and nothing else. Tombstones behind it that hide something in it stay too.

use std::ops::Range;
use std::sync::Arc;

use crate::kernel::segment::Segment;

/// How eager to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    /// Nothing is done below this share of bytes to go, of all bytes, in percent.
    pub(super) of_all: u64,
    /// No segment is rewritten for less than this share of its bytes, in percent.
    pub(super) of_one: u64,
    /// From this share of tombstones that hide something on, in percent of all bytes, segments are cleaned for their sake, however little is dead in them.
    pub(super) of_tombstones: u64,
}

impl Policy {
    /// Of the thread in the background.
    pub(super) const BACKGROUND: Self = Self { of_all: 26, of_one: 25, of_tombstones: 10 };
    /// Of a call of `compact`.
    pub(super) const THOROUGH: Self = Self { of_all: 0, of_one: 5, of_tombstones: 1 };
}

/// What is known of a segment that could be compacted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    bytes: u64,
    /// Bytes that would go.
    loose: u64,
    /// Bytes of tombstones that would not.
    tombstones: u64,
    /// Up to where it is clean, if not up to now.
    uncleaned: Option<u64>,
    /// Sequences since nothing of it was dead.
    age: u64,
    /// It is damaged.
    stays: bool,
}

impl Standing {
    fn kept(&self) -> u64 {
        self.bytes - self.loose
    }

    /// The share of its bytes that would go, in 2^-32.
    fn share(&self) -> u128 {
        (u128::from(self.loose) << 32) / u128::from(self.bytes.max(1))
    }

    /// What it is worth to rewrite it, in 2^-32.
    fn worth(&self) -> u128 {
        // At most 2^34 bytes and 2^56 sequences.
        (u128::from(self.loose) << 32) / u128::from(self.kept().max(1)) * u128::from(self.age + 1)
    }

    fn reaches(&self, percent: u64) -> bool {
        self.loose > 0 && self.loose * 100 >= self.bytes * percent
    }
}

/// The sequence up to which all of `segments` are clean, in a log whose last record has sequence `now`.
pub(super) fn clean_up_to(segments: &[Arc<Segment>], now: u64) -> u64 {
    let clean = |segment: &Arc<Segment>| if segment.dead() == 0 { now } else { segment.cleaned() };
    segments.iter().map(clean).min().unwrap_or(now)
}

/// The standing of each of the sealed segments, which are in the order of the log.
pub(super) fn standings(sealed: &[Arc<Segment>], now: u64) -> Vec<Standing> {
    let (mut floor, mut stays_unclean) = (now, false);
    let standing = |segment: &Arc<Segment>| {
        let (dead, tombstones, bytes) = (segment.dead(), segment.tombstones(), segment.end());
        let hides_nothing = segment.last() <= floor;
        let loose = dead + segment.marks() + if hides_nothing { tombstones } else { 0 };
        let stays = segment.damage().is_some();
        let may_go_later = !stays && !hides_nothing && !stays_unclean;
        floor = floor.min(clean_up_to(std::slice::from_ref(segment), now));
        stays_unclean |= stays && dead > 0;
        Standing {
            bytes,
            loose: if stays { 0 } else { loose.min(bytes) },
            tombstones: if may_go_later { tombstones } else { 0 },
            uncleaned: (dead > 0 && !stays).then(|| segment.cleaned()),
            age: now.saturating_sub(segment.cleaned().max(segment.last())),
            stays,
        }
    };
    sealed.iter().map(standing).collect()
}

/// The segments to rewrite next, if it is worth it.
pub(super) fn pick(
    standings: &[Standing],
    segment_bytes: u64,
    policy: Policy,
) -> Option<Range<usize>> {
    let sum = |of: fn(&Standing) -> u64| standings.iter().map(of).sum::<u64>();
    let bytes = sum(|one| one.bytes);
    let loose = sum(|one| one.loose);
    let all = Standing { bytes, loose, tombstones: 0, uncleaned: None, age: 0, stays: false };
    let hiding = Standing { loose: sum(|one| one.tombstones), ..all };
    if hiding.reaches(policy.of_tombstones) {
        let uncleaned = |(at, one): (usize, &Standing)| Some((one.uncleaned?, at));
        let longest = standings.iter().enumerate().filter_map(uncleaned).min();
        if let Some((_, at)) = longest {
            return Some(with_neighbours(standings, at, segment_bytes, policy));
        }
    }
    if !all.reaches(policy.of_all) {
        return None;
    }
    let worthwhile = standings.iter().enumerate().filter(|(_, one)| one.reaches(policy.of_one));
    let (best, _) = worthwhile.max_by_key(|(_, one)| one.worth())?;
    Some(with_neighbours(standings, best, segment_bytes, policy))
}

/// The run around a segment.
fn with_neighbours(
    standings: &[Standing],
    best: usize,
    segment_bytes: u64,
    policy: Policy,
) -> Range<usize> {
    let one = &standings[best];
    let mut run = best..best + 1;
    let mut kept = one.kept();
    let fits = |next: &Standing, kept: u64| {
        let small = next.bytes * 4 <= segment_bytes;
        let as_good = next.reaches(policy.of_one) && next.share() * 4 >= one.share() * 3;
        !next.stays && (small || as_good) && kept + next.kept() <= segment_bytes
    };
    while let Some(next) = standings.get(run.end).filter(|next| fits(next, kept)) {
        kept += next.kept();
        run.end += 1;
    }
    while let Some(next) = run.start.checked_sub(1).map(|at| &standings[at]) {
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

    const POLICY: Policy = Policy { of_all: 20, of_one: 20, of_tombstones: 10 };

    fn standing(bytes: u64, loose: u64) -> Standing {
        Standing { bytes, loose, tombstones: 0, uncleaned: None, age: 0, stays: false }
    }

    #[test]
    fn nothing_is_picked_that_is_not_worth_it() {
        assert_eq!(pick(&[], 1000, POLICY), None);
        assert_eq!(pick(&[standing(1000, 0)], 1000, POLICY), None);
        let few = [standing(1000, 0), standing(1000, 390)];
        assert_eq!(pick(&few, 1000, POLICY), None);
        assert_eq!(pick(&[standing(1000, 0), standing(1000, 400)], 1000, POLICY), Some(1..2));
    }

    #[test]
    fn the_segment_with_most_to_gain_goes_with_neighbours_that_fit_beside_it() {
        let all = [
            standing(1000, 300), // 700 stay
            standing(1000, 800), // 200
            standing(1000, 900), // 100: the best
            standing(200, 0),    // small
            standing(1000, 50),  // not worth it
        ];
        assert_eq!(pick(&all, 1000, POLICY), Some(1..4));
    }

    #[test]
    fn a_segment_whose_records_still_die_fast_waits() {
        // Of the first, 500 died while 1000 records were written, of the second 300 while 2000 were.
        let fast = Standing { age: 1000, ..standing(1000, 500) };
        let slow = Standing { age: 2000, ..standing(1000, 300) };
        assert_eq!(pick(&[fast, slow], 600, POLICY), Some(0..1));
        let slow = Standing { age: 3000, ..slow };
        assert_eq!(pick(&[fast, slow], 600, POLICY), Some(1..2));
        // However old: below a fifth, which it takes, it is not worth it.
        let few = Standing { age: u64::from(u32::MAX), ..standing(1000, 190) };
        assert_eq!(pick(&[fast, few], 600, POLICY), Some(0..1));
    }

    #[test]
    fn the_worth_of_the_largest_segment_of_the_oldest_log_can_be_told() {
        let oldest = Standing { age: (1 << 56) - 1, ..standing(16 << 30, 16 << 30) };
        assert!(oldest.worth() > Standing { age: (1 << 56) - 2, ..oldest }.worth());
    }

    #[test]
    fn a_damaged_segment_is_no_neighbour() {
        let damaged = Standing { stays: true, ..standing(200, 0) };
        let all = [standing(200, 0), standing(1000, 900), damaged, standing(200, 0)];
        assert_eq!(pick(&all, 1000, POLICY), Some(0..2));
        assert_eq!(pick(&[damaged; 3], 1000, POLICY), None);
    }

    #[test]
    fn tombstones_have_the_segment_cleaned_that_was_not_for_the_longest_time() {
        let hiding = Standing { tombstones: 300, ..standing(1000, 0) };
        let unclean = |sequence| Standing { uncleaned: Some(sequence), ..standing(1000, 1) };
        let all = [unclean(7), unclean(3), hiding];
        assert_eq!(pick(&all, 1000, POLICY), Some(1..2));
        assert_eq!(pick(&all[1..2], 1000, POLICY), None);
    }
}
