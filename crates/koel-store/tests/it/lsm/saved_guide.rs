//! The guide on disk: it is there at once after a crash, nobody needs it, and it knows no run but
//! its own.

use std::io::ErrorKind;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use koel_store::{Error, LsmOptions, LsmStore};
use testkit::storage::{Call, Hook, Hooked, MemoryFolder, Verdict};

use super::behaviour::{NONE, Outcome, key};
use crate::gated::{gated, wait_until};

const GUIDE: &str = "GUIDE";
const VALUE: [u8; 100] = [7; 100];

fn options() -> LsmOptions {
    LsmOptions::default().memtable_bytes(8 << 10).cache_bytes(0).guide(5, 1).seed(1)
}

/// Returns the files of a store of several runs that was not closed, and how many keys it has.
fn crashed() -> Result<(MemoryFolder, u32), Error> {
    let folder = MemoryFolder::new();
    let store = options().background(false).open_in(Arc::new(folder.clone()))?;
    let count = 1000;
    (0..count).try_for_each(|number| store.put(&key(number), &VALUE, NONE))?;
    assert!(store.stats().runs.len() > 2 && store.stats().has_guide);
    assert!(folder.contents().contains_key(GUIDE));
    Ok((MemoryFolder::with(folder.contents()), count))
}

fn check(store: &LsmStore, numbers: Range<u32>) -> Result<(), Error> {
    for number in numbers {
        assert_eq!(store.get(&key(number))?.as_deref(), Some(&VALUE[..]), "{number}");
        assert_eq!(store.get(&[&key(number)[..], b"x"].concat())?, None);
    }
    Ok(())
}

#[test]
fn a_store_that_crashed_has_its_guide_without_a_read_of_tables() -> Outcome {
    let (files, count) = crashed()?;
    let folder = gated(files);
    let me = thread::current().id();
    folder.hook().hold(move |verb, name| {
        verb == "read" && name.ends_with(".table") && thread::current().id() != me
    });
    let store = options().open_in(Arc::new(folder.clone()))?;
    wait_until("there is a guide", || store.stats().has_guide);
    let (stats, found) = (store.stats(), check(&store, 0..count));
    folder.hook().release();
    assert!(stats.unguided_runs < stats.runs.len() as u64, "{stats:?}");
    wait_until("the guide knows all runs", || store.stats().unguided_runs == 0);
    Ok(found?)
}

#[test]
fn without_its_file_or_with_a_damaged_one_the_guide_is_built() -> Outcome {
    let (files, count) = crashed()?;
    let sound = files.contents();
    for damage in [None, Some(0), Some(100), Some(sound[GUIDE].len() - 1)] {
        let mut contents = sound.clone();
        match damage {
            Some(at) => contents.get_mut(GUIDE).expect("the guide")[at] ^= 1,
            None => drop(contents.remove(GUIDE)),
        }
        let folder = MemoryFolder::with(contents);
        let store = options().open_in(Arc::new(folder.clone()))?;
        // Until a guide is asked for, there is none, and a damaged one is removed.
        wait_until("it was looked at", || !folder.contents().contains_key(GUIDE));
        check(&store, 0..count)?;
        wait_until("there is a guide", || {
            store.get(b"absent").is_ok_and(|value| value.is_none()) && store.stats().has_guide
        });
        check(&store, 0..count)?;
        store.close()?;
        assert!(folder.contents().contains_key(GUIDE), "written again");
    }
    Ok(())
}

/// Lets nothing be done with the next guide.
#[derive(Debug)]
struct NoGuide(Arc<AtomicU64>);

impl Hook for NoGuide {
    fn before(&self, call: &Call) -> Verdict {
        if call.name != "GUIDE.new" {
            return Verdict::Pass;
        }
        self.0.fetch_add(u64::from(call.verb == "create"), Ordering::Relaxed);
        Verdict::Fail(ErrorKind::StorageFull.into())
    }
}

#[test]
fn a_guide_that_cannot_be_written_stops_nothing() -> Outcome {
    let tries = Arc::new(AtomicU64::new(0));
    let folder = Hooked::with(MemoryFolder::new(), NoGuide(tries.clone()));
    let store = options().background(false).open_in(Arc::new(folder))?;
    (0..1000).try_for_each(|number| store.put(&key(number), &VALUE, NONE))?;
    assert!(tries.load(Ordering::Relaxed) > 1, "it is written as the store grows");
    check(&store, 0..1000)?;
    store.close()?;
    Ok(())
}

/// An older state of the store was restored, beside a guide that knows runs by numbers that others
/// get then.
#[test]
fn a_guide_of_a_later_state_is_removed_before_others_get_its_numbers() -> Outcome {
    let folder = MemoryFolder::new();
    let open =
        |folder: &MemoryFolder| options().background(false).open_in(Arc::new(folder.clone()));
    open(&folder)?.close()?;
    let mut restored = folder.contents();
    let fill = |folder: &MemoryFolder, mut numbers: Range<u32>| {
        let store = open(folder)?;
        numbers.try_for_each(|number| store.put(&key(number), &VALUE, NONE))?;
        Ok::<_, Error>(store)
    };
    drop(fill(&folder, 0..1000)?);
    restored.insert(GUIDE.to_owned(), folder.contents()[GUIDE].clone());
    let restored = MemoryFolder::with(restored);
    let store = open(&restored)?;
    assert!(!restored.contents().contains_key(GUIDE));
    drop(store);
    check(&fill(&restored, 1000..2000)?, 1000..2000)?;
    Ok(())
}
