//! From the lines of an input to keys.
//!
//! ```text
//! line   --field, --csv -->   field   --format -->   hosts   --trim, --ignore-case -->   keys
//! ```
//!
//! A line is what a verb prints, a key is what a filter is asked for. Without options both are the
//! same bytes, and nothing is copied. A line without a key is skipped, and counted under a reason.
//! With `--format`, each host counts as a line of its own.
//!
//! Cost: with options one copy of each key, into memory that all groups share.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::io::{Read, Result};
use std::ops::Range;

use koel::LineOptions;

use crate::fields::{Delimiter, Records};
use crate::lines::{LineEnd, Lines};
use crate::lists::{self, Format, Skip};
use crate::quantity::counted;

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
}

/// The field of a line that is read.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// Counted from 1.
    pub(crate) number: usize,
    pub(crate) separator: Separator,
}

#[derive(Clone, Debug)]
pub(crate) enum Separator {
    Delimiter(Delimiter),
    Csv(u8),
}

impl Rules {
    /// Whether a line is its own key, except for a carriage return.
    pub(crate) fn is_plain(&self) -> bool {
        let changes = self.options.trims() || self.options.ignores_case();
        self.field.is_none() && self.format == Format::Lines && !changes
    }

    /// Whether a CR before the line end is a part of it.
    fn drops_cr(&self) -> bool {
        self.end == b'\n' && !self.options.keeps_cr()
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
    /// As many as keys.
    pub(crate) lines: Vec<&'a [u8]>,
    /// `None` where every line is its own key.
    keys: Option<Vec<&'a [u8]>>,
}

impl<'a> Group<'a> {
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
        let lines = Lines::new(reader, end, rules.longest);
        Self { rules, lines, maker: Maker::new(rules) }
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
    pub(crate) fn skipped(&self) -> &Skipped {
        &self.maker.skipped
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
    Group { lines, keys }
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Makes the keys of a group in memory that the next group uses again.
struct Maker<'a> {
    rules: &'a Rules,
    records: Option<Records>,
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
        let skipped = Skipped { field: rules.field.clone(), ..Skipped::default() };
        Self { rules, records: rules.csv(), field, keys, made, skipped }
    }

    /// Makes the keys of these lines. Returns whether there are any.
    fn make(&mut self, bytes: &[u8], lines: Vec<Range<usize>>) -> bool {
        self.keys.clear();
        self.made.clear();
        for line in lines {
            self.skipped.lines += 1;
            self.make_of(bytes, line);
        }
        !self.made.is_empty()
    }

    fn make_of(&mut self, bytes: &[u8], range: Range<usize>) {
        let line = &bytes[range.clone()];
        let line = if self.rules.drops_cr() { without_cr(line) } else { line };
        // The line end has been dropped.
        let options = self.rules.options.keep_cr(true);
        let part = match &self.rules.field {
            None => Some(line),
            Some(Field { number, separator: Separator::Delimiter(delimiter) }) => {
                delimiter.field(line, *number)
            }
            Some(Field { number, .. }) => {
                self.field.clear();
                let mut records = self.records.as_mut();
                let is_found = !line.is_empty()
                    && records
                        .as_mut()
                        .is_some_and(|records| records.field(line, *number, &mut self.field));
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
            Format::Hosts => lists::hosts(part, take, |skip| skipped.note(skip)),
            Format::Adblock => lists::adblock(part, take, |skip| skipped.note(skip)),
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
            return Group { lines: keys, keys: None };
        }
        let lines = self.made.iter().map(|(_, line)| &bytes[line.clone()]).collect();
        Group { lines, keys: Some(keys) }
    }
}

/// How many lines, or parts of lines, gave no key, for each reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct Skipped {
    counts: BTreeMap<Skip, u64>,
    /// Lines seen, and the field that was looked for.
    lines: u64,
    field: Option<Field>,
}

impl Skipped {
    fn note(&mut self, skip: Skip) {
        *self.counts.entry(skip).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.lines += other.lines;
        self.field = other.field.clone();
        for (&skip, count) in &other.counts {
            *self.counts.entry(skip).or_default() += count;
        }
    }

    /// What was skipped, for people; `None` if nothing was.
    pub(crate) fn sentence(&self) -> Option<String> {
        let parts: Vec<_> =
            self.counts.iter().map(|(&skip, &count)| self.part(skip, count)).collect();
        (!parts.is_empty()).then(|| format!("skipped {}", parts.join(", ")))
    }

    fn part(&self, skip: Skip, count: u64) -> String {
        let (noun, rest) = skip.words();
        let counted = counted(count, noun);
        match &self.field {
            Some(Field { number, .. }) if skip == Skip::NoField && count == self.lines => {
                format!("all of {counted}{rest} {number}; see --delimiter and --csv")
            }
            Some(Field { number, .. }) if skip == Skip::NoField => {
                format!("{counted}{rest} {number}")
            }
            _ => format!("{counted}{rest}"),
        }
    }
}

#[cfg(test)]
mod tests;
