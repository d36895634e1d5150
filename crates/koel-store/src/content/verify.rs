//! The checks of an export, for every file, without writing anything.

use super::archive::Archive;
use super::error::ArchiveError;

/// What [`Archive::verify`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArchiveVerifyReport {
    /// The number of files whose every byte is right.
    pub sound: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// The other files: their names, and what is wrong. If the name is unreadable, it is `number`
    /// and the number of the name.
    pub broken: Vec<(String, String)>,
}

impl Archive {
    /// Reads every chunk of every file, and compares each chunk and each file with its hash. Calls
    /// `progress` with the bytes of each chunk.
    ///
    /// This checks files; [`LogStore::verify`](crate::LogStore::verify) checks records.
    ///
    /// # Errors
    /// Those of reading the number of names. A broken file is not an error but part of the report.
    pub fn verify(
        &self,
        mut progress: impl FnMut(u64),
    ) -> Result<ArchiveVerifyReport, ArchiveError> {
        let _no_collection = self.chunks_in_use.read();
        let mut report = ArchiveVerifyReport::default();
        for number in 0..self.next_number()? {
            match self.check(number, &mut progress) {
                Ok(None) => {}
                Ok(Some(length)) => {
                    report.sound += 1;
                    report.bytes += length;
                }
                Err(error) => {
                    let name = self.name_of(number).ok().flatten();
                    let what = match error {
                        ArchiveError::Broken { what, .. } => what,
                        error => error.to_string(),
                    };
                    report.broken.push((name.unwrap_or(format!("number {number}")), what));
                }
            }
        }
        Ok(report)
    }

    /// Reads the file with this number. Returns its length, if there is one.
    fn check(
        &self,
        number: u64,
        progress: &mut impl FnMut(u64),
    ) -> Result<Option<u64>, ArchiveError> {
        let Some((name, manifest)) = self.numbered(number)? else { return Ok(None) };
        self.each_byte(&name, &manifest, |chunk| {
            progress(chunk.len() as u64);
            Ok(())
        })?;
        Ok(Some(manifest.length))
    }
}
