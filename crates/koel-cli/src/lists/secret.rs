//! The secret of a filter for keys that an adversary chooses (`--secret`).
//!
//! Without the secret, nobody can find keys that share buckets or that the filter takes for each
//! other. It is made at random, or read from a file of 16 bytes or 32 hexadecimal digits, so that
//! several filters can have the same one.
//!
//! It is stored in the header of the filter, which is therefore written for its owner only. It is
//! never printed.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::failure;

/// Bytes of a secret.
const BYTES: usize = 16;
/// No file of a secret is longer: hexadecimal digits and a line end.
const LONGEST_FILE: u64 = 2 * BYTES as u64 + 2;

/// The argument of `--secret` if it has none. No argument of a process has a NUL byte.
pub(crate) const AT_RANDOM: &str = "\0";

/// A key of SipHash.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Secret([u8; BYTES]);

impl Secret {
    /// Reads the secret in the file that the argument names, or makes one.
    pub(crate) fn from_argument(argument: &OsStr) -> Result<Self, String> {
        if argument == AT_RANDOM {
            return Self::at_random();
        }
        let path = Path::new(argument);
        let text = read(path)
            .map_err(|error| format!("cannot read the file: {}", failure::describe(&error)))?;
        Self::parse(&text)
            .ok_or_else(|| "the file has neither 16 bytes nor 32 hexadecimal digits".to_owned())
    }

    /// Whether a file has the form of a secret, and is hardly a list of keys.
    pub(crate) fn is_in(path: &Path) -> bool {
        path.is_file() && read(path).is_ok_and(|text| Self::parse(&text).is_some())
    }

    fn at_random() -> Result<Self, String> {
        let mut key = [0; BYTES];
        getrandom::fill(&mut key)
            .map_err(|error| format!("the system has no random numbers: {error}"))?;
        Ok(Self(key))
    }

    fn parse(text: &[u8]) -> Option<Self> {
        if let Ok(key) = text.try_into() {
            return Some(Self(key));
        }
        let digits = text.trim_ascii();
        let is_hexadecimal = digits.iter().all(u8::is_ascii_hexdigit);
        if digits.len() != 2 * BYTES || !is_hexadecimal {
            return None;
        }
        let digits = std::str::from_utf8(digits).ok()?;
        let mut key = [0; BYTES];
        for (i, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).ok()?;
        }
        Some(Self(key))
    }

    pub(crate) fn key(self) -> [u8; BYTES] {
        self.0
    }
}

/// The first bytes of a file, one more than a secret can have.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(LONGEST_FILE + 1).read_to_end(&mut text)?;
    Ok(text)
}

/// Hides the secret.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_sixteen_bytes_or_thirty_two_digits() {
        let key: [u8; 16] = std::array::from_fn(|i| 17 * u8::try_from(i).unwrap());
        let digits = "00112233445566778899aAbBcCdDeEfF";
        let with_sign = format!("+{}", &digits[1..]);
        assert_eq!(Secret::parse(&key).unwrap().0, key);
        for end in ["", "\n", "\r\n"] {
            assert_eq!(Secret::parse(format!("{digits}{end}").as_bytes()).unwrap().0, key);
        }
        let wrong = ["", "1", &digits[1..], "a-line-of-text-17", &format!("{digits}0"), &with_sign];
        for text in wrong {
            assert_eq!(Secret::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn random_secrets_differ_and_are_not_printed() {
        let secrets: Vec<Secret> =
            (0..4).map(|_| Secret::from_argument(AT_RANDOM.as_ref()).unwrap()).collect();
        assert!(secrets.windows(2).all(|pair| pair[0] != pair[1] && pair[0].0 != [0; 16]));
        assert_eq!(format!("{:?}", secrets[0]), "Secret");
    }
}
