//! Reads hosts files and ad-block lists: the hosts that a line names.
//!
//! * **hosts**: `ADDRESS NAME..` as in /etc/hosts, or one host, address, URL or e-mail address in a
//!   line. A `#` begins a comment. The names of the machine itself, such as `localhost`, are
//!   skipped.
//! * **adblock**: rules for whole hosts, `||host^`, with or without `$options`. A filter cannot
//!   hold the rest, which is skipped: exceptions, cosmetic rules, rules for parts of a host, and
//!   rules that hold on some pages only. `!` begins a comment.
//!
//! A host has the form in which `koel check --url` looks it up (`hosts.rs`).
#![forbid(unsafe_code)]

use std::net::IpAddr;

use crate::hosts;

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
    NoField,
    NoHost,
    Local,
    Exception,
    Cosmetic,
    Partial,
}

impl Skip {
    pub(crate) const ALL: [Self; 8] = [
        Self::Empty,
        Self::Comment,
        Self::NoField,
        Self::NoHost,
        Self::Local,
        Self::Exception,
        Self::Cosmetic,
        Self::Partial,
    ];

    /// The name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Comment => "comment",
            Self::NoField => "no_field",
            Self::NoHost => "no_host",
            Self::Local => "local_name",
            Self::Exception => "exception",
            Self::Cosmetic => "cosmetic",
            Self::Partial => "partial_host",
        }
    }

    /// What is skipped: a noun for each, and what follows it.
    pub(crate) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Empty => ("empty line", ""),
            Self::Comment => ("comment", ""),
            Self::NoField => ("line", " without field"),
            Self::NoHost => ("line", " without a host"),
            Self::Local => ("name", " of the local machine"),
            Self::Exception => ("exception rule", ""),
            Self::Cosmetic => ("cosmetic rule", ""),
            Self::Partial => ("rule", " for less than a host"),
        }
    }
}

/// Names that hosts files give to the machine itself and to its networks.
const LOCAL: [&str; 13] = [
    "localhost",
    "localhost.localdomain",
    "localhost4",
    "localhost6",
    "local",
    "broadcasthost",
    "ip6-localhost",
    "ip6-loopback",
    "ip6-localnet",
    "ip6-mcastprefix",
    "ip6-allnodes",
    "ip6-allrouters",
    "ip6-allhosts",
];

/// Options of ad-block rules that hold on some pages, for some clients, or change something else
/// than whether a host is loaded.
const NARROWING: [&str; 15] = [
    "app",
    "badfilter",
    "client",
    "csp",
    "ctag",
    "denyallow",
    "dnsrewrite",
    "dnstype",
    "domain",
    "from",
    "permissions",
    "redirect-rule",
    "removeparam",
    "replace",
    "to",
];

/// Passes the hosts of a line of a hosts file to `take`, and what is no host to `skip`.
pub(crate) fn hosts(line: &[u8], mut take: impl FnMut(&[u8]), mut skip: impl FnMut(Skip)) {
    let text = String::from_utf8_lossy(line);
    let has_comment = text.contains('#');
    let text = text.split('#').next().unwrap_or_default().trim();
    let words: Vec<_> = text.split_whitespace().collect();
    let names = match &words[..] {
        [] => return skip(if has_comment { Skip::Comment } else { Skip::Empty }),
        [address, names @ ..] if is_address(address) && !names.is_empty() => names,
        // The line is a host, or a URL, which may have spaces.
        _ => &[text],
    };
    for name in names {
        match host(name) {
            // `0.0.0.0 0.0.0.0` says that the file blocks.
            Some(_) if is_address(name) && *name != text => skip(Skip::Local),
            Some(host) if LOCAL.contains(&host.as_str()) => skip(Skip::Local),
            Some(host) => take(host.as_bytes()),
            None => skip(Skip::NoHost),
        }
    }
}

/// The host that a list names: without the `*.` or the dot that some lists put before a domain.
///
/// URLs may have more characters in a host, but in a list they show that the line is no host.
fn host(name: &str) -> Option<String> {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || "-_.:[]".contains(c);
    let host = hosts::host(name.strip_prefix('*').unwrap_or(name).trim_start_matches('.'))?;
    host.chars().all(is_usual).then_some(host)
}

/// Whether a word is an IP address, with or without the zone that `fe80::1%lo0` has.
fn is_address(word: &str) -> bool {
    word.split('%').next().is_some_and(|address| address.parse::<IpAddr>().is_ok())
}

/// Passes the host of an ad-block rule to `take`, and the kind of another rule to `skip`.
pub(crate) fn adblock(line: &[u8], mut take: impl FnMut(&[u8]), mut skip: impl FnMut(Skip)) {
    let text = String::from_utf8_lossy(line);
    let rule = text.trim();
    if is_cosmetic(rule) {
        skip(Skip::Cosmetic);
    } else if rule.is_empty() {
        skip(Skip::Empty);
    } else if rule.starts_with(['!', '#', '[']) {
        // A comment, or the head of the list.
        skip(Skip::Comment);
    } else if rule.starts_with("@@") {
        skip(Skip::Exception);
    } else if let Some(host) = whole_host(rule) {
        take(host.as_bytes());
    } else {
        skip(Skip::Partial);
    }
}

/// Whether a rule hides or changes parts of pages: `##`, `#@#`, `#?#`, `#$#`, `#%#`, `$$`.
fn is_cosmetic(rule: &str) -> bool {
    let after = rule.split_once('#').map_or("", |(_, after)| after);
    let mark = after.trim_start_matches(['@', '?', '$', '%']);
    mark.starts_with('#') || rule.contains("$$")
}

/// The host of a rule that blocks all of a host: `||host^`, `||host^$option,option`.
fn whole_host(rule: &str) -> Option<String> {
    let rule = rule.strip_prefix("||")?;
    let (pattern, options) = rule.split_once('$').unwrap_or((rule, ""));
    let names = |option: &str| {
        let name = option.trim().trim_start_matches('~');
        name.split('=').next().is_some_and(|name| NARROWING.contains(&name))
    };
    if options.split(',').any(names) {
        return None;
    }
    let end = pattern.find(['^', '/', '*', '|']).unwrap_or(pattern.len());
    let (host, rest) = pattern.split_at(end);
    let is_whole = ["", "^", "^|", "^*", "/", "/*"].contains(&rest);
    // A port or a user name would make it less than a host.
    (is_whole && !host.contains([':', '@'])).then(|| self::host(host)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(format: Format, line: &str) -> (Vec<String>, Vec<Skip>) {
        let (mut keys, mut skipped) = (Vec::new(), Vec::new());
        let take = |key: &[u8]| keys.push(String::from_utf8(key.to_vec()).unwrap());
        match format {
            Format::Hosts => hosts(line.as_bytes(), take, |skip| skipped.push(skip)),
            _ => adblock(line.as_bytes(), take, |skip| skipped.push(skip)),
        }
        (keys, skipped)
    }

    #[test]
    fn a_hosts_line_gives_its_names_and_no_names_of_the_machine() {
        for (line, hosts, skipped) in [
            ("0.0.0.0 ads.example", &["ads.example"][..], &[][..]),
            ("127.0.0.1\tA.example  b.example # c.example", &["a.example", "b.example"], &[]),
            ("::1 b\u{fc}cher.example.", &["xn--bcher-kva.example"], &[]),
            ("fe80::1%lo0 localhost", &[], &[Skip::Local]),
            ("255.255.255.255 broadcasthost", &[], &[Skip::Local]),
            ("0.0.0.0 0.0.0.0", &[], &[Skip::Local]),
            ("0.0.0.0 1.2.3.4", &[], &[Skip::Local]),
            ("# comment", &[], &[Skip::Comment]),
            ("   ", &[], &[Skip::Empty]),
            ("ads.example", &["ads.example"], &[]),
            ("https://user@Ads.example:8080/a b?c#d", &["ads.example"], &[]),
            ("someone@ads.example", &["ads.example"], &[]),
            ("192.0.2.1", &["192.0.2.1"], &[]),
            ("2001:DB8::1", &["[2001:db8::1]"], &[]),
            ("*.ads.example", &["ads.example"], &[]),
            (".ads.example", &["ads.example"], &[]),
            ("address=/ads.example/0.0.0.0", &[], &[Skip::NoHost]),
            ("*", &[], &[Skip::NoHost]),
            ("two words", &[], &[Skip::NoHost]),
            ("0.0.0.0 ok.example bad%host", &["ok.example"], &[Skip::NoHost]),
        ] {
            let expected = (hosts.iter().map(ToString::to_string).collect(), skipped.to_vec());
            assert_eq!(read(Format::Hosts, line), expected, "{line}");
        }
    }

    #[test]
    fn an_adblock_rule_gives_its_host_if_it_blocks_all_of_it() {
        for (line, hosts, skipped) in [
            ("||ads.example^", &["ads.example"][..], &[][..]),
            ("||ADS.example^$third-party,script", &["ads.example"], &[]),
            ("||ads.example", &["ads.example"], &[]),
            ("||ads.example/", &["ads.example"], &[]),
            ("||ads.example$popup", &["ads.example"], &[]),
            ("||b\u{fc}cher.example^", &["xn--bcher-kva.example"], &[]),
            ("||192.0.2.1^", &["192.0.2.1"], &[]),
            ("! comment", &[], &[Skip::Comment]),
            ("#comment", &[], &[Skip::Comment]),
            ("[Adblock Plus 2.0]", &[], &[Skip::Comment]),
            ("", &[], &[Skip::Empty]),
            ("@@||ads.example^", &[], &[Skip::Exception]),
            ("@@||ads.example^$domain=a.example", &[], &[Skip::Exception]),
            ("##.banner", &[], &[Skip::Cosmetic]),
            ("example.com##.banner", &[], &[Skip::Cosmetic]),
            ("example.com#@#.banner", &[], &[Skip::Cosmetic]),
            ("example.com#?#.banner", &[], &[Skip::Cosmetic]),
            ("example.com#@?#.banner", &[], &[Skip::Cosmetic]),
            ("example.com$$script[x]", &[], &[Skip::Cosmetic]),
            ("||ads.example/banner/", &[], &[Skip::Partial]),
            ("||ads.example:8080^", &[], &[Skip::Partial]),
            ("||ads.*^", &[], &[Skip::Partial]),
            ("||*.ads.example^", &[], &[Skip::Partial]),
            ("||ads.example^$domain=a.example|b.example", &[], &[Skip::Partial]),
            ("||ads.example^$script,badfilter", &[], &[Skip::Partial]),
            ("||^", &[], &[Skip::Partial]),
            ("||", &[], &[Skip::Partial]),
            ("/banner/*", &[], &[Skip::Partial]),
            ("|https://ads.example/", &[], &[Skip::Partial]),
        ] {
            let expected = (hosts.iter().map(ToString::to_string).collect(), skipped.to_vec());
            assert_eq!(read(Format::Adblock, line), expected, "{line}");
        }
    }
}
