//! The kinds of lists, and why something in one gives no key.
//!
//! * **hosts** (`hosts.rs`): `ADDRESS NAME..` as in /etc/hosts, or a host or URL in each line.
//! * **adblock** (`adblock.rs`): rules for whole hosts.
//!
//! A host has the form in which `koel check --url` looks it up.

pub(crate) mod adblock;
pub(crate) mod hosts;
pub(crate) mod keys;
pub(crate) mod line_key;
pub(crate) mod recipe;
pub(crate) mod secret;

/// What the lines of an input are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    // Without doc comments, with which clap would double the length of the help.
    #[default]
    Lines,
    Hosts,
    Adblock,
}

impl Format {
    /// The value of `--format`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Hosts => "hosts",
            Self::Adblock => "adblock",
        }
    }
}

/// Why something in a list gave no key. In the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Skip {
    Empty,
    Comment,
    TooLong,
    NoField,
    NoHost,
    Range,
    Local,
    Exception,
    Cosmetic,
    Partial,
    Narrow,
    Modifier,
    Disabled,
}

/// The name of each reason in JSON, a noun for what is skipped, and what follows the noun.
const SKIPS: [(Skip, &str, &str, &str); 13] = [
    (Skip::Empty, "empty", "empty line", ""),
    (Skip::Comment, "comment", "comment", ""),
    (Skip::TooLong, "too_long", "line", " above --max-line"),
    (Skip::NoField, "no_field", "line", " without field"),
    (Skip::NoHost, "no_host", "line", " without a host"),
    (Skip::Range, "address_range", "address range", ""),
    (Skip::Local, "local_name", "name", " of the local machine"),
    (Skip::Exception, "exception", "exception rule", ""),
    (Skip::Cosmetic, "cosmetic", "cosmetic rule", ""),
    (Skip::Partial, "partial_host", "rule", " for less than a host"),
    (Skip::Narrow, "some_requests", "rule", " for some requests or pages only"),
    (Skip::Modifier, "no_block", "rule", " that blocks nothing"),
    (Skip::Disabled, "disabled", "rule", " that $badfilter switches off"),
];
