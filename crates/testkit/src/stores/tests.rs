//! Seeds are sound stores, and what is made of them keeps the promise.

use super::*;
use crate::storage::Random;

#[test]
fn seeds_are_stores_with_all_their_values_and_sealing_does_not_change_them() {
    let seeds = seeds();
    assert!(seeds.len() >= 12 && seeds.iter().all(|seed| seed.len() <= 4096));
    for seed in &seeds {
        let files = files_of(seed);
        let mut sealed = files.clone();
        seal(&mut sealed);
        assert!(sealed == files, "sealing changed a sound store");
        assert!(arbitrary_files(files, true).is_ok());
    }
    let values = |files: &Files| values_in(files, salt_of(files)).len();
    let most = seeds.iter().map(|seed| values(&files_of(seed))).max();
    assert!(most >= Some(10), "{most:?}");
}

#[test]
fn randomly_changed_seeds_are_refused_or_keep_the_promise() {
    let seeds = seeds();
    for number in 0..4_000 {
        let mut random = Random::new(number);
        let mut input = seeds[random.below(seeds.len())].clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(input.len());
            let extreme = [0, 1, 0x7f, 0x80, 0xff];
            let any = random.bytes(1)[0];
            input[at] = if random.chance(50) { extreme[random.below(5)] } else { any };
        }
        fuzzed_bytes(&input);
    }
}
