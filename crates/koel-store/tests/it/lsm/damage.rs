//! Flipped bits, cut files and swapped files: the trials of `crate::damage`, and files of an
//! earlier moment.

use koel_store::{LsmOptions, LsmStore};

use crate::damage::{Damaged, Harm, damage, every_harm, probe};
use crate::trial::{count, first_seed};

impl Damaged for LsmStore {
    const LENGTHS: (usize, usize) = (3_000, 500);
}

#[test]
fn every_harm_is_reported_or_harmless() {
    let counts = [(1_000, 10_000), (500, 2_000), (300, 2_000), (300, 2_000)];
    every_harm::<LsmStore>(counts.map(|(slice, full)| count(slice, full)));
}

/// The same store at two moments: a file of the earlier one, or two that are not MANIFEST, and the
/// rest of the later one. With MANIFEST and all that it names, it would be the earlier store.
#[test]
fn a_file_of_an_earlier_moment_is_reported_or_harmless() {
    damage::<LsmStore>("earlier files", count(300, 2_000), |victim, random, image| {
        let mut names: Vec<&String> = victim.earlier.keys().chain(victim.image.keys()).collect();
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
