//! From the lines of an input to keys.
//!
//! ```text
//! line   --field, --csv -->   field   --format -->   hosts   --trim, --ignore-case -->   keys
//! ```
//!
//! A line is what a verb prints, a key is what a filter is asked for. Without options both are the
//! same bytes, and nothing is copied. A line without a key is skipped, and counted under a reason.
//! With `--format`, each host counts as a line of its own. A header, the first line of an input
//! that is not empty, has no key.
//!
//! Cost: with options one copy of each key, into memory that all groups share.

use std::collections::BTreeMap;
use std::io::{Read, Result};
use std::ops::Range;

use crate::failure::Refused;
use crate::lines::fields::{Column, Field, Records, Separator};
use crate::lines::text::Content;
use crate::lines::{LineEnd, Lines};
use crate::lists::adblock::{self, Disabled};
use crate::lists::line_key::LineOptions;
use crate::lists::{Format, SKIPS, Skip, hosts};
use crate::quantity::counted;
use crate::streams::Warnings;

/// How keys are made of an input.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// LF or NUL.
    pub(crate) end: u8,
    /// The longest line, in bytes.
    pub(crate) longest: usize,
    pub(crate) field: Option<Field>,
    pub(crate) format: Format,
    pub(crate) options: LineOptions,
    pub(crate) given: Given,
    /// Rules of ad-block lists that others switch off.
    pub(crate) disabled: Disabled,
    /// Whether lines above the limit are skipped, or refused.
    pub(crate) skips_long: bool,
    /// Whether lines may have NUL bytes.
    pub(crate) may_have_nul: bool,
}

/// What the user said for an input. The rest is as the filter stores it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Given {
    pub(crate) field: bool,
    pub(crate) format: bool,
}

impl Rules {
    /// Whether a line is its own key, except for a carriage return.
    pub(crate) fn is_plain(&self) -> bool {
        let changes = self.options.trims || self.options.ignores_case;
        self.field.is_none() && self.format == Format::Lines && !changes
    }

    /// What the inputs are to hold.
    pub(crate) fn content(&self) -> Content {
        match self.end {
            0 => Content::Exact,
            _ if self.may_have_nul => Content::Text,
            _ => Content::Lines,
        }
    }

    /// Whether a CR before the line end is a part of it.
    fn drops_cr(&self) -> bool {
        self.end == b'\n' && !self.options.keeps_cr
    }

    fn csv(&self) -> Option<Records> {
        match self.field.as_ref()?.separator {
            Separator::Csv(delimiter) => Some(Records::new(delimiter)),
            Separator::Delimiter(_) => None,
        }
    }
}

/// Some lines with their keys.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// The names of the columns, for a verb that prints lines. Such a group has no other lines.
    pub(crate) header: Option<&'a [u8]>,
    /// As many as keys.
    pub(crate) lines: Vec<&'a [u8]>,
    /// `None` where every line is its own key.
    keys: Option<Vec<&'a [u8]>>,
}

impl<'a> Group<'a> {
    /// A header alone: a line without a key.
    pub(crate) fn header(line: &'a [u8]) -> Self {
        Self { header: Some(line), lines: Vec::new(), keys: None }
    }

    pub(crate) fn keys(&self) -> &[&'a [u8]] {
        self.keys.as_ref().unwrap_or(&self.lines)
    }
}

/// The keys of one reader.
pub(crate) struct Keys<'a, R> {
    rules: &'a Rules,
    lines: Lines<R>,
    maker: Maker<'a>,
}

impl<'a, R: Read> Keys<'a, R> {
    pub(crate) fn new(reader: R, rules: &'a Rules) -> Self {
        let end = rules.csv().map_or(LineEnd::Byte(rules.end), LineEnd::Record);
        let lines = Lines::new(reader, end, rules.longest, rules.skips_long);
        Self { rules, lines, maker: Maker::new(rules) }
    }

    /// Reads the header, if the input has one: the first line that is not empty. Every input has
    /// its own.
    pub(crate) fn read_header(&mut self) -> Result<Option<&[u8]>> {
        let Some(field) = self.rules.field.as_ref().filter(|field| field.has_header) else {
            return Ok(None);
        };
        while let Some(line) = self.lines.next_line()? {
            if without_cr(&self.lines.bytes()[line.clone()]).is_empty() {
                self.maker.skipped.note(Skip::Empty);
                continue;
            }
            let header = &self.lines.bytes()[line];
            self.maker.number = field.number(without_cr(header)).map_err(Refused::error)?;
            return Ok(Some(header));
        }
        Ok(None)
    }

    /// The next lines with keys, at least one; `None` at the end of the input.
    pub(crate) fn next_group(&mut self) -> Result<Option<Group<'_>>> {
        loop {
            let ranges = self.lines.next_group()?;
            if ranges.is_empty() {
                return Ok(None);
            }
            if self.rules.is_plain() {
                return Ok(Some(plain(self.lines.bytes(), ranges, self.rules.drops_cr())));
            }
            if self.maker.make(self.lines.bytes(), ranges) {
                return Ok(Some(self.maker.group(self.lines.bytes())));
            }
        }
    }

    /// What was skipped.
    pub(crate) fn skipped(&self) -> Skipped {
        let mut skipped = self.maker.skipped.clone();
        skipped.add_many(Skip::TooLong, self.lines.too_long());
        skipped
    }
}

/// Lines that are their own keys, except for a carriage return.
fn plain(bytes: &[u8], ranges: Vec<Range<usize>>, drops_cr: bool) -> Group<'_> {
    let span =
        ranges.first().map_or(0, |line| line.start)..ranges.last().map_or(0, |line| line.end);
    // One search over all of them costs less than a look at the end of each.
    let may_have_cr = drops_cr && memchr::memchr(b'\r', &bytes[span]).is_some();
    let lines: Vec<_> = ranges.into_iter().map(|line| &bytes[line]).collect();
    let keys = may_have_cr.then(|| lines.iter().map(|line| without_cr(line)).collect());
    Group { header: None, lines, keys }
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Makes the keys of a group in memory that the next group uses again.
struct Maker<'a> {
    rules: &'a Rules,
    records: Option<Records>,
    /// The number of the field that is read, counted from 1.
    number: usize,
    /// A field without its quotes.
    field: Vec<u8>,
    keys: Vec<u8>,
    /// For each key where it ends in `keys`, and its line.
    made: Vec<(usize, Range<usize>)>,
    skipped: Skipped,
}

impl<'a> Maker<'a> {
    fn new(rules: &'a Rules) -> Self {
        let (field, keys, made) = (Vec::new(), Vec::new(), Vec::new());
        let column = rules.field.as_ref().map(|field| field.column.clone());
        let number = if let Some(Column::Number(number)) = column { number as usize } else { 1 };
        let skipped = Skipped { column, ..Skipped::default() };
        Self { rules, records: rules.csv(), number, field, keys, made, skipped }
    }

    /// Makes the keys of these lines. Returns whether there are any.
    fn make(&mut self, bytes: &[u8], lines: Vec<Range<usize>>) -> bool {
        self.keys.clear();
        self.made.clear();
        for line in lines {
            self.make_of(bytes, line);
        }
        !self.made.is_empty()
    }

    fn make_of(&mut self, bytes: &[u8], range: Range<usize>) {
        let line = &bytes[range.clone()];
        let line = if self.rules.drops_cr() { without_cr(line) } else { line };
        let options = self.rules.options;
        let part = match &self.rules.field {
            None => Some(line),
            Some(_) if line.is_empty() => return self.skipped.note(Skip::Empty),
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
        let Some(part) = part else { return self.skipped.note(Skip::NoField) };
        let (keys, made, skipped) = (&mut self.keys, &mut self.made, &mut self.skipped);
        let mut take = |key: &[u8]| {
            keys.extend_from_slice(&options.key(key));
            made.push((keys.len(), range.clone()));
        };
        match self.rules.format {
            Format::Lines => take(part),
            Format::Hosts => hosts::hosts(part, take, |skip| skipped.note(skip)),
            Format::Adblock => {
                adblock::adblock(part, &self.rules.disabled, take, |skip| skipped.note(skip));
            }
        }
    }

    /// The keys that were made, and their lines in `bytes`.
    fn group<'b>(&'b self, bytes: &'b [u8]) -> Group<'b> {
        let mut start = 0;
        let keys: Vec<_> = self
            .made
            .iter()
            .map(|&(end, _)| &self.keys[std::mem::replace(&mut start, end)..end])
            .collect();
        if self.rules.format != Format::Lines {
            return Group { header: None, lines: keys, keys: None };
        }
        let lines = self.made.iter().map(|(_, line)| &bytes[line.clone()]).collect();
        Group { header: None, lines, keys: Some(keys) }
    }
}

/// How many lines, or parts of lines, gave no key, for each reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct Skipped {
    counts: BTreeMap<Skip, u64>,
    /// The field that was looked for.
    column: Option<Column>,
}

impl Skipped {
    fn note(&mut self, skip: Skip) {
        self.add_many(skip, 1);
    }

    pub(crate) fn add_many(&mut self, skip: Skip, count: u64) {
        if count > 0 {
            *self.counts.entry(skip).or_default() += count;
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.column = other.column.clone();
        other.counts.iter().for_each(|(&skip, &count)| self.add_many(skip, count));
    }

    /// Whether something was skipped that is neither empty nor a comment nor a local name.
    pub(crate) fn is_misread(&self) -> bool {
        let is_usual = |skip| matches!(skip, Skip::Empty | Skip::Comment | Skip::Local);
        self.counts.keys().any(|&skip| !is_usual(skip))
    }

    /// What was skipped, for people; empty if nothing was.
    pub(crate) fn sentence(&self) -> String {
        let part = |(skip, _, noun, rest): &(Skip, &str, &str, &str)| {
            let counted = counted(*self.counts.get(skip)?, noun);
            Some(match &self.column {
                Some(column) if *skip == Skip::NoField => format!("{counted}{rest} {column}"),
                _ => format!("{counted}{rest}"),
            })
        };
        SKIPS.iter().filter_map(part).collect::<Vec<_>>().join(", ")
    }

    /// Prints the sentence on standard error, for a verb without a report.
    pub(crate) fn warn(&self) {
        let warnings = Warnings::default();
        if !self.counts.is_empty() {
            warnings.add(format!("skipped {}", self.sentence()));
        }
        warnings.print();
    }

    /// Every reason with its number.
    pub(crate) fn json(&self) -> serde_json::Value {
        let count = |skip| self.counts.get(skip).copied().unwrap_or_default();
        SKIPS.iter().map(|(skip, name, ..)| ((*name).to_owned(), count(skip))).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests;
