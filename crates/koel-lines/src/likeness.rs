//! Whether a list is of another kind than it is read as.
//!
//! Whole lines of a hosts file would be keys that no host is: each question would be answered
//! "absent". More than half of the first lines decide, without comments and empty ones, since a few
//! lines of any list may look like rules. Cost: a look at each of the first 1,000 lines.

use crate::{Format, adblock, hosts};

/// How many of the first lines look like those of a list of another kind.
#[derive(Debug, Default)]
pub struct Likeness {
    lines: usize,
    hosts: usize,
    adblock: usize,
}

impl Likeness {
    /// So many lines are looked at.
    const LINES: usize = 1_000;

    /// Looks at more lines.
    pub fn look_at<'l>(&mut self, lines: impl IntoIterator<Item = &'l [u8]>) {
        let is_counted = |line: &&[u8]| !line.is_empty() && !line.starts_with(b"#");
        let rest = Self::LINES.saturating_sub(self.lines);
        for line in lines.into_iter().filter(is_counted).take(rest) {
            self.lines += 1;
            self.hosts += usize::from(hosts::is_hosts_line(line));
            self.adblock += usize::from(adblock::is_host_rule(line));
        }
    }

    /// What the list is, if it is likely no list of plain lines, with its name in a sentence.
    #[must_use]
    pub fn format(&self) -> Option<(Format, &'static str)> {
        match self.lines / 2 {
            half if self.hosts > half => Some((Format::Hosts, "a hosts file")),
            half if self.adblock > half => Some((Format::Adblock, "ad-block rules")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_half_of_the_lines_decide_without_comments() {
        let likely = |text: &'static str| {
            let mut likeness = Likeness::default();
            likeness.look_at(text.split('\n').map(str::as_bytes));
            likeness.format().map(|(format, _)| format)
        };
        assert_eq!(likely("# a\n\n0.0.0.0 ads.example\n127.0.0.1 b.example"), Some(Format::Hosts));
        assert_eq!(likely("||ads.example^\n||b.example^\nada"), Some(Format::Adblock));
        assert_eq!(likely("0.0.0.0 ads.example\nada"), None);
        assert_eq!(likely("ads.example\nb.example"), None);
        assert_eq!(likely(""), None);
    }
}
