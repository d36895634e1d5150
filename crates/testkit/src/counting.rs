//! Operations on a counting filter of unknown content, like [`exercise`](crate::exercise) for
//! filters. Its content is unknown, but no count may fall below what was added.

use std::collections::BTreeMap;

use koel::{CountingFilter, CountingView, FullError, ImageError, Merge, MergeError};

use crate::exercise::{assert_same_table, assert_small, is_one_line, read_once};
use crate::keys;
use crate::keys::{all_at, at};

/// The number of hashes in use.
const HASHES: u64 = 40;

/// Checks the promise of the format for any bytes: they are a sound counting filter, or are refused
/// with a reason in one line.
///
/// # Errors
/// Why the bytes were refused.
///
/// # Panics
/// If opening and reading disagree, or an accepted filter misbehaves.
pub fn arbitrary_bytes(bytes: &[u8], operations: u32) -> Result<(), ImageError> {
    let trusted = CountingView::open(bytes).and_then(|view| {
        question(&view);
        view.verify()
    });
    let mut filter =
        read_once(bytes, trusted, CountingFilter::from_bytes(bytes), CountingFilter::to_bytes)?;
    exercise(&mut filter, bytes.len() as u64, operations);
    Ok(())
}

/// Calls every query of an unverified view: none may panic.
fn question(view: &CountingView<'_>) {
    let hashes: Vec<u64> = keys::hashes(21, 8).chain([0, u64::MAX]).collect();
    let mut counts = vec![0; hashes.len()];
    view.count_many(&all_at(&hashes), &mut counts);
    assert!(hashes.iter().zip(counts).all(|(&hash, count)| view.count(&at(hash)) == count));
    view.counts().for_each(drop);
}

/// Applies `operations` steps, chosen by `seed`, to a sound filter; it is sound afterwards.
fn exercise(filter: &mut CountingFilter, seed: u64, operations: u32) {
    let mut inserted: BTreeMap<u64, u64> = BTreeMap::new();
    for choice in keys::hashes(seed, u64::from(operations)) {
        let hash = keys::splitmix64((choice >> 8) % HASHES);
        let times = if choice % 3 == 0 { (choice >> 32) % 1000 } else { 1 };
        let len = filter.len();
        match choice % 8 {
            0..5 => match filter.add(&at(hash), times) {
                Ok(count) => {
                    assert!(count >= times && filter.count(&at(hash)) == count);
                    assert_eq!(filter.len(), len + times);
                    *inserted.entry(hash).or_default() += times;
                }
                Err(full) => {
                    assert!(is_one_line(&full.to_string()) && filter.len() == len);
                    assert!(full == FullError::Overflow || !filter.contains(&at(hash)));
                }
            },
            5 | 6 => {
                if let Some(count) = inserted.get_mut(&hash).filter(|count| **count > 0) {
                    assert!(filter.remove(&at(hash)), "an inserted key is not found");
                    assert_eq!(filter.len(), len - 1);
                    *count -= 1;
                }
            }
            _ if choice % 16 == 7 => merge_with_itself(filter, hash),
            _ if choice % 32 == 15 => filter.shrink_to_fit(),
            _ => *filter = CountingFilter::from_bytes(&filter.to_bytes()).expect("its own bytes"),
        }
    }
    assert!(inserted.iter().all(|(&hash, &count)| filter.count(&at(hash)) >= count), "too low");
    assert_small(filter.size_in_bytes());
    assert_eq!(filter.verify(), Ok(()));
}

/// Merges the filter with itself: the maximum changes nothing, unless more than half of the copies
/// that can be counted are in; the sum is at least twice as large, or does not fit.
fn merge_with_itself(filter: &mut CountingFilter, hash: u64) {
    let (twin, count) = (filter.clone(), filter.count(&at(hash)));
    match filter.merge(&twin, Merge::Max) {
        Ok(()) => {
            assert_same_table([&twin.to_bytes(), &filter.to_bytes()], twin.has_grown());
            assert!(filter.len() >= twin.len());
        }
        Err(failure) => {
            assert_eq!(failure, MergeError::Full(FullError::Overflow));
            assert!(*filter == twin && twin.len() > u64::MAX / 2);
        }
    }
    *filter = twin.clone();
    match filter.merge(&twin, Merge::Sum) {
        Ok(()) => assert!(filter.count(&at(hash)) >= count.saturating_mul(2)),
        Err(_) => assert!(*filter == twin, "a refusal changed the filter"),
    }
    assert_small(filter.size_in_bytes());
    assert_eq!(filter.verify(), Ok(()));
    *filter = twin;
}
