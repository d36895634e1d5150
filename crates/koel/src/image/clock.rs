//! The time of an expiring filter: how old a stamp is, and when the next step begins.
//!
//! ```text
//!     window = W steps of g ticks, stamp = step mod 2^v
//!
//!     age   0 .. W       W+1 ..
//!           live         dead
//! ```
//!
//! **Lazy sweep.** A stamp alone says a step only modulo 2^v, so an old one would look new again.
//! The table is divided into groups of [`GROUP`] buckets, and each knows the step `e` at which it
//! was swept last: at that time it had no dead entry. Within the next S = 2^v - 1 - W steps entries
//! may be added to it as it is. So the stamps in a group stand for 2^v steps in a row:
//!
//! ```text
//!     e - W  ..  e  ..  e + S        each stamp stands for one step
//! ```
//!
//! However long ago that was, every entry has its true age, and nothing must be done when time goes
//! on. Before an entry is written to a group that was swept more than S steps ago, the group is
//! swept.
//!
//! Groups store `e` modulo 2^16. Each 2^14 steps, and where time jumps as far, those that were
//! swept more than [`FAR`] steps ago are set to that: all in them is dead in any case.
//!
//! Source: the idea of stamps modulo a power of two is that of aging in Mozilla's
//! `cuckoo_filter_expire`; the sweep is ours (docs/decisions/0028-expiring.md).

use super::format::MOST_STEPS;

/// Bits of the widest stamp: [`MOST_STEPS`] need them.
pub(super) const MOST_STAMP_BITS: u32 = 8;
/// Buckets that are swept together.
pub(crate) const GROUP: u64 = 16;
/// Steps after which it does not matter how long ago a group was swept: more than any stamp tells.
pub(crate) const FAR: u16 = 1 << 14;

/// Groups of so many buckets, each with a sweep behind the buckets: two bytes.
pub(crate) fn groups(buckets: u64) -> u64 {
    buckets.div_ceil(GROUP)
}

/// Time, as far as stamps tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Ticks of a step, at least 1.
    pub(crate) step_ticks: u64,
    /// Steps of the window, 1 to [`MOST_STEPS`].
    pub(crate) steps: u64,
    /// The largest stamp, `2^v - 1`.
    pub(crate) largest: u64,
    /// The tick at which the present step began.
    pub(crate) began: u64,
    /// The number of the present step, modulo 2^16.
    pub(crate) step: u16,
    /// Live entries that were evicted.
    pub(crate) evicted: u64,
    /// The age of the youngest of them.
    pub(crate) youngest_evicted: Option<u64>,
    /// Whether an insert into a full filter evicts an entry.
    pub(crate) evicts: bool,
}

/// Ticks of a step, steps of the window, and bits of a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) ticks: u64,
    pub(crate) count: u64,
    pub(crate) stamp_bits: u32,
}

impl Steps {
    /// A window of at least `window` ticks in at most `most` steps. `None` if that is impossible.
    ///
    /// Frequent sweeps cost more, so a stamp gets one more bit if otherwise a group had to be swept
    /// more often than once in an eighth of the window.
    pub(crate) fn of(window: u64, most: u32) -> Option<Self> {
        if window == 0 || !(1..=MOST_STEPS).contains(&most) {
            return None;
        }
        let ticks = window.div_ceil(u64::from(most));
        let count = window.div_ceil(ticks);
        let spare = |bits: u32| (1_u64 << bits).checked_sub(count + 1);
        let is_enough = |bits: &u32| spare(*bits).is_some_and(|steps| steps >= count.div_ceil(8));
        let stamp_bits = (2..=MOST_STAMP_BITS).find(is_enough)?;
        Some(Self { ticks, count, stamp_bits })
    }
}

impl Clock {
    /// A clock at tick 0.
    pub(crate) fn new(steps: Steps, evicts: bool) -> Self {
        Self {
            step_ticks: steps.ticks,
            steps: steps.count,
            largest: (1 << steps.stamp_bits) - 1,
            began: 0,
            step: 0,
            evicted: 0,
            youngest_evicted: None,
            evicts,
        }
    }

    /// How many steps after a sweep of a group entries may be added to it: S.
    #[inline]
    fn spare(&self) -> u64 {
        self.largest - self.steps
    }

    /// How many steps ago a group was swept.
    #[inline]
    fn since(&self, swept: u16) -> u64 {
        self.step.wrapping_sub(swept).into()
    }

    /// Whether a group must be swept before an entry is added to it.
    #[inline]
    pub(crate) fn is_due(&self, swept: u16) -> bool {
        self.since(swept) > self.spare()
    }

    /// How many steps ago an entry got this stamp, in a group that was swept at step `swept`.
    /// `None` if that is a step to come, which no sound filter has.
    #[inline]
    pub(crate) fn true_age(&self, swept: u16, stamp: u64) -> Option<u64> {
        let last = u64::from(swept) + self.spare();
        let before_last = last.wrapping_sub(stamp) & self.largest;
        (self.since(swept) + before_last).checked_sub(self.spare())
    }

    /// [`true_age`](Self::true_age), and 0 for a step to come.
    #[inline]
    pub(crate) fn age(&self, swept: u16, stamp: u64) -> u64 {
        self.true_age(swept, stamp).unwrap_or(0)
    }

    /// The step of the earliest sweep that leaves a group not [due](Self::is_due).
    #[inline]
    pub(crate) fn due(&self) -> u16 {
        self.step_before(self.spare())
    }

    /// Tells the dead entries of a group that was swept at step `swept` by their stamps: like
    /// [`age`](Self::age), but with little to do for each.
    #[inline]
    pub(crate) fn dead_in(&self, swept: u16) -> impl Fn(u64) -> bool + Copy + use<> {
        let (last, largest) = (u64::from(swept) + self.spare(), self.largest);
        let live = (largest + 1).saturating_sub(self.since(swept));
        #[inline(always)]
        move |stamp| last.wrapping_sub(stamp) & largest >= live
    }

    /// The stamp of a live entry of this age.
    #[inline]
    pub(crate) fn stamp_of(&self, age: u64) -> u64 {
        u64::from(self.step).wrapping_sub(age) & self.largest
    }

    /// Whether a live entry with this stamp will still be live so many steps later.
    pub(crate) fn will_live(&self, stamp: u64, steps: u64) -> bool {
        let age = u64::from(self.step).wrapping_sub(stamp) & self.largest;
        self.is_live(age.saturating_add(steps))
    }

    /// Whether an entry of this age is within the window.
    #[inline]
    pub(crate) fn is_live(&self, age: u64) -> bool {
        age <= self.steps
    }

    /// How many whole steps after the present one a tick is; 0 for ticks before it.
    pub(crate) fn steps_until(&self, now: u64) -> u64 {
        now.saturating_sub(self.began) / self.step_ticks
    }

    /// The age that a new entry starts with so that it lives for at least `ttl` ticks. `None` if
    /// that is longer than the window.
    pub(crate) fn age_for(&self, ttl: u64) -> Option<u64> {
        self.steps.checked_sub(ttl.div_ceil(self.step_ticks))
    }

    /// The age of an entry of tick `then`; 0 for ticks from the present step on.
    pub(crate) fn age_at(&self, then: u64) -> u64 {
        self.began.saturating_sub(then).div_ceil(self.step_ticks)
    }

    /// Ticks of the window.
    pub(crate) fn window(&self) -> u64 {
        self.step_ticks.saturating_mul(self.steps)
    }

    /// Goes so many steps on, at most [`steps_until`](Self::steps_until) some tick.
    pub(crate) fn forward(&mut self, steps: u64) {
        self.began += self.step_ticks * steps;
        let [low, high, ..] = steps.to_le_bytes();
        self.step = self.step.wrapping_add(u16::from_le_bytes([low, high]));
    }

    /// Whether the steps that groups store must be [refreshed](Self::refreshed) when it goes so
    /// many steps on.
    pub(crate) fn must_refresh(&self, steps: u64) -> bool {
        u64::from(self.step % FAR).saturating_add(steps) >= u64::from(FAR)
    }

    /// The step to store, once it is `steps` steps later, for a group that was swept at `swept`.
    pub(crate) fn refreshed(&self, swept: u16, steps: u64) -> u16 {
        let since = self.since(swept).saturating_add(steps).min(FAR.into());
        let mut later = *self;
        later.forward(steps);
        later.step_before(since)
    }

    /// The number of the step so many steps ago, at most [`FAR`].
    fn step_before(&self, steps: u64) -> u16 {
        self.step.wrapping_sub(u16::try_from(steps).unwrap_or(FAR))
    }

    /// Whether a group can have been swept at this step.
    pub(crate) fn is_sweep(&self, swept: u16) -> bool {
        self.since(swept) < 2 * u64::from(FAR)
    }

    /// Counts nothing as evicted.
    pub(crate) fn forget_evicted(&mut self) {
        (self.evicted, self.youngest_evicted) = (0, None);
    }

    /// Counts an entry of this age as evicted.
    pub(crate) fn note_evicted(&mut self, age: u64) {
        self.evicted = self.evicted.saturating_add(1);
        self.youngest_evicted = Some(self.youngest_evicted.map_or(age, |least| least.min(age)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_never_shorter_than_asked_for_and_stamps_have_dead_ages() {
        for window in (1..500).chain([600_000, u64::MAX]) {
            for most in [1, 2, 6, 24, 27, 30, 100, 200] {
                let steps = Steps::of(window, most).unwrap();
                let whole = u128::from(steps.ticks) * u128::from(steps.count);
                assert!(steps.count <= u64::from(most) && whole >= u128::from(window));
                assert!(whole < u128::from(window) + u128::from(steps.ticks));
                assert!((1_u64 << steps.stamp_bits) - 1 - steps.count >= steps.count.div_ceil(8));
            }
        }
        let bits = |steps| Steps::of(u64::MAX, steps).unwrap().stamp_bits;
        assert_eq!([1, 6, 12, 24, 30, 100, 200].map(bits), [2, 3, 4, 5, 6, 7, 8]);
        assert_eq!([Steps::of(0, 24), Steps::of(9, 0), Steps::of(9, 201)], [None; 3]);
    }

    /// Whatever the step of the last sweep, and however long ago it was: the stamp of each step of
    /// which an entry of the group can be has the true age.
    #[test]
    fn every_stamp_of_a_group_has_its_true_age() {
        for (count, stamp_bits) in [(1, 2), (4, 3), (6, 3), (24, 5), (200, 8)] {
            let mut clock = Clock::new(Steps { ticks: 1, count, stamp_bits }, false);
            let spare = clock.largest - count;
            for swept in [300, 65_300_u64] {
                for since in (0..70).chain([255, 256, 300, 20_000]) {
                    clock.step = u16::try_from((swept + since) % 65_536).unwrap();
                    let e = u16::try_from(swept).unwrap();
                    assert_eq!(clock.is_due(e), since > spare);
                    for step in swept - count..=swept + since.min(spare) {
                        let stamp = step & clock.largest;
                        let age = swept + since - step;
                        assert_eq!(clock.true_age(e, stamp), Some(age));
                        assert_eq!(clock.dead_in(e)(stamp), !clock.is_live(age));
                    }
                    for step in swept + since + 1..=swept + spare {
                        assert_eq!(clock.true_age(e, step & clock.largest), None, "to come");
                    }
                }
            }
        }
    }

    /// Steps of any size, with refreshes where they must be: no age of a dead entry wraps.
    #[test]
    fn groups_that_were_swept_long_ago_stay_so() {
        let mut clock = Clock::new(Steps { ticks: 1, count: 24, stamp_bits: 5 }, false);
        let (mut swept, mut since) = (0, 0_u64);
        for steps in [1, 40, 9_000, 16_384, 70_000, 1 << 40].repeat(70) {
            if clock.must_refresh(steps) {
                swept = clock.refreshed(swept, steps);
            }
            clock.forward(steps);
            since += steps;
            assert!(clock.is_sweep(swept) && clock.since(swept) >= since.min(FAR.into()));
            assert!((0..32).all(|stamp| clock.age(swept, stamp) > 24) || since < 32);
        }
    }
}
