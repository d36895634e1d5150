//! Keys of records in arguments and lists: text as `koel store keys` prints it, or exact bytes.
//!
//! Keys that are reserved for imported files are refused.

use std::ffi::OsString;
use std::io::{BufRead, Read};
use std::path::Path;

use koel_store::content::Archive;

use super::database::Database;
use crate::escape::{escape, unescape, unfinished};
use crate::failure::Failure;
use crate::output::Lines;
use crate::streams;

/// The longest key in a list: a list without line ends does not decide how much memory is taken.
const LONGEST: u64 = 64 << 20;

/// Bytes of a value that are read at a time.
const PIECE: usize = 64 << 10;

/// How keys are written.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct KeyForm {
    /// Keys are exact bytes, no escapes; in a list each ends with a zero byte
    #[arg(short = '0', long)]
    null: bool,
}

impl KeyForm {
    /// The key that a text stands for.
    pub(super) fn key(self, text: &[u8]) -> Result<Vec<u8>, Failure> {
        let key = if self.null { text.to_vec() } else { unescape(text)? };
        if Archive::is_reserved(&key) { Err(reserved()) } else { Ok(key) }
    }

    /// A line of a list without the CR of its end, CR LF. One that belongs to the text is written
    /// `\r`.
    pub(super) fn line(self, line: &[u8]) -> &[u8] {
        if self.null { line } else { line.strip_suffix(b"\r").unwrap_or(line) }
    }

    /// Whether keys are exact bytes.
    pub(super) fn is_exact(self) -> bool {
        self.null
    }

    /// Prints a key and the byte that ends it.
    pub(super) fn print(self, key: &[u8], out: &mut Lines, end: u8) -> Result<(), Failure> {
        if self.null { out.line(key, 0) } else { out.line(escape(key).as_bytes(), end) }
    }

    /// Prints a key and its value.
    pub(super) fn print_record(
        self,
        key: &[u8],
        value: impl Read,
        db: &Database,
        out: &mut Lines,
    ) -> Result<(), Failure> {
        self.print(key, out, b'\t')?;
        if self.null {
            each_piece(value, db, |piece| out.raw(piece))?;
            return out.raw(b"\0");
        }
        let mut text = Vec::new();
        each_piece(value, db, |piece| {
            text.extend_from_slice(piece);
            let whole = text.len() - unfinished(&text);
            out.raw(escape(&text[..whole]).as_bytes())?;
            text.drain(..whole);
            Ok(())
        })?;
        out.line(escape(&text).as_bytes(), b'\n')
    }
}

/// Passes a value to `take`, piece by piece.
pub(super) fn each_piece(
    mut value: impl Read,
    db: &Database,
    mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut buffer = vec![0; PIECE];
    loop {
        match value.read(&mut buffer).map_err(|error| db.read_failure(error))? {
            0 => return Ok(()),
            count => take(&buffer[..count])?,
        }
    }
}

/// The failure for a key that is reserved for imported files.
pub(super) fn reserved() -> Failure {
    Failure::Usage(
        "keys that begin with the byte FF are reserved for imported files; use another key"
            .to_owned(),
    )
}

/// Keys as arguments, or in a list on standard input. A command says itself whether it needs any.
#[derive(Debug, clap::Args)]
pub(super) struct KeyArgs {
    /// Keys, as koel store keys prints them; `-` reads them from standard input, one per line
    #[arg(value_name = "KEY")]
    keys: Vec<OsString>,

    #[command(flatten)]
    pub(super) form: KeyForm,
}

impl KeyArgs {
    /// Whether keys are given.
    pub(super) fn is_given(&self) -> bool {
        !self.keys.is_empty()
    }

    /// The key, if there is one and it is an argument.
    pub(super) fn single(&self) -> Result<Option<Vec<u8>>, Failure> {
        match &self.keys[..] {
            [key] if key != "-" => self.form.key(key.as_encoded_bytes()).map(Some),
            _ => Ok(None),
        }
    }

    /// Passes every key to `take`.
    pub(super) fn each(
        &self,
        mut take: impl FnMut(Vec<u8>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        // A wrong argument is refused before anything is done.
        let named = |key: &OsString| match key.to_str() {
            Some("-") => Ok(None),
            _ => self.form.key(key.as_encoded_bytes()).map(Some),
        };
        let keys = self.keys.iter().map(named).collect::<Result<Vec<_>, _>>()?;
        keys.into_iter().try_for_each(|key| match key {
            Some(key) => take(key),
            None => self.each_line(streams::stdin()?.lock(), &mut take),
        })
    }

    fn each_line(
        &self,
        mut list: impl BufRead,
        take: &mut impl FnMut(Vec<u8>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let end = if self.form.null { 0 } else { b'\n' };
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = list.by_ref().take(LONGEST + 1).read_until(end, &mut line);
            read.map_err(|error| Failure::read(Path::new("standard input"), error))?;
            if line.is_empty() {
                return Ok(());
            }
            if line.last() == Some(&end) {
                line.pop();
            } else if line.len() as u64 > LONGEST {
                return Err(Failure::Usage(
                    "a key on standard input has more than 64 MiB; is it a list of keys?"
                        .to_owned(),
                ));
            }
            take(self.form.key(self.form.line(&line))?)?;
        }
    }
}
