//! The first chunk of a dump, which says what the body is.
//!
//! All numbers are little-endian.
//!
//! **A filter of ours**, 50 bytes; the body is the file image of docs/FORMAT.md:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | `KOELCF01` |
//! | 8 | 8 | length of the image |
//! | 16 | 8 | the error rate that was asked for, a double |
//! | 24 | 8 | the capacity that was asked for |
//! | 32 | 8 | items deleted |
//! | 40 | 6 | bucket size, most iterations, expansion: 2 bytes each |
//! | 46 | 4 | zeros |
//!
//! **A filter whose items expire**, 58 bytes: the same with `KOELXF01`, then the number of items
//! that expired in 8 bytes. The body is the file image.
//!
//! **RedisBloom's layout**, 38 bytes; the body is the slots of its tables, one table after the
//! other: items, buckets of the first table, items deleted and number of tables in 8 bytes each,
//! then the same six bytes.

use crate::filter::{Info, Options};

const MAGIC: &[u8; 8] = b"KOELCF01";
const EXPIRING_MAGIC: &[u8; 8] = b"KOELXF01";
/// Bytes of a header of ours.
pub const NATIVE_BYTES: usize = 50;
/// Bytes of a header of a filter whose items expire.
pub const EXPIRING_BYTES: usize = NATIVE_BYTES + 8;
/// Bytes of RedisBloom's header.
pub const COMPAT_BYTES: usize = 38;
/// The most slots that one lookup reads: two buckets of each table. RedisBloom's settings allow
/// 33 million, which take 44 ms; by default its filters read at most 256.
const MOST_SLOTS_READ: u64 = 4096;
/// The most slots that an insert without room looks at: a bucket for each eviction.
const MOST_SLOTS_TRIED: u64 = 1 << 16;

/// Where the bytes of a filter come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Anybody may have made them: every bucket is verified.
    #[default]
    Anywhere,
    /// The data set itself: the server's own file, its primary's, or the commands of either, which
    /// were verified where a client sent them. The checksum tells damage.
    DataSet,
}

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Header {
    /// The image of a filter of ours.
    Native(NativeHeader),
    /// The image of a filter whose items expire, and how many did.
    Expiring(NativeHeader, u64),
    /// Tables in RedisBloom's layout.
    Compat(Shape, Totals),
}

/// What a filter of ours remembers beside its image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NativeHeader {
    /// Bytes of the image.
    pub image_len: u64,
    /// The error rate that was asked for.
    pub error: f64,
    /// The capacity that was asked for.
    pub capacity: u64,
    /// Items deleted since the filter was created or compacted.
    pub deleted: u64,
    /// Options that only INFO shows.
    pub options: Options,
}

impl NativeHeader {
    /// The numbers of the filter, whose table has these. Its items do not expire.
    pub(super) fn info(&self, items: u64, buckets: u64, rate: f64, load: f64) -> Info {
        Info {
            bytes: self.image_len,
            buckets,
            tables: 1,
            items,
            deleted: self.deleted,
            capacity: self.capacity,
            error: self.error,
            rate,
            load,
            format: "koel",
            window: 0,
            expired: 0,
            evicted: 0,
            corrections: 0,
        }
    }
}

/// What decides where items are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Buckets of the first table.
    pub buckets: u64,
    /// Number of tables.
    pub tables: u64,
    /// Bucket size, evictions and expansion.
    pub options: Options,
}

/// What a filter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Items in the filter.
    pub items: u64,
    /// Items deleted since the filter was created or compacted.
    pub deleted: u64,
}

impl Shape {
    /// Whether a lookup in so many tables reads few enough slots.
    pub(super) fn may_have(&self, tables: u64) -> bool {
        let each = 2 * u64::from(self.options.bucket_size);
        tables.checked_mul(each).is_some_and(|slots| slots <= MOST_SLOTS_READ)
    }

    /// Bytes of all tables. `None` if no filter has this shape.
    pub(super) fn len(&self) -> Option<u64> {
        let bucket_size = u64::from(self.options.bucket_size);
        let sound = self.options.are_sound()
            && self.buckets.is_power_of_two()
            && self.tables > 0
            && self.may_have(self.tables)
            && bucket_size * u64::from(self.options.max_iterations) <= MOST_SLOTS_TRIED;
        if !sound || (self.tables > 1 && self.options.expansion == 0) {
            return None;
        }
        let slots = self.buckets.checked_mul(bucket_size)?;
        let (mut len, mut table) = (slots, slots);
        for _ in 1..self.tables {
            table = table.checked_mul(u64::from(self.options.expansion))?;
            len = len.checked_add(table)?;
        }
        isize::try_from(len).ok().map(|_| len)
    }
}

impl Header {
    /// Reads a header. `None` if the bytes are none; the fields may still be impossible.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if let Some(fields) = bytes.strip_prefix(MAGIC) {
            let mut fields = Fields(fields);
            let header = fields.native()?;
            return fields.0.is_empty().then_some(Self::Native(header));
        }
        if let Some(fields) = bytes.strip_prefix(EXPIRING_MAGIC) {
            let mut fields = Fields(fields);
            let (header, expired) = (fields.native()?, fields.eight()?);
            return fields.0.is_empty().then_some(Self::Expiring(header, expired));
        }
        let mut fields = Fields(bytes);
        let (items, buckets) = (fields.eight()?, fields.eight()?);
        let (deleted, tables) = (fields.eight()?, fields.eight()?);
        let options = fields.options()?;
        let whole = fields.0.is_empty();
        whole.then_some(Self::Compat(Shape { buckets, tables, options }, Totals { items, deleted }))
    }

    /// Writes it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Native(header) => header.encode(MAGIC),
            Self::Expiring(header, expired) => {
                let mut bytes = header.encode(EXPIRING_MAGIC);
                bytes.extend_from_slice(&expired.to_le_bytes());
                bytes
            }
            Self::Compat(shape, totals) => {
                let mut bytes = Vec::new();
                for field in [totals.items, shape.buckets, totals.deleted, shape.tables] {
                    bytes.extend_from_slice(&field.to_le_bytes());
                }
                bytes.extend_from_slice(&encode_options(shape.options));
                bytes
            }
        }
    }

    /// Bytes of the body. `None` if no filter has such a header.
    #[must_use]
    pub fn body_len(&self) -> Option<u64> {
        match self {
            Self::Native(header) | Self::Expiring(header, _) => {
                let sound = header.error > 0.0 && header.error < 1.0 && header.options.are_sound();
                (sound && header.image_len > 0).then_some(header.image_len)
            }
            Self::Compat(shape, _) => shape.len(),
        }
    }
}

impl NativeHeader {
    fn encode(&self, magic: &[u8; 8]) -> Vec<u8> {
        let mut bytes = magic.to_vec();
        for field in [self.image_len, self.error.to_bits(), self.capacity, self.deleted] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.extend_from_slice(&encode_options(self.options));
        bytes.extend_from_slice(&[0; 4]);
        bytes
    }
}

impl Options {
    /// Whether commands could have set them.
    pub(crate) fn are_sound(&self) -> bool {
        let expansion = self.expansion == 0 || self.expansion.is_power_of_two();
        (1..=255).contains(&self.bucket_size) && self.max_iterations > 0 && expansion
    }
}

fn encode_options(options: Options) -> [u8; 6] {
    let mut bytes = [0; 6];
    let fields = [options.bucket_size, options.max_iterations, options.expansion];
    for (field, to) in fields.iter().zip(bytes.as_chunks_mut().0) {
        *to = field.to_le_bytes();
    }
    bytes
}

/// Fields that are still to be read.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn eight(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn two(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn native(&mut self) -> Option<NativeHeader> {
        let header = NativeHeader {
            image_len: self.eight()?,
            error: f64::from_bits(self.eight()?),
            capacity: self.eight()?,
            deleted: self.eight()?,
            options: self.options()?,
        };
        (self.take()? == [0; 4]).then_some(header)
    }

    fn options(&mut self) -> Option<Options> {
        let (bucket_size, max_iterations) = (self.two()?, self.two()?);
        Some(Options { bucket_size, max_iterations, expansion: self.two()? })
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }
}
