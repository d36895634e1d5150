//! The memtable and its cursor, compared with a sorted list.

use std::collections::BTreeMap;

use testkit::storage::Random;

use super::super::entry::{check, hash_of};
use super::*;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Entries in order, as a model: the sequence numbers of a key descend.
type Model = BTreeMap<(Vec<u8>, std::cmp::Reverse<u64>), Option<Vec<u8>>>;

const SEED: u64 = 7;

/// Returns a key of up to ten zeros and ones. Many are equal in their first eight bytes, or are
/// once zeros are appended.
fn some_key(random: &mut Random) -> Vec<u8> {
    (0..random.below(11)).map(|_| u8::from(random.chance(50))).collect()
}

fn filled(random: &mut Random, count: u64, bytes: u64) -> Result<(Arc<Memtable>, Model), Error> {
    let (memtable, mut model) = (Memtable::new(1, bytes, SEED), Model::new());
    for sequence in 1..=count {
        let key = some_key(random);
        let value = random.chance(70).then(|| sequence.to_string().into_bytes());
        let halves = value.as_ref().map(|value| value.split_at(value.len() / 2));
        let parts =
            halves.map(|(one, other)| ((one.len() + other.len()) as u64, [one, other].into_iter()));
        memtable.insert(NewEntry::new(&key, parts)?, sequence);
        model.insert((key, std::cmp::Reverse(sequence)), value);
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
            let from = (key.clone(), std::cmp::Reverse(sequence));
            let expected = model.range(from..).next().filter(|((found, _), _)| *found == key);
            let expected = expected.map(|(_, value)| value.clone());
            let hash = hash_of(&key, SEED);
            let found = memtable.get(&key, hash, sequence, |entry| entry.value.map(<[u8]>::to_vec));
            assert_eq!(found, expected, "{key:?} at {sequence}");
        }
    }
    Ok(())
}
