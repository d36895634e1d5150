//! The manifest: its bytes, and what is refused.

use super::*;
use crate::kernel::kind::LOG_MAGIC;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn run(number: u64, first_sequence: u64, last_sequence: u64) -> RunEntry {
    RunEntry { number, bytes: 4096, entries: 30, first_sequence, last_sequence }
}

/// The example of docs/FORMAT-STORES.md.
fn example() -> Manifest {
    Manifest {
        clean: false,
        salt: 0x1111_2222_3333_4444,
        seed: 42,
        sequence: 101,
        number: 8,
        logs: vec![LogEntry { number: 6, end: 40 }],
        runs: vec![run(5, 61, 90), run(3, 1, 60)],
    }
}

#[test]
fn every_change_of_a_byte_and_every_cut_is_refused() -> Outcome {
    let bytes = example().encode();
    assert_eq!(Manifest::decode(&bytes)?, example());
    for at in 0..bytes.len() {
        let mut wrong = bytes.clone();
        wrong[at] ^= 0x10;
        assert!(Manifest::decode(&wrong).is_err(), "byte {at}");
        assert!(Manifest::decode(&bytes[..at]).is_err(), "cut at {at}");
    }
    assert!(Manifest::decode(&[&bytes[..], &[0; 8]].concat()).is_err());
    Ok(())
}

#[test]
fn fields_out_of_range_are_refused() {
    let changes: [fn(&mut Manifest); 8] = [
        |manifest| manifest.number = 6,
        |manifest| manifest.sequence = 90,
        |manifest| manifest.sequence = SEQUENCE_LIMIT,
        |manifest| manifest.number = NUMBER_LIMIT,
        |manifest| manifest.runs.swap(0, 1),
        |manifest| manifest.runs[0].number = 6,
        |manifest| manifest.logs[0].end = SIZES.end() + 1,
        |manifest| manifest.logs.insert(0, LogEntry { number: 7, end: 40 }),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut manifest = example();
        change(&mut manifest);
        let refused = Manifest::decode(&manifest.encode());
        assert!(matches!(refused, Err(Error::Damaged { .. })), "change {number}: {refused:?}");
    }
}

#[test]
fn a_manifest_of_a_log_store_and_a_newer_one_are_named() {
    let log = [&LOG_MAGIC[..], &[0; 80]].concat();
    let refused = Manifest::decode(&log);
    assert!(matches!(refused, Err(Error::WrongKind { found: StoreKind::Log })), "{refused:?}");
    let mut newer = example().encode();
    newer[8] = 2;
    let checksum = xxh3_64(&newer[..24]);
    newer[24..32].copy_from_slice(&checksum.to_le_bytes());
    assert!(matches!(Manifest::decode(&newer), Err(Error::Newer { version: 2, .. })));
}

#[test]
fn a_manifest_has_the_bytes_in_the_format_description() {
    let format = include_str!("../../../../../docs/FORMAT-STORES.md");
    let hex: Vec<String> = example().encode().iter().map(|byte| format!("{byte:02x}")).collect();
    let lines: Vec<String> = hex.chunks(16).map(|line| line.join(" ")).collect();
    assert!(format.contains(&lines.join("\n")), "{}", lines.join("\n"));
}
