//! Ranges go on behind a damaged block: they show no older value, and leave nothing out but what
//! they tell of by an error.

use std::collections::BTreeMap;
use std::sync::Arc;

use koel_store::{CompactionPolicy, Compression, Error, LsmOptions, LsmStore};
use testkit::storage::MemoryFolder;

use super::behaviour::{NONE, Outcome};

type State = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> LsmOptions {
    let options = LsmOptions::default().memtable_bytes(64 << 10).cache_bytes(0).block_bytes(256);
    let options = options.compression(Compression::None).policy(CompactionPolicy::Tiered).ratio(8);
    options.background(false).read_only(false).guide(5, 1).seed(1)
}

fn key(number: u32) -> Vec<u8> {
    format!("{number:05}").into_bytes()
}

/// Returns a store of three tables, the younger of which overwrite, delete and add keys of the
/// older ones; and its entries.
fn store() -> Result<(MemoryFolder, State), Error> {
    let (folder, mut state) = (MemoryFolder::new(), State::new());
    let store = options().open_in(Arc::new(folder.clone()))?;
    for (round, step) in [(1, 1), (2, 3), (3, 7)] {
        for number in (0..400).step_by(step) {
            if round == 2 && number % 2 == 0 {
                store.delete(&key(number), NONE)?;
                state.remove(&key(number));
            } else {
                let value = format!("round {round}").into_bytes();
                store.put(&key(number), &value, NONE)?;
                state.insert(key(number), value);
            }
        }
        store.flush()?;
    }
    assert_eq!(store.stats().runs.len(), 3);
    store.close()?;
    Ok((folder, state))
}

/// Reads a range to its end. Returns its entries, and how many errors came between them.
fn read(store: &LsmStore, backward: bool) -> Result<(State, usize), Error> {
    let (mut found, mut errors) = (State::new(), 0);
    let range = store.iter()?;
    let mut add = |item: Result<(Vec<u8>, Vec<u8>), Error>| match item {
        Ok((key, value)) => assert!(found.insert(key, value).is_none(), "a key comes twice"),
        Err(Error::Damaged { .. }) => errors += 1,
        Err(error) => panic!("{error}"),
    };
    if backward {
        range.rev().for_each(&mut add)
    } else {
        range.for_each(&mut add)
    }
    Ok((found, errors))
}

#[test]
fn a_range_goes_on_behind_a_damaged_block_without_older_values() -> Outcome {
    let (folder, state) = store()?;
    let sound = folder.contents();
    let tables = sound.keys().filter(|name| name.ends_with(".table"));
    let (mut damaged, mut gone_on) = (0, 0);
    for name in tables {
        for at in (0..sound[name].len()).step_by(97) {
            let mut contents = sound.clone();
            contents.get_mut(name).expect("a table")[at] ^= 1;
            let Ok(store) = options().open_in(Arc::new(MemoryFolder::with(contents))) else {
                continue;
            };
            for backward in [false, true] {
                let (found, errors) = read(&store, backward)?;
                assert!(found.iter().all(|(key, value)| state.get(key) == Some(value)));
                let missing: Vec<_> =
                    state.keys().filter(|key| !found.contains_key(*key)).collect();
                assert_eq!(missing.is_empty(), errors == 0, "{name} at {at}: {errors} errors");
                damaged += errors;
                // Of a table of one in three keys, 60 or so are in one block and its neighbours.
                let is_near = missing.len() < 120;
                gone_on += usize::from(errors > 0 && is_near && found.len() > 200);
            }
        }
    }
    assert!(damaged > 100 && gone_on * 10 > damaged * 9, "{gone_on} of {damaged}");
    Ok(())
}
