//! Manifests are read as they were written, and invalid ones are refused.

use super::*;

fn some() -> Manifest {
    let entry = |number| Entry { number, end: 40 + number * 8, cleaned: number };
    Manifest {
        clean: true,
        salt: 1,
        seed: 2,
        segment_bytes: 4096,
        sequence: 9,
        number: 8,
        keys: 3,
        segments: [3, 7, 5].map(entry).to_vec(),
    }
}

#[test]
fn a_manifest_is_read_as_it_was_written() -> Result<(), Error> {
    let none = Manifest { segments: Vec::new(), clean: false, ..some() };
    for manifest in [some(), none] {
        assert_eq!(Manifest::decode(&manifest.encode())?, manifest);
    }
    Ok(())
}

#[test]
fn every_flipped_bit_and_every_cut_of_a_manifest_is_noticed() {
    let bytes = some().encode();
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(Manifest::decode(&bytes).is_err(), "bit {bit}");
    }
    for len in 0..bytes.len() {
        assert!(Manifest::decode(&bytes[..len]).is_err(), "{len} bytes");
    }
    assert!(Manifest::decode(&[&bytes[..], &[0]].concat()).is_err());
}

#[test]
fn a_manifest_with_invalid_fields_is_refused() {
    let twice = [some().segments[0]; 2].to_vec();
    for manifest in [
        Manifest { segments: twice, ..some() },
        Manifest { number: 7, ..some() },
        Manifest { sequence: 0, ..some() },
        Manifest { sequence: SEQUENCE_LIMIT, ..some() },
        Manifest { segment_bytes: SIZES.start() - 8, ..some() },
        Manifest { segment_bytes: SIZES.start() + 1, ..some() },
        Manifest { segment_bytes: SIZES.end() + 8, ..some() },
        Manifest { segments: vec![Entry { end: SIZES.end() + 8, ..Entry::default() }], ..some() },
    ] {
        let refused = Manifest::decode(&manifest.encode());
        assert!(matches!(refused, Err(Error::Damaged { .. })), "{manifest:?}");
    }
}

#[test]
fn a_manifest_of_a_later_version_is_refused_with_its_version() {
    let mut bytes = some().encode();
    bytes[8] = 2;
    let content = bytes.len() - 8;
    let checksum = xxh3_64(&bytes[..content]).to_le_bytes();
    bytes[content..].copy_from_slice(&checksum);
    let refused = Manifest::decode(&bytes);
    assert!(matches!(refused, Err(Error::Newer { version: 2, .. })), "{refused:?}");
}

#[test]
fn a_manifest_has_the_bytes_in_the_format_description() {
    let format = include_str!("../../../../../docs/FORMAT-STORES.md");
    let bytes = Manifest { segments: some().segments[..1].to_vec(), ..some() }.encode();
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let lines: Vec<String> = hex.chunks(16).map(|line| line.join(" ")).collect();
    assert!(format.contains(&lines.join("\n")), "{}", lines.join("\n"));
}

#[test]
fn a_manifest_of_an_ordered_store_is_named() {
    let ordered = [&crate::kernel::kind::LSM_MAGIC[..], &[0; 80]].concat();
    let refused = Manifest::decode(&ordered);
    assert!(matches!(refused, Err(Error::WrongKind { found: StoreKind::Lsm })), "{refused:?}");
}
