//! Operations on a maplet of unknown content, like [`exercise`](crate::exercise) for filters. Its
//! content is unknown, but an inserted pair is found until it is removed.

use koel::{ImageError, Maplet, MapletView, Values};

use crate::exercise::{assert_small, is_one_line, read_once};
use crate::keys::{all_at, at};
use crate::{counting, keys};

/// The number of hashes in use.
const HASHES: u64 = 40;

/// Checks the promises of maplets and of counting filters for any bytes.
///
/// # Errors
/// Why both refused the bytes.
///
/// # Panics
/// If both accept the bytes, or one of them misbehaves.
pub fn with_values(bytes: &[u8], operations: u32) -> Result<(), ImageError> {
    let maplet = arbitrary_bytes(bytes, operations);
    let counting = counting::arbitrary_bytes(bytes, operations);
    assert!(maplet.is_err() || counting.is_err(), "one file of two kinds");
    maplet.or(counting)
}

/// Checks the promise of the format for any bytes: they are a sound maplet, or are refused with a
/// reason in one line.
///
/// # Errors
/// Why the bytes were refused.
///
/// # Panics
/// If opening and reading disagree, or an accepted maplet misbehaves.
pub fn arbitrary_bytes(bytes: &[u8], operations: u32) -> Result<(), ImageError> {
    let trusted = MapletView::open(bytes).and_then(|view| {
        question(&view);
        view.verify()
    });
    let mut maplet = read_once(bytes, trusted, Maplet::from_bytes(bytes), Maplet::to_bytes)?;
    exercise(&mut maplet, bytes.len() as u64, operations);
    Ok(())
}

/// Calls every query of an unverified view: none may panic.
fn question(view: &MapletView<'_>) {
    let hashes: Vec<u64> = keys::hashes(21, 8).chain([0, u64::MAX]).collect();
    let mut values = vec![Values::default(); hashes.len()];
    view.get_many(&all_at(&hashes), &mut values);
    for (&hash, values) in hashes.iter().zip(values) {
        let found = values.count();
        assert_eq!(view.get(&at(hash)).count(), found);
        assert!(found as u64 <= 8 + view.stashed_pairs(), "{found} values of a key");
        assert_eq!(view.contains(&at(hash)), found > 0);
    }
    assert!(view.entries().count() as u64 <= view.slots());
}

/// Applies `operations` steps, chosen by `seed`, to a sound maplet; it is sound afterwards.
fn exercise(maplet: &mut Maplet, seed: u64, operations: u32) {
    let mut inserted: Vec<(u64, u64)> = Vec::new();
    let most = u64::MAX >> (64 - maplet.layout().value_bits());
    for choice in keys::hashes(seed, u64::from(operations)) {
        let hash = keys::splitmix64((choice >> 8) % HASHES);
        let value = (choice >> 32) % 5 * (most / 4);
        let len = maplet.len();
        match choice % 8 {
            0..5 => match maplet.insert(&at(hash), value) {
                Ok(()) => {
                    assert_eq!(maplet.len(), len + 1);
                    inserted.push((hash, value));
                }
                Err(full) => assert!(is_one_line(&full.to_string()) && maplet.len() == len),
            },
            5 if !inserted.is_empty() => {
                let index =
                    usize::try_from((choice >> 40) % inserted.len() as u64).expect("an index");
                let (hash, value) = inserted.swap_remove(index);
                assert!(maplet.remove(&at(hash), value), "an inserted pair is not found");
                assert_eq!(maplet.len(), len - 1);
            }
            6 => {
                if let Some((hash, old)) = inserted.last_mut() {
                    assert_eq!(maplet.replace(&at(*hash), *old, value), Ok(true));
                    *old = value;
                }
            }
            _ if choice % 16 == 7 => maplet.shrink_to_fit(),
            _ => *maplet = Maplet::from_bytes(&maplet.to_bytes()).expect("its own bytes"),
        }
    }
    for &(hash, value) in &inserted {
        assert!(maplet.get(&at(hash)).any(|found| found == value), "an inserted pair is gone");
    }
    assert_small(maplet.size_in_bytes());
    assert_eq!(maplet.verify(), Ok(()));
}
