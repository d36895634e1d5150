//! Finds a field of a line: between delimiters, between runs of white space, or in a CSV record.
//!
//! CSV follows RFC 4180 as the crate `csv-core` reads it: a field may be quoted, then it may hold
//! delimiters and line ends, and two quotes in it stand for one. Cost: one pass over the line.
#![forbid(unsafe_code)]

use csv_core::{ReadFieldResult, Reader, ReaderBuilder, Terminator};

/// What separates the fields of a line that is not CSV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Delimiter {
    Text(String),
    /// Any number of spaces and tabs, also before the first field.
    WhiteSpace,
}

impl Delimiter {
    /// Parses the value of `--delimiter`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "whitespace" => Ok(Self::WhiteSpace),
            "tab" | "\\t" => Ok(Self::Text("\t".to_owned())),
            _ if text.is_empty() || text.contains(['\n', '\r', '\0']) => {
                Err("give a character such as `,` or `;`, or `tab`, or `whitespace`".to_owned())
            }
            _ => Ok(Self::Text(text.to_owned())),
        }
    }

    /// The delimiter as CSV needs it.
    pub(crate) fn byte(&self) -> Option<u8> {
        match self {
            Self::Text(text) if text != "\"" => {
                <[u8; 1]>::try_from(text.as_bytes()).ok().map(|[byte]| byte)
            }
            _ => None,
        }
    }

    /// Field `number` of a line, counted from 1.
    pub(crate) fn field<'a>(&self, line: &'a [u8], number: usize) -> Option<&'a [u8]> {
        if line.is_empty() {
            return None;
        }
        match self {
            Self::Text(delimiter) => {
                let mut start = 0;
                let mut ends = memchr::memmem::find_iter(line, delimiter);
                for _ in 1..number {
                    start = ends.next()? + delimiter.len();
                }
                Some(&line[start..ends.next().unwrap_or(line.len())])
            }
            Self::WhiteSpace => line
                .split(|byte| b" \t".contains(byte))
                .filter(|field| !field.is_empty())
                .nth(number - 1),
        }
    }
}

/// Reads CSV records.
pub(crate) struct Records(Box<Reader>);

impl Records {
    pub(crate) fn new(delimiter: u8) -> Self {
        let end = Terminator::Any(b'\n');
        Self(Box::new(ReaderBuilder::new().delimiter(delimiter).terminator(end).build()))
    }

    /// The index of the LF that ends the first record.
    pub(crate) fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        // The reader would skip empty lines.
        if bytes.first() == Some(&b'\n') {
            return Some(0);
        }
        self.0.reset();
        let mut read = 0;
        while read < bytes.len() {
            let (result, got, _) = self.0.read_field(&bytes[read..], &mut [0; 1024]);
            read += got;
            if result == (ReadFieldResult::Field { record_end: true }) {
                return Some(read - 1);
            }
        }
        None
    }

    /// Whether a record that has no end is inside quotes.
    pub(crate) fn is_open(&mut self, record: &[u8]) -> bool {
        self.end(record).is_none()
            && !record.is_empty()
            && self.0.read_field(b"\n", &mut [0; 4]).0 == ReadFieldResult::InputEmpty
    }

    /// Appends field `number` of a record, counted from 1, without its quotes. Returns false if
    /// there is no such field.
    pub(crate) fn field(&mut self, record: &[u8], number: usize, field: &mut Vec<u8>) -> bool {
        self.0.reset();
        let (mut read, mut passed, mut piece) = (0, 1, [0; 1024]);
        loop {
            // Without more input, the reader ends the record.
            let (result, got, written) = self.0.read_field(&record[read..], &mut piece);
            read += got;
            if passed == number {
                field.extend_from_slice(&piece[..written]);
            }
            match result {
                ReadFieldResult::Field { .. } if passed == number => return true,
                ReadFieldResult::Field { record_end: false } => passed += 1,
                ReadFieldResult::Field { record_end: true } | ReadFieldResult::End => return false,
                ReadFieldResult::InputEmpty | ReadFieldResult::OutputFull => {}
            }
        }
    }
}
