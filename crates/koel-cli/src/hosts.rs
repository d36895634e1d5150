//! The host of a line and the domains above it, for `koel check --url`.
//!
//! A line is read as a browser's address bar reads it: `https://a.b.example:8080/path?x`, and without a scheme and `://` in front as `http://LINE`, so that bare
//! hosts, `host:port/path` and e-mail addresses (`user@host`) work. Hosts come out in lower case and punycode. An IP address has no
//! domains above it. Cost: one URL parse, then one question for each label of the host; each is one more chance of a false positive,
//! so the error rate of a line is up to (labels + 1) times that of a key.
#![forbid(unsafe_code)]

use url::{Host, Url};

/// Whether `known` knows the host of this line or a domain above it.
pub(crate) fn host_or_parent(line: &[u8], known: impl Fn(&[u8]) -> bool) -> bool {
    match host(line) {
        Some(Host::Domain(domain)) => {
            parents(domain.trim_end_matches('.')).any(|name| known(name.as_bytes()))
        }
        Some(address) => known(address.to_string().as_bytes()),
        None => false,
    }
}

fn host(line: &[u8]) -> Option<Host> {
    let line = std::str::from_utf8(line).ok()?.trim();
    let parsed =
        if has_scheme(line) { Url::parse(line) } else { Url::parse(&format!("http://{line}")) };
    let url = parsed.ok()?;
    if url.is_special() {
        return url.host().map(|host| host.to_owned());
    }
    // That of a scheme which no browser knows is as it was written.
    Host::parse(url.host_str()?).ok()
}

/// Whether `://` stands behind a scheme; an address in the query has one too, and a path or a user before it.
fn has_scheme(line: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    line.split_once("://").is_some_and(|(scheme, _)| scheme.chars().all(is_part))
}

/// `a.b.c`, `b.c`, `c`.
fn parents(domain: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(domain), |name| name.split_once('.').map(|(_, above)| above))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(line: &str, member: &str) -> bool {
        host_or_parent(line.as_bytes(), |name| name == member.as_bytes())
    }

    #[test]
    fn a_line_leads_to_its_host_and_to_every_domain_above_it() {
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
        ] {
            for member in ["a.b.example.com", "b.example.com", "example.com", "com"] {
                assert!(finds(line, member), "{line} {member}");
            }
            assert!(!finds(line, "ample.com"), "{line}");
            assert!(!finds(line, ""), "{line}");
        }
    }

    #[test]
    fn an_address_has_no_domain_above_it() {
        assert!(finds("http://192.0.2.1/x", "192.0.2.1"));
        assert!(!finds("http://192.0.2.1/x", "0.2.1"));
        assert!(finds("http://[2001:db8::1]:80/", "[2001:db8::1]"));
    }

    #[test]
    fn a_line_without_a_host_leads_nowhere() {
        assert!(!host_or_parent(b"", |_| true));
        assert!(!host_or_parent(b"two words", |_| true));
        assert!(!host_or_parent(b"\xff\xfe", |_| true));
    }
}
