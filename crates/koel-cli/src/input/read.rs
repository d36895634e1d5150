//! Reads the keys of the inputs, in groups: once, or more often.

use std::io::Read;

use super::{Inputs, Source};
use crate::failure::{Failure, Refused};
use crate::lines::{self, LineEnd, Lines, decode};
use crate::lists::Format;
use crate::lists::adblock::{self, Disabled};
use crate::lists::keys::{Group, Keys, Skipped};
use crate::progress::{Progress, Stdout};

impl Inputs {
    /// Finds the rules of ad-block lists that others switch off, which may come later. So the lists
    /// are read once more before.
    pub(super) fn find_disabled(&mut self) -> Result<(), Failure> {
        if self.rules.format != Format::Adblock {
            return Ok(());
        }
        self.make_rereadable()?;
        let progress = Progress::start("reading", self.bytes(), Stdout::Silent);
        let mut disabled = Disabled::new();
        let name = memchr::memmem::Finder::new("badfilter");
        for source in &self.sources {
            let end = LineEnd::Byte(self.rules.end);
            let reader = self.reader(source, &progress)?;
            let mut lines = Lines::new(reader, end, self.rules.longest, true);
            while let Some(line) = lines.next_line().map_err(|error| source.failure(error))? {
                let line = &lines.bytes()[line];
                if name.find(line).is_some() {
                    adblock::note_disabled(line, &mut disabled)
                        .map_err(|error| source.failure(Refused::error(error)))?;
                }
            }
        }
        self.rules.disabled = disabled;
        Ok(())
    }

    /// Counts the keys of files, copies included.
    pub(crate) fn count(&self) -> Result<u64, Failure> {
        let mut keys = 0;
        if !self.rules.is_plain() {
            self.each_again("counting", |group| {
                keys += group.len() as u64;
                Ok(())
            })?;
            return Ok(keys);
        }
        let progress = Progress::start("counting", self.bytes(), Stdout::Silent);
        for source in &self.sources {
            let reader = self.reader(source, &progress)?;
            keys += lines::count_lines(reader, self.rules.end)
                .map_err(|error| source.failure(error))?;
        }
        Ok(keys)
    }

    /// Passes every key to `take`, in groups. Returns what had no key, for the report.
    pub(crate) fn each(
        &self,
        label: &'static str,
        take: impl FnMut(&[&[u8]]) -> Result<(), Failure>,
    ) -> Result<Skipped, Failure> {
        let skipped = self.each_again(label, take)?;
        self.warnings.print();
        Ok(skipped)
    }

    /// The same, without the warnings, which are for another time.
    pub(crate) fn each_again(
        &self,
        label: &'static str,
        mut take: impl FnMut(&[&[u8]]) -> Result<(), Failure>,
    ) -> Result<Skipped, Failure> {
        self.groups(label, Stdout::Silent, |group, _| take(group.keys()).map(|()| false))
    }

    /// Passes groups of lines with their keys to `take` until it returns true.
    ///
    /// With each group goes the share of all bytes read so far, if the total is known.
    pub(crate) fn each_line(
        &self,
        label: &'static str,
        stdout: Stdout,
        take: impl FnMut(&Group<'_>, Option<f64>) -> Result<bool, Failure>,
    ) -> Result<Skipped, Failure> {
        let skipped = self.groups(label, stdout, take)?;
        self.warnings.print();
        Ok(skipped)
    }

    fn groups(
        &self,
        label: &'static str,
        stdout: Stdout,
        mut take: impl FnMut(&Group<'_>, Option<f64>) -> Result<bool, Failure>,
    ) -> Result<Skipped, Failure> {
        let progress = Progress::start(label, self.bytes(), stdout);
        let (mut skipped, mut has_header, mut has_keys) = (Skipped::default(), false, false);
        'inputs: for source in &self.sources {
            let mut keys = Keys::new(self.reader(source, &progress)?, &self.rules);
            let header = keys.read_header().map_err(|error| source.failure(error))?;
            // One is enough for the output.
            if let Some(header) = header.filter(|_| !std::mem::replace(&mut has_header, true))
                && take(&Group::header(header), progress.share())?
            {
                break;
            }
            while let Some(group) = keys.next_group().map_err(|error| source.failure(error))? {
                has_keys = true;
                if take(&group, progress.share())? {
                    break 'inputs;
                }
            }
            skipped.add(&keys.skipped());
        }
        if !has_keys && skipped.is_misread() {
            return Err(self.no_keys(&skipped));
        }
        Ok(skipped)
    }

    /// Lines that were not understood: "none was found" would be no answer.
    fn no_keys(&self, skipped: &Skipped) -> Failure {
        let input = match &self.sources[..] {
            [source] => source.path().display().to_string(),
            _ => "the inputs".to_owned(),
        };
        let reasons = skipped.sentence();
        let remedy = match self.rules.format {
            Format::Lines => "see --field, --delimiter and --csv; --field 0 is the whole line",
            Format::Hosts => "they were read as --format hosts; give another --format, or --field",
            Format::Adblock => {
                "they were read as --format adblock; give --format hosts for hosts and URLs"
            }
        };
        Failure::Usage(format!("no key in {input}: {reasons}; {remedy}"))
    }

    /// A reader of the text of a source, from its start.
    fn reader(&self, source: &Source, progress: &Progress) -> Result<Box<dyn Read>, Failure> {
        let content = self.rules.content();
        let decode =
            |raw| decode::decoded(progress.meter(raw), content, source.path(), &self.warnings);
        source.raw().and_then(decode).map_err(|error| source.failure(error))
    }

    /// The raw size of all inputs, unless one is a stream.
    fn bytes(&self) -> Option<u64> {
        self.sources.iter().map(Source::bytes).sum()
    }
}
