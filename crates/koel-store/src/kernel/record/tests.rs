//! Records of all kinds there and back, and every bit of them under a checksum.

use super::*;

const PLACE: Place = Place { salt: 1, segment: 2, offset: 40 };

fn sealed(head: &Head, key: &[u8], value: &[u8], place: &Place) -> Vec<u8> {
    let mut bytes = Vec::new();
    append(&mut bytes, head, key, value);
    seal(&mut bytes, head, place);
    bytes
}

/// Whether all of `bytes` is a sound record at `place`.
fn passes(bytes: &[u8], place: &Place) -> bool {
    let Some(head) = Head::read(bytes).filter(|head| head.size() == bytes.len() as u64) else {
        return false;
    };
    let mut at = usize_of(head.body());
    let blocks = if head.kind == Kind::Large { block_sizes(&head).collect() } else { Vec::new() };
    is_sound(&bytes[..at], place)
        && blocks.into_iter().all(|block| {
            let sound = is_sound_block(&bytes[at..at + block.stored], &place.plus(at as u64));
            at += block.stored;
            sound
        })
}

fn heads() -> Vec<(Head, Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    for key_len in [0_usize, 1, 7, 8, 9, 65_536] {
        for value_len in [0_usize, 1, 8, 100, 65_535, 65_536, 65_537, 131_072, 200_001] {
            let head = Head {
                sequence: 77,
                more: true,
                ..Head::of_value(key_len as u64, value_len as u64)
            };
            all.push((head, vec![b'k'; key_len], vec![b'v'; value_len]));
        }
        let head = Head { sequence: 1, ..Head::of_tombstone(key_len as u64) };
        all.push((head, vec![b'k'; key_len], vec![]));
    }
    all
}

/// The first bytes of a record, but for its checksum and its key.
fn start_of(head: &Head) -> [u8; HEAD] {
    let mut bytes = [0; HEAD];
    bytes[CHECKSUM..CONTENT].copy_from_slice(&head.meta().to_le_bytes());
    bytes[CONTENT..].copy_from_slice(&head.lengths().to_le_bytes());
    bytes
}

#[test]
fn four_gibibytes_are_the_most_that_a_head_can_say() {
    let lens = [(LONGEST, 0), (0, LONGEST), (LONGEST, LONGEST), (LONGEST - 1, LONGEST - 1)];
    for (key_len, value_len) in lens {
        let head = Head { sequence: 1, ..Head::of_value(key_len, value_len) };
        let bytes = start_of(&head);
        assert_eq!(Head::read(&bytes), Some(head));
        assert!(head.size() >= key_len + value_len);
        for (at, len) in [(CONTENT, key_len), (CONTENT + 4, value_len)] {
            let mut longer = bytes;
            longer[at] = 1;
            assert_eq!(Head::read(&longer).is_none(), len == LONGEST, "{key_len}, {value_len}");
        }
    }
}

#[test]
fn lengths_take_eight_bytes_where_four_are_too_few_and_nowhere_else() {
    let lens = [(0, 0, 4), (0xffff, 0xffff, 4), (0x1_0000, 0, 8), (0, 0x1_0000, 8)];
    for (key_len, value_len, bytes) in lens {
        let head = Head { sequence: 1, ..Head::of_value(key_len, value_len) };
        assert_eq!(head.body(), padded(16 + bytes + key_len + value_len));
        assert_eq!(Head::read(&start_of(&head)), Some(head));
    }
    for (key_len, value_len) in [(0_u32, 0_u32), (3, 4), (0xffff, 0xffff)] {
        let head = Head { sequence: 1, ..Head::of_value(key_len.into(), value_len.into()) };
        let mut wide = start_of(&head);
        wide[CHECKSUM] |= 0x40;
        wide[CONTENT..CONTENT + 4].copy_from_slice(&key_len.to_le_bytes());
        wide[CONTENT + 4..].copy_from_slice(&value_len.to_le_bytes());
        assert_eq!(Head::read(&wide), None, "{key_len}, {value_len} in the other form");
    }
}

#[test]
fn a_record_has_the_size_its_head_says_and_is_read_as_it_was_written() {
    for (head, key, value) in heads() {
        let bytes = sealed(&head, &key, &value, &PLACE);
        assert_eq!(bytes.len() as u64, head.size());
        assert!(bytes.len().is_multiple_of(8));
        assert_eq!(Head::read(&bytes), Some(head));
        assert_eq!(head.key(&bytes), key);
        assert_eq!(head.value(&bytes), if head.kind == Kind::Large { &[] } else { &value[..] });
        assert!(passes(&bytes, &PLACE));
    }
}

#[test]
fn a_record_does_not_pass_anywhere_else() {
    for (head, key, value) in heads() {
        let bytes = sealed(&head, &key, &value, &PLACE);
        assert!(!passes(&bytes, &Place { salt: 0, ..PLACE }));
        assert!(!passes(&bytes, &Place { segment: 3, ..PLACE }));
        assert!(!passes(&bytes, &PLACE.plus(8)));
    }
}

#[test]
fn no_bit_of_a_record_can_flip_unnoticed() {
    for (head, key, value) in heads() {
        let mut bytes = sealed(&head, &key, &value, &PLACE);
        let far = bytes.len() * 8;
        for bit in (0..far.min(600)).chain((0..far).step_by(997)).chain(far - 64..far) {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!passes(&bytes, &PLACE), "bit {bit} of {head:?}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(passes(&bytes, &PLACE));
    }
}

#[test]
fn a_record_is_the_bytes_of_the_format() {
    let format = include_str!("../../../../../docs/FORMAT.md");
    let head = Head { sequence: 3, more: true, ..Head::of_value(3, 4) };
    let value = sealed(&head, b"ada", b"1815", &PLACE);
    let mut mark = Vec::new();
    append_mark(&mut mark, 40, 4, &PLACE.plus(32));
    for (name, bytes) in [("value", value), ("mark", mark)] {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let lines: Vec<String> = hex.chunks(16).map(|line| line.join(" ")).collect();
        assert!(format.contains(&lines.join("\n")), "{name}:\n{}", lines.join("\n"));
    }
}
