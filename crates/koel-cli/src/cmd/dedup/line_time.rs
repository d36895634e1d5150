//! The time that is in a line: a field of it, or the value of a name.
//!
//! * As RFC 3339 writes it, such as `2026-11-26T14:25:46.5+01:00`; also with a space in place of
//!   the T, and without an offset, which then is UTC.
//! * As a Unix time in seconds, which may have a fraction, or in milliseconds, microseconds or
//!   nanoseconds: the number of digits tells.
//!
//! Cost: one pass over the line up to the time; for a line that is JSON, over all of it.
#![forbid(unsafe_code)]

use std::cell::RefCell;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::fields::{Delimiter, Records, Separator};

/// Unix times from this on are not in seconds but in milliseconds, in a thousand times that, and so
/// on: as seconds it would be the year 5138.
const MILLIS_FROM: f64 = 1e11;

/// The heading of the options of a window.
pub(super) const HEADING: &str = "Window";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TimeArgs {
    /// Take the time from this field of each line, counted from 1
    #[arg(long, value_name = "N", help_heading = HEADING, requires = "window")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    time_field: Option<u16>,

    /// Take the time from the value of NAME, in JSON or as NAME=VALUE
    #[arg(long, value_name = "NAME", help_heading = HEADING, requires = "window")]
    #[arg(conflicts_with = "time_field")]
    time_key: Option<String>,
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
                let field = delimiter.field(line, *number)?;
                if !is_date(field) {
                    return parse(field);
                }
                // A date and a time of day with a space between them.
                parse(&[field, b"T", delimiter.field(line, number + 1)?].concat())
            }
            Self::Csv(number, records) => {
                let mut field = Vec::new();
                let is_found = records.borrow_mut().field(line, *number, &mut field);
                if is_found { parse(&field) } else { None }
            }
            Self::Named(name) if line.trim_ascii_start().starts_with(b"{") => {
                let object: serde_json::Value = serde_json::from_slice(line).ok()?;
                match object.get(name)? {
                    serde_json::Value::String(text) => parse(text.as_bytes()),
                    serde_json::Value::Number(number) => parse(number.to_string().as_bytes()),
                    _ => None,
                }
            }
            Self::Named(name) => parse(value_of(line, name.as_bytes())?),
        }
    }
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

/// Whether a field is a date without a time of day.
fn is_date(field: &[u8]) -> bool {
    field.len() == 10 && field[4] == b'-' && field[7] == b'-'
}

/// Milliseconds of Unix time, from 1970 on.
fn parse(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let text = text.trim_start_matches('[').trim_end_matches([']', ',']);
    let millis = match text.parse::<f64>() {
        Ok(number) => return unix_time(number),
        Err(_) => match text.parse::<Timestamp>() {
            Ok(time) => time.as_millisecond(),
            Err(_) => {
                let time = text.parse::<DateTime>().ok()?;
                time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond()
            }
        },
    };
    u64::try_from(millis).ok()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the range")]
fn unix_time(number: f64) -> Option<u64> {
    let scale = [1e3, 1.0, 1e-3, 1e-6];
    let bounds = [MILLIS_FROM, MILLIS_FROM * 1e3, MILLIS_FROM * 1e6, MILLIS_FROM * 1e9];
    let (_, scale) = bounds.into_iter().zip(scale).find(|&(bound, _)| number < bound)?;
    (number >= 0.0).then_some((number * scale) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_rfc_3339_and_as_unix_times_of_any_unit() {
        let expected = Some(1_700_000_000_500);
        for text in [
            "2023-11-14T22:13:20.5Z",
            "2023-11-14t23:13:20.500+01:00",
            "2023-11-14 22:13:20.5Z",
            "2023-11-14T22:13:20.5",
            "[2023-11-14T22:13:20.5Z]",
            "1700000000.5",
            "1700000000500",
            "1700000000500000",
            "1700000000500000000",
        ] {
            assert_eq!(parse(text.as_bytes()), expected, "{text}");
        }
        for text in [
            "",
            "x",
            "-1",
            "nan",
            "inf",
            "1e300",
            "22:13",
            "2023-14-14T22:13:20Z",
            "1969-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse(b"\xff"), None);
    }

    #[test]
    fn a_time_is_found_in_a_field_or_by_its_name() {
        let expected = Some(1_700_000_000_500);
        let field = |number| Times::Field(number, Delimiter::WhiteSpace);
        assert_eq!(field(1).of(b"1700000000.5 up"), expected);
        assert_eq!(field(2).of(b"web 2023-11-14 22:13:20.5 up"), expected);
        assert_eq!((field(2).of(b"web"), field(1).of(b"2023-11-14")), (None, None));
        let comma = Times::Field(2, Delimiter::Text(",".to_owned()));
        assert_eq!(comma.of(b"a b,1700000000500,c"), expected);
        let csv = Times::Csv(2, RefCell::new(Records::new(b',')));
        assert_eq!(csv.of(b"\"a,b\",\"2023-11-14T22:13:20.5Z\",c"), expected);
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
        for line in ["ts= x", "its=1700000000", "{\"ts\": null}", "{\"ts\": 1", "", "ts"] {
            assert_eq!(named.of(line.as_bytes()), None, "{line}");
        }
    }
}
