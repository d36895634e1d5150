//! How the keys of a filter were made of lines: the application bytes of its header.
//!
//! A verb that reads lines for a filter reads them as the lines were read that it was built from.
//! What the user gives for one input goes before that, except for the options of keys.
//! docs/FORMAT.md ("Lines") describes the bytes for other languages, with vectors.
//!
//! ```text
//! byte 0     options of keys: 1 ignore case, 2 trim, 4 keep CR
//! byte 1     what a key is: 0 text, 1 a host
//! byte 2     bits 0, 1 kind of list | 2 to 4 fields | 5 has a header | 6 the column has a name
//! byte 3     the delimiter
//! bytes 4-7  number of the column, or FNV-1a of its name
//! ```
//!
//! Filters are merged and compared only if the first two are equal. The name of a column may be
//! longer than a header has room for, so it is stored as a hash.
//!
//! Each verb that reads lines has these options. How a list is read (`--field`, `--csv`,
//! `--format`) can be said anew for an input. How a key is made (`--ignore-case`, `--trim`,
//! `--keep-cr`) cannot.

use std::path::Path;

use crate::failure::Failure;
use crate::lines::fields::{self, Column, Delimiter, Field, Separator};
use crate::lists::Format;
use crate::lists::adblock::Disabled;
use crate::lists::keys::{Given, Rules};
use crate::lists::line_key::LineOptions;
use crate::quantity;

/// What a filter stores of the rules for its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recipe {
    pub(crate) options: LineOptions,
    pub(crate) format: Format,
    pub(crate) field: StoredField,
}

/// What a filter stores of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoredField {
    None,
    Field(Field),
    /// Between delimiters of several bytes, for which there is no room.
    LongDelimiter,
}

/// The bytes that a filter stores, in the header.
pub(crate) type Bytes = [u8; 8];

const FORMATS: [Format; 3] = [Format::Lines, Format::Hosts, Format::Adblock];

const DELIMITER: u8 = 1;
const WHITE_SPACE: u8 = 2;
const CSV: u8 = 3;
const LONG_DELIMITER: u8 = 4;

impl Recipe {
    pub(crate) fn of(rules: &Rules) -> Self {
        let field = match &rules.field {
            None => StoredField::None,
            Some(Field { separator: Separator::Delimiter(it), .. }) if it.is_long() => {
                StoredField::LongDelimiter
            }
            Some(field) => StoredField::Field(field.clone()),
        };
        Self { options: rules.options, format: rules.format, field }
    }

    pub(crate) fn to_bytes(&self) -> Bytes {
        let is_host = u8::from(self.format != Format::Lines);
        let format = FORMATS.iter().position(|&format| format == self.format).unwrap_or(0);
        let [kind, _, _, _] = u32::try_from(format).unwrap_or(0).to_le_bytes();
        let (field, delimiter, [a, b, c, d]) = match &self.field {
            StoredField::None => (0, 0, [0; 4]),
            StoredField::LongDelimiter => (LONG_DELIMITER << 2, 0, [0; 4]),
            StoredField::Field(field) => {
                let (separator, delimiter) = match &field.separator {
                    Separator::Delimiter(Delimiter::WhiteSpace) => (WHITE_SPACE, 0),
                    Separator::Delimiter(Delimiter::Text(text)) => {
                        (DELIMITER, text.bytes().next().unwrap_or(0))
                    }
                    Separator::Csv(byte) => (CSV, *byte),
                };
                let (is_named, column) = match &field.column {
                    Column::Number(number) => (0, *number),
                    Column::Name(name) => (1, fields::hash(name.as_bytes())),
                    Column::Hashed(hash) => (1, *hash),
                };
                let bits = separator << 2 | u8::from(field.has_header) << 5 | is_named << 6;
                (bits, delimiter, column.to_le_bytes())
            }
        };
        [self.options.bits(), is_host, kind | field, delimiter, a, b, c, d]
    }

    /// The recipe in these bytes; `None` if this version of the program has not written them.
    pub(crate) fn from_bytes(bytes: Bytes) -> Option<Self> {
        let [options, _, kinds, delimiter, column @ ..] = bytes;
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
            Some(separator) => StoredField::Field(Field { column, separator, has_header }),
            None if kinds >> 2 & 7 == LONG_DELIMITER => StoredField::LongDelimiter,
            None => StoredField::None,
        };
        let format = *FORMATS.get(usize::from(kinds & 3))?;
        let recipe = Self { options: LineOptions::from_bits(options)?, format, field };
        let is_counted = |field: &Field| field.column != Column::Number(0);
        let is_sound = !matches!(&recipe.field, StoredField::Field(field) if !is_counted(field));
        (is_sound && recipe.to_bytes() == bytes).then_some(recipe)
    }

    /// The recipe of the filter at `path`.
    pub(crate) fn of_filter(path: &Path, bytes: Bytes) -> Result<Self, Failure> {
        Self::from_bytes(bytes).ok_or_else(|| {
            let sentence = "says how to make keys of lines in a way that this version of koel does \
                            not know; use a later version";
            Failure::about(path, sentence)
        })
    }

    /// Completes the rules for an input of the filter at `path`. What was given for the input
    /// stays; an option of keys that the filter lacks is an error, because its keys were made
    /// without it.
    pub(crate) fn complete(self, rules: &mut Rules, path: &Path) -> Result<(), Failure> {
        let filter = path.display();
        let stored: Vec<_> = key_options(self.options).collect();
        if let Some(option) = key_options(rules.options).find(|name| !stored.contains(name)) {
            return Err(Failure::Usage(format!(
                "{filter} was built without {option}; leave the option out, or build the filter \
                 again with it"
            )));
        }
        rules.options = self.options;
        if !rules.given.format {
            rules.format = self.format;
        }
        if rules.given.field {
            return Ok(());
        }
        rules.field = match self.field {
            StoredField::None => None,
            StoredField::Field(Field { separator: Separator::Csv(_), .. }) if rules.end == 0 => {
                return Err(Failure::Usage(format!(
                    "{filter} was built from a column of CSV, which -0 cannot read; give --field 0 \
                     if each key is a whole line"
                )));
            }
            StoredField::Field(field) => Some(field),
            StoredField::LongDelimiter => {
                return Err(Failure::Usage(format!(
                    "{filter} was built from a field of each line, and does not store its \
                     delimiter, which is longer than a byte; give --field and --delimiter, or \
                     --field 0 if each key is a whole line"
                )));
            }
        };
        Ok(())
    }

    /// The options without which a text is another key; `None` if there are none.
    pub(crate) fn key_words(self) -> Option<String> {
        let words = Self { field: StoredField::None, ..self }.words();
        (!words.is_empty()).then(|| words.join(" "))
    }

    /// The options, as they are given to the command.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.format != Format::Lines {
            words.push(format!("--format {}", self.format.name()));
        }
        match &self.field {
            StoredField::None => {}
            StoredField::LongDelimiter => words.push("--field, --delimiter not stored".to_owned()),
            StoredField::Field(field) => words.push(field.words()),
        }
        words.extend(key_options(self.options).map(str::to_owned));
        words
    }
}

/// The options of keys that are on, as they are given to the command.
fn key_options(options: LineOptions) -> impl Iterator<Item = &'static str> {
    let all = [
        (options.ignores_case, "--ignore-case"),
        (options.trims, "--trim"),
        (options.keeps_cr, "--keep-cr"),
    ];
    all.into_iter().filter_map(|(is_on, name)| is_on.then_some(name))
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LineArgs {
    /// Keys are exact bytes that end with NUL, in the input and the output
    #[arg(short = '0', long, help_heading = HEADING, display_order = 50)]
    null: bool,

    /// Lines may have NUL bytes, as a damaged log has; UTF-16 needs its mark
    #[arg(long, help_heading = HEADING, display_order = 61, conflicts_with = "null")]
    text: bool,

    /// Read one field of each line, by number or by its name; 0 is the line
    #[arg(long, value_name = "FIELD", help_heading = HEADING, display_order = 51)]
    #[arg(value_parser = Column::parse, allow_negative_numbers = true)]
    field: Option<Column>,

    /// The first line of each input is a header, even if FIELD is a number
    #[arg(long, help_heading = HEADING, display_order = 52, requires = "field")]
    header: bool,

    /// Text between fields, `tab` or `whitespace` [default: tab; --csv: comma]
    #[arg(long, value_name = "TEXT", help_heading = HEADING, display_order = 53)]
    #[arg(requires = "field", value_parser = Delimiter::parse)]
    delimiter: Option<Delimiter>,

    /// Fields may be quoted, as in CSV
    #[arg(long, help_heading = HEADING, display_order = 54, requires = "field")]
    #[arg(conflicts_with = "null")]
    csv: bool,

    /// Kind of list: lines, hosts (also URLs) or adblock
    #[arg(long, value_name = "WHAT", help_heading = HEADING, display_order = 55)]
    #[arg(value_enum, hide_possible_values = true)]
    format: Option<Format>,

    /// Upper and lower case are the same
    #[arg(long, help_heading = HEADING, display_order = 56)]
    ignore_case: bool,

    /// Drop white space around a key
    #[arg(long, help_heading = HEADING, display_order = 57)]
    trim: bool,

    /// Keep a carriage return before a newline as a part of the key
    #[arg(long, help_heading = HEADING, display_order = 58)]
    keep_cr: bool,

    /// Refuse longer lines, so that no line takes all memory
    #[arg(long, value_name = "SIZE", help_heading = HEADING, display_order = 59)]
    #[arg(default_value = "4MiB", value_parser = quantity::parse_size)]
    #[arg(allow_negative_numbers = true)]
    max_line: u64,

    /// Skip and count longer lines instead
    #[arg(long, help_heading = HEADING, display_order = 60, conflicts_with = "csv")]
    skip_long: bool,
}

const HEADING: &str = "Lines";

impl LineArgs {
    pub(crate) fn rules(&self) -> Result<Rules, Failure> {
        let field = match &self.field {
            Some(Column::Number(0)) | None => None,
            Some(column) => Some(Field {
                has_header: self.header || matches!(column, Column::Name(_)),
                column: column.clone(),
                separator: self.separator()?,
            }),
        };
        let given = Given { field: self.field.is_some(), format: self.format.is_some() };
        Ok(Rules {
            end: if self.null { 0 } else { b'\n' },
            longest: usize::try_from(self.max_line).unwrap_or(usize::MAX),
            field,
            format: self.format.unwrap_or_default(),
            options: LineOptions {
                ignores_case: self.ignore_case,
                trims: self.trim,
                keeps_cr: self.keep_cr,
            },
            given,
            disabled: Disabled::new(),
            skips_long: self.skip_long,
            may_have_nul: self.text,
        })
    }

    fn separator(&self) -> Result<Separator, Failure> {
        if !self.csv {
            let tab = || Delimiter::Text("\t".to_owned());
            return Ok(Separator::Delimiter(self.delimiter.clone().unwrap_or_else(tab)));
        }
        let byte = self.delimiter.as_ref().map_or(Some(b','), Delimiter::byte);
        byte.map(Separator::Csv).ok_or_else(|| {
            let sentence = "with --csv, the delimiter is one ASCII character other than a quote";
            Failure::Usage(sentence.to_owned())
        })
    }
}

#[cfg(test)]
mod tests;
