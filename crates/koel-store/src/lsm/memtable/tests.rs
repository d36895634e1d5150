//! The memtable and its cursor, compared with a sorted list.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use testkit::storage::Random;

use super::super::entry::{Cursor, LAST_SEQUENCE, Lookup, check};
use super::*;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Entries in order, as a model: the sequence numbers of a key descend.
type Model = BTreeMap<(Vec<u8>, Reverse<u64>), Option<Vec<u8>>>;

const SEED: u64 = 7;

/// Returns a key of up to ten zeros and ones. Many are equal in their first eight bytes, or are
/// once zeros are appended.
fn some_key(random: &mut Random) -> Vec<u8> {
    (0..random.below(11)).map(|_| u8::from(random.chance(50))).collect()
}

/// Returns a value; now and then one that takes a block for itself.
fn some_value(random: &mut Random) -> Option<Vec<u8>> {
    let len = if random.chance(1) { 10_000 } else { random.below(40) };
    random.chance(70).then(|| random.bytes(len))
}

fn filled(random: &mut Random, count: u64, bytes: u64) -> Result<(Arc<Memtable>, Model), Error> {
    let (memtable, mut model) = (Memtable::new(1, bytes, SEED), Model::new());
    for sequence in 1..=count {
        let (key, value) = (some_key(random), some_value(random));
        let parts = value.as_ref().map(|value| {
            let (one, other) = value.split_at(random.below(value.len() + 1));
            let (other, third) = other.split_at(random.below(other.len() + 1));
            (value.len() as u64, [one, other, third].into_iter())
        });
        memtable.link(memtable.write(&key, parts)?, sequence);
        model.insert((key, Reverse(sequence)), value);
    }
    Ok((Arc::new(memtable), model))
}

#[test]
fn a_cursor_moves_as_in_a_sorted_list() -> Outcome {
    for seed in 0..4 {
        let mut random = Random::new(seed);
        let entries = check::entries(&mut random, 300);
        let mut cursor = MemtableCursor::new(check::memtable(&entries)?);
        check::walk(&mut cursor, &entries, &mut random, 5_000)?;
    }
    Ok(())
}

#[test]
fn a_get_sees_the_newest_version_up_to_its_sequence_number() -> Outcome {
    let mut random = Random::new(2);
    // The filter has room for all keys, or for hardly any.
    for bytes in [1 << 16, 1 << 8] {
        let (memtable, model) = filled(&mut random, 300, bytes)?;
        assert_eq!(memtable.len(), 300);
        for _ in 0..2_000 {
            let (key, sequence) = (some_key(&mut random), random.next_u64() % 320);
            let from = (key.clone(), Reverse(sequence));
            let expected = model.range(from..).next().filter(|((found, _), _)| *found == key);
            let expected = expected.map(|(_, value)| value.clone());
            let hash = hash_of(&key, SEED);
            let found = memtable.get(Lookup::of(&key, hash, sequence), Take::Value).transpose()?;
            assert_eq!(found, expected, "{key:?} at {sequence}");
            let found =
                memtable.get(Lookup::of(&key, hash, sequence), Take::Nothing).transpose()?;
            assert_eq!(found.map(|value| value.is_some()), expected.map(|value| value.is_some()));
        }
    }
    Ok(())
}

#[test]
fn keys_and_values_of_all_lengths_are_found_as_written() -> Outcome {
    let memtable = Memtable::new(1, 1 << 12, SEED);
    let bytes = Random::new(5).bytes(70_000);
    let lengths = || (0..40).chain([511 * 8, 512 * 8, 512 * 8 + 1, 65_536]);
    let keys: Vec<_> = lengths().map(|len| &bytes[..len]).collect();
    for (key, sequence) in keys.iter().zip(1..) {
        memtable.add(key, Some(&bytes[..key.len() + 1]), sequence)?;
    }
    for key in keys {
        let found = memtable.get(Lookup::of(key, hash_of(key, SEED), LAST_SEQUENCE), Take::Value);
        assert_eq!(found.transpose()?.flatten().as_deref(), Some(&bytes[..key.len() + 1]));
    }
    Ok(())
}

#[test]
fn what_was_written_but_not_linked_is_not_found() -> Outcome {
    let memtable = Arc::new(Memtable::new(1, 1 << 12, SEED));
    drop(memtable.write(b"ada", Some((4, [&b"1815"[..]].into_iter())))?);
    assert!(memtable.get(Lookup::of(b"ada", hash_of(b"ada", SEED), 9), Take::Value).is_none());
    assert!(memtable.is_empty() && memtable.bytes() > 0);
    let mut cursor = MemtableCursor::new(memtable);
    cursor.first()?;
    assert_eq!(cursor.entry(), None);
    Ok(())
}

/// In the first filter, in the second, and beyond both.
#[test]
fn the_filters_have_all_keys_however_many_there_are() {
    let keys = Keys::new(1 << 16);
    let hash = |number: u64| hash_of(&number.to_le_bytes(), SEED);
    let misses = || (1 << 20..(1 << 20) + 1_000).filter(|&number| !keys.may_have(hash(number)));
    assert_eq!(misses().count(), 1_000, "an empty memtable has no key");
    for number in 0..1 << 12 {
        keys.insert(hash(number));
        assert!(keys.may_have(hash(number)));
        if [500, 1_500].contains(&number) {
            assert!(misses().count() > 920, "{number}");
        }
    }
    assert!((0..1 << 12).all(|number| keys.may_have(hash(number))));
    assert_eq!(misses().count(), 0, "what was refused may be any key");
}

/// A key with a thousand versions does not make the way to other keys long.
#[test]
fn a_search_passes_few_versions_of_a_key() -> Outcome {
    let memtable = Memtable::new(1, 1 << 20, SEED);
    memtable.add(b"b", Some(b""), 1)?;
    for sequence in 2..4_000 {
        memtable.add(b"a", Some(b""), sequence)?;
    }
    let steps = memtable.list.steps_to(&Place::new(b"b", LAST_SEQUENCE));
    assert!(steps < 100, "{steps} steps");
    Ok(())
}

#[test]
fn readers_find_all_that_is_visible_while_a_writer_adds() -> Outcome {
    const COUNT: u64 = if cfg!(miri) { 60 } else { 40_000 };
    const ROUNDS: u64 = if cfg!(miri) { 2 } else { 1_000 };
    // So few that the version before the one that is read is often being replaced.
    const KEYS: u64 = 4;
    let key_of = |sequence: u64| (sequence % KEYS).wrapping_mul(0x9e37_79b9).to_le_bytes();
    let memtable = Arc::new(Memtable::new(1, 1 << 16, SEED));
    let visible = AtomicU64::new(0);
    let read = || -> Result<(), Error> {
        loop {
            let mut now = 0;
            for _ in 0..ROUNDS {
                now = visible.load(Ordering::Acquire);
                for sequence in (1..=now).rev().take(4) {
                    let (key, expected) = (key_of(sequence), sequence.to_le_bytes());
                    let found =
                        memtable.get(Lookup::of(&key, hash_of(&key, SEED), sequence), Take::Value);
                    assert_eq!(found.transpose()?.flatten().as_deref(), Some(&expected[..]));
                }
            }
            let mut cursor = MemtableCursor::new(memtable.clone());
            let (mut last, mut count) = (Vec::new(), 0);
            cursor.next()?;
            while let Some(entry) = cursor.entry() {
                assert!(*last <= *entry.key, "the order of keys");
                last = entry.key.to_vec();
                count += u64::from(entry.sequence <= now);
                cursor.next()?;
            }
            assert_eq!(count, now, "entries of a cursor");
            if now == COUNT {
                return Ok(());
            }
        }
    };
    std::thread::scope(|scope| {
        let readers = [scope.spawn(read), scope.spawn(read)];
        for sequence in 1..=COUNT {
            memtable.add(&key_of(sequence), Some(&sequence.to_le_bytes()), sequence)?;
            visible.store(sequence, Ordering::Release);
        }
        readers.into_iter().try_for_each(|reader| reader.join().expect("a reader"))
    })?;
    Ok(())
}
