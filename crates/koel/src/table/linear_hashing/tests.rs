//! Prefixes, the limits of growth, and the origins of buckets.

use super::*;
use crate::address::geometry::CORES;
use alloc::vec::Vec;
use testkit::keys::splitmix64 as hash;

#[test]
fn continuations_have_one_more_bit_whatever_follows_the_prefix() {
    for (string, length) in [(0, 5), (u64::MAX, 5), (0, 0), (u64::MAX, 0), (u64::MAX, 40)] {
        let prefix = Prefix { core: 1, base: 2, string, length };
        let known = |prefix: Prefix, length: u32| prefix.string & !(u64::MAX << length);
        for (bit, longer) in (0..).zip(prefix.continuations()) {
            assert!(prefix.is_start_of(&longer));
            assert_eq!(longer.length, length + 1);
            assert_eq!(known(longer, length + 1), bit << length | known(prefix, length));
        }
    }
}

#[test]
fn a_table_grows_until_a_number_or_a_name_has_too_many_bits() {
    let mut most_levels = Vec::new();
    for (buckets, most) in [(1, 10), (1, 40), (100, 17), (100, 40), (127, 49), (1 << 20, 26)] {
        let base = Geometry::new(0, buckets, CORE_BITS + 2);
        let at =
            |level, split| LinearHashing::new(base.clone(), Marked::new(most + 7), level, split);
        let level = (0..).take_while(|&level| at(level, 0).is_sound()).last().unwrap();
        let last = at(level, 0);
        assert!(!last.can_grow() && !at(level, 1).is_sound());
        if let Some(before) = level.checked_sub(1) {
            let split = last.buckets() / 2 - 1;
            assert!(at(before, split).is_sound() && !at(before, split + 1).is_sound());
        }
        let length = level + last.marked.most();
        let string = !(u64::MAX << length);
        for (core, base) in [(CORES, u64::from(buckets) - 1), (1, 0)] {
            let prefix = Prefix { core, base, string, length };
            let least = Prefix { base: base.min(last.other_base(&prefix)), ..prefix };
            assert_eq!(last.named(last.name(&prefix)), Some(least), "{buckets} {most}");
        }
        most_levels.push(level);
    }
    assert_eq!(most_levels, [31, 15, 25, 9, 0, 9]);
}

#[test]
fn the_origin_of_a_bucket_is_quotient_and_remainder() {
    let last = u64::from(u32::MAX);
    for (segment_bits, segment_buckets) in
        [(0, 1), (0, 2), (0, 3), (0, 81), (3, 5), (4, 262_143), (0, 65_537), (0, u32::MAX)]
    {
        let base = Geometry::new(segment_bits, segment_buckets, 13);
        let count = base.buckets();
        let addresses = LinearHashing::new(base, Marked::new(17), 0, 0);
        let near = |bucket: u64| [bucket.saturating_sub(1), bucket, bucket + 1];
        let multiples = (0..1000).map(|i| hash(i) % (last / count + 1) * count);
        let others = (0..1000).map(|i| hash(i) >> (32 + i % 32));
        let buckets = multiples.chain(others).chain([last]).flat_map(near);
        for bucket in buckets.filter(|&bucket| bucket <= last) {
            let origin = addresses.origin(bucket);
            let (rest, geometry) = (bucket % count, addresses.base());
            let expected = if origin.split_index == 0 { rest } else { geometry.bucket_at(rest) };
            assert_eq!(
                (origin.base, origin.split_index),
                (expected, bucket / count),
                "{bucket} of {count}"
            );
            let segment_buckets = u64::from(segment_buckets);
            let first = origin.base - origin.base % segment_buckets;
            assert_eq!(origin.segment, origin.base / segment_buckets);
            assert_eq!(addresses.segment_start(origin.segment), first);
        }
    }
}
