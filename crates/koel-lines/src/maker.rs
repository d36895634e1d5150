//! From a line to its keys.
//!
//! ```text
//! line   field -->   text   format -->   hosts   trim, ignore case -->   keys
//! ```
//!
//! Several fields are one key: a tuple of their texts.
//!
//! Cost: one look at each byte; one copy of a field of CSV, and of a key that changes its letters.

use crate::adblock::{self, TakenOut};
use crate::fields::{Column, Field, NoColumn, Records, Separator};
use crate::options::LineOptions;
use crate::{Format, Skip, hosts};
use alloc::vec::Vec;

/// How keys are made of the lines of a list.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The fields of a line that are read; `None` for the whole line.
    pub field: Option<Field>,
    /// What the line, or the field, is.
    pub format: Format,
    /// What becomes of the letters and the white space.
    pub options: LineOptions,
    /// Rules of ad-block lists that take out others.
    pub taken_out: TakenOut,
    /// Whether the list says what is allowed: then the hosts of exceptions are keys, too.
    pub allows: bool,
}

impl Reading {
    /// Whether a line is its own key, except for a carriage return.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.field.is_none() && self.format == Format::Lines && self.options.keep_text()
    }

    /// A reader of records, if a line is one of CSV.
    #[must_use]
    pub fn records(&self) -> Option<Records> {
        match self.field.as_ref()?.separator {
            Separator::Csv(delimiter) => Some(Records::new(delimiter)),
            Separator::Delimiter(_) => None,
        }
    }
}

/// Makes the keys of one line after the other.
#[derive(Debug)]
pub struct Maker<'a> {
    reading: &'a Reading,
    records: Option<Records>,
    /// The numbers of the fields that are read, counted from 1.
    numbers: Vec<usize>,
    /// A field without its quotes.
    field: Vec<u8>,
    /// Several fields as one key.
    tuple: Vec<u8>,
}

impl<'a> Maker<'a> {
    /// A maker that knows no header yet.
    #[must_use]
    pub fn new(reading: &'a Reading) -> Self {
        let columns = reading.field.as_ref().map_or(&[][..], |field| &field.columns);
        let number = |column: &Column| match column {
            Column::Number(number) => *number as usize,
            Column::Name(_) | Column::Hashed(_) => 1,
        };
        let numbers = columns.iter().map(number).collect();
        let (field, tuple) = (Vec::new(), Vec::new());
        Self { reading, records: reading.records(), numbers, field, tuple }
    }

    /// Finds the columns in the header of an input, a line without its line end.
    ///
    /// # Errors
    /// If the header does not name one.
    pub fn read_header(&mut self, header: &[u8]) -> Result<(), NoColumn> {
        if let Some(field) = &self.reading.field {
            let numbers = field.columns.iter().map(|column| field.number(column, header));
            self.numbers = numbers.collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    /// Passes the keys of a line, which has no line end, to `take`, and what gave none to `skip`.
    pub fn make(&mut self, line: &[u8], mut take: impl FnMut(&[u8]), mut skip: impl FnMut(Skip)) {
        let Some(field) = &self.reading.field else { return self.reading.keys(line, take, skip) };
        if line.is_empty() {
            return skip(Skip::Empty);
        }
        self.tuple.clear();
        for &number in &self.numbers {
            let records = self.records.as_mut();
            let Some(text) = text_of(field, records, &mut self.field, line, number) else {
                return skip(Skip::NoField);
            };
            if let [_] = self.numbers[..] {
                return self.reading.keys(text, take, skip);
            }
            // As tuples of texts are keys in Rust and Python: each after its length.
            let key = self.reading.options.key(text);
            self.tuple.extend_from_slice(&(key.len() as u64).to_le_bytes());
            self.tuple.extend_from_slice(&key);
        }
        take(&self.tuple);
    }
}

impl Reading {
    /// Passes the keys of a line, or of its field, to `take`.
    fn keys(&self, text: &[u8], mut take: impl FnMut(&[u8]), skip: impl FnMut(Skip)) {
        let mut take = |key: &[u8]| take(&self.options.key(key));
        match self.format {
            Format::Lines => take(text),
            Format::Hosts => hosts::hosts(text, take, skip),
            Format::Adblock => {
                match adblock::allowed(text, &self.taken_out).filter(|_| self.allows) {
                    Some(host) => take(host.as_bytes()),
                    None => adblock::adblock(text, &self.taken_out, take, skip),
                }
            }
        }
    }
}

/// The text of field `number` of a line, in `buffer` if it may have quotes.
fn text_of<'t>(
    field: &Field,
    records: Option<&mut Records>,
    buffer: &'t mut Vec<u8>,
    line: &'t [u8],
    number: usize,
) -> Option<&'t [u8]> {
    if let Separator::Delimiter(delimiter) = &field.separator {
        return delimiter.field(line, number);
    }
    buffer.clear();
    records?.field(line, number, buffer).then_some(&buffer[..])
}
