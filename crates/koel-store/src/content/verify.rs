//! The checks of an export, for every file, with nothing written.

use super::{Archive, ArchiveError};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArchiveVerified {
    /// Files whose every byte is right.
    pub sound: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// The others: names, and what is wrong. Where the record of a name cannot be read, it is `number` and the number of the name.
    pub broken: Vec<(String, String)>,
}

impl Archive {
    /// Reads every chunk of every file and compares it with its hash, and each file with its own. `seen` is called with the bytes of each
    /// chunk as it goes. This says whether files are whole; [`LogStore::verify`](crate::LogStore::verify) says whether records are.
    ///
    /// # Errors
    /// Where it cannot be read how many names there are. A broken file is no error but part of the answer.
    pub fn verify(&self, mut seen: impl FnMut(u64)) -> Result<ArchiveVerified, ArchiveError> {
        let _no_collection = self.chunks_in_use.read();
        let mut verified = ArchiveVerified::default();
        for number in 0..self.next_number()? {
            match self.check(number, &mut seen) {
                Ok(None) => {}
                Ok(Some(length)) => {
                    verified.sound += 1;
                    verified.bytes += length;
                }
                Err(error) => {
                    let name = self.name_of(number).ok().flatten();
                    let what = match error {
                        ArchiveError::Broken { what, .. } => what,
                        error => error.to_string(),
                    };
                    verified.broken.push((name.unwrap_or(format!("number {number}")), what));
                }
            }
        }
        Ok(verified)
    }

    /// Reads the file with this number: its length, if there is one.
    fn check(&self, number: u64, seen: &mut impl FnMut(u64)) -> Result<Option<u64>, ArchiveError> {
        let Some((name, manifest)) = self.numbered(number)? else { return Ok(None) };
        self.each_byte(&name, &manifest, |chunk| {
            seen(chunk.len() as u64);
            Ok(())
        })?;
        Ok(Some(manifest.length))
    }
}
