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

use std::io::{Read, Result};
use std::ops::Range;
use std::path::Path;

use koel_lines::{Format, Maker, Reading, Skip};

use crate::failure::Refused;
use crate::lines::text::Content;
use crate::lines::{LineEnd, Lines};
use crate::lists::skipped::Skipped;

/// How keys are made of an input.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// LF or NUL.
    pub(crate) end: u8,
    /// The longest line, in bytes.
    pub(crate) longest: usize,
    pub(crate) reading: Reading,
    pub(crate) given: Given,
    /// Whether lines above the limit are skipped, or refused.
    pub(crate) skips_long: bool,
    /// Whether lines may have NUL bytes.
    pub(crate) may_have_nul: bool,
    /// Whether groups have the numbers of their lines.
    pub(crate) numbers: bool,
    /// Whether groups are as large as the reads of an input.
    pub(crate) large_groups: bool,
}

/// What the user said for an input. The rest is as the filter stores it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Given {
    pub(crate) field: bool,
    pub(crate) format: bool,
}

impl Rules {
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
        self.end == b'\n' && !self.reading.options.keeps_cr
    }
}

/// Some lines with their keys.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// The names of the columns, for a verb that prints lines. Such a group has no other lines.
    pub(crate) header: Option<&'a [u8]>,
    /// As many as keys.
    pub(crate) lines: Vec<&'a [u8]>,
    /// The name of the input.
    pub(crate) input: &'a Path,
    /// The number of each line in its input, counted from 1; empty unless the rules ask for them.
    pub(crate) numbers: Vec<u64>,
    /// `None` where every line is its own key.
    keys: Option<Vec<&'a [u8]>>,
}

impl<'a> Group<'a> {
    /// A header alone: a line without a key.
    pub(crate) fn header(line: &'a [u8]) -> Self {
        Self { header: Some(line), ..Self::of(Vec::new(), None) }
    }

    fn of(lines: Vec<&'a [u8]>, keys: Option<Vec<&'a [u8]>>) -> Self {
        Self { header: None, lines, input: Path::new(""), numbers: Vec::new(), keys }
    }

    pub(crate) fn keys(&self) -> &[&'a [u8]] {
        self.keys.as_ref().unwrap_or(&self.lines)
    }
}

/// The keys of one reader.
pub(crate) struct Keys<'a, R> {
    rules: &'a Rules,
    lines: Lines<R>,
    maker: GroupMaker<'a>,
}

impl<'a, R: Read> Keys<'a, R> {
    pub(crate) fn new(reader: R, rules: &'a Rules) -> Self {
        let end = rules.reading.records().map_or(LineEnd::Byte(rules.end), LineEnd::Record);
        let lines = Lines::new(reader, end, rules.longest, rules.skips_long);
        let lines = if rules.large_groups { lines.in_large_groups() } else { lines };
        Self { rules, lines, maker: GroupMaker::new(rules) }
    }

    /// Reads the header, if the input has one: the first line that is not empty. Every input has
    /// its own.
    pub(crate) fn read_header(&mut self) -> Result<Option<&[u8]>> {
        let field = self.rules.reading.field.as_ref();
        if !field.is_some_and(|field| field.has_header) {
            return Ok(None);
        }
        while let Some(line) = self.lines.next_line()? {
            if without_cr(&self.lines.bytes()[line.clone()]).is_empty() {
                self.maker.skipped.note(Skip::Empty);
                continue;
            }
            let header = &self.lines.bytes()[line];
            self.maker.maker.read_header(without_cr(header)).map_err(|error| {
                let csv = match self.lines.is_csv() {
                    false if error.names.contains(',') => ", or --csv if commas separate fields",
                    _ => "",
                };
                Refused::error(format!(
                    "{error}; give another --field, or --field 0 if each key is a whole line{csv}"
                ))
            })?;
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
            let numbers = if self.rules.numbers { self.lines.numbers(&ranges) } else { Vec::new() };
            if self.rules.reading.is_plain() {
                let group = plain(self.lines.bytes(), ranges, self.rules.drops_cr());
                return Ok(Some(Group { numbers, ..group }));
            }
            if self.maker.make(self.lines.bytes(), ranges, &numbers) {
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
    Group::of(lines, keys)
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Makes the keys of a group in memory that the next group uses again.
struct GroupMaker<'a> {
    rules: &'a Rules,
    maker: Maker<'a>,
    keys: Vec<u8>,
    /// For each key where it ends in `keys`, and its line.
    made: Vec<(usize, Range<usize>)>,
    /// For each key the number of its line, where they are asked for.
    numbers: Vec<u64>,
    skipped: Skipped,
}

impl<'a> GroupMaker<'a> {
    fn new(rules: &'a Rules) -> Self {
        let column = match rules.reading.field.as_ref().map_or(&[][..], |field| &field.columns) {
            [column] => Some(column.clone()),
            _ => None,
        };
        let (keys, made, skipped) = (Vec::new(), Vec::new(), Skipped::of(column));
        let numbers = Vec::new();
        Self { rules, maker: Maker::new(&rules.reading), keys, made, numbers, skipped }
    }

    /// Makes the keys of these lines. Returns whether there are any.
    fn make(&mut self, bytes: &[u8], lines: Vec<Range<usize>>, numbers: &[u64]) -> bool {
        self.keys.clear();
        self.made.clear();
        self.numbers.clear();
        for (at, range) in lines.into_iter().enumerate() {
            let line = &bytes[range.clone()];
            let line = if self.rules.drops_cr() { without_cr(line) } else { line };
            let (keys, made, skipped) = (&mut self.keys, &mut self.made, &mut self.skipped);
            let take = |key: &[u8]| {
                keys.extend_from_slice(key);
                made.push((keys.len(), range.clone()));
            };
            self.maker.make(line, take, |skip| skipped.note(skip));
            if let Some(&number) = numbers.get(at) {
                self.numbers.resize(self.made.len(), number);
            }
        }
        !self.made.is_empty()
    }

    /// The keys that were made, and their lines in `bytes`.
    fn group<'b>(&'b self, bytes: &'b [u8]) -> Group<'b> {
        let mut start = 0;
        let keys: Vec<_> = self
            .made
            .iter()
            .map(|&(end, _)| &self.keys[std::mem::replace(&mut start, end)..end])
            .collect();
        let numbers = self.numbers.clone();
        if self.rules.reading.format != Format::Lines {
            return Group { numbers, ..Group::of(keys, None) };
        }
        let lines = self.made.iter().map(|(_, line)| &bytes[line.clone()]).collect();
        Group { numbers, ..Group::of(lines, Some(keys)) }
    }
}

#[cfg(test)]
pub(crate) mod tests;
