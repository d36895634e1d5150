//! Finds the host of a line and its parent domains, for `koel check --url` and `--format`.
//!
//! A URL is parsed as browsers do (the WHATWG standard, see `url.rs`). A line without a scheme
//! is parsed as `http://LINE`, so that bare hosts, `host:port/path` and e-mail addresses
//! (`user@host`) work. Rules beyond the standard: quotes around a line are dropped, an IPv6 address
//! needs no brackets, one that stands for an IPv4 address is that address, and hosts of schemes
//! that browsers do not know are hosts all the same.
//!
//! Hosts are in lower case and punycode, without a dot at the end. An IP address has no parent
//! domains.
//!
//! Cost: one URL parse, then one lookup for each label of the host; in a filter of plain lines two
//! where a name is not ASCII. Each lookup can be a false positive, so the false-positive rate of a
//! line is that of a key times the labels, and once more where the line itself is looked up.
//!
//! A **hosts file** has `ADDRESS NAME..` as in /etc/hosts, or one host, address, URL or e-mail
//! address in a line. A `#` begins a comment. The names of the machine itself, such as `localhost`,
//! are skipped, and so are ranges of addresses, because a filter holds single ones.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::Skip;
use crate::url::parse;

/// Whether `contains` is true for the host of this line or for one of its parent domains. `None`
/// for a line without a host.
///
/// With `both_forms`, an international name is looked up in both, because a plain list may have
/// either.
pub fn host_or_parent(
    line: &[u8],
    both_forms: bool,
    mut contains: impl FnMut(&[u8]) -> bool,
) -> Option<bool> {
    let host = core::str::from_utf8(line).ok().and_then(host)?;
    // The standard takes every host whose last label is a number for an address.
    let last = host.rsplit('.').next().unwrap_or_default();
    if host.starts_with('[') || last.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(contains(host.as_bytes()));
    }
    let mut found = |name| domain_and_parents(name).any(|name| contains(name.as_bytes()));
    let has_two = both_forms && host.split('.').any(|label| label.starts_with("xn--"));
    Some(found(&host) || has_two && found(&in_unicode(&host)))
}

/// The host of a line, in the form that filters have; `None` if it has none.
#[must_use]
pub fn host(line: &str) -> Option<String> {
    let line = unquoted(line.trim());
    if is_bare_ipv6(line) {
        return parse(&format!("http://[{line}]"))?.host.map(short_address);
    }
    let with_scheme = || parse(&format!("http://{line}"));
    let url = if has_scheme(line) {
        let url = parse(line)?;
        match url.host {
            Some(_) => url,
            // In `host:port` the host looks like a scheme.
            None if url.is_opaque => with_scheme()?,
            None => return None,
        }
    } else {
        with_scheme()?
    };
    let mut host = url.host?;
    if !url.is_special {
        // For schemes that browsers do not know, the host is as it was written.
        host = parse(&format!("http://{host}"))?.host?;
    }
    let host = short_address(host);
    let host = host.trim_end_matches('.');
    // Quotes are those of a cut column. Chromium leaves spaces in a host, as `%20`.
    let is_host = !host.is_empty() && !host.contains(['"', '%']);
    is_host.then(|| host.to_owned())
}

/// Whether a line can be nothing but an address of IPv6 without its brackets.
fn is_bare_ipv6(line: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
    line.bytes().all(is_part) && line.bytes().filter(|&byte| byte == b':').count() > 1
}

/// A host in brackets that stands for an address of IPv4 as that one. Other hosts as they are.
fn short_address(host: String) -> String {
    let mapped = || {
        let (high, low) = host.strip_prefix("[::ffff:")?.strip_suffix(']')?.split_once(':')?;
        let half = |digits| u16::from_str_radix(digits, 16).ok().map(u16::to_be_bytes);
        let ([a, b], [c, d]) = (half(high)?, half(low)?);
        Some(format!("{a}.{b}.{c}.{d}"))
    };
    mapped().unwrap_or(host)
}

/// A line without the quotes around it: a column of a log is often quoted, and no host is.
fn unquoted(line: &str) -> &str {
    line.strip_prefix('"').and_then(|line| line.strip_suffix('"')).unwrap_or(line)
}

/// Whether a line begins with the scheme of a URL. Control characters before it, tabs and line ends
/// in it do not count.
fn has_scheme(line: &str) -> bool {
    let mut letters =
        line.trim_start_matches(|c| c <= ' ').chars().filter(|c| !matches!(c, '\t' | '\n' | '\r'));
    letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.'))
            == Some(':')
}

/// A host in punycode as people write it.
fn in_unicode(host: &str) -> String {
    let label = |label: &str| match label.strip_prefix("xn--").map(idna::punycode::decode_to_string)
    {
        Some(Some(unicode)) => unicode,
        _ => label.to_owned(),
    };
    host.split('.').map(label).collect::<Vec<_>>().join(".")
}

/// For `a.b.c`: `a.b.c`, `b.c` and `c`.
pub(crate) fn domain_and_parents(domain: &str) -> impl Iterator<Item = &str> {
    let first = Some(domain).filter(|domain| !domain.is_empty());
    core::iter::successors(first, |name| name.split_once('.').map(|(_, above)| above))
}

/// Whether a line has an address and names, as in /etc/hosts. A name has a dot, so that lines of a
/// log, which may begin with an address too, are others.
pub(crate) fn is_hosts_line(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    let mut words = text.split('#').next().unwrap_or_default().split_whitespace();
    let is_name = |name| listed(name).is_some_and(|host| host.contains('.') || is_local(&host));
    words.next().is_some_and(is_address) && words.next().is_some_and(is_name) && words.all(is_name)
}

fn is_local(host: &str) -> bool {
    LOCAL.split(' ').any(|local| local == host)
}

/// Names that hosts files give to the machine itself and to its networks.
const LOCAL: &str = "\
    localhost localhost.localdomain localhost4 localhost6 local broadcasthost ip6-localhost \
    ip6-loopback ip6-localnet ip6-mcastprefix ip6-allnodes ip6-allrouters ip6-allhosts";

/// Passes the hosts of a line of a hosts file to `take`, and what is no host to `skip`.
pub(crate) fn hosts(line: &[u8], mut take: impl FnMut(&[u8]), mut skip: impl FnMut(Skip)) {
    let text = String::from_utf8_lossy(line);
    let has_comment = text.contains('#');
    let text = text.split('#').next().unwrap_or_default().trim();
    let words: Vec<_> = text.split_whitespace().collect();
    let names = match &words[..] {
        [range, ..] if is_range(range) => return skip(Skip::Range),
        [] => return skip(if has_comment { Skip::Comment } else { Skip::Empty }),
        [address, names @ ..] if is_address(address) && !names.is_empty() => names,
        // The line is a host, or a URL, which may have spaces.
        _ => &[text],
    };
    for name in names {
        match listed(name) {
            _ if is_range(name) => skip(Skip::Range),
            // `0.0.0.0 0.0.0.0` says that the file blocks.
            Some(_) if is_address(name) && *name != text => skip(Skip::Local),
            Some(host) if is_local(&host) => skip(Skip::Local),
            Some(host) => take(host.as_bytes()),
            None => skip(Skip::NoHost),
        }
    }
}

/// The host that a list names: without the `*.` or the dot that some lists put before a domain.
///
/// URLs may have more characters in a host, but in a list they show that the line is no host.
pub(crate) fn listed(name: &str) -> Option<String> {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || "-_.:[]".contains(c);
    let host = host(name.strip_prefix('*').unwrap_or(name).trim_start_matches('.'))?;
    host.chars().all(is_usual).then_some(host)
}

/// Whether a word is a range of addresses such as `192.0.2.0/24`. As a URL, it would be one host.
fn is_range(word: &str) -> bool {
    word.split_once('/').is_some_and(|(address, bits)| {
        let is_number = (1..=3).contains(&bits.len()) && bits.bytes().all(|it| it.is_ascii_digit());
        let is_short = address.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        is_number && (is_address(address) || is_short)
    })
}

/// Whether a word is an IP address, with or without the zone that `fe80::1%lo0` has.
fn is_address(word: &str) -> bool {
    word.split('%').next().is_some_and(|address| address.parse::<IpAddr>().is_ok())
}

#[cfg(test)]
mod standard;

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(line: &str, member: &str) -> bool {
        host_or_parent(line.as_bytes(), true, |name| name == member.as_bytes()) == Some(true)
    }

    #[test]
    fn a_line_matches_its_host_and_every_parent_domain() {
        for line in [
            "https://a.b.example.com/path?query#part",
            "http://user:secret@a.b.example.com:8080",
            "a.b.example.com",
            "a.b.example.com:8080/path",
            "someone@a.b.example.com",
            "HTTPS://A.B.EXAMPLE.COM/",
            "a.b.example.com.",
            "a.b.example.com/go?to=https://other.example/",
            "someone@a.b.example.com/x://y",
            "  https://a.b.example.com/",
            "  a.b.example.com#://",
            "git://A.B.example.com/tree",
            "http:a.b.example.com",
            "https:/a.b.example.com/x",
            r"http:\\a.b.example.com\x",
            "http:////a.b.example.com",
            "ht\ttp://a.b.example.com/",
            "//a.b.example.com/x",
            "http://a.b.ex%61mple.com/",
            "mailto:someone@a.b.example.com",
        ] {
            for member in ["a.b.example.com", "b.example.com", "example.com", "com"] {
                assert!(finds(line, member), "{line} {member}");
            }
            assert!(!finds(line, "ample.com"), "{line}");
            assert!(!finds(line, ""), "{line}");
        }
    }

    #[test]
    fn an_ip_address_has_no_parent_domain() {
        assert!(finds("http://192.0.2.1/x", "192.0.2.1"));
        assert!(!finds("http://192.0.2.1/x", "0.2.1"));
        assert!(finds("http://0xc0000201/", "192.0.2.1"));
        assert!(finds("http://[2001:db8::1]:80/", "[2001:db8::1]"));
        assert!(finds("2001:DB8:0::1", "[2001:db8::1]"));
    }

    #[test]
    fn an_ipv4_address_is_one_key_also_as_ipv6() {
        for line in ["http://[::ffff:192.0.2.77]/", "::ffff:192.0.2.77", "::FFFF:c000:24d"] {
            assert_eq!(host(line).as_deref(), Some("192.0.2.77"), "{line}");
        }
    }

    #[test]
    fn a_quoted_column_of_a_log_is_the_url_in_it() {
        assert_eq!(host("\"https://a.example/x\"").as_deref(), Some("a.example"));
        assert_eq!(host("\"-\"").as_deref(), Some("-"));
        assert_eq!(host("\"https://a.example/x"), None);
    }

    #[test]
    fn an_international_name_is_found_in_both_forms() {
        for line in ["https://www.B\u{dc}CHER.example/", "www.xn--bcher-kva.example"] {
            assert!(finds(line, "xn--bcher-kva.example"), "{line}");
            assert!(finds(line, "b\u{fc}cher.example"), "{line}");
        }
    }

    #[test]
    fn a_line_without_a_host_matches_nothing() {
        for line in [&b""[..], b"two words", b"\xff\xfe", b".", b"data:text/html,x", b"http://"] {
            assert_eq!(host_or_parent(line, true, |_| true), None, "{line:?}");
        }
        assert_eq!(host("."), None);
    }

    fn read(line: &str) -> (Vec<String>, Vec<Skip>) {
        let (mut keys, mut skipped) = (Vec::new(), Vec::new());
        let take = |key: &[u8]| keys.push(String::from_utf8(key.to_vec()).unwrap());
        hosts(line.as_bytes(), take, |skip| skipped.push(skip));
        (keys, skipped)
    }

    #[test]
    fn a_hosts_line_is_known_by_its_address_and_names() {
        for line in ["0.0.0.0 ads.example", "::1 localhost # x", "192.0.2.1\ta.example b.example"] {
            assert!(is_hosts_line(line.as_bytes()), "{line}");
        }
        for line in ["ads.example", "192.0.2.1", "192.0.2.1 - - [29/Nov/2026]", "# 0.0.0.0 a.b", ""]
        {
            assert!(!is_hosts_line(line.as_bytes()), "{line}");
        }
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
            ("192.0.2.0/24", &[], &[Skip::Range]),
            ("10.0/16 # short", &[], &[Skip::Range]),
            ("2001:db8::/32", &[], &[Skip::Range]),
            ("0.0.0.0 192.0.2.0/24", &[], &[Skip::Range]),
            ("192.0.2.0/24 a b", &[], &[Skip::Range]),
            ("0.0.0.0 a.example 192.0.2.0/24", &["a.example"], &[Skip::Range]),
            ("ads.example/24", &["ads.example"], &[]),
            ("0.0.0.0 ok.example bad%host", &["ok.example"], &[Skip::NoHost]),
        ] {
            let expected = (hosts.iter().map(ToString::to_string).collect(), skipped.to_vec());
            assert_eq!(read(line), expected, "{line}");
        }
    }
}
