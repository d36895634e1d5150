//! The operations that only an ordered store has, and what they must return.

use std::ops::{Bound, RangeBounds};

use koel_store::{Durability, Error, LsmStore, Range};
use testkit::storage::{Op, State, Write};

use crate::subject::Trial;

type OrderedTrial = Trial<LsmStore>;

/// Runs one of them and compares its result.
pub(crate) fn step_ordered(trial: &mut OrderedTrial, op: Op) -> Result<(), Error> {
    match op {
        Op::GetMany(keys) => {
            let found = trial.store().get_many(&keys)?;
            let expected: Vec<_> =
                keys.iter().map(|key| trial.history.now().get(key).cloned()).collect();
            assert!(found == expected, "several keys: {keys:02x?}");
            Ok(())
        }
        Op::Range { bounds, steps } => check_range(trial, &bounds, &steps),
        Op::Prefix(prefix) => {
            let found: Result<Vec<_>, _> = trial.store().prefix(&prefix)?.collect();
            let all = trial.history.now().iter();
            let expected: Vec<_> = all
                .filter(|(key, _)| key.starts_with(&prefix))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            assert!(found? == expected, "prefix {prefix:02x?}");
            Ok(())
        }
        Op::Snapshot => {
            let taken = (trial.store().snapshot(), trial.history.now().clone());
            trial.snapshots.push_back(taken);
            Ok(())
        }
        Op::ReadSnapshot => check_snapshot(trial),
        Op::Flush => {
            trial.store().flush()?;
            trial.history.synced();
            Ok(())
        }
        Op::Ingest(entries) => ingest(trial, entries),
        Op::DeleteRange { bounds, synced } => {
            let durability = if synced { Durability::Synced } else { Durability::None };
            let changes = deletions(trial, |key| bounds.contains(key));
            let deleted = trial.store().delete_range::<Vec<u8>>(bounds.clone(), durability);
            note_deleted(trial, changes, deleted, synced)
        }
        Op::DeletePrefix(prefix) => {
            let changes = deletions(trial, |key| key.starts_with(&prefix));
            let deleted = trial.store().delete_prefix(&prefix, Durability::None);
            note_deleted(trial, changes, deleted, false)
        }
        op => unreachable!("{op:?} is an operation of every store"),
    }
}

/// Returns what a deletion of some keys changes.
fn deletions(trial: &OrderedTrial, is_deleted: impl Fn(&Vec<u8>) -> bool) -> Write {
    let keys = trial.history.now().keys().filter(|key| is_deleted(key));
    keys.map(|key| (key.clone(), None)).collect()
}

fn note_deleted(
    trial: &mut OrderedTrial,
    changes: Write,
    deleted: Result<(), Error>,
    synced: bool,
) -> Result<(), Error> {
    if let Err(error) = deleted {
        return trial.note_failure(changes, error);
    }
    trial.history.write(changes);
    if synced {
        trial.history.synced();
    }
    Ok(())
}

fn ingest(trial: &mut OrderedTrial, entries: State) -> Result<(), Error> {
    let ingested = trial.store().ingest(&entries);
    let count = entries.len() as u64;
    let changes = Op::Ingest(entries).changes();
    match ingested {
        Err(error) => return trial.note_failure(changes, error),
        Ok(ingested) => assert_eq!(ingested, count),
    }
    trial.history.write(changes);
    trial.history.synced();
    Ok(())
}

fn check_range(
    trial: &OrderedTrial,
    (from, to): &(Bound<Vec<u8>>, Bound<Vec<u8>>),
    steps: &[bool],
) -> Result<(), Error> {
    let mut found = trial.store().range::<Vec<u8>>((from.clone(), to.clone()))?;
    let is_within = |key: &&Vec<u8>| {
        (match from {
            Bound::Included(from) => *key >= from,
            Bound::Excluded(from) => *key > from,
            Bound::Unbounded => true,
        }) && match to {
            Bound::Included(to) => *key <= to,
            Bound::Excluded(to) => *key < to,
            Bound::Unbounded => true,
        }
    };
    let all = trial.history.now().iter();
    let mut expected = all.filter(|(key, _)| is_within(key));
    for &is_front in steps {
        let found = if is_front { found.next() } else { found.next_back() }.transpose()?;
        let expected = if is_front { expected.next() } else { expected.next_back() };
        assert!(is_same(found.as_ref(), expected), "{from:02x?} to {to:02x?}, {steps:?}");
    }
    let rest: Result<Vec<_>, _> = found.collect();
    let rest = rest?;
    let is_equal = rest.len() == expected.clone().count()
        && rest.iter().zip(expected).all(|(one, other)| is_same(Some(one), Some(other)));
    assert!(is_equal, "{from:02x?} to {to:02x?}, after {steps:?}");
    Ok(())
}

/// Reads everything through the oldest snapshot.
pub(crate) fn check_snapshot(trial: &mut OrderedTrial) -> Result<(), Error> {
    let Some((snapshot, state)) = trial.snapshots.pop_front() else { return Ok(()) };
    assert!(collect(snapshot.iter()?)? == state, "a snapshot has changed");
    let backwards: Result<Vec<_>, _> = snapshot.iter()?.rev().collect();
    assert!(backwards?.into_iter().rev().eq(state.clone()), "a snapshot, backwards");
    for key in &trial.keys {
        let found = snapshot.get(key)?;
        assert!(found.as_ref() == state.get(key), "{key:02x?} in a snapshot: {found:02x?}");
        assert_eq!(snapshot.contains(key)?, state.contains_key(key));
    }
    Ok(())
}

fn is_same(found: Option<&(Vec<u8>, Vec<u8>)>, expected: Option<(&Vec<u8>, &Vec<u8>)>) -> bool {
    found.map(|(key, value)| (key, value)) == expected
}

/// Returns what is left of a range, which must be in order.
pub(crate) fn collect(range: Range) -> Result<State, Error> {
    let entries: Result<Vec<_>, Error> = range.collect();
    let entries = entries?;
    assert!(entries.is_sorted_by(|one, other| one.0 < other.0), "keys out of order");
    Ok(entries.into_iter().collect())
}
