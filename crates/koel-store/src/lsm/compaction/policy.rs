//! Which runs to merge next: one policy, whose numbers make it lazy-levelled, levelled or tiered.
//!
//! Runs of about the same size are a level; each level has runs `ratio` times as large as the one
//! before. Levels follow from sizes, so nothing about them is stored. A run counts as part of the
//! level of a younger one if that is deeper, so levels never decrease with age.
//!
//! * When all runs but the last one have more bytes than the bound for space, all are merged.
//! * A level with more runs than allowed is merged into one run. If that would make the next level
//!   too long, its runs are merged in the same step.
//! * A run that is mostly tombstones is merged with the next one, if that is not much larger.
//! * When ids run out, the cheapest neighbours are merged.
//!
//! Bytes written per byte put, log and flush included, and the most runs at once. Simulated for
//! T = 5, with distinct entries of 116 bytes and memtables of 64 MiB:
//!
//! | entries | levelled | lazy-levelled | tiered |
//! |---|--:|--:|--:|
//! | 10 M | 4.6 / 4 | 3.5 / 6 | 2.9 / 7 |
//! | 100 M | 7.3 / 5 | 4.1 / 13 | 4.3 / 13 |
//! | 1 G | 10.7 / 6 | 6.0 / 18 | 5.1 / 18 |
//! | 8 G | 12.9 / 8 | 6.5 / 22 | 6.1 / 24 |
//!
//! When random keys are overwritten, the most bytes of tables for each live one, and bytes written
//! per byte put. Without a bound, or with one in percent of the last run; T = 5, the live bytes in
//! memtables. While a merge of all runs goes on, its output takes one byte more for each live one.
//!
//! | live | lazy-levelled | 100 % | 50 % | 25 % | levelled |
//! |--:|--:|--:|--:|--:|--:|
//! | 12 | 2.74 / 3.2 | 1.96 / 3.5 | 1.44 / 4.3 | 1.25 / 5.0 | 1.81 / 4.9 |
//! | 60 | 2.76 / 3.9 | 1.99 / 4.2 | 1.49 / 5.0 | 1.24 / 6.7 | 1.88 / 6.8 |
//! | 200 | 1.59 / 5.1 | 1.59 / 5.1 | 1.50 / 5.6 | 1.25 / 7.4 | 1.27 / 9.3 |

use std::ops::Range;

/// Runs of small flushes have levels of their own, down to about this size. So a small flush never
/// rewrites much.
const SMALL_RUN: u64 = 64 << 10;
/// A run belongs to the level of a full memtable up to this many times its size.
const SLACK: u128 = 2;
/// A flush needs an id, and so does each of two merges whose inputs are still there.
const SPARE_IDS: usize = 3;

/// When runs are merged.
///
/// Few runs make ranges fast and the store small; many make writes cheap. Reads of single keys do
/// not depend on the number of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactionPolicy {
    /// Up to `ratio` - 1 runs in each level but the last, which has one. Writes about as little as
    /// tiered, and needs little more space than levelled. The default.
    LazyLevelled,
    /// One run in each level: least space, fastest ranges, most writes.
    Levelled,
    /// Up to `ratio` - 1 runs in every level: fewest writes, most space.
    Tiered,
}

/// What the policy knows of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::lsm) struct RunShape {
    /// Bytes of its file.
    pub(in crate::lsm) bytes: u64,
    pub(in crate::lsm) entries: u64,
    pub(in crate::lsm) tombstones: u64,
    /// Whether a job merges it already.
    pub(in crate::lsm) busy: bool,
}

/// A policy with its numbers.
#[derive(Clone, Copy, Debug)]
pub(in crate::lsm) struct Picker {
    /// How much larger the runs of the next level are: at least 2.
    ratio: u64,
    /// The most runs of a level, and of the last one.
    upper: usize,
    last: usize,
    /// The most bytes of all runs but the last one, in percent of its bytes.
    extra_percent: u32,
    memtable_bytes: u64,
    /// The number of levels of runs that are smaller than a memtable.
    small_levels: u32,
    /// The number of runs that can have an id.
    most_runs: usize,
}

/// How many runs of full memtables are too many: merges are behind then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lsm) struct YoungLimits {
    /// With more than this, writes slow down.
    pub(in crate::lsm) slow: usize,
    /// With this many, writes wait.
    pub(in crate::lsm) stop: usize,
}

/// The runs of a level.
struct Level {
    number: u32,
    runs: Range<usize>,
    allowed: usize,
}

impl Picker {
    /// The numbers of a policy. A `ratio` below 2 counts as 2.
    pub(in crate::lsm) fn new(
        policy: CompactionPolicy,
        ratio: u32,
        extra_percent: u32,
        memtable_bytes: u64,
        most_runs: usize,
    ) -> Self {
        let ratio = ratio.max(2);
        let many = usize::try_from(ratio - 1).unwrap_or(usize::MAX);
        let (upper, last) = match policy {
            CompactionPolicy::LazyLevelled => (many, 1),
            CompactionPolicy::Levelled => (1, 1),
            CompactionPolicy::Tiered => (many, many),
        };
        let (ratio, memtable_bytes) = (u64::from(ratio), memtable_bytes.max(1));
        let is_small = |&levels: &u32| memtable_bytes / ratio.pow(levels) <= SMALL_RUN;
        let small_levels = (0..u64::BITS).find(is_small).unwrap_or(0);
        Self { ratio, upper, last, extra_percent, memtable_bytes, small_levels, most_runs }
    }

    /// How many young runs are too many: some more than a level may have before a merge is due.
    pub(in crate::lsm) fn young_limits(&self) -> YoungLimits {
        let allowed = self.upper.min(self.most_runs.saturating_sub(SPARE_IDS));
        YoungLimits { slow: (allowed + 4).max(8), stop: (allowed + 20).max(24) }
    }

    /// The neighbours to merge next, if there are any. `runs` are all runs, youngest first.
    pub(in crate::lsm) fn pick(&self, runs: &[RunShape]) -> Option<Range<usize>> {
        let levels = self.levels(runs);
        let too_long =
            || (0..levels.len()).find_map(|level| self.merge_of_level(runs, &levels, level));
        let too_large = self.merge_for_space(runs);
        let due = too_large.or_else(too_long).or_else(|| self.merge_of_tombstones(runs));
        due.or_else(|| self.merge_for_ids(runs))
    }

    /// The number of the level of each run: 0 for a full memtable and less.
    pub(in crate::lsm) fn level_numbers(&self, runs: &[RunShape]) -> Vec<u32> {
        let of = |level: Level| {
            let number = level.number.saturating_sub(self.small_levels);
            level.runs.map(move |_| number)
        };
        self.levels(runs).into_iter().flat_map(of).collect()
    }

    /// The level that a run of this size belongs to.
    fn level_of(&self, bytes: u64) -> u32 {
        let scaled = u128::from(bytes) * u128::from(self.ratio.pow(self.small_levels));
        let mut limit = u128::from(self.memtable_bytes) * SLACK;
        let mut level = 0;
        while scaled > limit {
            limit = limit.saturating_mul(self.ratio.into());
            level += 1;
        }
        level
    }

    /// The levels, youngest first.
    fn levels(&self, runs: &[RunShape]) -> Vec<Level> {
        let mut levels: Vec<Level> = Vec::new();
        for (i, run) in runs.iter().enumerate() {
            let number = self.level_of(run.bytes);
            match levels.last_mut() {
                Some(level) if number <= level.number => level.runs.end = i + 1,
                _ => levels.push(Level { number, runs: i..i + 1, allowed: self.upper }),
            }
        }
        if let Some(level) = levels.last_mut() {
            level.allowed = self.last;
        }
        levels
    }

    /// The merge of the last run with all runs above it, when these have too many bytes. Busy runs
    /// and younger ones are left out.
    fn merge_for_space(&self, runs: &[RunShape]) -> Option<Range<usize>> {
        let start = runs.iter().rposition(|run| run.busy).map_or(0, |busy| busy + 1);
        let last = runs.get(start..)?.last()?.bytes;
        let above = bytes_of(runs, &(start..runs.len() - 1));
        let is_due = u128::from(above) * 100 > u128::from(last) * u128::from(self.extra_percent);
        is_due.then_some(start..runs.len())
    }

    /// The merge of a level with too many runs, and of those that the output would make too long.
    fn merge_of_level(
        &self,
        runs: &[RunShape],
        levels: &[Level],
        level: usize,
    ) -> Option<Range<usize>> {
        let first = &levels[level];
        if is_busy(runs, &first.runs) {
            return self.merge_before_busy(runs, &first.runs);
        }
        if first.runs.len() <= first.allowed {
            return None;
        }
        let mut merged = first.runs.clone();
        for next in &levels[level + 1..] {
            let output = self.level_of(bytes_of(runs, &merged));
            let is_too_long = next.runs.len() + 1 > next.allowed;
            if output < next.number || !is_too_long || is_busy(runs, &next.runs) {
                break;
            }
            merged.end = next.runs.end;
        }
        Some(merged)
    }

    /// The merge of the runs of a level that came while the others of it are merged: or they would
    /// be too many before a long merge ends, and stop all writes.
    fn merge_before_busy(&self, runs: &[RunShape], level: &Range<usize>) -> Option<Range<usize>> {
        let count = runs[level.clone()].iter().take_while(|run| !run.busy).count();
        (count > self.upper).then_some(level.start..level.start + count)
    }

    /// The merge of a run that is mostly tombstones with the next one, towards the last run, where
    /// tombstones end.
    fn merge_of_tombstones(&self, runs: &[RunShape]) -> Option<Range<usize>> {
        let is_due = |pair: &[RunShape]| {
            let [run, next] = pair else { return false };
            run.tombstones > run.entries / 2 && next.bytes <= run.bytes.saturating_mul(self.ratio)
        };
        let due = |&i: &usize| is_due(&runs[i..i + 2]) && !is_busy(runs, &(i..i + 2));
        (0..runs.len().saturating_sub(1)).find(due).map(|i| i..i + 2)
    }

    /// The merge of the cheapest neighbours when nearly all ids are in use.
    fn merge_for_ids(&self, runs: &[RunShape]) -> Option<Range<usize>> {
        if runs.len() + SPARE_IDS <= self.most_runs.max(4) {
            return None;
        }
        // As many as the ratio, so that the next ids do not run out at once.
        let count = usize::try_from(self.ratio).unwrap_or(usize::MAX).min(runs.len() / 2).max(2);
        let windows = (0..(runs.len() + 1).saturating_sub(count)).map(|i| i..i + count);
        let idle = windows.filter(|window| !is_busy(runs, window));
        idle.min_by_key(|window| bytes_of(runs, window))
    }
}

fn is_busy(runs: &[RunShape], range: &Range<usize>) -> bool {
    runs[range.clone()].iter().any(|run| run.busy)
}

fn bytes_of(runs: &[RunShape], range: &Range<usize>) -> u64 {
    runs[range.clone()].iter().fold(0, |sum, run| sum.saturating_add(run.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::keys::splitmix64;

    const MEMTABLE: u64 = 64 << 20;
    const NO_BOUND: u32 = u32::MAX;

    fn run(bytes: u64) -> RunShape {
        RunShape { bytes, entries: bytes, tombstones: 0, busy: false }
    }

    /// Flushes distinct entries, and merges at once. Returns the bytes written for each byte put,
    /// with the log, and the most runs at once.
    fn simulate(
        policy: CompactionPolicy,
        ratio: u32,
        flushes: u64,
        size: impl Fn(u64) -> u64,
    ) -> (f64, usize) {
        let picker = Picker::new(policy, ratio, NO_BOUND, MEMTABLE, 32);
        let (mut runs, mut put, mut written, mut most) = (Vec::new(), 0, 0, 0);
        for flush in 0..flushes {
            runs.insert(0, run(size(flush)));
            put += size(flush);
            written += 2 * size(flush);
            most = most.max(runs.len());
            while let Some(job) = picker.pick(&runs) {
                assert!(job.len() > 1 || job.len() == runs.len(), "{job:?}");
                let bytes = bytes_of(&runs, &job);
                written += bytes;
                runs.splice(job, [run(bytes)]);
            }
            let levels = picker.level_numbers(&runs);
            assert!(levels.is_sorted() && levels.len() == runs.len());
        }
        (written as f64 / put as f64, most)
    }

    #[test]
    fn write_amplification_and_runs_are_those_of_the_table() {
        let table = [
            (17, [(4.6, 4), (3.5, 6), (2.9, 7)]),
            (173, [(7.3, 5), (4.1, 13), (4.3, 13)]),
            (1730, [(10.7, 6), (6.0, 18), (5.1, 18)]),
            (13_800, [(12.9, 8), (6.5, 22), (6.1, 24)]),
        ];
        for (flushes, expected) in table {
            let policies = [
                CompactionPolicy::Levelled,
                CompactionPolicy::LazyLevelled,
                CompactionPolicy::Tiered,
            ];
            for (policy, (written, most)) in policies.into_iter().zip(expected) {
                let (factor, runs) = simulate(policy, 5, flushes, |_| MEMTABLE);
                let rounded = (factor * 10.0).round() / 10.0;
                assert_eq!((rounded, runs), (written, most), "{policy:?}, {flushes}");
            }
        }
    }

    /// A store of `live` full memtables whose keys are overwritten at random, merged at once.
    /// Returns the bytes written for each byte put, with the log, and the most bytes of tables
    /// between merges for each live one.
    #[expect(clippy::cast_possible_truncation, reason = "less than all bytes")]
    fn overwrite(policy: CompactionPolicy, extra_percent: u32, live: i32) -> (f64, f64) {
        let picker = Picker::new(policy, 5, extra_percent, MEMTABLE, 32);
        // What is left of so many flushes, in bytes: each of them misses a key with this chance.
        let misses = 1.0 - 1.0 / f64::from(live);
        let all = f64::from(live) * MEMTABLE as f64;
        let bytes = |flushes: &i32| ((1.0 - misses.powi(*flushes)) * all) as u64;
        let shapes = |runs: &[i32]| runs.iter().map(bytes).map(run).collect::<Vec<_>>();
        let (mut runs, mut written, mut most) = (vec![1000 * live], 0, 0);
        for flush in 0..30 * live {
            runs.insert(0, 1);
            let is_counted = flush >= 10 * live;
            while let Some(job) = picker.pick(&shapes(&runs)) {
                let merged = runs[job.clone()].iter().sum();
                written += if is_counted { bytes(&merged) } else { 0 };
                runs.splice(job, [merged]);
            }
            let tables: u64 = shapes(&runs).iter().map(|run| run.bytes).sum();
            most = if is_counted { tables.max(most) } else { most };
        }
        (2.0 + written as f64 / (20.0 * all), most as f64 / all)
    }

    #[test]
    fn space_and_write_amplification_under_overwrites_are_those_of_the_table() {
        let settings = [
            (CompactionPolicy::LazyLevelled, NO_BOUND),
            (CompactionPolicy::LazyLevelled, 100),
            (CompactionPolicy::LazyLevelled, 50),
            (CompactionPolicy::LazyLevelled, 25),
            (CompactionPolicy::Levelled, NO_BOUND),
        ];
        let table = [
            (12, [(2.74, 3.2), (1.96, 3.5), (1.44, 4.3), (1.25, 5.0), (1.81, 4.9)]),
            (60, [(2.76, 3.9), (1.99, 4.2), (1.49, 5.0), (1.24, 6.7), (1.88, 6.8)]),
            (200, [(1.59, 5.1), (1.59, 5.1), (1.50, 5.6), (1.25, 7.4), (1.27, 9.3)]),
        ];
        for (live, expected) in table {
            let rounded = settings.map(|(policy, percent)| {
                let (written, space) = overwrite(policy, percent, live);
                ((space * 100.0).round() / 100.0, (written * 10.0).round() / 10.0)
            });
            assert_eq!(rounded, expected, "{live}");
        }
    }

    #[test]
    fn the_runs_above_the_last_never_have_more_bytes_than_the_bound() {
        for seed in 0..200 {
            let ratio = 2 + u32::try_from(splitmix64(seed) % 9).unwrap();
            let percent = 10 + u32::try_from(splitmix64(!seed) % 300).unwrap();
            let is_tiered = seed.is_multiple_of(2);
            let policy =
                if is_tiered { CompactionPolicy::Tiered } else { CompactionPolicy::LazyLevelled };
            let picker = Picker::new(policy, ratio, percent, MEMTABLE, 32);
            let mut runs: Vec<RunShape> = Vec::new();
            for flush in 0..200 {
                runs.insert(0, run(splitmix64(seed << 32 | flush) % MEMTABLE + 1));
                while let Some(job) = picker.pick(&runs) {
                    let merged = run(bytes_of(&runs, &job));
                    runs.splice(job, [merged]);
                }
                let (last, above) = runs.split_last().unwrap();
                let above = bytes_of(above, &(0..above.len()));
                assert!(above * 100 <= last.bytes * u64::from(percent), "{ratio}, {percent} %");
            }
        }
    }

    #[test]
    fn small_flushes_do_not_rewrite_the_store() {
        for ratio in [2, 3, 5, 10] {
            // One flush in 50 is large; the others have 4 KiB.
            let size = |i: u64| {
                if splitmix64(i).is_multiple_of(50) { MEMTABLE } else { 4096 }
            };
            let (factor, runs) = simulate(CompactionPolicy::LazyLevelled, ratio, 5000, size);
            assert!(factor < 14.0 && runs < 32, "{ratio}: {factor}, {runs} runs");
            let (factor, runs) = simulate(CompactionPolicy::LazyLevelled, ratio, 20_000, |_| 4096);
            assert!(factor < 40.0 && runs < 32, "{ratio}: {factor}, {runs} runs");
        }
    }

    #[test]
    fn tombstones_move_down_and_end() {
        let picker = Picker::new(CompactionPolicy::LazyLevelled, 5, NO_BOUND, MEMTABLE, 32);
        let young = RunShape { tombstones: MEMTABLE / 2 + 1, ..run(MEMTABLE) };
        assert_eq!(picker.pick(&[young, run(5 * MEMTABLE)]), Some(0..2));
        // Not into a run that is much larger, and not the last run alone.
        assert_eq!(picker.pick(&[young, run(6 * MEMTABLE)]), None);
        assert_eq!(picker.pick(&[young]), None);
    }

    #[test]
    fn neighbours_are_merged_before_ids_run_out() {
        for id_bits in 2..=5 {
            let most = 1 << id_bits;
            let picker = Picker::new(CompactionPolicy::Tiered, 40, NO_BOUND, MEMTABLE, most);
            let mut runs: Vec<_> = (0..most as u64 - 2).map(|i| run(MEMTABLE + i)).collect();
            let job = picker.pick(&runs).expect("a merge");
            assert!(job.start == 0 && job.len() >= 2, "{job:?}");
            runs[0].busy = true;
            assert!(picker.pick(&runs).is_none_or(|job| job.start > 0));
        }
    }

    #[test]
    fn busy_runs_are_left_alone() {
        let picker = Picker::new(CompactionPolicy::LazyLevelled, 5, NO_BOUND, MEMTABLE, 32);
        let mut runs = vec![run(MEMTABLE); 5];
        runs.push(run(30 * MEMTABLE));
        assert_eq!(picker.pick(&runs), Some(0..5));
        runs[4].busy = true;
        assert_eq!(picker.pick(&runs), None);
    }

    #[test]
    fn runs_that_come_while_their_level_is_merged_are_merged_too() {
        let picker = Picker::new(CompactionPolicy::LazyLevelled, 5, NO_BOUND, MEMTABLE, 32);
        let busy = RunShape { busy: true, ..run(MEMTABLE) };
        let old = [busy, busy, RunShape { busy: true, ..run(30 * MEMTABLE) }];
        let with = |young: usize| [&vec![run(MEMTABLE); young][..], &old].concat();
        assert_eq!(picker.pick(&with(4)), None);
        assert_eq!(picker.pick(&with(5)), Some(0..5));
    }

    #[test]
    fn a_merge_for_space_leaves_busy_runs_and_younger_ones_out() {
        let picker = Picker::new(CompactionPolicy::LazyLevelled, 5, 50, MEMTABLE, 32);
        let mut runs = vec![run(MEMTABLE), run(MEMTABLE), run(5 * MEMTABLE), run(11 * MEMTABLE)];
        assert_eq!(picker.pick(&runs), Some(0..4));
        runs[1].busy = true;
        // Without the busy run they are within the bound.
        assert_eq!(picker.pick(&runs), None);
        runs[2].bytes = 6 * MEMTABLE;
        assert_eq!(picker.pick(&runs), Some(2..4));
        runs[3].busy = true;
        assert_eq!(picker.pick(&runs), None);
    }
}
