//! Decompresses gzip as gzip(1) does: all members in sequence, with zeros after a member ignored.
//!
//! Tapes and some block-oriented writers pad a file with zeros. Anything else after a member must
//! be the next member; otherwise the file is damaged and refused. Cost: that of decompression.
#![forbid(unsafe_code)]

use std::io::{BufRead, Read, Result};

use flate2::bufread::GzDecoder;

/// The decompressed bytes of all members.
pub(crate) struct Members<R> {
    /// The member being read; `None` at the end.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Members<R> {
    pub(crate) fn new(packed: R) -> Self {
        Self { member: Some(GzDecoder::new(packed)) }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        while let Some(member) = &mut self.member {
            let got = member.read(buffer)?;
            if got > 0 || buffer.is_empty() {
                return Ok(got);
            }
            let more = skip_zeros(member.get_mut())?;
            self.member =
                self.member.take().filter(|_| more).map(|done| GzDecoder::new(done.into_inner()));
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
