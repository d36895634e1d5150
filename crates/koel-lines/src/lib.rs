//! How a line of a list becomes the keys of a filter, and how a text is asked for in such a filter.
//!
//! ```text
//! line    field        list          options       key
//!   1,a.Example   ->   a.Example  ->  a.example  ->  bytes that the filter hashes
//!         fields.rs         hosts.rs,      options.rs
//!                           adblock.rs
//! ```
//!
//! A filter keeps the [`Recipe`] in the application bytes of its header. [`Maker`] follows it for
//! each line of a list. A program that has the text of a key already (a host, a name) needs only
//! the [`KeyForm`], the first two of these bytes: without it, it would get "absent" for a key that
//! is there in lower case. docs/FORMAT.md ("Lines") specifies all of it for other languages, with
//! vectors.
//!
//! Nothing here reads or writes: bytes come in, bytes go out. The command, Python, npm
//! and the module share it.
//!
//! ```
//! use koel_lines::{Format, KeyForm, Recipe};
//!
//! let recipe = Recipe { format: Format::Hosts, ..Recipe::default() };
//! let form = KeyForm::of(recipe.to_bytes()).unwrap();
//! assert_eq!(form.key(b"https://Ads.Example/x").unwrap(), &b"ads.example"[..]);
//! assert!(form.key(b"two words").is_err());
//! ```

#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod adblock;
mod fields;
mod form;
mod hosts;
mod likeness;
mod maker;
mod options;
mod recipe;
mod url;

pub use adblock::{TakenOut, TooManyExceptions};
pub use fields::{Column, Delimiter, Field, NoColumn, Records, Separator};
pub use form::{KeyForm, NoHost};
pub use hosts::{host, host_or_parent};
pub use likeness::Likeness;
pub use maker::{Maker, Reading};
pub use options::LineOptions;
pub use recipe::{ApplicationBytes, Recipe, StoredField, UnknownRecipe};

/// What the lines of a list are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Each line is a text.
    #[default]
    Lines,
    /// `ADDRESS NAME..` as in /etc/hosts, or a host or URL in each line.
    Hosts,
    /// Ad-block rules, of which those for whole hosts count.
    Adblock,
}

impl Format {
    /// All of them, in the order of their numbers in a file.
    pub const ALL: [Self; 3] = [Self::Lines, Self::Hosts, Self::Adblock];

    /// The value of `--format` of the command.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Hosts => "hosts",
            Self::Adblock => "adblock",
        }
    }
}

/// Why something in a list gave no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
    /// The line is empty.
    Empty,
    /// A comment, or the head of a list.
    Comment,
    /// The line is longer than its reader takes.
    TooLong,
    /// The line has no such field.
    NoField,
    /// The line names no host.
    NoHost,
    /// A range of addresses: a filter holds single ones.
    Range,
    /// A name of the machine itself.
    Local,
    /// An ad-block rule that takes out others, which was done.
    Applied,
    /// An exception for less than a host.
    Exception,
    /// A rule for parts of pages.
    Cosmetic,
    /// A rule for less than a host.
    Partial,
    /// A rule for some requests or pages only.
    Narrow,
    /// A rule that blocks nothing.
    Modifier,
    /// A rule that `$badfilter` switches off.
    Disabled,
    /// A rule for a host that an exception allows.
    Allowed,
}
