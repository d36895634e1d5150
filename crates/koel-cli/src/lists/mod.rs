//! The kinds of lists, and why something in one gives no key.
//!
//! * **hosts** (`hosts_file.rs`): `ADDRESS NAME..` as in /etc/hosts, or a host or URL in each line.
//! * **adblock** (`adblock.rs`): rules for whole hosts.
//!
//! A host has the form in which `koel check --url` looks it up (`hosts.rs`).
#![forbid(unsafe_code)]

pub(crate) mod adblock;
pub(crate) mod hosts;
pub(crate) mod hosts_file;
pub(crate) mod keys;
pub(crate) mod line_args;
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

impl Skip {
    pub(crate) const ALL: [Self; 13] = [
        Self::Empty,
        Self::Comment,
        Self::TooLong,
        Self::NoField,
        Self::NoHost,
        Self::Range,
        Self::Local,
        Self::Exception,
        Self::Cosmetic,
        Self::Partial,
        Self::Narrow,
        Self::Modifier,
        Self::Disabled,
    ];

    /// The name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Comment => "comment",
            Self::TooLong => "too_long",
            Self::NoField => "no_field",
            Self::NoHost => "no_host",
            Self::Range => "address_range",
            Self::Local => "local_name",
            Self::Exception => "exception",
            Self::Cosmetic => "cosmetic",
            Self::Partial => "partial_host",
            Self::Narrow => "some_requests",
            Self::Modifier => "no_block",
            Self::Disabled => "disabled",
        }
    }

    /// What is skipped: a noun for each, and what follows it.
    pub(crate) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Empty => ("empty line", ""),
            Self::Comment => ("comment", ""),
            Self::TooLong => ("line", " above --max-line"),
            Self::NoField => ("line", " without field"),
            Self::NoHost => ("line", " without a host"),
            Self::Range => ("address range", ""),
            Self::Local => ("name", " of the local machine"),
            Self::Exception => ("exception rule", ""),
            Self::Cosmetic => ("cosmetic rule", ""),
            Self::Partial => ("rule", " for less than a host"),
            Self::Narrow => ("rule", " for some requests or pages only"),
            Self::Modifier => ("rule", " that blocks nothing"),
            Self::Disabled => ("rule", " that $badfilter switches off"),
        }
    }
}
