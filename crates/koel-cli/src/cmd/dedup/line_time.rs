//! The time that is in a line: a field of it, or the value of a name.
//!
//! The text of a time may go on in the next fields: its time of day, its offset.
//! Cost: one pass over the line up to the time; for a line that is JSON, over all of it.
//!
//! Times are read in the forms that logs have:
//!
//! ```text
//! 2026-10-25T02:10:00.5+01:00   RFC 3339; also with a space, `_`, `/`, a comma before the
//! fraction,
//!                               a space before the offset, or as 20261025T021000Z
//! 2026-10-25                    the start of a day
//! 25/Oct/2026:02:10:00 +0100    the common log format of web servers
//! Oct 25 02:10:00               syslog: the latest such time
//! Sun Oct 25 02:10:00 2026      ctime(3);  Sun, 25 Oct 2026 02:10:00 +0100    RFC 5322
//! 1761358200.5                  Unix time in s from 1973 on; with more digits in ms, us or ns
//! ```
//!
//! A time without an offset is UTC. Brackets and quotes around it do no harm. Cost: one pass.

use std::cell::RefCell;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;

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
    parse(text, Timestamp::now()).map(|(time, _)| time)
}

/// The time that is all of a text.
fn whole(text: &[u8]) -> Option<u64> {
    let (time, rest) = parse(text, Timestamp::now())?;
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

/// Unix times from this on are not in seconds but in milliseconds, in a thousand times that, and so
/// on: as seconds it would be the year 5138.
const MILLIS_FROM: f64 = 1e11;
/// A smaller number is the day of a month, a status or a size, and no Unix time.
const LEAST: f64 = 1e8;
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/// How far into the future a time without a year may be: clocks differ.
const AHEAD: i64 = 24 * 3600;

/// The forms that [`parse`] reads, for messages.
pub(super) const FORMS: &str = "RFC 3339 (2026-10-25T02:10:00Z, also with a space), dates, the \
                                common log format (25/Oct/2026:02:10:00 +0100), syslog \
                                (Oct 25 02:10:00) and Unix times";

/// The time at the start of a text in milliseconds of Unix time, from 1970 on, and what follows it.
pub(super) fn parse(text: &[u8], now: Timestamp) -> Option<(u64, &[u8])> {
    let mut at = Cursor(text);
    at.skip(|byte| b"[(\"' ".contains(&byte));
    let start = at;
    let millis = [date_first, month_first].into_iter().find_map(|form| {
        at = start;
        let (date, time) = form(&mut at, now)?;
        let offset = at.offset().unwrap_or(0);
        at.is_at_end().then_some(())?;
        let time = DateTime::from_parts(date, time).to_zoned(TimeZone::UTC).ok()?;
        Some(time.timestamp().as_millisecond() - offset * 1000)
    });
    let millis = match millis {
        Some(millis) => u64::try_from(millis).ok()?,
        None => {
            at = start;
            at.unix_time()?
        }
    };
    at.skip(|byte| b"])\"',;".contains(&byte));
    Some((millis, at.0))
}

/// `2026-10-25T02:10:00`, `20261025`, `25/Oct/2026:02:10:00`.
fn date_first(at: &mut Cursor<'_>, _now: Timestamp) -> Option<(Date, Time)> {
    if let [_, _, b'/', ..] = at.0 {
        let day = at.digits(2)?;
        at.byte(b"/")?;
        let month = at.name(&MONTHS)?;
        at.byte(b"/")?;
        let year = at.digits(4)?;
        at.byte(b":")?;
        return Some((date(year, month, day)?, at.time_of_day(false)?));
    }
    let year = at.digits(4)?;
    let separator = at.byte(b"-/");
    let month = at.digits(2)?;
    if let Some(separator) = separator {
        at.byte(&[separator])?;
    }
    let date = date(year, month, at.digits(2)?)?;
    let is_year_of_unix = (1970..2100).contains(&year);
    (separator.is_some() || is_year_of_unix).then_some(())?;
    let before = *at;
    let is_joined = at.byte(b"Tt_").is_some();
    if !is_joined {
        at.byte(b" ");
    }
    match at.time_of_day(is_joined) {
        Some(time) => Some((date, time)),
        None if is_joined => None,
        None => {
            *at = before;
            Some((date, Time::midnight()))
        }
    }
}

/// `Oct 25 02:10:00`, also with a weekday before it or a year behind, or with the day first.
fn month_first(at: &mut Cursor<'_>, now: Timestamp) -> Option<(Date, Time)> {
    if at.name(&DAYS).is_some() {
        at.byte(b",");
        at.spaces()?;
    }
    if at.0.first()?.is_ascii_digit() {
        let day = at.number()?;
        at.spaces()?;
        let month = at.name(&MONTHS)?;
        at.spaces()?;
        let year = at.digits(4)?;
        at.spaces()?;
        return Some((date(year, month, day)?, at.time_of_day(false)?));
    }
    let month = at.name(&MONTHS)?;
    at.spaces()?;
    let day = at.number()?;
    at.spaces()?;
    let time = at.time_of_day(false)?;
    let before = *at;
    let year = at.spaces().and_then(|()| at.digits(4)).filter(|_| at.is_at_end());
    match year {
        Some(year) => Some((date(year, month, day)?, time)),
        None => {
            *at = before;
            Some((latest(month, day, time, now)?, time))
        }
    }
}

/// The latest such date that is not in the future. The 29th of February may be eight years ago.
fn latest(month: i64, day: i64, time: Time, now: Timestamp) -> Option<Date> {
    let this_year = i64::from(now.to_zoned(TimeZone::UTC).year());
    (this_year - 8..=this_year + 1).rev().find_map(|year| {
        let date = date(year, month, day)?;
        let at = DateTime::from_parts(date, time).to_zoned(TimeZone::UTC).ok()?;
        (at.timestamp().as_second() <= now.as_second() + AHEAD).then_some(date)
    })
}

fn date(year: i64, month: i64, day: i64) -> Option<Date> {
    let [year, month, day] = [year, month, day].map(i16::try_from);
    Date::new(year.ok()?, i8::try_from(month.ok()?).ok()?, i8::try_from(day.ok()?).ok()?).ok()
}

/// The rest of a text.
#[derive(Clone, Copy)]
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn skip(&mut self, is: impl Fn(u8) -> bool) {
        while let [first, rest @ ..] = self.0
            && is(*first)
        {
            self.0 = rest;
        }
    }

    /// One of these bytes.
    fn byte(&mut self, bytes: &[u8]) -> Option<u8> {
        let (&first, rest) = self.0.split_first().filter(|(first, _)| bytes.contains(first))?;
        self.0 = rest;
        Some(first)
    }

    fn spaces(&mut self) -> Option<()> {
        self.byte(b" ")?;
        self.skip(|byte| byte == b' ');
        Some(())
    }

    /// So many digits.
    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        digits.iter().all(u8::is_ascii_digit).then_some(())?;
        self.0 = rest;
        Some(digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    /// One or two digits.
    fn number(&mut self) -> Option<i64> {
        self.digits(2).or_else(|| self.digits(1))
    }

    /// One of these names in any case, counted from 1.
    fn name(&mut self, names: &[&str]) -> Option<i64> {
        let (name, rest) = self.0.split_at_checked(3)?;
        let index = names.iter().position(|it| it.as_bytes().eq_ignore_ascii_case(name))?;
        self.0 = rest;
        i64::try_from(index + 1).ok()
    }

    /// `02:10:00.5`, `02:10`; `021000` if it may be compact.
    fn time_of_day(&mut self, may_be_compact: bool) -> Option<Time> {
        let hour = self.digits(2)?;
        let has_colon = self.byte(b":").is_some();
        (has_colon || may_be_compact).then_some(())?;
        let minute = self.digits(2)?;
        let has_second = !has_colon && self.0.first().is_some_and(u8::is_ascii_digit)
            || has_colon && self.byte(b":").is_some();
        let second = if has_second { self.digits(2)? } else { 0 };
        let nanos = if has_second { self.fraction() } else { 0 };
        // A leap second is the last one of its minute.
        let [hour, minute, second] = [hour, minute, second.min(59)].map(i8::try_from);
        Time::new(hour.ok()?, minute.ok()?, second.ok()?, nanos).ok()
    }

    /// A fraction of a second in nanoseconds; 0 if there is none.
    fn fraction(&mut self) -> i32 {
        let before = *self;
        if self.byte(b".,").is_none() {
            return 0;
        }
        let (mut nanos, mut unit) = (0, 100_000_000);
        while let Some(digit) = self.byte(b"0123456789") {
            nanos += i32::from(digit - b'0') * unit;
            unit /= 10;
        }
        if unit == 100_000_000 {
            *self = before;
        }
        nanos
    }

    /// An offset in seconds, which may stand behind a space; `None` if there is none.
    fn offset(&mut self) -> Option<i64> {
        let before = *self;
        self.byte(b" ");
        let found = self.offset_here();
        if found.is_none() {
            *self = before;
        }
        found
    }

    fn offset_here(&mut self) -> Option<i64> {
        for name in [&b"UTC"[..], b"GMT", b"Z", b"z"] {
            let mut after = *self;
            if let Some(rest) = self.0.strip_prefix(name) {
                after.0 = rest;
                if after.is_at_end() {
                    *self = after;
                    return Some(0);
                }
            }
        }
        let sign = if self.byte(b"+-")? == b'-' { -1 } else { 1 };
        let hours = self.digits(2)?;
        self.byte(b":");
        let minutes = self.digits(2).unwrap_or(0);
        (hours < 24 && minutes < 60 && self.is_at_end())
            .then_some(sign * 60 * (60 * hours + minutes))
    }

    /// Whether a word ends here.
    fn is_at_end(&self) -> bool {
        self.0.first().is_none_or(|byte| b" \t])\"',;".contains(byte))
    }

    /// A number, as Unix time in milliseconds.
    fn unix_time(&mut self) -> Option<u64> {
        let is_in = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let end = self.0.iter().position(|byte| !is_in(byte)).unwrap_or(self.0.len());
        let (number, rest) = self.0.split_at(end);
        self.0 = rest;
        number.first().filter(|byte| byte.is_ascii_digit() && self.is_at_end())?;
        unix_time(std::str::from_utf8(number).ok()?.parse().ok()?)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the range")]
fn unix_time(number: f64) -> Option<u64> {
    let scale = [1e3, 1.0, 1e-3, 1e-6];
    let bounds = [MILLIS_FROM, MILLIS_FROM * 1e3, MILLIS_FROM * 1e6, MILLIS_FROM * 1e9];
    let (_, scale) = bounds.into_iter().zip(scale).find(|&(bound, _)| number < bound)?;
    (number >= LEAST).then_some((number * scale) as u64)
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

    fn read(text: &str) -> Option<(u64, String)> {
        let now = "2026-11-27T12:00:00Z".parse().unwrap();
        let (millis, rest) = parse(text.as_bytes(), now)?;
        Some((millis, String::from_utf8(rest.to_vec()).unwrap()))
    }

    #[test]
    fn times_are_read_in_the_forms_that_logs_have() {
        let expected: Timestamp = "2023-11-14T22:13:20.5Z".parse().unwrap();
        let expected = u64::try_from(expected.as_millisecond()).unwrap();
        for text in [
            "2023-11-14T22:13:20.5Z",
            "2023-11-14t23:13:20.500+01:00",
            "2023-11-14 22:13:20.5Z",
            "2023-11-14T22:13:20.5",
            "[2023-11-14T22:13:20.5Z]",
            "\"2023/11/14 22:13:20,500\"",
            "2023-11-14 23:13:20.5 +0100",
            "2023-11-14 23:13:20.5+01",
            "2023-11-14 21:13:20.5 -01:00",
            "2023-11-14 22:13:20.5 UTC",
            "20231114T221320.5Z",
            "2023-11-14_22:13:20.5",
            "1700000000.5",
            "1700000000500",
            "1700000000500000",
            "1700000000500000000",
        ] {
            assert_eq!(read(text), Some((expected, String::new())), "{text}");
        }
        let second = expected - 500;
        for text in [
            "14/Nov/2023:22:13:20 +0000",
            "[14/Nov/2023:23:13:20 +0100]",
            "Tue Nov 14 22:13:20 2023",
            "Tue, 14 Nov 2023 22:13:20 GMT",
            "Tue, 14 Nov 2023 17:13:20 -0500",
        ] {
            assert_eq!(read(text), Some((second, String::new())), "{text}");
        }
        let minute = second - 20_000;
        for text in ["2023-11-14 22:13", "20231114T2213", "20231114T2213Z"] {
            assert_eq!(read(text), Some((minute, String::new())), "{text}");
        }
        let day = second - (22 * 3600 + 13 * 60 + 20) * 1000;
        for text in ["2023-11-14", "20231114", "2023/11/14"] {
            assert_eq!(read(text), Some((day, String::new())), "{text}");
        }
        for (text, rest) in
            [("2023-11-14 up", " up"), ("2023-11-14 22", " 22"), ("2023-11-14, 7", " 7")]
        {
            assert_eq!(read(text), Some((day, rest.to_owned())), "{text}");
        }
    }

    #[test]
    fn a_time_without_a_year_is_the_latest_that_is_not_in_the_future() {
        for (text, expected) in [
            ("Nov 27 11:59:59 host app", "2026-11-27T11:59:59Z"),
            ("Nov  2 11:59:59", "2026-11-02T11:59:59Z"),
            ("Nov 28 11:59:59", "2026-11-28T11:59:59Z"),
            ("Nov 28 12:00:01", "2025-11-28T12:00:01Z"),
            ("dec 31 23:59:59", "2025-12-31T23:59:59Z"),
            ("Feb 29 00:00:00", "2024-02-29T00:00:00Z"),
        ] {
            let expected: Timestamp = expected.parse().unwrap();
            let millis = read(text).map(|(millis, _)| millis);
            assert_eq!(millis, u64::try_from(expected.as_millisecond()).ok(), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_not_taken_for_one() {
        for text in [
            "",
            "x",
            "-1",
            "nan",
            "inf",
            "1e300",
            "22:13",
            "22:13:20",
            "2023-14-14T22:13:20Z",
            "1969-01-01T00:00:00Z",
            "2023-11-14x",
            "2023-11-14T25:00:00",
            "17x",
            "1.2.3.4",
            "14/Nov/2023",
            "14 22:13:20",
            "200",
            "99999999",
            "Nov 14",
            "2023-11-14T",
            "may be",
            "Feb 30 00:00:00",
            "\u{ff}",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
