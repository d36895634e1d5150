//! Sound records at wrong offsets. A disk that writes to a wrong offset or returns an old sector
//! keeps all bytes of a record, so a checksum of the bytes alone would match.
//!
//! All records have equal lengths and every key is written twice. So any record can replace any
//! other, in particular the old record of a key the new one.

use koel_store::{LogOptions, LogStore};
use testkit::storage::Random;

use crate::damage::{Harm, Image, closed_victim, damage_of};
use crate::trial::{count, first_seed};

/// Bytes before the key, and of a record with a key of 8 and a value of 32 bytes.
const HEAD: usize = 20;
const RECORD: usize = (HEAD + 8 + 32).next_multiple_of(8);
const KEYS: usize = 500;

fn key(number: usize) -> Vec<u8> {
    format!("key{number:05}").into_bytes()
}

/// Returns the offsets of the records of a key, the older one first.
fn locations(image: &Image, number: usize) -> Vec<(String, usize)> {
    let key = key(number);
    let logs = image.iter().filter(|(name, _)| name.ends_with(".log"));
    let locations: Vec<(String, usize)> = logs
        .flat_map(|(name, bytes)| {
            let at = (0..bytes.len() - 8).filter(|&at| bytes[at..at + 8] == key);
            at.map(|at| (name.clone(), at - HEAD)).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(locations.len(), 2, "records of this length, in logs that are in order");
    locations
}

/// Copies a record of one image into another.
fn copy(from: &Image, (name, at): &(String, usize), into: &mut Image, to: &(String, usize)) {
    let record = &from[name][*at..at + RECORD];
    into.get_mut(&to.0).unwrap()[to.1..to.1 + RECORD].copy_from_slice(record);
}

#[test]
fn records_at_the_offsets_of_others_are_reported() {
    let options = LogOptions::default().segment_bytes(8192).background_compaction(false);
    let mut values = Random::new(first_seed());
    let puts = (0..2 * KEYS).map(|number| (key(number % KEYS), values.bytes(32)));
    let victim = closed_victim::<LogStore>(options.seed(first_seed()), puts);
    let trials = count(200, 4_000);
    damage_of(&[victim], "transplanted records", trials, |victim, random, damaged| {
        let (one, other) = (random.below(KEYS), random.below(KEYS));
        let here = &locations(&victim.image, one)[1];
        // The old record of a key for its new one, or the new ones of two keys for each other.
        let there = if random.chance(50) {
            &locations(&victim.image, one)[0]
        } else {
            let there = &locations(&victim.image, other)[1];
            copy(&victim.image, here, damaged, there);
            &there.clone()
        };
        copy(&victim.image, there, damaged, here);
        (Harm::Within, format!("keys {one} and {other}"))
    });
}
