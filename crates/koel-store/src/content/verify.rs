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
    /// The others: names, and what is wrong.
    pub broken: Vec<(String, String)>,
}

impl Archive {
    /// Reads every chunk of every file and compares it with its hash, and each file with its own. `seen` is called with the bytes of each
    /// chunk as it goes. This says whether files are whole; [`LogStore::verify`](crate::LogStore::verify) says whether records are.
    ///
    /// # Errors
    /// Where the names cannot be read. A broken file is no error but part of the answer.
    pub fn verify(&self, mut seen: impl FnMut(u64)) -> Result<ArchiveVerified, ArchiveError> {
        let _no_collection = self.chunks_in_use.read();
        let mut verified = ArchiveVerified::default();
        for file in self.manifests()? {
            let (name, manifest) = file?;
            let outcome = self.each_byte(&name, &manifest, |chunk| {
                seen(chunk.len() as u64);
                Ok(())
            });
            match outcome {
                Ok(()) => {
                    verified.sound += 1;
                    verified.bytes += manifest.length;
                }
                Err(error) => verified.broken.push((name, error.to_string())),
            }
        }
        Ok(verified)
    }
}
