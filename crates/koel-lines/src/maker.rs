//! From a line to its keys.
//!
//! ```text
//! line   field -->   text   format -->   hosts   trim, ignore case -->   keys
//! ```
//!
//! Cost: one look at each byte; one copy of a field of CSV, and of a key that changes its letters.

use crate::adblock::{self, TakenOut};
use crate::fields::{Column, Field, NoColumn, Records, Separator};
use crate::options::LineOptions;
use crate::{Format, Skip, hosts};

/// How keys are made of the lines of a list.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The field of a line that is read; `None` for the whole line.
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
        let changes = self.options.trims || self.options.ignores_case;
        self.field.is_none() && self.format == Format::Lines && !changes
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
    /// The number of the field that is read, counted from 1.
    number: usize,
    /// A field without its quotes.
    field: Vec<u8>,
}

impl<'a> Maker<'a> {
    /// A maker that knows no header yet.
    #[must_use]
    pub fn new(reading: &'a Reading) -> Self {
        let column = reading.field.as_ref().map(|field| &field.column);
        let number = if let Some(Column::Number(number)) = column { *number as usize } else { 1 };
        Self { reading, records: reading.records(), number, field: Vec::new() }
    }

    /// Finds the column in the header of an input, a line without its line end.
    ///
    /// # Errors
    /// If the header does not name it.
    pub fn read_header(&mut self, header: &[u8]) -> Result<(), NoColumn> {
        if let Some(field) = &self.reading.field {
            self.number = field.number(header)?;
        }
        Ok(())
    }

    /// Passes the keys of a line, which has no line end, to `take`, and what gave none to `skip`.
    pub fn make(&mut self, line: &[u8], mut take: impl FnMut(&[u8]), mut skip: impl FnMut(Skip)) {
        let Reading { field, format, options, taken_out, allows } = self.reading;
        let text = match field {
            None => Some(line),
            Some(_) if line.is_empty() => return skip(Skip::Empty),
            Some(Field { separator: Separator::Delimiter(delimiter), .. }) => {
                delimiter.field(line, self.number)
            }
            Some(_) => {
                self.field.clear();
                let records = self.records.as_mut();
                let is_found = records
                    .is_some_and(|records| records.field(line, self.number, &mut self.field));
                is_found.then_some(&self.field[..])
            }
        };
        let Some(text) = text else { return skip(Skip::NoField) };
        let mut take = |key: &[u8]| take(&options.key(key));
        match format {
            Format::Lines => take(text),
            Format::Hosts => hosts::hosts(text, take, skip),
            Format::Adblock => match adblock::allowed(text).filter(|_| *allows) {
                Some(host) => take(host.as_bytes()),
                None => adblock::adblock(text, taken_out, take, skip),
            },
        }
    }
}
