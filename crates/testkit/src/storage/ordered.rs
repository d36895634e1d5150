//! Random operations that only a store with keys in order has: ranges, snapshots, flushes,
//! ingestions and checkpoints.

use std::ops::Bound;

use super::{Op, Random};

/// Returns one of them, about once in nine times.
pub(super) fn op(random: &mut Random, keys: &[Vec<u8>]) -> Option<Op> {
    Some(match random.below(400) {
        0..4 => Op::Flush,
        4..6 => ingest(random, keys),
        6..8 => Op::Snapshot,
        8..10 => Op::ReadSnapshot,
        10..30 => range(random, keys),
        30..36 => prefix(random, keys),
        36..46 => {
            let count = random.below(20);
            Op::GetMany((0..count).map(|_| key(random, keys)).collect())
        }
        46 => Op::Checkpoint,
        _ => return None,
    })
}

fn key(random: &mut Random, keys: &[Vec<u8>]) -> Vec<u8> {
    keys[random.below(keys.len())].clone()
}

fn bound(random: &mut Random, keys: &[Vec<u8>]) -> Bound<Vec<u8>> {
    let key = key(random, keys);
    let key = if random.chance(70) { key } else { random.bytes(2) };
    match random.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Excluded(key),
        _ => Bound::Included(key),
    }
}

fn range(random: &mut Random, keys: &[Vec<u8>]) -> Op {
    let bounds = (bound(random, keys), bound(random, keys));
    let count = random.below(20);
    let back = [0, 100, 50][random.below(3)];
    let steps = (0..count).map(|_| !random.chance(back)).collect();
    Op::Range { bounds, steps }
}

fn prefix(random: &mut Random, keys: &[Vec<u8>]) -> Op {
    let mut prefix = key(random, keys);
    prefix.truncate(random.below(4));
    Op::Prefix(prefix)
}

fn ingest(random: &mut Random, keys: &[Vec<u8>]) -> Op {
    let count = random.below(30);
    let mut entry = || {
        let len = random.below(300);
        (key(random, keys), random.bytes(len))
    };
    Op::Ingest((0..count).map(|_| entry()).collect())
}
