//! Follows a filter from a thousand keys to many, with its cost at sizes a factor of 2^(1/4) apart.
//!
//! Whenever the keys of a growing Koel filter have doubled, a fixed one with the same bytes is
//! filled to its capacity. Lookups alternate between the two, so that both see the machine's good
//! and bad moments.

use std::time::Duration;

use testkit::keys::hashes;

use crate::clock::{each, median, timed};
use crate::subject::{Filter, Mode};
use crate::subjects::{FIRST, Growing, fixed};

/// Seeds of the key streams: present and absent keys.
pub(super) const PRESENT: u64 = 1;
const ABSENT: u64 = 2;

/// The number of sizes per doubling.
const STEPS: i32 = 4;
/// The most lookups of each kind in a round, and the number of rounds.
const LOOKUPS_EACH: usize = 400_000;
const ROUNDS: usize = 3;
/// The number of absent keys that measure the false-positive rate.
const STRANGERS: u64 = 4_000_000;

/// The kinds of lookups, in the order of [`Point::lookups`].
pub(super) const LOOKUPS: [&str; 4] = ["miss", "hit", "miss many", "hit many"];

/// One filter at one size. Times are nanoseconds of CPU time per operation.
pub(super) struct Point {
    /// Whether it is the fixed filter beside the growing one.
    pub(super) fixed: bool,
    pub(super) keys: u64,
    pub(super) bytes: usize,
    /// The share of absent keys reported present.
    pub(super) fpr: f64,
    pub(super) load: Option<f64>,
    /// Since the previous size; for a fixed filter, since the first key.
    pub(super) insert: f64,
    /// Since the first key.
    pub(super) mean_insert: f64,
    /// In the order of [`LOOKUPS`]; `None` if the filter has no such call.
    pub(super) lookups: [Option<f64>; 4],
}

impl Point {
    pub(super) fn bits_per_key(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.keys as f64
    }
}

/// A filter at all sizes. Each fixed filter follows the growing one that it is compared with.
pub(super) struct Curve {
    pub(super) points: Vec<Point>,
}

impl Curve {
    pub(super) fn growing(&self) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(|point| !point.fixed)
    }

    fn mean(&self, of: impl Fn(&Point) -> f64) -> f64 {
        self.growing().map(of).sum::<f64>() / self.growing().count().max(1) as f64
    }

    /// The mean over the sizes, all with equal weight, as on a logarithmic scale.
    pub(super) fn mean_bits_per_key(&self) -> f64 {
        self.mean(Point::bits_per_key)
    }

    pub(super) fn mean_load(&self) -> Option<f64> {
        self.growing()
            .all(|point| point.load.is_some())
            .then(|| self.mean(|point| point.load.unwrap_or(0.0)))
    }

    pub(super) fn highest_fpr(&self) -> f64 {
        self.growing().map(|point| point.fpr).fold(0.0, f64::max)
    }

    /// Time relative to the fixed filter: inserts since the first key, single lookups, batched
    /// lookups. Medians over sizes and kinds, then the same at the largest size alone.
    pub(super) fn beside_fixed(&self) -> Option<[[f64; 2]; 3]> {
        let pairs = self.points.windows(2).filter(|pair| pair[1].fixed);
        let pairs: Vec<_> = pairs.map(|pair| [&pair[0], &pair[1]]).collect();
        let (all, last) = (&pairs[..], &pairs[pairs.len().saturating_sub(1)..]);
        let inserts = |pairs: &[[&Point; 2]]| {
            let ratios = pairs.iter().map(|[growing, fixed]| growing.mean_insert / fixed.insert);
            median(&ratios.collect::<Vec<_>>())
        };
        let lookups = |pairs: &[[&Point; 2]], kinds: [usize; 2]| {
            let times = pairs.iter().flat_map(|[growing, fixed]| {
                kinds.map(|kind| growing.lookups[kind].zip(fixed.lookups[kind]))
            });
            let ratios = times.flatten().map(|(growing, fixed)| growing / fixed);
            median(&ratios.collect::<Vec<_>>())
        };
        let both = |kinds| [lookups(all, kinds), lookups(last, kinds)];
        let insert = [inserts(all), inserts(last)];
        (!pairs.is_empty()).then(|| [insert, both([0, 1]), both([2, 3])])
    }
}

/// Follows a filter to `last` keys.
pub(super) fn measure(filter: &Growing, last: u64, rate: f64) -> Curve {
    let strangers: Vec<_> = hashes(ABSENT, STRANGERS.min(last * 16)).collect();
    let mut growing = (filter.build)(last, rate);
    let (mut keys, mut time) = (Vec::new(), Duration::ZERO);
    let mut points = Vec::new();
    for (step, size) in sizes(last).into_iter().enumerate() {
        let before = keys.len() as u64;
        let more = hashes(PRESENT, size).skip(keys.len());
        keys.extend(more);
        let new = &keys[usize::try_from(before).unwrap_or(0)..];
        let (spent, accepted) = timed(|| growing.insert(new, Mode::Batch));
        assert_eq!(accepted, new.len(), "{} refused a key", filter.name);
        time += spent;
        let mut point = point(growing.as_ref(), size, &strangers);
        point.insert = each(spent, size - before);
        point.mean_insert = each(time, size);
        let beside = filter.fixed.filter(|_| step.is_multiple_of(STEPS.unsigned_abs() as usize));
        let mut twin = beside.map(|prefer| filled(point.bytes, rate, prefer, &strangers));
        let mut both = vec![(growing.as_ref(), &mut point)];
        both.extend(twin.iter_mut().map(|(filter, point)| (&**filter, point)));
        look_up(both, filter.fixed.is_some(), &strangers);
        points.push(point);
        points.extend(twin.map(|(_, point)| point));
    }
    Curve { points }
}

/// The sizes from the first to the last.
fn sizes(last: u64) -> Vec<u64> {
    let factor = 2_f64.powf(1.0 / f64::from(STEPS));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of keys")]
    let at = |step: i32| (FIRST as f64 * factor.powi(step)).round() as u64;
    let mut sizes: Vec<_> = (0..).map(at).take_while(|&size| size < last).collect();
    sizes.push(last);
    sizes
}

/// The figures that need no clock.
fn point(filter: &dyn Filter, keys: u64, strangers: &[u64]) -> Point {
    let wrong = filter.find(strangers, Mode::Batch);
    Point {
        fixed: false,
        keys,
        bytes: filter.bytes(),
        fpr: wrong as f64 / strangers.len() as f64,
        load: filter.slots().map(|slots| keys as f64 / slots as f64),
        insert: 0.0,
        mean_insert: 0.0,
        lookups: [None; 4],
    }
}

/// The full fixed filter with this many bytes.
fn filled(
    bytes: usize,
    rate: f64,
    prefer: koel::Prefer,
    strangers: &[u64],
) -> (Box<dyn Filter>, Point) {
    let (mut filter, keys) = fixed(bytes, rate, prefer);
    let mut time = Duration::ZERO;
    let mut stream = hashes(PRESENT, keys);
    loop {
        let some: Vec<_> = stream.by_ref().take(1 << 20).collect();
        if some.is_empty() {
            break;
        }
        time += timed(|| filter.insert(&some, Mode::Batch)).0;
    }
    let insert = each(time, keys);
    let point = Point {
        fixed: true,
        insert,
        mean_insert: insert,
        ..point(filter.as_ref(), keys, strangers)
    };
    (filter, point)
}

/// Times the lookups of [`LOOKUPS`] in filters side by side, and stores the medians. The last two
/// kinds are of filters that have calls for many keys.
fn look_up(filters: Vec<(&dyn Filter, &mut Point)>, batches: bool, strangers: &[u64]) {
    // Fewer for a filter that stays small, so that its lookups do not take most of the time.
    let most = LOOKUPS_EACH.min(strangers.len() / 4);
    let members: Vec<_> = filters.iter().map(|(_, point)| members(point.keys, most)).collect();
    let mut samples = vec![[const { Vec::new() }; 4]; filters.len()];
    for round in 0..ROUNDS {
        let strangers = &strangers[round * strangers.len() / ROUNDS..];
        let strangers = &strangers[..strangers.len().min(most)];
        for (((filter, _), members), samples) in filters.iter().zip(&members).zip(&mut samples) {
            let kinds = if batches { 4 } else { 2 };
            for (kind, samples) in samples.iter_mut().enumerate().take(kinds) {
                let keys = if kind % 2 == 0 { strangers } else { members };
                let mode = if kind < 2 { Mode::Single } else { Mode::Batch };
                let (time, found) = timed(|| filter.find(keys, mode));
                assert!(kind % 2 == 0 || found == keys.len(), "a key is lost");
                samples.push(each(time, keys.len() as u64));
            }
        }
    }
    for ((_, point), samples) in filters.into_iter().zip(samples) {
        point.lookups = samples.map(|samples| (!samples.is_empty()).then(|| median(&samples)));
    }
}

/// A sample of the keys inserted so far, from the oldest to the newest.
fn members(keys: u64, most: usize) -> Vec<u64> {
    let step = usize::try_from(keys).unwrap_or(usize::MAX).div_ceil(most);
    hashes(PRESENT, keys).step_by(step).cycle().take(most).collect()
}
