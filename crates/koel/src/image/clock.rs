//! The time of an expiring filter: how old a stamp is, when the next step begins, and which buckets
//! are swept next.
//!
//! ```text
//!     window = W steps of g ticks, stamp = step mod 2^v, age = (stamp now - stamp) mod 2^v
//!
//!     age   0 .. W       W+1 .. W+S      S = 2^v - 1 - W
//!           live         dead
//! ```
//!
//! A stamp of age 2^v would look new again. So the buckets are divided into S parts, and each step
//! sweeps one of them: any S steps in a row sweep the whole table, and no entry gets older than
//! W + S. A step that begins before its part is swept sweeps the rest of it first.
//!
//! Source: the idea of stamps modulo a power of two is that of aging in Mozilla's
//! `cuckoo_filter_expire`; the sweep is ours (docs/decisions/0028-expiring.md).

use super::fields::{
    EVICTED, PART, Reader, STAMP, STEP_BEGAN, STEP_TICKS, STEPS, SWEPT, VALUE_BITS, WHEN_FULL,
    Writer, YOUNGEST_EVICTED,
};
use super::format::MOST_STEPS;
use super::shape::Shape;
use crate::error::ImageError;

/// Bits of the widest stamp: [`MOST_STEPS`] need them.
const MOST_STAMP_BITS: u32 = 8;

/// Time, as far as stamps tell it, and the state of the sweep.
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
    /// The stamp of the present step.
    pub(crate) stamp: u64,
    /// Buckets of the table.
    buckets: u64,
    /// The part that this step sweeps.
    pub(crate) part: u64,
    /// The first bucket of it that is not swept yet, and the end of it.
    next: u64,
    end: u64,
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
    /// A sweep in few parts costs more, so a stamp gets one more bit if otherwise there were fewer
    /// parts than an eighth of the steps.
    pub(crate) fn of(window: u64, most: u32) -> Option<Self> {
        if window == 0 || !(1..=MOST_STEPS).contains(&most) {
            return None;
        }
        let ticks = window.div_ceil(u64::from(most));
        let count = window.div_ceil(ticks);
        let parts = |bits: u32| (1_u64 << bits).checked_sub(count + 1);
        let is_enough = |bits: &u32| parts(*bits).is_some_and(|parts| parts >= count.div_ceil(8));
        let stamp_bits = (2..=MOST_STAMP_BITS).find(is_enough)?;
        Some(Self { ticks, count, stamp_bits })
    }
}

impl Clock {
    /// A clock at tick 0, for an empty table of so many buckets.
    pub(crate) fn new(steps: Steps, buckets: u64, evicts: bool) -> Self {
        let clock = Self {
            step_ticks: steps.ticks,
            steps: steps.count,
            largest: (1 << steps.stamp_bits) - 1,
            began: 0,
            stamp: 0,
            buckets,
            part: 0,
            next: 0,
            end: 0,
            evicted: 0,
            youngest_evicted: None,
            evicts,
        };
        clock.at_part(0)
    }

    /// Writes the fields of a header that say the time.
    pub(super) fn encode(&self, bytes: &mut Writer) {
        bytes.number(STEP_TICKS, self.step_ticks);
        bytes.number(STEP_BEGAN, self.began);
        bytes.number(STEPS, self.steps);
        bytes.number(STAMP, self.stamp);
        bytes.number(PART, self.part);
        bytes.number(SWEPT, self.swept());
        bytes.number(EVICTED, self.evicted);
        bytes.number(YOUNGEST_EVICTED, self.youngest_evicted.map_or(0, |age| age + 1));
        bytes.number(WHEN_FULL, self.evicts.into());
    }

    /// Reads them, for a table of this shape. Refuses what no clock has.
    pub(super) fn decode(fields: Reader<'_>, shape: &Shape) -> Result<Self, ImageError> {
        let (stamp_bits, largest) = (shape.layout.value_bits(), shape.layout.largest_value());
        fields.require(VALUE_BITS, (2..=MOST_STAMP_BITS).contains(&stamp_bits))?;
        let [ticks, count] = [STEP_TICKS, STEPS].map(|field| fields.number(field));
        fields.require(STEP_TICKS, ticks > 0)?;
        fields.require(STEPS, (1..=u64::from(MOST_STEPS)).contains(&count) && count < largest)?;
        let evicts = fields.choice(WHEN_FULL, &[false, true])?;
        let clock = Self::new(Steps { ticks, count, stamp_bits }, shape.buckets(), evicts);
        let [stamp, part] = [STAMP, PART].map(|field| fields.number(field));
        fields.require(STAMP, stamp <= largest)?;
        fields.require(PART, part < clock.parts())?;
        let (evicted, youngest) = (fields.number(EVICTED), fields.number(YOUNGEST_EVICTED));
        let is_sound = (youngest > 0) == (evicted > 0) && youngest <= count + 1;
        fields.require(YOUNGEST_EVICTED, is_sound)?;
        let clock = clock.at_part(part).with_swept(fields.number(SWEPT));
        let clock = clock.ok_or_else(|| fields.refuse(SWEPT))?;
        let (began, youngest_evicted) = (fields.number(STEP_BEGAN), youngest.checked_sub(1));
        Ok(Self { began, stamp, evicted, youngest_evicted, ..clock })
    }

    /// Parts of the table: dead ages.
    pub(crate) fn parts(&self) -> u64 {
        self.largest - self.steps
    }

    /// The clock at the start of a part.
    pub(crate) fn at_part(self, part: u64) -> Self {
        let bound = |part: u64| self.buckets * part / self.parts();
        Self { part, next: bound(part), end: bound(part + 1), ..self }
    }

    /// How many buckets of the part are swept.
    fn swept(&self) -> u64 {
        self.next - self.at_part(self.part).next
    }

    /// The clock with so many buckets of the part swept. `None` if it has fewer.
    fn with_swept(self, swept: u64) -> Option<Self> {
        let next = self.next.checked_add(swept)?;
        (next <= self.end).then_some(Self { next, ..self })
    }

    /// How many steps ago an entry got this stamp.
    #[inline]
    pub(crate) fn age(&self, stamp: u64) -> u64 {
        self.stamp.wrapping_sub(stamp) & self.largest
    }

    /// The stamp of this age.
    #[inline]
    pub(crate) fn stamp_of(&self, age: u64) -> u64 {
        self.stamp.wrapping_sub(age) & self.largest
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

    /// Ticks of the window.
    pub(crate) fn window(&self) -> u64 {
        self.step_ticks.saturating_mul(self.steps)
    }

    /// Goes so many steps on, at most [`steps_until`](Self::steps_until) some tick, and to the next
    /// part.
    pub(crate) fn forward(&mut self, steps: u64) {
        self.began += self.step_ticks * steps;
        self.stamp = self.stamp.wrapping_add(steps) & self.largest;
        *self = self.at_part((self.part + 1) % self.parts());
    }

    /// Takes the next buckets to sweep, at most `most`.
    #[inline]
    pub(crate) fn take_unswept(&mut self, most: u64) -> core::ops::Range<u64> {
        let first = self.next;
        self.next += (self.end - self.next).min(most);
        first..self.next
    }

    /// The greatest age of an entry in this bucket, which was swept when its part was last.
    pub(crate) fn greatest_age(&self, bucket: u64) -> u64 {
        let parts = self.parts();
        let part = ((bucket + 1) * parts).div_ceil(self.buckets) - 1;
        let is_to_come = part == self.part && bucket >= self.next;
        let steps_ago = (self.part + parts - part) % parts;
        self.steps + if is_to_come { parts } else { steps_ago }
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

    #[test]
    fn any_steps_as_many_as_parts_sweep_every_bucket_once() {
        for buckets in [1, 2, 7, 100, 1001] {
            let steps = Steps { ticks: 3, count: 4, stamp_bits: 3 };
            let mut clock = Clock::new(steps, buckets, false);
            for _ in 0..10 {
                let mut swept = alloc::vec![0; usize::try_from(buckets).unwrap()];
                for _ in 0..clock.parts() {
                    let part = clock.take_unswept(u64::MAX);
                    part.for_each(|bucket| swept[usize::try_from(bucket).unwrap()] += 1);
                    clock.forward(1);
                }
                assert!(swept.iter().all(|&times| times == 1), "{swept:?}");
                clock.forward(1);
            }
        }
    }

    #[test]
    fn a_bucket_that_was_swept_has_no_dead_entry_until_the_next_step() {
        let mut clock = Clock::new(Steps { ticks: 1, count: 4, stamp_bits: 3 }, 10, false);
        let ages = |clock: &Clock| [0, 2, 3, 5, 6, 9].map(|bucket| clock.greatest_age(bucket));
        assert_eq!(ages(&clock), [7, 7, 6, 6, 5, 5]);
        assert_eq!(clock.take_unswept(2), 0..2);
        assert_eq!(ages(&clock), [4, 7, 6, 6, 5, 5]);
        assert_eq!(clock.take_unswept(9), 2..3);
        assert_eq!(ages(&clock), [4, 4, 6, 6, 5, 5]);
        clock.forward(1);
        assert_eq!(ages(&clock), [5, 5, 7, 7, 6, 6]);
    }

    #[test]
    fn the_part_of_a_bucket_is_the_one_that_sweeps_it() {
        for (buckets, count, stamp_bits) in [(1, 4, 3), (3, 24, 5), (7, 4, 3), (40, 24, 5)] {
            let mut clock = Clock::new(Steps { ticks: 1, count, stamp_bits }, buckets, false);
            for _ in 0..clock.parts() {
                let part = clock.take_unswept(u64::MAX);
                let swept = |bucket: &u64| clock.greatest_age(*bucket) == count;
                assert!(part.eq((0..buckets).filter(swept)), "{clock:?}");
                clock.forward(1);
            }
        }
    }
}
