//! From the bytes of an input to text: decompresses gzip and zstd, then drops marks (`text.rs`).
//!
//! The first bytes tell the format, so file names do not matter and pipes work. Other formats that
//! they reveal, among them Koel filters, are refused. So is a zstd window above 128 MiB, for which
//! the decoder would need as much memory. Cost: that of decompression.
//!
//! gzip is decompressed as gzip(1) does: all members in sequence, with zeros after a member
//! ignored. Tapes and some block-oriented writers pad a file with zeros. What follows a member and
//! does not begin as another one is no part of the data: it is ignored, with a warning.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read, Result};
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;
use zstd::stream::read::Decoder as ZstdDecoder;

use crate::failure::Refused;
use crate::lines;
use crate::lines::text::{self, Content};
use crate::streams::Warnings;

/// The first bytes of each format that is not plain text. Of the byte at the given index, if any,
/// only the high half is fixed.
const KINDS: [(&[u8], Option<usize>, Kind); 11] = [
    (&[0x1f, 0x8b], None, Kind::Gzip),
    (&[0x28, 0xb5, 0x2f, 0xfd], None, Kind::Zstd),
    // A skippable frame, with which a zstd file may begin.
    (&[0x50, 0x2a, 0x4d, 0x18], Some(0), Kind::Zstd),
    (&[0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00], None, Kind::Other("it is compressed by xz")),
    (b"BZh91AY&SY", Some(3), Kind::Other("it is compressed by bzip2")),
    (&[0x04, 0x22, 0x4d, 0x18], None, Kind::Other("it is compressed by lz4")),
    (b"PK\x03\x04", None, Kind::Other("it is a zip archive")),
    (b"7z\xbc\xaf\x27\x1c", None, Kind::Other("it is a 7z archive")),
    (&[0x1f, 0x9d], None, Kind::Other("it is compressed by compress")),
    (b"LZIP\x01", None, Kind::Other("it is compressed by lzip")),
    (b"koel\r\n\x1a\n", None, Kind::Other(IS_A_FILTER)),
];
/// The length of the longest of these.
const LONGEST_MAGIC: usize = 10;

const IS_A_FILTER: &str = "this is a filter (combine filters with `koel merge`)";

/// The largest window of zstd, as a power of two: the limit of zstd(1), too.
const ZSTD_WINDOW: u32 = 27;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gzip,
    Zstd,
    /// Cannot be read, for this reason.
    Other(&'static str),
}

/// The text of an input, or its exact bytes. `path` is its name in warnings.
pub(crate) fn decoded(
    mut raw: impl Read + 'static,
    content: Content,
    path: &Path,
    warnings: &Warnings,
) -> io::Result<Box<dyn Read>> {
    let mut first = Vec::with_capacity(LONGEST_MAGIC);
    let kind = kind(&mut raw, &mut first)?;
    let whole = Cursor::new(first).chain(raw);
    let bytes: Box<dyn Read> = match kind {
        None => Box::new(whole),
        Some(Kind::Gzip) => {
            let (path, warnings) = (path.to_owned(), warnings.clone());
            Box::new(Members::new(BufReader::new(whole), path, warnings))
        }
        Some(Kind::Zstd) => {
            let mut decoder = ZstdDecoder::new(whole)?;
            decoder.window_log_max(ZSTD_WINDOW)?;
            Box::new(Zstd(decoder))
        }
        Some(Kind::Other(what)) => return Err(io::Error::new(io::ErrorKind::Unsupported, what)),
    };
    text::reader(bytes, content, path, warnings)
}

/// A decoder whose error for a large window says what to do.
struct Zstd<R>(R);

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| {
            if !error.to_string().contains("too much memory") {
                return error;
            }
            Refused::error(
                "its zstd window is larger than 128 MiB; decompress it on the way, as in \
                 `zstd -dc --long=31 FILE | koel ..`",
            )
        })
    }
}

/// The format of the input, if it is not plain text.
///
/// Reads into `first` only while the bytes may still begin another format, so that a line typed at
/// a terminal is answered without waiting for the next one.
fn kind(raw: &mut impl Read, first: &mut Vec<u8>) -> io::Result<Option<Kind>> {
    loop {
        let mut may_be =
            KINDS.iter().filter(|(magic, half, _)| prefix_matches(magic, first, *half)).peekable();
        if may_be.peek().is_none() {
            return Ok(None);
        }
        if let Some((_, _, kind)) = may_be.find(|(magic, ..)| magic.len() <= first.len()) {
            return Ok(Some(*kind));
        }
        let mut buffer = [0; LONGEST_MAGIC];
        match lines::read_some(raw, &mut buffer[first.len()..])? {
            0 => return Ok(None),
            got => first.extend_from_slice(&buffer[first.len()..][..got]),
        }
    }
}

/// Whether the common part of both is equal, not counting the low half of the byte at `half`.
fn prefix_matches(magic: &[u8], first: &[u8], half: Option<usize>) -> bool {
    let mut pairs = magic.iter().zip(first).enumerate();
    pairs.all(|(i, (a, b))| a == b || (Some(i) == half && a >> 4 == b >> 4))
}

/// The first bytes of a member.
const MAGIC: &[u8] = &[0x1f, 0x8b];

/// The decompressed bytes of all members.
pub(crate) struct Members<R> {
    /// The member being read; `None` at the end.
    member: Option<GzDecoder<Member<R>>>,
    path: PathBuf,
    warnings: Warnings,
}

/// A compressed member: the first bytes, where they were examined already, then the rest.
type Member<R> = Chain<&'static [u8], R>;

impl<R: BufRead> Members<R> {
    /// `path` is the name of the input in warnings.
    pub(crate) fn new(packed: R, path: PathBuf, warnings: Warnings) -> Self {
        Self { member: Some(GzDecoder::new((&[][..]).chain(packed))), path, warnings }
    }

    /// The next member after one that is complete.
    fn next(&self, mut packed: R) -> Result<Option<GzDecoder<Member<R>>>> {
        if !skip_zeros(&mut packed)? {
            return Ok(None);
        }
        for expected in MAGIC {
            if packed.fill_buf()?.first() != Some(expected) {
                self.warnings.about(&self.path, "ignored the bytes after the end of the gzip data");
                return Ok(None);
            }
            packed.consume(1);
        }
        Ok(Some(GzDecoder::new(MAGIC.chain(packed))))
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        while let Some(member) = &mut self.member {
            let got = member.read(buffer)?;
            if got > 0 || buffer.is_empty() {
                return Ok(got);
            }
            let (_, packed) = self.member.take().map(|done| done.into_inner().into_inner()).unzip();
            self.member = packed.map(|packed| self.next(packed)).transpose()?.flatten();
        }
        Ok(0)
    }
}

/// Skips zeros. Returns whether anything follows them.
fn skip_zeros(packed: &mut impl BufRead) -> Result<bool> {
    loop {
        let bytes = packed.fill_buf()?;
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        if zeros < bytes.len() || bytes.is_empty() {
            let more = !bytes.is_empty();
            packed.consume(zeros);
            return Ok(more);
        }
        packed.consume(zeros);
    }
}
