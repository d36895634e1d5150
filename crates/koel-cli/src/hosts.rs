//! Finds the host of a line and its parent domains, for `koel check --url`.
//!
//! A line is parsed as in a browser's address bar. A line without a scheme is parsed as
//! `http://LINE`, so that bare hosts, `host:port/path` and e-mail addresses (`user@host`) work.
//! Hosts are converted to lower case and punycode. An IP address has no parent domains.
//!
//! Cost: one URL parse, then one lookup for each label of the host. Each lookup can be a false
//! positive, so a line's false-positive rate is up to (labels + 1) times that of a key.
#![forbid(unsafe_code)]

use url::{Host, Url};

/// Whether `contains` is true for the host of this line or for one of its parent domains.
pub(crate) fn host_or_parent(line: &[u8], contains: impl Fn(&[u8]) -> bool) -> bool {
    match host(line) {
        Some(Host::Domain(domain)) => {
            domain_and_parents(domain.trim_end_matches('.')).any(|name| contains(name.as_bytes()))
        }
        Some(address) => contains(address.to_string().as_bytes()),
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
    // For schemes that browsers do not know, `Url` leaves the host as it was written.
    Host::parse(url.host_str()?).ok()
}

/// Whether the line begins with a scheme and `://`. A URL in the query does not count.
fn has_scheme(line: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    line.split_once("://").is_some_and(|(scheme, _)| scheme.chars().all(is_part))
}

/// For `a.b.c`: `a.b.c`, `b.c` and `c`.
fn domain_and_parents(domain: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(domain), |name| name.split_once('.').map(|(_, above)| above))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(line: &str, member: &str) -> bool {
        host_or_parent(line.as_bytes(), |name| name == member.as_bytes())
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
        assert!(finds("http://[2001:db8::1]:80/", "[2001:db8::1]"));
    }

    #[test]
    fn a_line_without_a_host_matches_nothing() {
        assert!(!host_or_parent(b"", |_| true));
        assert!(!host_or_parent(b"two words", |_| true));
        assert!(!host_or_parent(b"\xff\xfe", |_| true));
    }
}
