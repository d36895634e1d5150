//! Reads hosts files: the hosts that a line names.
//!
//! `ADDRESS NAME..` as in /etc/hosts, or one host, address, URL or e-mail address in a line. A `#`
//! begins a comment. The names of the machine itself, such as `localhost`, are skipped, and so are
//! ranges of addresses, because a filter holds single ones.

use std::net::IpAddr;

use super::Skip;
use crate::lists::hosts;

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
        match host(name) {
            _ if is_range(name) => skip(Skip::Range),
            // `0.0.0.0 0.0.0.0` says that the file blocks.
            Some(_) if is_address(name) && *name != text => skip(Skip::Local),
            Some(host) if LOCAL.split(' ').any(|local| local == host) => skip(Skip::Local),
            Some(host) => take(host.as_bytes()),
            None => skip(Skip::NoHost),
        }
    }
}

/// The host that a list names: without the `*.` or the dot that some lists put before a domain.
///
/// URLs may have more characters in a host, but in a list they show that the line is no host.
pub(super) fn host(name: &str) -> Option<String> {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || "-_.:[]".contains(c);
    let host = hosts::host(name.strip_prefix('*').unwrap_or(name).trim_start_matches('.'))?;
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
mod tests {
    use super::*;

    fn read(line: &str) -> (Vec<String>, Vec<Skip>) {
        let (mut keys, mut skipped) = (Vec::new(), Vec::new());
        let take = |key: &[u8]| keys.push(String::from_utf8(key.to_vec()).unwrap());
        hosts(line.as_bytes(), take, |skip| skipped.push(skip));
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
