//! A gzip file as gzip(1) reads it: one member after the other, and zeros behind a member are padding.
//!
//! Tapes and some writers of blocks pad a file with zeros. Whatever else stands behind a member must be the next one; else the file is damaged, and refused. Cost: that of inflating.
#![forbid(unsafe_code)]

use std::io::{BufRead, Read, Result};

use flate2::bufread::GzDecoder;

/// The bytes of all members.
pub(crate) struct Members<R> {
    /// The member being read; none at the end.
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

/// Whether anything follows the zeros.
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
