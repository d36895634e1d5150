//! What an archive keeps of a file, a folder or a symbolic link, and its bytes.
//!
//! ```text
//! entry     u8      kind: 0 file, 1 folder, 2 symbolic link
//!           u8      flags: 1 attributes follow, 2 extended attributes were not kept; of a file:
//!                   4 it has holes, 8 it changed while it was read
//!           u16 ..  length of the name, name
//!           u16     mode (12 bits)                      |
//!           u32     owner, u32 group                    | if flag 1
//!           time    of the last change of the bytes     |
//! file      content
//!           u64     number that hard links of one file share, or 0
//!           u64     inode, and time of the last change of bytes or attributes; 0 if unknown
//! folder    content, whose bytes are the entries of the folder, by ascending name
//!           u64     number of all entries below the folder, at every depth
//! link      u16 ..  length of the target, target
//!
//! content   u64     length
//!           [32]    BLAKE3 of the bytes
//!           u8      height: 0 is a chunk, h is a list of contents of height h - 1
//!           [32]    root: the hash of that list; absent at height 0, where it is the BLAKE3 above
//! time      i64     seconds since 1970, u32 nanoseconds
//! ```
//!
//! All numbers are little-endian. A folder is stored like a file, so an unchanged folder takes no
//! space in the next version.

use std::time::SystemTime;

use super::keys::Hash;

/// Maximum height of the lists of a content: 1,024^6 chunks.
const MAX_HEIGHT: u8 = 6;

/// A stored file, folder or symbolic link.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The name in its folder; empty for what was imported itself.
    pub name: Vec<u8>,
    /// What it is.
    pub kind: Kind,
    /// Mode, owner and time; `None` for what was imported from a stream.
    pub attributes: Option<Attributes>,
    /// Whether it had extended attributes or access control lists. They are not kept.
    pub had_extended: bool,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A file.
    File(StoredFile),
    /// A folder.
    Folder(StoredFolder),
    /// A symbolic link to this target.
    Link(Vec<u8>),
}

/// A stored file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredFile {
    /// Its bytes.
    pub content: Content,
    /// The number that hard links of one file share in a version; 0 if it has one name.
    pub link_number: u64,
    /// Whether it had holes: parts without a place on disk, which are read as zeros.
    pub has_holes: bool,
    /// Whether it changed while it was read. Its bytes may be of several moments.
    pub changed_while_read: bool,
    /// Identifies the state of the file on disk.
    pub(super) stamp: Stamp,
}

/// A stored folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredFolder {
    /// The bytes of its entries.
    pub content: Content,
    /// The number of files, folders and links below it, at every depth. It tells how many are
    /// missing if the entries cannot be read.
    pub below: u64,
}

/// Where the bytes of a file or a folder are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Content {
    /// The length in bytes.
    pub length: u64,
    /// The BLAKE3 hash of the bytes.
    pub hash: Hash,
    pub(super) height: u8,
    pub(super) root: Hash,
}

/// The attributes of a file, a folder or a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attributes {
    /// The permissions, with the bits for set-user-ID, set-group-ID and sticky.
    pub mode: u16,
    /// The number of the owner.
    pub uid: u32,
    /// The number of the group.
    pub gid: u32,
    /// The time of the last change of the bytes.
    pub modified: Time,
}

/// A time: seconds since 1970, and nanoseconds after that second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_structs, reason = "a time has no other part")]
pub struct Time {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds, less than 10^9.
    pub nanos: u32,
}

/// Identifies the state of a file on disk: any change of bytes or attributes changes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) inode: u64,
    pub(super) changed: Time,
}

impl Entry {
    /// Returns the content of a file or a folder.
    #[must_use]
    pub fn content(&self) -> Option<Content> {
        match &self.kind {
            Kind::File(file) => Some(file.content),
            Kind::Folder(folder) => Some(folder.content),
            Kind::Link(_) => None,
        }
    }

    /// Returns the number of entries that this one stands for: itself, and all below it.
    pub(super) fn count(&self) -> u64 {
        match &self.kind {
            Kind::Folder(folder) => folder.below.saturating_add(1),
            _ => 1,
        }
    }

    /// Returns the entry of bytes without attributes.
    pub(super) fn of_stream(content: Content) -> Self {
        let kind = Kind::File(StoredFile::new(content, Stamp::default()));
        Self { name: Vec::new(), kind, attributes: None, had_extended: false }
    }

    /// Appends the entry. Its name and target have at most 65,535 bytes.
    pub(super) fn encode(&self, bytes: &mut Vec<u8>) {
        let kind = match self.kind {
            Kind::File(_) => 0,
            Kind::Folder(_) => 1,
            Kind::Link(_) => 2,
        };
        let (has_holes, changed) = match self.kind {
            Kind::File(file) => (file.has_holes, file.changed_while_read),
            _ => (false, false),
        };
        let flags = [self.attributes.is_some(), self.had_extended, has_holes, changed];
        let flags = flags.iter().rev().fold(0, |flags, flag| flags << 1 | u8::from(*flag));
        bytes.extend([kind, flags]);
        encode_text(bytes, &self.name);
        if let Some(attributes) = &self.attributes {
            bytes.extend(attributes.mode.to_le_bytes());
            bytes.extend(attributes.uid.to_le_bytes());
            bytes.extend(attributes.gid.to_le_bytes());
            attributes.modified.encode(bytes);
        }
        match &self.kind {
            Kind::File(file) => {
                file.content.encode(bytes);
                bytes.extend(file.link_number.to_le_bytes());
                bytes.extend(file.stamp.inode.to_le_bytes());
                file.stamp.changed.encode(bytes);
            }
            Kind::Folder(folder) => {
                folder.content.encode(bytes);
                bytes.extend(folder.below.to_le_bytes());
            }
            Kind::Link(target) => encode_text(bytes, target),
        }
    }

    /// Decodes the entry at the start of `fields`.
    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Self, DecodeError> {
        let [kind, flags] = fields.array()?;
        if kind > 2 || flags > if kind == 0 { 15 } else { 3 } {
            return Err(DecodeError::Invalid);
        }
        let name = fields.text()?.to_vec();
        let attributes = if flags & 1 == 1 { Some(Attributes::decode(fields)?) } else { None };
        let kind = match kind {
            0 => Kind::File(StoredFile {
                content: Content::decode(fields)?,
                link_number: u64::from_le_bytes(fields.array()?),
                has_holes: flags & 4 != 0,
                changed_while_read: flags & 8 != 0,
                stamp: Stamp {
                    inode: u64::from_le_bytes(fields.array()?),
                    changed: Time::decode(fields)?,
                },
            }),
            1 => Kind::Folder(StoredFolder {
                content: Content::decode(fields)?,
                below: u64::from_le_bytes(fields.array()?),
            }),
            _ => Kind::Link(fields.text()?.to_vec()),
        };
        Ok(Self { name, kind, attributes, had_extended: flags & 2 == 2 })
    }
}

impl StoredFile {
    pub(super) fn new(content: Content, stamp: Stamp) -> Self {
        Self { content, link_number: 0, has_holes: false, changed_while_read: false, stamp }
    }
}

impl Attributes {
    fn decode(fields: &mut Fields<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            mode: u16::from_le_bytes(fields.array()?) & 0o7777,
            uid: u32::from_le_bytes(fields.array()?),
            gid: u32::from_le_bytes(fields.array()?),
            modified: Time::decode(fields)?,
        })
    }
}

impl Content {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.length.to_le_bytes());
        bytes.extend(self.hash);
        bytes.push(self.height);
        if self.height > 0 {
            bytes.extend(self.root);
        }
    }

    fn decode(fields: &mut Fields<'_>) -> Result<Self, DecodeError> {
        let length = u64::from_le_bytes(fields.array()?);
        let hash = fields.array()?;
        let [height] = fields.array()?;
        match height {
            0 => Ok(Self { length, hash, height, root: hash }),
            1..=MAX_HEIGHT => Ok(Self { length, hash, height, root: fields.array()? }),
            _ => Err(DecodeError::Invalid),
        }
    }
}

impl Time {
    /// Returns the current time.
    pub(super) fn now() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        Self { seconds, nanos: since.subsec_nanos() }
    }

    pub(super) fn encode(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.seconds.to_le_bytes());
        bytes.extend(self.nanos.to_le_bytes());
    }

    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Self, DecodeError> {
        let seconds = i64::from_le_bytes(fields.array()?);
        let nanos = u32::from_le_bytes(fields.array()?);
        if nanos < 1_000_000_000 { Ok(Self { seconds, nanos }) } else { Err(DecodeError::Invalid) }
    }
}

/// Appends the length of a text in two bytes, and the text.
pub(super) fn encode_text(bytes: &mut Vec<u8>, text: &[u8]) {
    debug_assert!(text.len() <= usize::from(u16::MAX), "callers check the length");
    bytes.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
    bytes.extend(text);
}

/// Why bytes cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecodeError {
    /// They end too early.
    Short,
    /// They are no entry.
    Invalid,
}

/// Bytes that are decoded from the start.
#[derive(Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (array, rest) = self.0.split_first_chunk().ok_or(DecodeError::Short)?;
        self.0 = rest;
        Ok(*array)
    }

    pub(super) fn text(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = usize::from(u16::from_le_bytes(self.array()?));
        let (text, rest) = self.0.split_at_checked(length).ok_or(DecodeError::Short)?;
        self.0 = rest;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(height: u8) -> Content {
        let root = if height == 0 { [1; 32] } else { [2; 32] };
        Content { length: 20_000_000, hash: [1; 32], height, root }
    }

    fn entries() -> [Entry; 4] {
        let modified = Time { seconds: -1, nanos: 999_999_999 };
        let attributes = Some(Attributes { mode: 0o4755, uid: 1, gid: 2, modified });
        let stamp = Stamp { inode: 9, changed: Time { seconds: 7, nanos: 8 } };
        let file = StoredFile {
            link_number: 3,
            has_holes: true,
            changed_while_read: true,
            ..StoredFile::new(content(1), stamp)
        };
        let entry =
            |name: &[u8], kind| Entry { name: name.to_vec(), kind, attributes, had_extended: true };
        [
            Entry::of_stream(content(0)),
            entry(b"file", Kind::File(file)),
            entry(b"folder", Kind::Folder(StoredFolder { content: content(0), below: 9 })),
            entry(b"link", Kind::Link(b"/to/nothing".to_vec())),
        ]
    }

    #[test]
    fn entries_are_read_back_and_their_parts_are_too_short() {
        for entry in entries() {
            let mut bytes = Vec::new();
            entry.encode(&mut bytes);
            let mut fields = Fields(&bytes);
            assert_eq!(Entry::decode(&mut fields), Ok(entry));
            assert!(fields.0.is_empty());
            for end in 0..bytes.len() {
                assert_eq!(Entry::decode(&mut Fields(&bytes[..end])), Err(DecodeError::Short));
            }
        }
    }

    #[test]
    fn an_entry_has_the_documented_layout() {
        let [stream, file, ..] = entries();
        let (mut bytes, mut longer) = (Vec::new(), Vec::new());
        stream.encode(&mut bytes);
        file.encode(&mut longer);
        assert_eq!((bytes.len(), longer.len()), (4 + 41 + 28, 8 + 22 + 73 + 28));
        assert_eq!(longer[..10], [0, 15, 4, 0, b'f', b'i', b'l', b'e', 0o355, 0o11]);
    }

    #[test]
    fn unknown_kinds_flags_heights_and_times_are_refused() {
        let [_, file, ..] = entries();
        let mut bytes = Vec::new();
        file.encode(&mut bytes);
        for (at, value) in [(0, 1), (0, 3), (1, 16), (29, 0xff), (70, MAX_HEIGHT + 1)] {
            let mut wrong = bytes.clone();
            wrong[at] = value;
            assert_eq!(Entry::decode(&mut Fields(&wrong)), Err(DecodeError::Invalid), "{at}");
        }
    }
}
