//! Finds a field of a line: between delimiters, between runs of white space, or in a CSV record.
//!
//! CSV follows RFC 4180 as the crate `csv-core` reads it: a field may be quoted, then it may hold
//! delimiters and line ends, and two quotes in it stand for one. Cost: one pass over the line.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;
use core::ops::ControlFlow;

use csv_core::{ReadFieldResult, Reader, ReaderBuilder, Terminator};
use memchr::memmem::Finder;

/// The field of a line that is read, or several fields, which are one key together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Which fields, at least one.
    pub columns: Vec<Column>,
    /// What is between fields.
    pub separator: Separator,
    /// Whether each input begins with a line that has the names of the columns.
    pub has_header: bool,
}

/// Which of the fields of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// Counted from 1. As an argument, 0 is the whole line.
    Number(u32),
    /// As the header names it.
    Name(String),
    /// With a name that has this 32-bit FNV-1a hash.
    Hashed(u32),
}

/// What is between the fields of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Separator {
    /// A text, or white space.
    Delimiter(Delimiter),
    /// A byte, in CSV.
    Csv(u8),
}

impl Separator {
    /// Whether it has several bytes.
    pub(crate) fn is_long(&self) -> bool {
        matches!(self, Self::Delimiter(Delimiter::Text(text)) if text.len() > 1)
    }
}

/// How many names of a header an error lists, and how many characters of each.
const LISTED: usize = 20;
const LONGEST_NAME: usize = 40;

impl Column {
    /// Parses the value of `--field`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(number) => Ok(Self::Number(number)),
            Err(_) if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() => {
                Err("no line has so many fields".to_owned())
            }
            Err(_) if text.is_empty() || text.starts_with('-') => {
                Err("give the number of a field, or its name in the header".to_owned())
            }
            Err(_) => Ok(Self::Name(text.to_owned())),
        }
    }
}

impl Column {
    /// Whether the header names the column so.
    fn is_named(&self, field: &[u8]) -> bool {
        match self {
            Self::Number(_) => false,
            Self::Name(name) => field == name.as_bytes(),
            Self::Hashed(stored) => hash(field) == *stored,
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => name.fmt(f),
            Self::Hashed(_) => f.write_str("with the name that the filter was built with"),
        }
    }
}

impl Field {
    /// The number of a column, counted from 1, in an input with this header.
    ///
    /// # Errors
    /// Lists the names that the header has, if that is none of them.
    pub fn number(&self, column: &Column, header: &[u8]) -> Result<usize, NoColumn> {
        if let Column::Number(number) = column {
            return Ok(*number as usize);
        }
        let (mut number, mut names) = (0, Vec::<String>::new());
        let compare = |field: &[u8]| {
            number += 1;
            if names.len() <= LISTED {
                names.push(String::from_utf8_lossy(field).chars().take(LONGEST_NAME).collect());
            }
            if column.is_named(field) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let found = match &self.separator {
            Separator::Delimiter(delimiter) => delimiter.fields(header).try_for_each(compare),
            Separator::Csv(delimiter) => Records::new(*delimiter).each_field(header, compare),
        };
        if found.is_break() {
            return Ok(number);
        }
        let more = if names.len() > LISTED { ", .." } else { "" };
        names.truncate(LISTED);
        Err(NoColumn { column: column.clone(), names: format!("{}{more}", names.join(", ")) })
    }

    /// The options, as they are given to the command.
    pub fn words(&self) -> String {
        let word = |column: &Column| match column {
            Column::Hashed(_) => "NAME".to_owned(),
            column => column.to_string(),
        };
        let column = self.columns.iter().map(word).collect::<Vec<_>>().join(",");
        let is_number = self.columns.iter().all(|column| matches!(column, Column::Number(_)));
        let header = if self.has_header && is_number { " --header" } else { "" };
        let separator = match &self.separator {
            Separator::Csv(b',') => " --csv".to_owned(),
            Separator::Csv(byte) => format!(" --csv --delimiter {}", char::from(*byte)),
            Separator::Delimiter(Delimiter::WhiteSpace) => " --delimiter whitespace".to_owned(),
            Separator::Delimiter(Delimiter::Text(text)) if text == "\t" => String::new(),
            Separator::Delimiter(Delimiter::Text(text)) => format!(" --delimiter {text}"),
        };
        format!("--field {column}{header}{separator}")
    }
}

/// A header does not name the column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoColumn {
    /// What was looked for.
    pub column: Column,
    /// The names in the header, with commas between them; of many only the first.
    pub names: String,
}

impl fmt::Display for NoColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its header has no field {}, but: {}", self.column, self.names)
    }
}

impl Error for NoColumn {}

/// FNV-1a of 32 bits.
pub(crate) fn hash(name: &[u8]) -> u32 {
    name.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// What separates the fields of a line that is not CSV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// This text.
    Text(String),
    /// Any number of spaces and tabs, also before the first field.
    WhiteSpace,
}

impl Delimiter {
    /// Parses the value of `--delimiter`.
    pub fn parse(text: &str) -> Result<Self, String> {
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
    pub fn byte(&self) -> Option<u8> {
        match self {
            Self::Text(text) if text != "\"" => {
                <[u8; 1]>::try_from(text.as_bytes()).ok().map(|[byte]| byte)
            }
            _ => None,
        }
    }

    /// Field `number` of a line, counted from 1.
    pub fn field<'a>(&self, line: &'a [u8], number: usize) -> Option<&'a [u8]> {
        self.fields(line).nth(number - 1)
    }

    /// The fields of a line. An empty line has none.
    pub fn fields<'a>(&self, line: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let (delimiter, skips_empty) = match self {
            Self::Text(delimiter) => (Some(Finder::new(delimiter)), false),
            Self::WhiteSpace => (None, true),
        };
        let mut rest = Some(line).filter(|line| !line.is_empty());
        let next = move || {
            let line = rest?;
            let end = match &delimiter {
                Some(delimiter) => delimiter.find(line).map(|at| (at, delimiter.needle().len())),
                None => memchr::memchr2(b' ', b'\t', line).map(|at| (at, 1)),
            };
            let (at, length) = end.unwrap_or((line.len(), 0));
            rest = end.map(|_| &line[at + length..]);
            Some(&line[..at])
        };
        core::iter::from_fn(next).filter(move |field| !skips_empty || !field.is_empty())
    }
}

/// Reads CSV records.
#[derive(Debug)]
pub struct Records(Box<Reader>);

impl Records {
    /// A reader of records whose fields this byte separates.
    #[must_use]
    pub fn new(delimiter: u8) -> Self {
        let end = Terminator::Any(b'\n');
        Self(Box::new(ReaderBuilder::new().delimiter(delimiter).terminator(end).build()))
    }

    /// The index of the LF that ends the first record.
    pub fn end(&mut self, bytes: &[u8]) -> Option<usize> {
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
    pub fn is_open(&mut self, record: &[u8]) -> bool {
        self.end(record).is_none()
            && !record.is_empty()
            && self.0.read_field(b"\n", &mut [0; 4]).0 == ReadFieldResult::InputEmpty
    }

    /// Appends field `number` of a record, counted from 1, without its quotes. Returns false if
    /// there is no such field.
    pub fn field(&mut self, record: &[u8], number: usize, field: &mut Vec<u8>) -> bool {
        let found = self.each_piece(record, |at, piece, is_last| {
            if at == number {
                field.extend_from_slice(piece);
            }
            if at == number && is_last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        found.is_break()
    }

    /// Passes each field of a record to `take` until that breaks.
    fn each_field(
        &mut self,
        record: &[u8],
        mut take: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut field = Vec::new();
        self.each_piece(record, |_, piece, is_last| {
            field.extend_from_slice(piece);
            if is_last { take(&core::mem::take(&mut field)) } else { ControlFlow::Continue(()) }
        })
    }

    /// Passes the pieces of all fields to `take` until that breaks: the number of the field, and
    /// whether it is the last piece of it.
    fn each_piece(
        &mut self,
        record: &[u8],
        mut take: impl FnMut(usize, &[u8], bool) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.0.reset();
        let (mut read, mut number, mut piece) = (0, 1, [0; 1024]);
        loop {
            // Without more input, the reader ends the record.
            let (result, got, written) = self.0.read_field(&record[read..], &mut piece);
            read += got;
            let is_last = matches!(result, ReadFieldResult::Field { .. });
            take(number, &piece[..written], is_last)?;
            if matches!(result, ReadFieldResult::End | ReadFieldResult::Field { record_end: true })
            {
                return ControlFlow::Continue(());
            }
            number += usize::from(is_last);
        }
    }
}
