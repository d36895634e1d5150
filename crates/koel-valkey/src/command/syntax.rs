//! The arguments of a command, as its line of syntax says them: `key capacity [ERROR rate]`.
//!
//! ```text
//! WORD           a word as it is; before a value or a choice, it names that
//! value          a value; its word says of which kind
//! a|b            one of them
//! [..]           may be left out
//! value..        one or more of them
//! ```
//!
//! docs/VALKEY.md has the same lines, and `COMMAND DOCS` what is read from them here.

/// An argument, or several that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The word that it is, or that comes before it.
    pub token: Option<&'static str>,
    /// Whether it may be left out.
    pub is_optional: bool,
    /// Whether there may be more of it.
    pub is_multiple: bool,
    /// What it is made of.
    pub parts: Vec<Self>,
}

/// What an argument is, in the numbers of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any bytes.
    Text = 0,
    /// A whole number.
    Integer = 1,
    /// A real number.
    Double = 2,
    /// The name of a key.
    Key = 3,
    /// A word as it is.
    Token = 6,
    /// One of its parts.
    OneOf = 7,
    /// All of its parts.
    Block = 8,
}

/// The arguments of a line of syntax.
#[must_use]
pub fn arguments(syntax: &'static str) -> Vec<Argument> {
    let mut rest = syntax;
    sequence(&mut rest)
}

/// Reads arguments up to the end, or up to a bracket that closes.
fn sequence(rest: &mut &'static str) -> Vec<Argument> {
    let mut arguments = Vec::new();
    loop {
        *rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix('[') {
            *rest = after;
            arguments.push(optional(sequence(rest)));
        } else if let Some(after) = rest.strip_prefix(']') {
            *rest = after;
            return arguments;
        } else if rest.is_empty() {
            return arguments;
        } else {
            arguments.push(argument(rest));
        }
    }
}

/// What may be left out as a whole.
fn optional(mut parts: Vec<Argument>) -> Argument {
    let whole = match (parts.pop(), parts.first()) {
        (Some(only), None) => only,
        (last, first) => {
            let name = first.map_or_else(String::new, |first| first.name.clone());
            parts.extend(last);
            Argument { parts, ..plain(name, Kind::Block) }
        }
    };
    Argument { is_optional: true, ..whole }
}

/// Reads a word, and what it names.
fn argument(rest: &mut &'static str) -> Argument {
    let first = word(rest);
    let next = rest.trim_start();
    let names_next = is_token(first) && next.starts_with(|next: char| next.is_ascii_alphabetic());
    let named = if names_next { word(&mut { next }) } else { "" };
    if named.is_empty() || is_token(named) {
        return choice(first);
    }
    *rest = next;
    let value = choice(word(rest));
    let name = if value.kind == Kind::OneOf || value.name == "n" { first } else { &value.name };
    Argument { name: name.to_ascii_lowercase(), token: Some(first), ..value }
}

/// Takes a word.
fn word(rest: &mut &'static str) -> &'static str {
    let end = rest.find([' ', '[', ']']).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    *rest = after;
    word
}

/// Whether it is a word as it is, and no choice.
fn is_token(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// A value, or a choice of values.
fn choice(word: &'static str) -> Argument {
    if word.contains('|') {
        let parts: Vec<_> = word.split('|').map(value).collect();
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        return Argument { name: names.join("-or-"), parts, ..plain(String::new(), Kind::OneOf) };
    }
    value(word)
}

fn value(word: &'static str) -> Argument {
    let name = word.trim_end_matches('.');
    let kind = match name {
        _ if is_token(name) => Kind::Token,
        "key" | "destination" | "source" => Kind::Key,
        "n" | "capacity" | "seconds" | "milliseconds" | "iterator" => Kind::Integer,
        "rate" => Kind::Double,
        _ => Kind::Text,
    };
    Argument {
        token: Some(name).filter(|_| kind == Kind::Token),
        is_multiple: name != word,
        ..plain(name.to_ascii_lowercase(), kind)
    }
}

fn plain(name: String, kind: Kind) -> Argument {
    let (token, parts) = (None, Vec::new());
    Argument { name, kind, token, is_optional: false, is_multiple: false, parts }
}
