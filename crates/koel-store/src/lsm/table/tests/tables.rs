//! Damaged tables: what is wrong is reported, a read is right or an error, and the rest is found.

use std::collections::BTreeMap;

use super::*;
use crate::kernel::bytes::u32_at;
use crate::kernel::record::Position;
use crate::lsm::table::frame::HEADER;

/// Bytes at which blocks end.
const BLOCK: usize = 300;
const NUMBER: u64 = 9;

/// The bytes of a table, and its entries.
fn made(seed: u64, count: usize, codec: Codec) -> Result<(Vec<u8>, Vec<Owned>), Error> {
    let entries = check::entries(&mut Random::new(seed), count);
    let fixture = Fixture::new();
    build(&fixture.folder, NUMBER, &options(BLOCK, codec), &entries)?;
    Ok((std::fs::read(fixture.path(NUMBER)).expect("the table"), entries))
}

/// Reads everything in every way. A result is right, or an error that names the damage.
fn assert_right_or_reported(table: &Arc<Table>, entries: &[Owned], random: &mut Random) {
    let damage = |error: &Error| matches!(error, Error::Damaged { .. });
    for entry in entries.iter().step_by(1 + random.below(8)) {
        match table.get(Lookup::of(&entry.0, hash(&entry.0), entry.1)) {
            Ok(found) => assert_eq!(found.map(|found| found.value), Some(entry.2.clone())),
            Err(error) => assert!(damage(&error), "{error}"),
        }
    }
    let mut cursor = table.cursor(false);
    let mut forward = entries.iter();
    let mut moved = cursor.first();
    while moved.is_ok() && cursor.entry().is_some() {
        assert_eq!(cursor.entry(), forward.next().map(entry_of));
        moved = cursor.next();
    }
    assert!(moved.as_ref().map_or_else(damage, |()| forward.next().is_none()));
    let mut backward = entries.iter().rev();
    let mut moved = cursor.last();
    while moved.is_ok() && cursor.entry().is_some() {
        assert_eq!(cursor.entry(), backward.next().map(entry_of));
        moved = cursor.previous();
    }
    assert!(moved.as_ref().map_or_else(damage, |()| backward.next().is_none()));
    if let Ok(hashes) = hashes_of(table) {
        let mut keys: Vec<_> = entries.iter().map(|entry| &entry.0[..]).collect();
        keys.dedup();
        assert!(hashes.into_iter().eq(keys.into_iter().map(hash)));
    }
}

/// Changes a table, and checks what reading, verifying and salvaging say of it.
fn assert_reported(fixture: &Fixture, bytes: &[u8], entries: &[Owned], random: &mut Random) {
    fixture.write(NUMBER, bytes);
    match open(&fixture.folder, NUMBER, 1 << 20) {
        Ok(table) => assert_right_or_reported(&table, entries, random),
        Err(error) => {
            let is_one = matches!(
                error,
                Error::Damaged { .. } | Error::OtherStore { .. } | Error::Newer { .. }
            );
            assert!(is_one, "{error}");
        }
    }
    let verified = fixture.damages(NUMBER);
    assert!(verified.is_ok_and(|damages| !damages.is_empty()));
    let (found, lost, _) = fixture.salvaged(NUMBER).expect("files that can be read");
    let all: BTreeMap<_, _> = entries.iter().map(|one| ((&one.0, one.1), &one.2)).collect();
    assert!(found.iter().all(|one| all.get(&(&one.0, one.1)) == Some(&&one.2)));
    let found: std::collections::BTreeSet<_> = found.iter().map(|one| &one.0).collect();
    let is_lost = |hash| {
        let keys = entries.iter().map(|entry| &entry.0);
        keys.filter(|key| super::hash(key) == hash).all(|key| !found.contains(key))
    };
    assert!(lost.into_iter().all(is_lost));
}

/// Flips one bit in each of many tables: 200 of them, or `KOEL_RELIABILITY` of them.
#[test]
fn flipped_bits_are_reported() -> Outcome {
    let fixture = Fixture::new();
    let mut random = Random::new(1);
    let flips = match std::env::var("KOEL_RELIABILITY").as_deref() {
        Ok("full") => 10_000,
        Ok(count) => count.parse()?,
        Err(_) => 200,
    };
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
        let (sound, entries) = made(3, 400, codec)?;
        fixture.write(NUMBER, &sound);
        assert_eq!(fixture.damages(NUMBER)?, []);
        for _ in 0..flips / 3 + 1 {
            let (at, bit) = (random.below(sound.len()), random.below(8));
            let mut bytes = sound.clone();
            bytes[at] ^= 1 << bit;
            assert_reported(&fixture, &bytes, &entries, &mut random);
        }
        for _ in 0..flips / 15 + 1 {
            let cut = &sound[..random.below(sound.len())];
            assert_reported(&fixture, cut, &entries, &mut random);
            let (from, to) = (random.below(sound.len()), random.below(sound.len()));
            let removed = [&sound[..from.min(to)], &sound[from.max(to)..]].concat();
            if from != to {
                assert_reported(&fixture, &removed, &entries, &mut random);
            }
        }
    }
    println!("reliability tables::flipped: seed 1, {flips} flips, all reported");
    Ok(())
}

/// Changes single bytes below checksums that fit: where nothing is reported, all reads agree.
#[test]
fn forged_tables_without_damage_read_alike() -> Outcome {
    let fixture = Fixture::new();
    let (sound, _) = made(7, 30, Codec::None)?;
    let position = |offset| Position { salt: SALT, segment: NUMBER, offset: offset as u64 };
    for at in 48..sound.len() - 32 {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (at % 8);
        let mut start = 40;
        while start + HEADER + 32 <= bytes.len() {
            let end = start + HEADER + u32_at(&bytes, start + 12) as usize;
            let Some(frame) = bytes.get_mut(start..end) else { break };
            let checksum = position(start).checksum(0, &frame[8..]);
            frame[..8].copy_from_slice(&checksum.to_le_bytes());
            start = end;
        }
        fixture.write(NUMBER, &bytes);
        if !fixture.damages(NUMBER)?.is_empty() {
            continue;
        }
        let (entries, ..) = fixture.salvaged(NUMBER)?;
        assert_gets(&*open(&fixture.folder, NUMBER, 0)?, &entries)?;
        let table = open(&fixture.folder, NUMBER, 1 << 16)?;
        assert_right_or_reported(&table, &entries, &mut Random::new(1));
    }
    Ok(())
}

#[test]
fn a_table_under_another_number_or_of_another_store_is_refused() -> Outcome {
    let fixture = Fixture::new();
    let (bytes, _) = made(1, 100, Codec::None)?;
    fixture.write(NUMBER + 1, &bytes);
    assert!(matches!(open(&fixture.folder, NUMBER + 1, 0), Err(Error::Damaged { .. })));
    assert_eq!(fixture.salvaged(NUMBER + 1)?.0, [], "every frame belongs elsewhere");
    fixture.write(NUMBER, &bytes);
    let cache = Arc::new(BlockCache::new(0));
    let other = Table::open(&fixture.folder, NUMBER, SALT + 1, &cache);
    assert!(matches!(other, Err(Error::OtherStore { .. })));
    let mut newer = bytes;
    newer[8] = 2;
    let checksum = xxhash_rust::xxh3::xxh3_64(&newer[..32]).to_le_bytes();
    newer[32..40].copy_from_slice(&checksum);
    fixture.write(NUMBER, &newer);
    let newer = open(&fixture.folder, NUMBER, 0);
    assert!(matches!(newer, Err(Error::Newer { version: 2, .. })));
    Ok(())
}

#[test]
fn all_but_the_damaged_block_is_salvaged_and_its_keys_are_named() -> Outcome {
    let fixture = Fixture::new();
    let mut random = Random::new(1);
    for seed in 0..20 {
        let (mut bytes, entries) = made(seed, 500, Codec::Lz4)?;
        fixture.write(NUMBER, &bytes);
        let (all, lost, damages) = fixture.salvaged(NUMBER)?;
        assert_eq!((&all, &lost[..], damages), (&entries, &[][..], 0));
        let frame_end = |at: usize| at + HEADER + u32_at(&bytes, at + 12) as usize;
        let frames = std::iter::successors(Some(40), |at| Some(frame_end(*at)));
        let mut data = frames.filter(|at| bytes[at + 8] == 1);
        let offset = data.nth(random.below(10)).expect("many blocks of data");
        bytes[offset + HEADER + 1] ^= 1;
        fixture.write(NUMBER, &bytes);
        let (some, lost, damages) = fixture.salvaged(NUMBER)?;
        assert_eq!(damages, 1);
        let missing: Vec<_> = entries.iter().filter(|entry| !some.contains(entry)).collect();
        assert!(!missing.is_empty() && missing.len() + some.len() == entries.len());
        let mut expected: Vec<u64> = missing
            .iter()
            .filter(|entry| some.iter().all(|other| other.0 != entry.0))
            .map(|entry| hash(&entry.0))
            .collect();
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(lost, expected);
    }
    Ok(())
}
