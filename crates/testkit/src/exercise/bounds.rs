//! Every operation at the bounds of every field, on whatever was accepted: the largest counts, keys
//! in the stash and with a correction, as many corrections as slots, the largest values, the end of
//! time, room for nothing and for everything.
//!
//! Operations change copies. After each of them the copy verifies, and what was in is in; at the
//! end of a series it is written, audited and read back. A refusal changes no byte of a table of
//! one size, and no answer of another. Each series begins with what was accepted, with that filled
//! until it refuses, and with that emptied.
//!
//! Cost: [`all`] takes many times as long as [`one`]. So fuzzers do one, which the bytes choose.

mod counting;
mod expiring;
mod filters;
mod maplets;

use koel::KeyHash;

use super::{Subject, assert_small, index};
use crate::addressing::Addressing;
use crate::image::{self, word};
use crate::keys::{self, at};

/// A kind of file whose operations have bounds.
pub trait Bounds: Subject + Clone + 'static {
    /// The series of operations.
    const SERIES: &'static [fn(&Self)];

    /// Inserts keys until one is refused, or some dozen.
    fn fill(&mut self);

    /// Takes all keys out.
    fn empty(&mut self);
}

/// Does all series from all states.
pub fn all<S: Bounds>(it: &S) {
    (0..3 * S::SERIES.len() as u64).for_each(|choice| one(it, choice));
}

/// Does the series that a number chooses, from the state that it chooses.
pub fn one<S: Bounds>(it: &S, choice: u64) {
    let series = S::SERIES[index(choice / 3, S::SERIES.len())];
    match choice % 3 {
        0 => series(it),
        1 => series(&changed(it, S::fill)),
        _ => series(&changed(it, S::empty)),
    }
}

/// Sound, small, and the same once it is written and read.
pub(super) fn assert_sound<S: Subject>(it: &S) {
    assert_eq!(S::VERIFY(it), Ok(()));
    let bytes = S::WRITE(it);
    assert_small(bytes.len());
    assert_eq!(S::question(&bytes), Ok(()));
    assert!(S::READ(&bytes).as_ref() == Ok(it), "not read back");
}

/// A copy that was changed, and is sound.
fn changed<S: Subject + Clone>(it: &S, change: impl FnOnce(&mut S)) -> S {
    let mut copy = it.clone();
    change(&mut copy);
    assert_sound(&copy);
    copy
}

/// The keys that fill a filter.
fn filling() -> Vec<KeyHash> {
    keys::hashes(31, 100).map(at).collect()
}

/// Keys at the bounds: those with the first, the last and the largest counter, stash record and
/// correction, those that share their entries, and absent ones.
fn chosen(image: &[u8], trusts_hashes: bool) -> Vec<KeyHash> {
    let addressing = Addressing::of(image);
    let of = |section| {
        let records = || image::section(image, section);
        // The last word is the number of copies, if there is one.
        let largest = records().max_by_key(|record| word(record, record.len() / 8 - 1));
        [records().next(), records().last(), largest].into_iter().flatten()
    };
    let counted = of("counters").map(|record| addressing.hash_named(word(record, 0)));
    let exact = ["stashed keys", "corrections"].into_iter().flat_map(of);
    let mut chosen: Vec<u64> = counted.chain(exact.map(|record| word(record, 0))).collect();
    chosen.extend(chosen.clone().iter().map(|address| address ^ 1));
    chosen.extend([0, u64::MAX, keys::splitmix64(77)]);
    chosen.sort_unstable();
    chosen.dedup();
    chosen.into_iter().map(|address| key(trusts_hashes, address)).collect()
}

/// The ready hash with this address, whatever a filter does with hashes.
fn key(trusts_hashes: bool, address: u64) -> KeyHash {
    if trusts_hashes { KeyHash::new(address) } else { at(address) }
}
