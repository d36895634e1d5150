//! Headers that no filter writes.

use super::*;

/// Offsets of fields of the header.
const EVICTED: usize = 104;
const YOUNGEST_EVICTED: usize = 169;

#[test]
fn any_header_of_evictions_is_refused_or_sound() {
    let builder = ExpiringFilter::builder(1, 0.1).window(60).when_full(WhenFull::EvictOldest);
    let whole = builder.steps(6).build().expect("sound settings").to_bytes();
    let empty = image::reshape(&whole, 0, 1);
    let mut accepted = 0;
    for evicted in [0, 1, u64::MAX - 1, u64::MAX] {
        for youngest in 0..10 {
            let mut bytes = empty.clone();
            image::set(&mut bytes, EVICTED, evicted);
            bytes[YOUNGEST_EVICTED] = youngest;
            image::reseal(&mut bytes);
            accepted += u32::from(arbitrary_bytes(&bytes, 500).is_ok());
        }
    }
    assert_eq!(accepted, 1 + 3 * 7);
}
