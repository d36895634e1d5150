//! Salvage of ordered stores that are sound, lack their manifest, or are damaged.

use std::sync::Arc;

use koel_store::{LsmOptions, LsmStore, SalvageReport};
use testkit::storage::{MemoryFolder, Random, State};

use super::trial::collect;
use crate::damage::{Image, Victim};
use crate::trial::{count, first_seed, report};

fn victim(seed: u64) -> Victim<LsmStore> {
    crate::damage::victim(seed, true)
}

/// Salvages files into a new store. Returns its state.
fn salvage(files: &Image) -> (State, SalvageReport) {
    let damaged = MemoryFolder::with(files.clone());
    let store = LsmOptions::default().background(false);
    let store = store.open_in(Arc::new(MemoryFolder::new())).unwrap();
    let report = store.salvage_in(&damaged, |done, all| assert!(done <= all)).unwrap();
    assert!(damaged.contents() == *files, "the damaged store was changed");
    assert_eq!(store.verify(|_, _| ()).unwrap().damages, []);
    (collect(store.iter().unwrap()).unwrap(), report)
}

#[test]
fn a_sound_store_is_salvaged_completely_with_and_without_its_manifest() {
    for seed in (first_seed()..).take(6) {
        let Victim { image: mut files, now, .. } = victim(seed);
        let (state, report) = salvage(&files);
        assert!(state == now && report.damages.is_empty() && report.lost == 0, "{report:?}");
        files.remove("MANIFEST");
        let (state, report) = salvage(&files);
        assert!(state == now, "seed {seed}: not the state without the manifest");
        assert!(report.damages.len() == 1 && report.damages[0].file == "MANIFEST");
    }
}

/// Also where it is cut between two records, and every byte that is left is sound.
#[test]
fn a_log_that_was_cut_short_is_reported() {
    let is_log = |name: &&String| name.ends_with(".log");
    let mut cuts = 0;
    for Victim { image: files, now, .. } in (first_seed()..).take(6).map(victim) {
        let name = files.keys().rfind(is_log).unwrap().clone();
        for end in (0..files[&name].len()).step_by(8) {
            let mut files = files.clone();
            files.get_mut(&name).unwrap().truncate(end);
            let (state, found) = salvage(&files);
            assert!(found.damages.iter().any(|damage| damage.file == name), "cut at {end}");
            cuts += u64::from(state != now);
        }
    }
    assert!(cuts > 10, "{cuts}");
}

#[test]
fn what_is_salvaged_of_a_damaged_store_was_written() {
    let trials = count(100, 2_000);
    let victims: Vec<_> = (first_seed()..).take(6).map(victim).collect();
    let (mut reported, mut whole) = (0, 0);
    for trial in 0..trials {
        let mut random = Random::new(first_seed() + trial);
        let Victim { image: files, now, ever, .. } = &victims[random.below(victims.len())];
        let mut files = files.clone();
        for _ in 0..=random.below(3) {
            let name = files.keys().nth(random.below(files.len())).unwrap().clone();
            let bytes = files.get_mut(&name).unwrap();
            let at = random.below(bytes.len());
            if random.chance(70) {
                bytes[at] ^= 1 << random.below(8);
            } else {
                bytes.truncate(at.max(1));
            }
        }
        let (state, found) = salvage(&files);
        let unwritten =
            state.iter().find(|(key, value)| !ever.contains(&((*key).clone(), (*value).clone())));
        assert!(unwritten.is_none(), "trial {trial}: {unwritten:02x?}");
        reported += u64::from(!found.damages.is_empty());
        whole += u64::from(state == *now);
        assert!(state == *now || !found.damages.is_empty(), "trial {trial}: not reported");
    }
    assert!(reported > trials / 2 && whole > trials / 20, "{reported} reported, {whole} whole");
    report("ordered salvage", &format!("{trials} damaged stores, {whole} whole: nothing invented"));
}
