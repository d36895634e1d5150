//! Finds the host of a line and its parent domains, for `koel check --url` and `--format`.
//!
//! A URL is parsed as browsers do (the WHATWG standard, by the crate `url`). A line without a
//! scheme is parsed as `http://LINE`, so that bare hosts, `host:port/path` and e-mail addresses
//! (`user@host`) work. Two rules go beyond the standard: an IPv6 address needs no
//! brackets, and hosts of schemes that browsers do not know are hosts all the same.
//!
//! Hosts are in lower case and punycode, without a dot at the end. An IP address has no parent
//! domains.
//!
//! Cost: one URL parse, then one lookup for each label of the host; in a filter of plain lines two
//! where a name is not ASCII. Each lookup can be a false positive, so the false-positive rate of a
//! line is that of a key times the labels, and once more where the line itself is looked up.

use std::net::Ipv6Addr;

use url::{Host, ParseError, Url};

/// Whether `contains` is true for the host of this line or for one of its parent domains. `None`
/// for a line without a host.
///
/// With `both_forms`, an international name is looked up in both, because a plain list may have
/// either.
pub(crate) fn host_or_parent(
    line: &[u8],
    both_forms: bool,
    mut contains: impl FnMut(&[u8]) -> bool,
) -> Option<bool> {
    let host = std::str::from_utf8(line).ok().and_then(parsed)?;
    let Host::Domain(domain) = host else { return Some(contains(host.to_string().as_bytes())) };
    let domain = Some(domain.trim_end_matches('.')).filter(|domain| !domain.is_empty())?;
    let mut found = |domain| domain_and_parents(domain).any(|name| contains(name.as_bytes()));
    let has_two = both_forms && domain.contains("xn--");
    Some(found(domain) || has_two && found(&idna::domain_to_unicode(domain).0))
}

/// The host of a line, in the form that filters have.
pub(crate) fn host(line: &str) -> Option<String> {
    match parsed(line)? {
        Host::Domain(domain) => {
            Some(domain.trim_end_matches('.').to_owned()).filter(|domain| !domain.is_empty())
        }
        address => Some(address.to_string()),
    }
}

fn parsed(line: &str) -> Option<Host> {
    let line = line.trim();
    if let Ok(address) = line.parse::<Ipv6Addr>() {
        return Some(Host::Ipv6(address));
    }
    let with_scheme = || Url::parse(&format!("http://{line}")).ok();
    let url = match Url::parse(line) {
        Ok(url) if url.has_host() || url.is_special() => url,
        // In `host:port` the host looks like a scheme.
        Ok(url) if url.cannot_be_a_base() => with_scheme()?,
        Err(ParseError::RelativeUrlWithoutBase) => with_scheme()?,
        _ => return None,
    };
    if url.is_special() {
        return url.host().map(|host| host.to_owned());
    }
    // For schemes that browsers do not know, `Url` leaves the host as it was written.
    Host::parse(url.host_str()?).ok()
}

/// For `a.b.c`: `a.b.c`, `b.c` and `c`.
fn domain_and_parents(domain: &str) -> impl Iterator<Item = &str> {
    let first = Some(domain).filter(|domain| !domain.is_empty());
    std::iter::successors(first, |name| name.split_once('.').map(|(_, above)| above))
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
}
