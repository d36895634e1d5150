//! How the keys of a filter are made of texts, and hashed.

use alloc::vec::Vec;

use koel::{KeyHash, KeyHasher};
use koel_lines::{KeyForm, NoHost};

use super::{Keys, malformed};
use crate::failure::{Code, Failure};

/// How the keys of a filter are made and hashed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) hasher: KeyHasher,
    pub(super) form: KeyForm,
}

impl Reading {
    /// # Errors
    /// If this version does not know how the keys were made.
    pub(super) fn new(hasher: KeyHasher, application: [u8; 8]) -> Result<Self, Failure> {
        let form = KeyForm::of(application).map_err(|unknown| {
            Failure::new(Code::Lines, format_args!("{unknown}; use a later version"))
        })?;
        Ok(Self { hasher, form })
    }

    /// The hashes of a batch, which are keys themselves. So the library's code for batches is
    /// compiled for one type of key: that saves 9 % of the package.
    pub(super) fn hashes(self, input: &[u8], keys: Keys) -> Result<Vec<KeyHash>, Failure> {
        let mut hashes = Vec::new();
        hashes.try_reserve_exact(keys.len()).map_err(|_| Failure::no_memory())?;
        match keys {
            Keys::Texts(count) => {
                let head = count.checked_mul(4).ok_or_else(malformed)?;
                let (lengths, mut bytes) = input.split_at_checked(head).ok_or_else(malformed)?;
                for &length in lengths.as_chunks().0 {
                    let length = u32::from_le_bytes(length) as usize;
                    let (key, rest) = bytes.split_at_checked(length).ok_or_else(malformed)?;
                    hashes.push(self.hash(key)?);
                    bytes = rest;
                }
            }
            Keys::Integers(count) => {
                let keys: &[[u8; 8]] = input.as_chunks().0.get(..count).ok_or_else(malformed)?;
                hashes.extend(keys.iter().map(|key| self.hasher.hash(key)));
            }
        }
        Ok(hashes)
    }

    pub(super) fn hash(self, text: &[u8]) -> Result<KeyHash, Failure> {
        if self.form.is_exact() {
            return Ok(self.hasher.hash(text));
        }
        let key = self.form.key(text).map_err(no_host)?;
        Ok(self.hasher.hash(&*key))
    }
}

pub(super) fn no_host(error: NoHost<'_>) -> Failure {
    Failure::new(Code::Lines, error)
}
