//! The options of lines that a verb has, and those that a filter was built with.
//!
//! A verb that reads lines for a filter reads them as the lines were read that it was built from.
//! How a list is read (`--field`, `--csv`, `--format`) can be said anew for an input. How a key is
//! made (`--ignore-case`, `--trim`, `--keep-cr`) cannot.

use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use koel_lines::{
    ApplicationBytes, Column, Delimiter, Field, Format, LineOptions, Reading, Recipe, Separator,
    StoredField,
};

use crate::failure::Failure;
use crate::lists::keys::{Given, Rules};
use crate::quantity;

/// The recipe of the filter at `path`.
pub(crate) fn recipe_of(path: &Path, bytes: ApplicationBytes) -> Result<Recipe, Failure> {
    Recipe::from_bytes(bytes).ok_or_else(|| {
        let sentence = "says how to make keys of lines in a way that this version of koel does not \
                        know; use a later version";
        Failure::about(path, sentence)
    })
}

/// Completes the rules for an input of the filter at `path`. What was given for the input
/// stays; an option of keys that the filter lacks is an error, because its keys were made
/// without it.
pub(crate) fn complete(recipe: Recipe, rules: &mut Rules, path: &Path) -> Result<(), Failure> {
    let filter = path.display();
    let stored: Vec<_> = recipe.options.words().collect();
    if let Some(option) = rules.reading.options.words().find(|name| !stored.contains(name)) {
        return Err(Failure::Usage(format!(
            "{filter} was built without {option}; leave the option out, or build the filter \
             again with it"
        )));
    }
    rules.reading.options = recipe.options;
    if !rules.given.format {
        rules.reading.format = recipe.format;
    }
    if rules.given.field {
        return refuse_several(rules);
    }
    rules.reading.field = match recipe.field {
        StoredField::None => None,
        StoredField::Field(Field { separator: Separator::Csv(_), .. }) if rules.end == 0 => {
            return Err(Failure::Usage(format!(
                "{filter} was built from a column of CSV, which -0 cannot read; give --field 0 \
                 if each key is a whole line"
            )));
        }
        StoredField::Field(field) => Some(field),
        StoredField::NotStored => {
            return Err(Failure::Usage(format!(
                "{filter} was built from several fields of each line, or from one between \
                 delimiters longer than a byte, and cannot store them; give --field and --csv or \
                 --delimiter, or --field 0 if each key is a whole line"
            )));
        }
    };
    Ok(())
}

/// Several fields are one text together: neither a line nor a host.
fn refuse_several(rules: &Rules) -> Result<(), Failure> {
    let columns = rules.reading.field.as_ref().map_or(&[][..], |field| &field.columns);
    let sentence = match columns {
        [_, _, ..] if columns.contains(&Column::Number(0)) => {
            "--field 0 is the whole line, and stands alone"
        }
        [_, _, ..] if rules.reading.format != Format::Lines => {
            "several fields are one text together, which is no host; give one --field"
        }
        _ => return Ok(()),
    };
    Err(Failure::Usage(sentence.to_owned()))
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LineArgs {
    /// Keys are exact bytes that end with NUL, in the input and the output
    #[arg(short = '0', long, help_heading = HEADING, display_order = 50)]
    null: bool,

    /// Lines may have NUL bytes, as a damaged log has; UTF-16 needs its mark
    #[arg(long, help_heading = HEADING, display_order = 61, conflicts_with = "null")]
    text: bool,

    /// Read a field of each line, by number or name; 0 is the line, `A,B` several
    #[arg(long, value_name = "FIELD", help_heading = HEADING, display_order = 51)]
    #[arg(value_parser = Column::parse, allow_negative_numbers = true, value_delimiter = ',')]
    field: Vec<Column>,

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
    #[arg(value_parser = formats(), hide_possible_values = true)]
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
        let is_named = |column: &Column| matches!(column, Column::Name(_));
        let field = match &self.field[..] {
            [] | [Column::Number(0)] => None,
            columns => Some(Field {
                has_header: self.header || columns.iter().any(is_named),
                columns: columns.to_vec(),
                separator: self.separator()?,
            }),
        };
        let given = Given { field: !self.field.is_empty(), format: self.format.is_some() };
        let options = LineOptions {
            ignores_case: self.ignore_case,
            trims: self.trim,
            keeps_cr: self.keep_cr,
        };
        let format = self.format.unwrap_or_default();
        let rules = Rules {
            end: if self.null { 0 } else { b'\n' },
            longest: usize::try_from(self.max_line).unwrap_or(usize::MAX),
            reading: Reading { field, format, options, ..Reading::default() },
            given,
            skips_long: self.skip_long,
            may_have_nul: self.text,
            numbers: false,
            large_groups: false,
        };
        refuse_several(&rules)?;
        Ok(rules)
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

/// The values of `--format`.
fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name)).map(|name| {
        Format::ALL.into_iter().find(|format| format.name() == name).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lists::keys::tests::lines as rules;

    #[test]
    fn what_is_given_for_an_input_goes_before_what_the_filter_stores() {
        let path = Path::new("x");
        let stored = Recipe { format: Format::Hosts, ..Recipe::default() };
        let mut given = rules();
        given.given.format = true;
        complete(stored.clone(), &mut given, path).unwrap();
        assert_eq!(given.reading.format, Format::Lines);
        let mut left_out = rules();
        complete(stored, &mut left_out, path).unwrap();
        assert_eq!(left_out.reading.format, Format::Hosts);
        let long = Recipe { field: StoredField::NotStored, ..Recipe::default() };
        assert!(complete(long.clone(), &mut rules(), path).is_err());
        let mut given = rules();
        given.given.field = true;
        complete(long, &mut given, path).unwrap();
        assert_eq!(given.reading.field, None);
    }
}
