//! A filter that is asked for keys: a file, or one on a web server.

use std::path::Path;

use crate::failure::Failure;
use crate::filter::file::{Checked, FilterFile, VerifyArgs};
use crate::output;
use crate::web::{self, WebArgs, WebFilter};

/// How the filter of a verb that only asks is opened.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct AskArgs {
    #[command(flatten)]
    verify: VerifyArgs,

    #[command(flatten)]
    web: WebArgs,
}

/// Where the filter is.
#[derive(Debug)]
pub(crate) enum Place {
    File(FilterFile),
    Web(Box<WebFilter>),
}

/// The filter, ready to be asked.
#[derive(Debug)]
pub(crate) enum Asked<'a> {
    File(Box<Checked<'a>>),
    Web(&'a WebFilter),
}

impl Place {
    /// Opens the filter of this name.
    pub(crate) fn open(name: &Path, args: AskArgs) -> Result<Self, Failure> {
        if web::is_url(name) {
            if args.verify.checks_all() {
                let sentence = "is asked where it is, and --verify would read all of it; fetch it, \
                                or leave --verify out";
                return Err(Failure::about(name, sentence));
            }
            return Ok(Self::Web(Box::new(WebFilter::open(name, args.web)?)));
        }
        if args.web.are_given() {
            let sentence = "is a file, and --pages and --traffic are for a filter at a URL";
            return Err(Failure::about(name, sentence));
        }
        FilterFile::open(name).map(Self::File)
    }

    /// The filter, checked for damage as far as the arguments ask for it.
    pub(crate) fn asked(&self, args: AskArgs) -> Result<Asked<'_>, Failure> {
        Ok(match self {
            Self::File(file) => Asked::File(Box::new(file.checked(args.verify)?)),
            Self::Web(filter) => Asked::Web(filter),
        })
    }
}

impl Asked<'_> {
    /// The bytes that say how keys are made of lines.
    pub(crate) fn application(&self) -> [u8; 8] {
        match self {
            Self::File(checked) => checked.view.application(),
            Self::Web(filter) => filter.remote.application(),
        }
    }

    /// Whether each key is in.
    pub(crate) fn contains_many(&self, keys: &[&[u8]], found: &mut [bool]) -> Result<(), Failure> {
        match self {
            Self::File(checked) => {
                checked.view.contains_many(keys, found);
                Ok(())
            }
            Self::Web(filter) => filter.contains_many(keys, found),
        }
    }

    /// What [`koel_lines::host_or_parent`] answers for each of these lines.
    pub(crate) fn hosts_or_parents(
        &self,
        lines: &[&[u8]],
        both_forms: bool,
    ) -> Result<Vec<Option<bool>>, Failure> {
        match self {
            Self::File(checked) => {
                let contains = |name: &[u8]| checked.view.contains(name);
                let of = |line: &&[u8]| koel_lines::host_or_parent(line, both_forms, contains);
                Ok(lines.iter().map(of).collect())
            }
            Self::Web(filter) => filter.hosts_or_parents(lines, both_forms),
        }
    }

    /// Whether each question takes a while, however few keys it is for.
    pub(crate) fn is_far(&self) -> bool {
        matches!(self, Self::Web(_))
    }

    /// Must be called before a key is reported absent.
    pub(crate) fn before_absent(&mut self) -> Result<(), Failure> {
        match self {
            Self::File(checked) => checked.before_absent(),
            // Each bucket was checked when it came.
            Self::Web(_) => Ok(()),
        }
    }

    /// The requests and bytes that a filter on a web server took.
    pub(crate) fn traffic(&self) -> Option<(u64, u64)> {
        match self {
            Self::File(_) => None,
            Self::Web(filter) => Some(filter.traffic()),
        }
    }

    /// Prints them on standard error, if the user asked for it.
    pub(crate) fn tell_traffic(&self) {
        if let Self::Web(filter) = self
            && filter.tells_traffic()
        {
            drop(output::print_to_stderr(&format!("koel: {}\n", filter.traffic_words())));
        }
    }
}
