//! The options of every verb that reads lines: how a list is read, and how keys are made of it.
//!
//! A filter stores them (`recipe.rs`), and they hold for its later inputs. How a list is read
//! (`--field`, `--csv`, `--format`) can be said anew for an input. How a key is made
//! (`--ignore-case`, `--trim`, `--keep-cr`) cannot.

use crate::failure::Failure;
use crate::lines::fields::{Column, Delimiter, Field, Separator};
use crate::lists::Format;
use crate::lists::adblock::Disabled;
use crate::lists::keys::{Given, Rules};
use crate::lists::line_key::LineOptions;
use crate::quantity;

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
