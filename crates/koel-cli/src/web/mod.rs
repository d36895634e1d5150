//! A filter on a web server, asked by ranges of its bytes instead of being fetched.
//!
//! [`koel::Remote`] says which ranges answer for the keys, `http` fetches them. Each group of lines
//! is one batch, and groups are as large as the reads of an input. The file is the same one from
//! the first answer to the last: the server's ETag says so, or the header is read again behind the
//! ranges of a batch.
//!
//! Cost: the header, the exact answers, and for a batch a request for each joined range, of which
//! eight are on their way at a time. Memory: what a batch fetches, at most 256 MiB.

#[cfg_attr(not(feature = "http"), path = "without.rs")]
mod http;

use std::collections::HashMap;
use std::path::Path;

use koel::{ImageError, KeyHash, Remote, RemoteOptions};

use crate::failure::Failure;
use crate::quantity::{self, bytes, counted};
use http::Source;

/// The most bytes that are fetched at once: of exact answers, and for a batch of several keys.
const MOST_BYTES: u64 = 256 << 20;

/// How a filter on a web server is asked.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct WebArgs {
    /// At a URL: read whole pages of this size, such as 64K, to tell the server less
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_size)]
    pages: Option<u64>,

    /// At a URL: say on standard error how many requests and bytes were needed
    #[arg(long)]
    traffic: bool,
}

impl WebArgs {
    /// Whether any of them was given.
    pub(crate) fn are_given(&self) -> bool {
        self.pages.is_some() || self.traffic
    }
}

/// A filter on a web server.
#[derive(Debug)]
pub(crate) struct WebFilter {
    source: Source,
    pub(crate) remote: Remote,
    args: WebArgs,
}

/// Whether the name of a filter is a URL.
pub(crate) fn is_url(path: &Path) -> bool {
    let scheme = |scheme: &str| {
        let start = path.as_os_str().as_encoded_bytes().get(..scheme.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
    };
    scheme("https://") || scheme("http://")
}

impl WebFilter {
    /// Reads the header and the exact answers.
    pub(crate) fn open(url: &Path, args: WebArgs) -> Result<Self, Failure> {
        let (source, header, size) = Source::open(url, &Remote::HEADER)?;
        let unreadable = |error| Failure::Image { path: url.to_owned(), error };
        let answers = Remote::tail(&header).map_err(unreadable)?;
        let length = answers.end - answers.start;
        if length > MOST_BYTES {
            let length = bytes(length);
            let sentence = format_args!("it has {length} of exact answers; download it");
            return Err(source.failure(&sentence));
        }
        let has_answers = !answers.is_empty();
        let tail = if has_answers { source.fetch(&[answers])?.concat() } else { Vec::new() };
        let remote = Remote::open(&header, &tail).map_err(unreadable)?;
        let expected = remote.size_in_bytes();
        if let Some(got) = size.filter(|&got| got != expected) {
            return Err(unreadable(ImageError::Length { expected, got }));
        }
        let opened = Self { source, remote, args };
        if has_answers {
            opened.recheck()?;
        }
        Ok(opened)
    }

    /// Whether each key is in. A batch that would take too much memory is asked in halves.
    pub(crate) fn contains_many<K: koel::Key>(
        &self,
        keys: &[K],
        found: &mut [bool],
    ) -> Result<(), Failure> {
        let page = self.args.pages.unwrap_or(1);
        let options = RemoteOptions { page, ..RemoteOptions::default() };
        let failed = |error: &dyn std::fmt::Display| self.source.failure(error);
        let batch = self.remote.ask(keys, options).map_err(|error| failed(&error))?;
        if batch.bytes() > MOST_BYTES && keys.len() > 1 {
            let middle = keys.len() / 2;
            let (first, second) = found.split_at_mut(middle);
            self.contains_many(&keys[..middle], first)?;
            return self.contains_many(&keys[middle..], second);
        }
        let fetched = self.source.fetch(batch.ranges())?;
        self.remote.answer(&batch, &fetched, found).map_err(|error| failed(&error))?;
        if batch.ranges().is_empty() { Ok(()) } else { self.recheck() }
    }

    /// What [`koel_lines::host_or_parent`] answers for each line, asked in one batch.
    pub(crate) fn hosts_or_parents(
        &self,
        lines: &[&[u8]],
        both_forms: bool,
    ) -> Result<Vec<Option<bool>>, Failure> {
        let hasher = self.remote.hasher();
        let mut asked: Vec<KeyHash> = Vec::new();
        for line in lines {
            koel_lines::host_or_parent(line, both_forms, |name| {
                asked.push(hasher.hash(name));
                false
            });
        }
        let mut found = vec![false; asked.len()];
        self.contains_many(&asked, &mut found)?;
        let answers: HashMap<u64, bool> = asked.iter().map(|hash| hash.get()).zip(found).collect();
        let contains = |name: &[u8]| answers.get(&hasher.hash(name).get()) == Some(&true);
        let of_line = |line: &&[u8]| koel_lines::host_or_parent(line, both_forms, contains);
        Ok(lines.iter().map(of_line).collect())
    }

    /// Fails if the file was replaced since it was opened, where the server's answers do not tell.
    fn recheck(&self) -> Result<(), Failure> {
        if self.source.has_tag() {
            return Ok(());
        }
        let header = self.source.fetch(&[Remote::HEADER])?.concat();
        if self.remote.is_header(&header) { Ok(()) } else { Err(self.source.was_replaced()) }
    }

    /// The requests and the bytes of bodies so far.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        self.source.traffic()
    }

    /// Whether the user asked for the traffic.
    pub(crate) fn tells_traffic(&self) -> bool {
        self.args.traffic
    }

    /// The traffic as a sentence.
    pub(crate) fn traffic_words(&self) -> String {
        let (requests, read) = self.traffic();
        let file = bytes(self.remote.size_in_bytes());
        format!("{}, {} of {file}", counted(requests, "request"), bytes(read))
    }
}
