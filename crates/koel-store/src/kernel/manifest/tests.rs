//! The manifest: its bytes, and what is refused.

use super::*;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn run(number: u64, first_sequence: u64, last_sequence: u64) -> RunEntry {
    RunEntry { number, bytes: 4096, entries: 30, first_sequence, last_sequence }
}

/// The examples of docs/FORMAT-STORES.md.
fn examples() -> [Manifest; 2] {
    let log = Manifest {
        sequence: 9,
        number: 8,
        keys: 3,
        logs: vec![LogEntry { number: 3, end: 64, cleaned: 3 }],
        ..Manifest::new(StoreKind::Log, 1, 2, 4096)
    };
    let ordered = Manifest {
        clean: false,
        sequence: 101,
        number: 8,
        logs: vec![LogEntry { number: 6, end: 40, cleaned: 0 }],
        runs: vec![run(5, 61, 90), run(3, 1, 60)],
        ..Manifest::new(StoreKind::Lsm, 0x1111_2222_3333_4444, 42, 0)
    };
    [log, ordered]
}

#[test]
fn every_change_of_a_byte_and_every_cut_is_refused() -> Outcome {
    for example in examples() {
        let (kind, bytes) = (example.kind, example.encode());
        assert_eq!(Manifest::decode(kind, &bytes)?, example);
        for bit in 0..bytes.len() * 8 {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::decode(kind, &wrong).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(Manifest::decode(kind, &bytes[..len]).is_err(), "cut at {len}");
        }
        for more in [&[0][..], &[0; 8]] {
            assert!(Manifest::decode(kind, &[&bytes[..], more].concat()).is_err());
        }
    }
    Ok(())
}

#[test]
fn fields_out_of_range_are_refused() {
    let of_log: [fn(&mut Manifest); 9] = [
        |manifest| manifest.number = 3,
        |manifest| manifest.sequence = 0,
        |manifest| manifest.sequence = SEQUENCE_LIMIT,
        |manifest| manifest.segment_bytes = SIZES.start() - 8,
        |manifest| manifest.segment_bytes = SIZES.start() + 1,
        |manifest| manifest.segment_bytes = SIZES.end() + 8,
        |manifest| manifest.logs[0].end = SIZES.end() + 8,
        |manifest| manifest.logs.push(manifest.logs[0]),
        |manifest| manifest.runs.push(run(1, 1, 2)),
    ];
    let of_ordered: [fn(&mut Manifest); 8] = [
        |manifest| manifest.number = 6,
        |manifest| manifest.sequence = 90,
        |manifest| manifest.sequence = SEQUENCE_LIMIT,
        |manifest| manifest.number = NUMBER_LIMIT,
        |manifest| manifest.runs.swap(0, 1),
        |manifest| manifest.runs[0].number = 6,
        |manifest| manifest.logs[0].end = SIZES.end() + 1,
        |manifest| manifest.logs.insert(0, LogEntry { number: 7, end: 40, cleaned: 0 }),
    ];
    for (example, changes) in examples().into_iter().zip([&of_log[..], &of_ordered]) {
        for (number, change) in changes.iter().enumerate() {
            let mut manifest = example.clone();
            change(&mut manifest);
            let refused = Manifest::decode(manifest.kind, &manifest.encode());
            assert!(matches!(refused, Err(Error::Damaged { .. })), "change {number}: {refused:?}");
        }
    }
}

#[test]
fn a_manifest_of_another_kind_and_a_newer_one_are_named() {
    for (example, other) in examples().into_iter().zip([StoreKind::Lsm, StoreKind::Log]) {
        let refused = Manifest::decode(other, &example.encode());
        assert!(matches!(refused, Err(Error::WrongKind { found }) if found == example.kind));
        let mut newer = example.encode();
        newer[8] = 2;
        let checksum = xxh3_64(&newer[..24]);
        newer[24..32].copy_from_slice(&checksum.to_le_bytes());
        let refused = Manifest::decode(example.kind, &newer);
        assert!(matches!(refused, Err(Error::Newer { version: 2, .. })), "{refused:?}");
    }
}

#[test]
fn a_manifest_has_the_bytes_in_the_format_description() {
    let format = include_str!("../../../../../docs/FORMAT-STORES.md");
    for example in examples() {
        let hex: Vec<String> = example.encode().iter().map(|byte| format!("{byte:02x}")).collect();
        let lines: Vec<String> = hex.chunks(16).map(|line| line.join(" ")).collect();
        assert!(format.contains(&lines.join("\n")), "{}", lines.join("\n"));
    }
}
