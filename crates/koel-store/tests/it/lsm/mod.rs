//! The trials of the ordered store: the same promises as those of the log store, and snapshots,
//! ranges, merges, ingestions and checkpoints among the operations.

mod behaviour;
mod bounds;
#[cfg(target_os = "linux")]
mod damaged_ranges;
mod memory;
mod merges;
mod salvage;
mod saved_guide;
mod threads;
mod transactions;
pub(crate) mod trial;

use koel_store::{LsmOptions, LsmStore};

use crate::trial::{count, first_seed};

/// Random programs, compared with a sorted map and its earlier versions.
mod model {
    use super::*;

    #[test]
    fn an_ordered_store_behaves_like_a_sorted_map() {
        crate::model::model::<LsmStore>(count(100_000, 1_000_000));
    }
}

/// Power failures at any call: during a write, a flush, a merge, an ingestion, or the recovery from
/// an earlier failure.
mod crash {
    use super::*;
    use crate::crash::{Programs, crash};

    #[test]
    fn what_a_power_failure_leaves_is_a_prefix_that_includes_everything_durable() {
        let programs =
            Programs { keys: &[1, 8, 40, 200], longest: 3_000, calls: 600, leave_files: true };
        crash::<LsmStore>(count(3_000, 100_000), &programs);
    }
}

mod faults {
    use super::*;
    use crate::faults::{beside_threads, every_call, full_disk};

    #[test]
    fn every_call_fails_once_in_each_way() {
        every_call::<LsmStore>(3_000, |calls| count(100, calls));
    }

    #[test]
    fn calls_fail_while_background_threads_run() {
        beside_threads::<LsmStore>(3_000, count(15, 1_000));
    }

    #[test]
    fn a_disk_that_is_full_for_a_while_loses_nothing() {
        full_disk::<LsmStore>(3_000, count(20, 1_000));
    }
}

/// A process that writes batches is killed at any moment.
mod kill {
    use super::*;
    use crate::kill::Killing;

    fn ordered() -> Killing<LsmStore> {
        let options = LsmOptions::default().memtable_bytes(64 << 10).bytes_per_sync(1 << 12);
        Killing { options, child: "lsm::kill::child", keys: 500, puts: 8 }
    }

    #[test]
    fn child() {
        ordered().child();
    }

    #[test]
    fn a_killed_process_loses_nothing_that_it_acknowledged() {
        ordered().run(count(30, 1_000));
    }
}

/// Flipped bits, cut files and swapped files; and files of an earlier moment.
mod damage {
    use super::*;
    use crate::damage::{Damaged, Harm, damage, every_harm, probe};

    impl Damaged for LsmStore {
        const LENGTHS: (usize, usize) = (3_000, 500);
    }

    #[test]
    fn every_harm_is_reported_or_harmless() {
        let counts = [(1_000, 10_000), (500, 2_000), (300, 2_000), (300, 2_000)];
        every_harm::<LsmStore>(counts.map(|(slice, full)| count(slice, full)));
    }

    /// The same store at two moments: a file of the earlier one, or two that are not MANIFEST, and
    /// the rest of the later one. With MANIFEST and all that it names, it is the earlier store.
    #[test]
    fn a_file_of_an_earlier_moment_is_reported_or_harmless() {
        damage::<LsmStore>("earlier files", count(300, 2_000), |victim, random, image| {
            let mut names: Vec<&String> =
                victim.earlier.keys().chain(victim.image.keys()).collect();
            names.sort_unstable();
            names.dedup();
            let mut swapped = Vec::new();
            let mut harm = Harm::Within;
            for _ in 0..=random.below(2) {
                let name = names[random.below(names.len())].clone();
                if name == "MANIFEST" && !swapped.is_empty() {
                    break;
                }
                match victim.earlier.get(&name) {
                    Some(bytes) => image.insert(name.clone(), bytes.clone()),
                    None => image.remove(&name),
                };
                if name == victim.known.0 {
                    harm = Harm::End;
                }
                let is_manifest = name == "MANIFEST";
                swapped.push(name);
                if is_manifest {
                    break;
                }
            }
            (harm, format!("{swapped:?} are older"))
        });
    }

    #[test]
    fn a_flipped_bit_among_twenty_thousand_entries_is_reported_or_harmless() {
        let options = LsmOptions::default().memtable_bytes(1 << 20).background(false);
        probe::<LsmStore>(options.seed(first_seed()), count(40, 2_400));
    }
}
