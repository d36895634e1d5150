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
//! 20261025021000                also with minutes only, or with milliseconds
//! 25/Oct/2026:02:10:00 +0100    the common log format of web servers
//! Oct 25 02:10:00               syslog: the latest such time
//! Sun Oct 25 02:10:00 2026      ctime(3), also with a zone before the year
//! Sun, 25 Oct 2026 02:10:00 +0100    RFC 5322
//! 1761358200.5                  Unix time in s from 1973 on; with more digits in ms, us or ns
//! ```
//!
//! A time may have one digit for its hour, `AM` or `PM`, and an offset or a zone of RFC 5322.
//! Without the latter it is UTC. Brackets and quotes around it do no harm. Cost: one pass.
//!
//! **Nothing of a time is ignored.** Digits behind a date that are no time of day, and other zones,
//! make it no time: the start of the day, or UTC, would be wrong by hours.

use std::cell::RefCell;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use koel_lines::{Delimiter, Records, Separator};

/// The most fields of a time: `Sun Oct 25 02:10:00 AM EST 2026`.
const MOST_FIELDS: usize = 7;

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
                let between = if *delimiter == Delimiter::WhiteSpace { b' ' } else { b'\t' };
                at_start(&fields.collect::<Vec<_>>().join(&between))
            }
            Self::Csv(number, records) => {
                let (mut text, mut records) = (Vec::new(), records.borrow_mut());
                for number in *number..number + MOST_FIELDS {
                    if !text.is_empty() {
                        text.push(b'\t');
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
            Self::Named(name) => match value_of(line, name.as_bytes())? {
                Value::Quoted(text) => whole(text),
                Value::Words(text) => {
                    let (time, rest) = parse(&text, Timestamp::now())?;
                    rest.first().is_none_or(u8::is_ascii_whitespace).then_some(time)
                }
            },
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

/// The time at the start of a text. Tabs are between fields, which may be of other things.
fn at_start(text: &[u8]) -> Option<u64> {
    parse(text, Timestamp::now()).map(|(time, _)| time)
}

/// The time that is all of a text.
fn whole(text: &[u8]) -> Option<u64> {
    let (time, rest) = parse(text, Timestamp::now())?;
    rest.trim_ascii().is_empty().then_some(time)
}

/// The value of `NAME=VALUE`.
enum Value<'a> {
    Quoted(&'a [u8]),
    /// With the words that follow, up to the next name, and tabs between them: a time may go on
    /// there, as in the next fields.
    Words(Vec<u8>),
}

fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<Value<'a>> {
    let is_start = |&at: &usize| at == 0 || line[at - 1].is_ascii_whitespace();
    let ends = memchr::memmem::find_iter(line, name).filter(is_start).map(|at| at + name.len());
    let value = ends.map(|end| &line[end..]).find_map(|rest| rest.strip_prefix(b"="))?;
    if let Some(value) = value.strip_prefix(b"\"") {
        let end = value.iter().position(|&byte| byte == b'"').unwrap_or(value.len());
        return Some(Value::Quoted(&value[..end]));
    }
    let mut words = value.split(u8::is_ascii_whitespace).take(MOST_FIELDS);
    let first = words.next()?;
    let others = words.take_while(|word| !word.contains(&b'='));
    Some(Value::Words(std::iter::once(first).chain(others).collect::<Vec<_>>().join(&b'\t')))
}

/// Unix times from this on are not in seconds but in milliseconds, in a thousand times that, and so
/// on: as seconds it would be the year 5138.
const MILLIS_FROM: f64 = 1e11;
/// A smaller number is the day of a month, a status or a size, and no Unix time.
const LEAST: f64 = 1e8;
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// Zones of RFC 5322, with their offsets in hours.
const ZONES: [(&str, i64); 12] = [
    ("UTC", 0),
    ("GMT", 0),
    ("UT", 0),
    ("Z", 0),
    ("EST", -5),
    ("EDT", -4),
    ("CST", -6),
    ("CDT", -5),
    ("MST", -7),
    ("MDT", -6),
    ("PST", -8),
    ("PDT", -7),
];
/// Other zones. Some stand for several offsets, and those of a place change.
const OTHER_ZONES: [&str; 33] = [
    "ACDT", "ACST", "AEDT", "AEST", "AKDT", "AKST", "AST", "AWST", "BRT", "BST", "CAT", "CEST",
    "CET", "EAT", "EEST", "EET", "HKT", "HST", "IDT", "IST", "JST", "KST", "MEZ", "MSK", "NDT",
    "NST", "NZDT", "NZST", "SAST", "SGT", "WAT", "WEST", "WET",
];
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
        let (date, time, offset) = form(&mut at, now)?;
        let offset = offset + at.offset()?;
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

/// A date, a time of day, and the offset in seconds that stood between parts of the date.
type Parts = (Date, Time, i64);

/// `2026-10-25T02:10:00`, `20261025`, `25/Oct/2026:02:10:00`.
fn date_first(at: &mut Cursor<'_>, _now: Timestamp) -> Option<Parts> {
    if let [_, _, b'/', ..] = at.0 {
        let day = at.digits(2)?;
        at.byte(b"/")?;
        let month = at.name(&MONTHS)?;
        at.byte(b"/")?;
        let year = at.digits(4)?;
        at.byte(b":")?;
        return Some((date(year, month, day)?, at.time_of_day(false)?, 0));
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
    let between = at.byte(b"Tt_ \t");
    if separator.is_some() && between.is_none() || !at.0.first().is_some_and(u8::is_ascii_digit) {
        *at = before;
        return Some((date, Time::midnight(), 0));
    }
    let start = *at;
    // A field `210131` behind a field `20161227` is a time, as this is a date; `404` is not, and
    // `210131` behind `2016-12-27` may be either.
    match at.time_of_day(between != Some(b'\t') || separator.is_none()) {
        Some(time) => Some((date, time, 0)),
        None if between == Some(b'\t') && !start.is_like_a_time() => {
            *at = before;
            Some((date, Time::midnight(), 0))
        }
        None => None,
    }
}

/// `Oct 25 02:10:00`, also with a weekday before it or a year behind, or with the day first.
fn month_first(at: &mut Cursor<'_>, now: Timestamp) -> Option<Parts> {
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
        return Some((date(year, month, day)?, at.time_of_day(false)?, 0));
    }
    let month = at.name(&MONTHS)?;
    at.spaces()?;
    let day = at.number()?;
    at.spaces()?;
    let (time, offset) = (at.time_of_day(false)?, at.offset()?);
    let before = *at;
    let year = at.spaces().and_then(|()| at.digits(4)).filter(|_| at.is_at_end());
    match year {
        Some(year) => Some((date(year, month, day)?, time, offset)),
        None => {
            *at = before;
            Some((latest(month, day, time, now)?, time, offset))
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
        self.byte(b" \t")?;
        self.skip(|byte| b" \t".contains(&byte));
        Some(())
    }

    /// A word of letters that ends here, if it is one that `known` knows.
    fn word<T>(&mut self, known: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let end = self.0.iter().position(|byte| !byte.is_ascii_alphabetic());
        let (word, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        let found = known(std::str::from_utf8(word).ok()?).filter(|_| Self(rest).is_at_end());
        self.0 = if found.is_some() { rest } else { self.0 };
        found
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

    /// Whether it could be a time of day without colons: `210131`, `21.01.31`.
    fn is_like_a_time(self) -> bool {
        let [mut compact, mut dotted] = [self; 2];
        let mut pair =
            |at_end| dotted.digits(2).is_some() && (at_end || dotted.byte(b".").is_some());
        compact.time_of_day(true).is_some()
            || pair(false) && pair(false) && pair(true) && dotted.is_at_end()
    }

    /// `02:10:00.5`, `2:10 PM`; `0210`, `021000` and `021000500` if it may be compact.
    fn time_of_day(&mut self, may_be_compact: bool) -> Option<Time> {
        let before = *self;
        let mut hour = self.number()?;
        let has_colon = self.byte(b":").is_some();
        if !has_colon {
            may_be_compact.then_some(())?;
            *self = before;
            hour = self.digits(2)?;
        }
        let minute = self.digits(2)?;
        let has_second = !has_colon && self.0.first().is_some_and(u8::is_ascii_digit)
            || has_colon && self.byte(b":").is_some();
        let second = if has_second { self.digits(2)? } else { 0 };
        let millis = if has_colon { None } else { self.digits(3) };
        let nanos = match millis.map(i32::try_from) {
            Some(millis) => millis.ok()? * 1_000_000,
            None => {
                if has_second {
                    self.fraction()
                } else {
                    0
                }
            }
        };
        (!self.0.first().is_some_and(u8::is_ascii_digit)).then_some(())?;
        if let Some(is_late) = self.half_of_day() {
            (1..=12).contains(&hour).then_some(())?;
            hour = hour % 12 + if is_late { 12 } else { 0 };
        }
        // A leap second is the last one of its minute.
        let [hour, minute, second] = [hour, minute, second.min(59)].map(i8::try_from);
        Time::new(hour.ok()?, minute.ok()?, second.ok()?, nanos).ok()
    }

    /// Whether a time is after noon, if it says so.
    fn half_of_day(&mut self) -> Option<bool> {
        let before = *self;
        self.byte(b" \t");
        let half = self.word(|word| match word.to_ascii_lowercase().as_str() {
            "am" => Some(false),
            "pm" => Some(true),
            _ => None,
        });
        *self = if half.is_some() { *self } else { before };
        half
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

    /// An offset in seconds, which may stand behind a space; 0 if there is none. `None` if it is a
    /// zone whose offset is not known.
    fn offset(&mut self) -> Option<i64> {
        let before = *self;
        self.byte(b" \t");
        if self.word(|word| OTHER_ZONES.contains(&word).then_some(())).is_some() {
            return None;
        }
        let offset = self.offset_here();
        *self = if offset.is_some() { *self } else { before };
        Some(offset.unwrap_or(0))
    }

    fn offset_here(&mut self) -> Option<i64> {
        let zone = |word: &str| {
            let name = if word == "z" { "Z" } else { word };
            ZONES.iter().find(|zone| zone.0 == name).map(|zone| 3600 * zone.1)
        };
        if let Some(offset) = self.word(zone) {
            return Some(offset);
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
    fn a_time_of_day_goes_on_behind_its_date_or_the_line_has_no_time() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap().as_millisecond().cast_unsigned();
        let expected = Some(at("2016-12-27T21:01:31Z"));
        let field = Times::Field(1, Delimiter::Text(" ".to_owned()));
        assert_eq!(field.of(b"20161227 210131 x"), expected);
        assert_eq!(field.of(b"2016-12-27 21:01:31 x"), expected);
        assert_eq!(field.of(b"2016-12-27 210131 x"), None);
        assert_eq!(field.of(b"2016-12-27 2101 x"), None);
        let day = Some(at("2016-12-27T00:00:00Z"));
        assert_eq!(field.of(b"2016-12-27 404 x"), day);
        assert_eq!(field.of(b"2016-12-27 198.51.100.7 x"), day);
        let named = Times::Named("time".to_owned());
        assert_eq!(named.of(b"a=1 time=2016-12-27 21:01:31 l=i"), expected);
        assert_eq!(named.of(b"time=20161227 210131 GET /"), expected);
        assert_eq!(named.of(b"time=2016-12-27 l=210131"), day);
        assert_eq!(named.of(b"time=2016-12-27 up l=1"), day);
        assert_eq!(named.of(b"time=2016-12-27 21.01.31 l=1"), None);
        assert_eq!(named.of(b"time=2016-12-27T21:01:31Z;x l=1"), None);
    }

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
            "Tue, 14 Nov 2023 17:13:20 EST",
            "Tue Nov 14 15:13:20 MST 2023",
            "Tue Nov 14 10:13:20 PM UTC 2023",
            "Nov 14 22:13:20 2023",
            "2023-11-14 10:13:20 PM",
            "2023-11-14 10:13:20pm",
            "2023-11-14 3:13:20 PM PDT",
            "20231114221320",
            "20231114221320Z",
            "20231114 221320",
            "2023-11-14 221320",
        ] {
            assert_eq!(read(text), Some((second, String::new())), "{text}");
        }
        let minute = second - 20_000;
        let millis = "2023-11-14T07:13:20.500Z".parse::<Timestamp>().unwrap().as_millisecond();
        for text in ["2023-11-14 7:13:20.5", "20231114071320500", "2023-11-14T07:13:20,5"] {
            let found = read(text).map(|(millis, _)| i64::try_from(millis).unwrap());
            assert_eq!(found, Some(millis), "{text}");
        }
        for text in ["2023-11-14 22:13", "20231114T2213", "20231114T2213Z", "202311142213"] {
            assert_eq!(read(text), Some((minute, String::new())), "{text}");
        }
    }

    #[test]
    fn a_date_without_a_time_of_day_is_the_start_of_the_day() {
        let day = read("2023-11-14T00:00:00Z").unwrap().0;
        for text in [
            "2023-11-14",
            "20231114",
            "2023/11/14",
            "2023-11-14 12:00 AM",
            "2023-11-14 0:00",
            "2023-11-14 000000",
        ] {
            assert_eq!(read(text), Some((day, String::new())), "{text}");
        }
        for (text, rest) in
            [("2023-11-14 up", " up"), ("2023-11-14\t22", "\t22"), ("2023-11-14, 7", " 7")]
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
            "2023-11-14 22",
            "2023-11-14 21.02.31",
            "2023-11-14 24:00:00",
            "2023-11-14 22:13:20 CEST",
            "2023-11-14 22:13:20 BST up",
            "Tue Nov 14 22:13:20 CET 2023",
            "2023-11-14 13:13 PM",
            "2023-11-14 22:13:201",
            "20231114 2213201",
            "Feb 30 00:00:00",
            "\u{ff}",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
