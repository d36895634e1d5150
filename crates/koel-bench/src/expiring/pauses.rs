//! The longest insert and the longest step of a window.
//!
//! One interrupt of the machine is longer than every insert. Two windows therefore get the same
//! keys, and of the two times of each insert the shorter one counts: what the filter itself does is
//! in both.

use cpu_time::ThreadTime;
use testkit::keys::hashes;

use super::subjects::{Subject, Window};
use super::{RATE, STEPS};

/// In microseconds of CPU time.
pub(super) struct Longest {
    pub(super) insert: f64,
    pub(super) step: f64,
}

/// The times of every insert and every step while one window passes, in microseconds.
struct Times {
    inserts: Vec<f32>,
    steps: Vec<f32>,
}

/// While the first of `keys` keys fill the filter, and three windows later.
pub(super) fn longest(subject: &Subject, keys: u64) -> [Longest; 2] {
    let [[filling, churn], [again, churn_again]] = [(); 2].map(|()| both(subject, keys));
    [both_times(&filling, &again), both_times(&churn, &churn_again)]
}

fn both(subject: &Subject, keys: u64) -> [Times; 2] {
    let mut window = (subject.build)(keys, RATE, STEPS);
    let mut stream = hashes(1, u64::MAX);
    let mut times = || one_window(&mut *window, &mut stream, keys / STEPS);
    let filling = times();
    times();
    times();
    [filling, times()]
}

fn one_window(window: &mut dyn Window, stream: &mut impl Iterator<Item = u64>, each: u64) -> Times {
    let time = |work: &mut dyn FnMut()| {
        let start = ThreadTime::now();
        work();
        start.elapsed().as_secs_f32() * 1e6
    };
    let mut times = Times { inserts: Vec::new(), steps: Vec::new() };
    for _ in 0..STEPS {
        times.steps.push(time(&mut || window.step()));
        for _ in 0..each {
            let key = stream.next().expect("endless");
            times.inserts.push(time(&mut || window.insert(key)));
        }
    }
    times
}

fn both_times(one: &Times, other: &Times) -> Longest {
    let longest = |one: &[f32], other: &[f32]| {
        let shorter = one.iter().zip(other).map(|(one, other)| one.min(*other));
        f64::from(shorter.fold(0.0, f32::max))
    };
    Longest {
        insert: longest(&one.inserts, &other.inserts),
        step: longest(&one.steps, &other.steps),
    }
}
