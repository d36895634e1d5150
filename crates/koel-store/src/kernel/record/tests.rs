//! Records of all kinds are read as they were written, and a checksum covers every bit of them.

use super::*;

const POSITION: Position = Position { salt: 1, segment: 2, offset: 40 };

fn sealed(header: &Header, key: &[u8], value: &[u8], position: &Position) -> Vec<u8> {
    let mut bytes = Vec::new();
    append(&mut bytes, header, key, value);
    seal(&mut bytes, header, position);
    bytes
}

/// Returns whether all of `bytes` is a sound record at `position`.
fn is_sound_record(bytes: &[u8], position: &Position) -> bool {
    let Some(header) = Header::read(bytes).filter(|header| header.size() == bytes.len() as u64)
    else {
        return false;
    };
    let mut at = usize_of(header.body());
    let blocks =
        if header.kind == Kind::Large { block_sizes(&header).collect() } else { Vec::new() };
    is_sound(&bytes[..at], position)
        && blocks.into_iter().all(|block| {
            let sound = is_sound_block(&bytes[at..at + block.stored], &position.plus(at as u64));
            at += block.stored;
            sound
        })
}

fn headers() -> Vec<(Header, Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    for key_len in [0_usize, 1, 7, 8, 9, 65_536] {
        for value_len in [0_usize, 1, 8, 100, 65_535, 65_536, 65_537, 131_072, 200_001] {
            let header = Header {
                sequence: 77,
                more: true,
                ..Header::of_value(key_len as u64, value_len as u64)
            };
            all.push((header, vec![b'k'; key_len], vec![b'v'; value_len]));
        }
        let header = Header { sequence: 1, ..Header::of_tombstone(key_len as u64) };
        all.push((header, vec![b'k'; key_len], vec![]));
    }
    all
}

/// Returns the header of a record as bytes, without its checksum.
fn start_of(header: &Header) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[CHECKSUM..CONTENT].copy_from_slice(&header.meta().to_le_bytes());
    bytes[CONTENT..].copy_from_slice(&header.lengths().to_le_bytes());
    bytes
}

#[test]
fn a_length_is_at_most_four_gibibytes() {
    let lens = [(MAX_LEN, 0), (0, MAX_LEN), (MAX_LEN, MAX_LEN), (MAX_LEN - 1, MAX_LEN - 1)];
    for (key_len, value_len) in lens {
        let header = Header { sequence: 1, ..Header::of_value(key_len, value_len) };
        let bytes = start_of(&header);
        assert_eq!(Header::read(&bytes), Some(header));
        assert!(header.size() >= key_len + value_len);
        for (at, len) in [(CONTENT, key_len), (CONTENT + 4, value_len)] {
            let mut longer = bytes;
            longer[at] = 1;
            assert_eq!(Header::read(&longer).is_none(), len == MAX_LEN, "{key_len}, {value_len}");
        }
    }
}

#[test]
fn lengths_take_eight_bytes_only_if_four_are_too_few() {
    let lens = [(0, 0, 4), (0xffff, 0xffff, 4), (0x1_0000, 0, 8), (0, 0x1_0000, 8)];
    for (key_len, value_len, bytes) in lens {
        let header = Header { sequence: 1, ..Header::of_value(key_len, value_len) };
        assert_eq!(header.body(), padded(16 + bytes + key_len + value_len));
        assert_eq!(Header::read(&start_of(&header)), Some(header));
    }
    for (key_len, value_len) in [(0_u32, 0_u32), (3, 4), (0xffff, 0xffff)] {
        let header = Header { sequence: 1, ..Header::of_value(key_len.into(), value_len.into()) };
        let mut wide = start_of(&header);
        wide[CHECKSUM] |= 0x40;
        wide[CONTENT..CONTENT + 4].copy_from_slice(&key_len.to_le_bytes());
        wide[CONTENT + 4..].copy_from_slice(&value_len.to_le_bytes());
        assert_eq!(Header::read(&wide), None, "{key_len}, {value_len} in the other encoding");
    }
}

#[test]
fn a_record_has_the_size_in_its_header_and_is_read_as_it_was_written() {
    for (header, key, value) in headers() {
        let bytes = sealed(&header, &key, &value, &POSITION);
        assert_eq!(bytes.len() as u64, header.size());
        assert!(bytes.len().is_multiple_of(8));
        assert_eq!(Header::read(&bytes), Some(header));
        assert_eq!(header.key(&bytes), key);
        assert_eq!(header.value(&bytes), if header.kind == Kind::Large { &[] } else { &value[..] });
        assert!(is_sound_record(&bytes, &POSITION));
    }
}

#[test]
fn a_record_is_sound_at_its_own_position_only() {
    for (header, key, value) in headers() {
        let bytes = sealed(&header, &key, &value, &POSITION);
        assert!(!is_sound_record(&bytes, &Position { salt: 0, ..POSITION }));
        assert!(!is_sound_record(&bytes, &Position { segment: 3, ..POSITION }));
        assert!(!is_sound_record(&bytes, &POSITION.plus(8)));
    }
}

#[test]
fn every_flipped_bit_of_a_record_is_noticed() {
    for (header, key, value) in headers() {
        let mut bytes = sealed(&header, &key, &value, &POSITION);
        let far = bytes.len() * 8;
        for bit in (0..far.min(600)).chain((0..far).step_by(997)).chain(far - 64..far) {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_sound_record(&bytes, &POSITION), "bit {bit} of {header:?}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(is_sound_record(&bytes, &POSITION));
    }
}

#[test]
fn a_record_has_the_bytes_in_the_format_description() {
    let format = include_str!("../../../../../docs/FORMAT-STORES.md");
    let header = Header { sequence: 3, more: true, ..Header::of_value(3, 4) };
    let value = sealed(&header, b"ada", b"1815", &POSITION);
    let mut mark = Vec::new();
    append_mark(&mut mark, 40, 4, &POSITION.plus(32));
    for (name, bytes) in [("value", value), ("mark", mark)] {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let lines: Vec<String> = hex.chunks(16).map(|line| line.join(" ")).collect();
        assert!(format.contains(&lines.join("\n")), "{name}:\n{}", lines.join("\n"));
    }
}
