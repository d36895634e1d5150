//! The time that is in a line: a field of it, or the value of a name (`time_text.rs`).
//!
//! The text of a time may go on in the next fields: its time of day, its offset.
//! Cost: one pass over the line up to the time; for a line that is JSON, over all of it.

use std::cell::RefCell;

use jiff::Timestamp;

use super::time_text;
use crate::lines::fields::{Delimiter, Records, Separator};

/// The most fields of a time: `Sun, 25 Oct 2026 02:10:00 +0100`.
const MOST_FIELDS: usize = 6;

/// The heading of the options of a window.
pub(super) const HEADING: &str = "Window";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TimeArgs {
    /// Take the time from this field of each line, counted from 1
    #[arg(long, value_name = "N", help_heading = HEADING, requires = "window")]
    #[arg(value_parser = parse_field, allow_negative_numbers = true)]
    time_field: Option<u16>,

    /// Take the time from the value of NAME, in JSON or as NAME=VALUE
    #[arg(long, value_name = "NAME", help_heading = HEADING, requires = "window")]
    #[arg(conflicts_with = "time_field")]
    time_key: Option<String>,
}

fn parse_field(text: &str) -> Result<u16, String> {
    text.parse().ok().filter(|&number| number > 0).ok_or_else(|| {
        "give the number of a field, counted from 1, or --time-key NAME for NAME=VALUE and JSON"
            .to_owned()
    })
}

/// Where the time of a line is.
pub(super) enum Times {
    /// In a field, counted from 1.
    Field(usize, Delimiter),
    Csv(usize, RefCell<Records>),
    /// The value of a name.
    Named(String),
}

impl TimeArgs {
    /// Where the time is; `None` if it is that of arrival. Fields are separated as the field of the
    /// key is, otherwise by white space.
    pub(super) fn times(&self, separator: Option<&Separator>) -> Option<Times> {
        if let Some(name) = &self.time_key {
            return Some(Times::Named(name.clone()));
        }
        let number = usize::from(self.time_field?);
        Some(match separator {
            None => Times::Field(number, Delimiter::WhiteSpace),
            Some(Separator::Delimiter(delimiter)) => Times::Field(number, delimiter.clone()),
            Some(Separator::Csv(byte)) => Times::Csv(number, RefCell::new(Records::new(*byte))),
        })
    }
}

impl Times {
    /// The time of a line in milliseconds of Unix time. `None` if it has none.
    pub(super) fn of(&self, line: &[u8]) -> Option<u64> {
        match self {
            Self::Field(number, delimiter) => {
                let fields = delimiter.fields(line).skip(number - 1).take(MOST_FIELDS);
                at_start(&fields.collect::<Vec<_>>().join(&b' '))
            }
            Self::Csv(number, records) => {
                let (mut text, mut records) = (Vec::new(), records.borrow_mut());
                for number in *number..number + MOST_FIELDS {
                    if !text.is_empty() {
                        text.push(b' ');
                    }
                    if !records.field(line, number, &mut text) {
                        break;
                    }
                }
                at_start(&text)
            }
            Self::Named(name) if line.trim_ascii_start().starts_with(b"{") => {
                let object: serde_json::Value = serde_json::from_slice(line).ok()?;
                match object.get(name)? {
                    serde_json::Value::String(text) => whole(text.as_bytes()),
                    serde_json::Value::Number(number) => whole(number.to_string().as_bytes()),
                    _ => None,
                }
            }
            Self::Named(name) => whole(value_of(line, name.as_bytes())?),
        }
    }

    /// Where the time was looked for, for messages.
    pub(super) fn place(&self) -> String {
        match self {
            Self::Field(number, _) | Self::Csv(number, _) => format!("field {number}"),
            Self::Named(name) => format!("the value of {name}"),
        }
    }
}

/// The time at the start of a text.
fn at_start(text: &[u8]) -> Option<u64> {
    time_text::parse(text, Timestamp::now()).map(|(time, _)| time)
}

/// The time that is all of a text.
fn whole(text: &[u8]) -> Option<u64> {
    let (time, rest) = time_text::parse(text, Timestamp::now())?;
    rest.trim_ascii().is_empty().then_some(time)
}

/// The value of `NAME=VALUE`, which may be quoted.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let is_start = |&at: &usize| at == 0 || line[at - 1].is_ascii_whitespace();
    let ends = memchr::memmem::find_iter(line, name).filter(is_start).map(|at| at + name.len());
    let value = ends.map(|end| &line[end..]).find_map(|rest| rest.strip_prefix(b"="))?;
    let (value, quoted) = match value.strip_prefix(b"\"") {
        Some(value) => (value, true),
        None => (value, false),
    };
    let is_end = |&byte: &u8| if quoted { byte == b'"' } else { byte.is_ascii_whitespace() };
    let end = value.iter().position(is_end).unwrap_or(value.len());
    Some(&value[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_found_in_a_field_or_by_its_name() {
        let expected = Some(1_700_000_000_500);
        let field = |number| Times::Field(number, Delimiter::WhiteSpace);
        assert_eq!(field(1).of(b"1700000000.5 up"), expected);
        assert_eq!(field(2).of(b"web 2023-11-14 22:13:20.5 up"), expected);
        assert_eq!((field(2).of(b"web"), field(1).of(b"x 2023-11-14")), (None, None));
        assert_eq!(field(2).of(b"web 2023-11-14 23:13:20.5 +0100 up"), expected);
        let apache = b"::1 - - [14/Nov/2023:23:13:20 +0100] \"GET / HTTP/1.1\" 200 5";
        assert_eq!(field(4).of(apache), expected.map(|time| time - 500));
        let spaced = Times::Field(2, Delimiter::Text(";".to_owned()));
        assert_eq!(spaced.of(b"web;2023-11-14;23:13:20.5;+0100;up"), expected);
        let comma = Times::Field(2, Delimiter::Text(",".to_owned()));
        assert_eq!(comma.of(b"a b,1700000000500,c"), expected);
        let csv = Times::Csv(2, RefCell::new(Records::new(b',')));
        assert_eq!(csv.of(b"\"a,b\",\"2023-11-14T22:13:20.5Z\",c"), expected);
        assert_eq!(csv.of(b"a,\"2023-11-14\",23:13:20.5,+01:00"), expected);
        assert_eq!(csv.of(b"a"), None);
        let named = Times::Named("ts".to_owned());
        for line in [
            "ts=1700000000.5 level=info",
            "level=info ts=\"2023-11-14 22:13:20.5\" x=y",
            "its=3 ts2=4 tsx ts=1700000000500",
            "{\"ts\": 1700000000.5}",
            " {\"level\": 1, \"ts\": \"2023-11-14T22:13:20.5Z\"}",
        ] {
            assert_eq!(named.of(line.as_bytes()), expected, "{line}");
        }
        for line in [
            "ts=\"2023-11-14 up\"",
            "ts= x",
            "its=1700000000",
            "{\"ts\": null}",
            "{\"ts\": 1",
            "",
            "ts",
        ] {
            assert_eq!(named.of(line.as_bytes()), None, "{line}");
        }
    }
}
