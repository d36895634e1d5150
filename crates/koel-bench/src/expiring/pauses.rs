//! The longest insert and the longest step of a window.
//!
//! One interrupt of the machine is longer than every insert. Two windows therefore get the same
//! keys, and of the two times of each insert the shorter one counts: what the filter itself does is
//! in both.

use std::time::Duration;

use testkit::keys::hashes;

use super::subjects::Subject;
use super::{RATE, STEPS};
use crate::clock::timed;
use crate::subject::{Filter, Mode};

/// The times of every insert and every step while one window passes, or the longest of each.
pub(super) struct Times<T> {
    pub(super) insert: T,
    pub(super) step: T,
}

/// In microseconds of CPU time: while the first of `keys` keys fill the filter, and three windows
/// later.
pub(super) fn longest(subject: &Subject, keys: u64) -> [Times<f64>; 2] {
    let [[filling, churn], [again, churn_again]] = [(); 2].map(|()| both(subject, keys));
    [longest_of_both(&filling, &again), longest_of_both(&churn, &churn_again)]
}

fn both(subject: &Subject, keys: u64) -> [Times<Vec<Duration>>; 2] {
    let mut window = (subject.build)(keys, RATE, STEPS);
    let mut stream = hashes(1, u64::MAX);
    let mut times = || one_window(&mut *window, &mut stream, keys / STEPS);
    let filling = times();
    times();
    times();
    [filling, times()]
}

fn one_window(
    window: &mut dyn Filter,
    stream: &mut impl Iterator<Item = u64>,
    each: u64,
) -> Times<Vec<Duration>> {
    let mut times = Times { insert: Vec::new(), step: Vec::new() };
    for _ in 0..STEPS {
        times.step.push(timed(|| window.step()).0);
        for _ in 0..each {
            let key = stream.next().expect("endless");
            times.insert.push(timed(|| window.insert(&[key], Mode::Single)).0);
        }
    }
    times
}

fn longest_of_both(one: &Times<Vec<Duration>>, other: &Times<Vec<Duration>>) -> Times<f64> {
    let longest = |one: &[Duration], other: &[Duration]| {
        let shorter = one.iter().zip(other).map(|(one, other)| one.min(other));
        shorter.max().map_or(0.0, |time| time.as_secs_f64() * 1e6)
    };
    Times { insert: longest(&one.insert, &other.insert), step: longest(&one.step, &other.step) }
}
