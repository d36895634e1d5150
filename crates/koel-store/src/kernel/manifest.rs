//! The manifest: which segments live, in the order of the log, and how long each is. It is replaced as a whole, in one step.
//!
//! ```text
//! 0        8         12      16     24     32           40         48       56     64      72
//! +--------+---------+-------+------+------+------------+----------+--------+------+-------+----- - -+----------+
//! | magic  | version | clean | salt | seed | bytes of a | next     | next   | keys | count | count * | checksum |
//! |        |         |       |      |      | segment    | sequence | number |      |       | 24      |          |
//! +--------+---------+-------+------+------+------------+----------+--------+------+-------+----- - -+----------+
//! each segment: number, end, cleaned
//! ```
//!
//! A new manifest is written under another name, synced, given its name, and the folder synced: after a crash there is the old one or the new one. The file is read only as a whole, and
//! refused as a whole.
//!
//! *end* is exact for every segment but the last of a store that was not closed (`clean` = 0): there it is how far the segment was durable, so whatever is unsound in front of it is damage.

use std::collections::HashSet;

use xxhash_rust::xxh3::xxh3_64;

use super::access::{read_whole, u32_at, u64_at, write_all};
use super::files::Folder;
use super::record::{SEQUENCES, UNIT};
use super::segment::SIZES;
use crate::Error;

/// The name of the file.
pub(crate) const NAME: &str = "MANIFEST";
/// Its name while it is written.
pub(crate) const NEW: &str = "MANIFEST.new";

const MAGIC: [u8; 8] = *b"koelman\n";
const VERSION: u32 = 1;
const HEADER: usize = 72;
const ENTRY: usize = 24;

/// A store has no more.
pub(crate) const MAX_SEGMENTS: u64 = 1 << 22;
/// Bytes of the longest manifest.
const MOST: u64 = HEADER as u64 + MAX_SEGMENTS * ENTRY as u64 + 8;

/// What the manifest says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The store was closed: every end is exact, and nothing has been written since.
    pub(crate) clean: bool,
    /// Goes into every checksum of a segment.
    pub(crate) salt: u64,
    /// Of the hash of keys.
    pub(crate) seed: u64,
    /// Bytes of a segment, unless one record alone has more.
    pub(crate) segment_bytes: u64,
    /// Greater than the sequence of every record in a segment whose end is exact.
    pub(crate) sequence: u64,
    /// No segment has this number or a greater one.
    pub(crate) number: u64,
    /// How many keys there were when this was written: how much room the index is given at once.
    pub(crate) keys: u64,
    /// In the order of the log.
    pub(crate) segments: Vec<Entry>,
}

/// A segment that lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) number: u64,
    pub(crate) end: u64,
    pub(crate) cleaned: u64,
}

impl Manifest {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + self.segments.len() * ENTRY + 8);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&u32::from(self.clean).to_le_bytes());
        let count = self.segments.len() as u64;
        let of_log = [self.segment_bytes, self.sequence, self.number, self.keys, count];
        let header = [self.salt, self.seed].into_iter().chain(of_log);
        let entry = |entry: &Entry| [entry.number, entry.end, entry.cleaned];
        let numbers = header.chain(self.segments.iter().flat_map(entry));
        bytes.extend(numbers.flat_map(u64::to_le_bytes));
        let checksum = xxh3_64(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let damaged = |what| Err(Error::damaged(NAME, 0, what));
        let Some(content) = bytes.len().checked_sub(8).filter(|&content| content >= HEADER) else {
            return damaged("it is too short");
        };
        if bytes[..8] != MAGIC {
            return damaged("it does not begin as a manifest does");
        }
        if u64_at(bytes, content) != xxh3_64(&bytes[..content]) {
            return damaged("its checksum does not match");
        }
        let version = u32_at(bytes, 8);
        if version > VERSION {
            return Err(Error::Newer { file: NAME.to_owned(), version });
        }
        let [salt, seed, segment_bytes, sequence, number, keys, count] =
            [16, 24, 32, 40, 48, 56, 64].map(|at| u64_at(bytes, at));
        let entries = bytes[HEADER..content].chunks_exact(ENTRY);
        let whole = entries.remainder().is_empty() && entries.len() as u64 == count;
        let entry = |bytes: &[u8]| {
            let [number, end, cleaned] = [0, 8, 16].map(|at| u64_at(bytes, at));
            Entry { number, end, cleaned }
        };
        let segments: Vec<Entry> = entries.map(entry).collect();
        let mut seen = HashSet::new();
        let is_wrong = |entry: &Entry| {
            entry.number >= number || entry.end > *SIZES.end() || !seen.insert(entry.number)
        };
        if !whole
            || version == 0
            || !(1..SEQUENCES).contains(&sequence)
            || !SIZES.contains(&segment_bytes)
            || !segment_bytes.is_multiple_of(UNIT)
            || segments.iter().any(is_wrong)
        {
            return damaged("no store has such a manifest");
        }
        let clean = u32_at(bytes, 12) == 1;
        Ok(Self { clean, salt, seed, segment_bytes, sequence, number, keys, segments })
    }

    /// The manifest of the folder; `None` where it has none.
    pub(crate) fn load(folder: &dyn Folder) -> Result<Option<Self>, Error> {
        match folder.open(NAME) {
            Ok(file) => {
                let bytes = read_whole(&*file, MOST).map_err(Error::io("read", NAME))?;
                let bytes = bytes.ok_or_else(|| Error::damaged(NAME, MOST, "it is too long"))?;
                Self::decode(&bytes).map(Some)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("open", NAME)(error)),
        }
    }

    /// Makes this the manifest of the folder, durably. After an error it may be or not.
    pub(crate) fn store(&self, folder: &dyn Folder) -> Result<(), Error> {
        match folder.remove(NEW) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove", NEW)(error));
            }
            _ => {}
        }
        let file = folder.create(NEW).map_err(Error::io("create", NEW))?;
        write_all(&*file, &self.encode(), 0).map_err(Error::io("write", NEW))?;
        file.sync().map_err(Error::io("sync", NEW))?;
        folder.rename(NEW, NAME).map_err(Error::io("rename", NEW))?;
        folder.sync().map_err(Error::io("sync", "the folder"))
    }
}

#[cfg(test)]
mod tests {
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
    fn no_bit_and_no_end_of_a_manifest_can_go_unnoticed() {
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
    fn a_manifest_that_no_store_has_is_refused() {
        let twice = [some().segments[0]; 2].to_vec();
        for manifest in [
            Manifest { segments: twice, ..some() },
            Manifest { number: 7, ..some() },
            Manifest { sequence: 0, ..some() },
            Manifest { sequence: SEQUENCES, ..some() },
            Manifest { segment_bytes: SIZES.start() - 8, ..some() },
            Manifest { segment_bytes: SIZES.start() + 1, ..some() },
            Manifest { segment_bytes: SIZES.end() + 8, ..some() },
            Manifest {
                segments: vec![Entry { end: SIZES.end() + 8, ..Entry::default() }],
                ..some()
            },
        ] {
            let refused = Manifest::decode(&manifest.encode());
            assert!(matches!(refused, Err(Error::Damaged { .. })), "{manifest:?}");
        }
    }

    #[test]
    fn a_manifest_of_a_later_version_is_refused_by_name() {
        let mut bytes = some().encode();
        bytes[8] = 2;
        let content = bytes.len() - 8;
        let checksum = xxh3_64(&bytes[..content]).to_le_bytes();
        bytes[content..].copy_from_slice(&checksum);
        let refused = Manifest::decode(&bytes);
        assert!(matches!(refused, Err(Error::Newer { version: 2, .. })), "{refused:?}");
    }

    #[test]
    fn a_manifest_is_the_bytes_of_the_format() {
        let format = include_str!("../../../../docs/FORMAT.md");
        let bytes = Manifest { segments: some().segments[..1].to_vec(), ..some() }.encode();
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let lines: Vec<String> = hex.chunks(16).map(|line| line.join(" ")).collect();
        assert!(format.contains(&lines.join("\n")), "{}", lines.join("\n"));
    }
}
