//! How the keys of a filter were made of lines: the application bytes of its header.
//!
//! docs/FORMAT.md ("Lines") describes the bytes for other languages, with vectors.
//!
//! ```text
//! byte 0     options of keys: 1 ignore case, 2 trim, 4 keep CR
//! byte 1     what a key is: 0 text, 1 a host
//! byte 2     bits 0, 1 kind of list | 2 to 4 fields | 5 has a header | 6 the column has a name
//! byte 3     the delimiter
//! bytes 4-7  number of the column, or FNV-1a of its name; of several columns nothing is stored
//! ```
//!
//! Bytes with bit 128 in the first are those of another program, whose keys are texts as they are.
//!
//! Filters are merged and compared only if the first two are equal. The name of a column may be
//! longer than a header has room for, so it is stored as a hash.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use core::error::Error;
use core::fmt;

use crate::Format;
use crate::fields::{self, Column, Delimiter, Field, Separator};
use crate::maker::Reading;
use crate::options::LineOptions;

/// What a filter stores of the rules for its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipe {
    /// What becomes of letters and white space.
    pub options: LineOptions,
    /// What a line or a field is.
    pub format: Format,
    /// Which field of a line is read.
    pub field: StoredField,
}

/// What a filter stores of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoredField {
    #[default]
    /// The whole line.
    None,
    /// One field.
    Field(Field),
    /// Several fields, or one between delimiters of several bytes: there is no room for them.
    NotStored,
}

/// The bytes that a filter stores, in the header.
pub type ApplicationBytes = [u8; 8];

const OTHER_PROGRAM: u8 = 0x80;

const DELIMITER: u8 = 1;
const WHITE_SPACE: u8 = 2;
const CSV: u8 = 3;
const NOT_STORED: u8 = 4;

impl Recipe {
    /// What a filter stores of a reading.
    #[must_use]
    pub fn of(reading: &Reading) -> Self {
        let field = match &reading.field {
            None => StoredField::None,
            Some(field) if field.columns.len() != 1 || field.separator.is_long() => {
                StoredField::NotStored
            }
            Some(field) => StoredField::Field(field.clone()),
        };
        Self { options: reading.options, format: reading.format, field }
    }

    /// The bytes for the header.
    #[must_use]
    pub fn to_bytes(&self) -> ApplicationBytes {
        let is_host = u8::from(self.format != Format::Lines);
        let format = Format::ALL.iter().position(|&format| format == self.format).unwrap_or(0);
        let [kind, _, _, _] = u32::try_from(format).unwrap_or(0).to_le_bytes();
        let (field, delimiter, [a, b, c, d]) = match &self.field {
            StoredField::None => (0, 0, [0; 4]),
            StoredField::NotStored => (NOT_STORED << 2, 0, [0; 4]),
            StoredField::Field(field) => {
                let (separator, delimiter) = match &field.separator {
                    Separator::Delimiter(Delimiter::WhiteSpace) => (WHITE_SPACE, 0),
                    Separator::Delimiter(Delimiter::Text(text)) => {
                        (DELIMITER, text.bytes().next().unwrap_or(0))
                    }
                    Separator::Csv(byte) => (CSV, *byte),
                };
                let (is_named, column) = match field.columns.first() {
                    None => (0, 1),
                    Some(Column::Number(number)) => (0, *number),
                    Some(Column::Name(name)) => (1, fields::hash(name.as_bytes())),
                    Some(Column::Hashed(hash)) => (1, *hash),
                };
                let bits = separator << 2 | u8::from(field.has_header) << 5 | is_named << 6;
                (bits, delimiter, column.to_le_bytes())
            }
        };
        [self.options.bits(), is_host, kind | field, delimiter, a, b, c, d]
    }

    /// The recipe in these bytes; in those of another program that of plain lines. `None` if this
    /// version has not written them.
    #[must_use]
    pub fn from_bytes(bytes: ApplicationBytes) -> Option<Self> {
        let [options, _, kinds, delimiter, column @ ..] = bytes;
        if options & OTHER_PROGRAM != 0 {
            return Some(Self::default());
        }
        let column = match (kinds & 1 << 6 != 0, u32::from_le_bytes(column)) {
            (true, hash) => Column::Hashed(hash),
            (false, number) => Column::Number(number),
        };
        let text = || String::from_utf8(vec![delimiter]).ok();
        let separator = match kinds >> 2 & 7 {
            DELIMITER => Some(Separator::Delimiter(Delimiter::Text(text()?))),
            WHITE_SPACE => Some(Separator::Delimiter(Delimiter::WhiteSpace)),
            CSV => Some(Separator::Csv(delimiter)),
            _ => None,
        };
        let has_header = kinds & 1 << 5 != 0;
        let field = match separator {
            Some(separator) => {
                StoredField::Field(Field { columns: vec![column], separator, has_header })
            }
            None if kinds >> 2 & 7 == NOT_STORED => StoredField::NotStored,
            None => StoredField::None,
        };
        let format = *Format::ALL.get(usize::from(kinds & 3))?;
        let recipe = Self { options: LineOptions::from_bits(options)?, format, field };
        let is_counted = |field: &Field| field.columns != [Column::Number(0)];
        let is_sound = !matches!(&recipe.field, StoredField::Field(field) if !is_counted(field));
        (is_sound && recipe.to_bytes() == bytes).then_some(recipe)
    }

    /// The options, as they are given to the command.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.format != Format::Lines {
            words.push(format!("--format {}", self.format.name()));
        }
        match &self.field {
            StoredField::None => {}
            StoredField::NotStored => words.push("--field not stored".to_owned()),
            StoredField::Field(field) => words.push(field.words()),
        }
        words.extend(self.options.words().map(str::to_owned));
        words
    }
}

/// Application bytes that this version does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownRecipe;

impl fmt::Display for UnknownRecipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the filter says how to make keys of lines in a way that this version does not know",
        )
    }
}

impl Error for UnknownRecipe {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_another_program_say_nothing_of_lines() {
        assert_eq!(Recipe::from_bytes([0x80, 1, 2, 3, 4, 5, 6, 7]), Some(Recipe::default()));
    }

    #[test]
    fn every_recipe_is_read_back_and_no_other_bytes_are() {
        let columns =
            [Column::Number(1), Column::Number(u32::MAX), Column::Hashed(fields::hash(b"mail"))];
        let separators = [
            Separator::Delimiter(Delimiter::Text("\t".to_owned())),
            Separator::Delimiter(Delimiter::WhiteSpace),
            Separator::Csv(b';'),
        ];
        let mut fields = vec![StoredField::None, StoredField::NotStored];
        for (column, separator) in
            columns.iter().flat_map(|it| separators.iter().map(move |s| (it, s)))
        {
            for has_header in [false, true] {
                let (column, separator) = (column.clone(), separator.clone());
                fields.push(StoredField::Field(Field {
                    columns: vec![column],
                    separator,
                    has_header,
                }));
            }
        }
        for field in fields {
            for format in Format::ALL {
                for options in (0..8).filter_map(LineOptions::from_bits) {
                    let recipe = Recipe { options, format, field: field.clone() };
                    assert_eq!(Recipe::from_bytes(recipe.to_bytes()), Some(recipe));
                }
            }
        }
        let unknown: [ApplicationBytes; 9] = [
            [8, 0, 0, 0, 0, 0, 0, 0],
            [0, 1, 0, 0, 0, 0, 0, 0],
            [0, 0, 1, 0, 0, 0, 0, 0],
            [0, 1, 3, 0, 0, 0, 0, 0],
            [0, 0, 5 << 2, 0, 1, 0, 0, 0],
            [0, 0, 1 << 7, 0, 0, 0, 0, 0],
            [0, 0, 0, b',', 0, 0, 0, 0],
            [0, 0, 1 << 2, b',', 0, 0, 0, 0],
            [0, 0, 1 << 2, 0xff, 1, 0, 0, 0],
        ];
        for bytes in unknown {
            assert_eq!(Recipe::from_bytes(bytes), None, "{bytes:?}");
        }
    }
}
