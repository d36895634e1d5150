//! Decompresses gzip as gzip(1) does: all members in sequence, with zeros after a member ignored.
//!
//! Tapes and some block-oriented writers pad a file with zeros. What follows a member and does not
//! begin as another one is no part of the data: it is ignored, with a warning. Cost: that of
//! decompression.

use std::io::{BufRead, Chain, Read, Result};
use std::path::PathBuf;

use flate2::bufread::GzDecoder;

use crate::warning::Warnings;

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
