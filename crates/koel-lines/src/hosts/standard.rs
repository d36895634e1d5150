//! The hosts of all URLs in the test data of the WHATWG standard that need no base URL.
//!
//! `tests/data/README.md` says where the data is from.

use super::host;

const DATA: &[u8] = include_bytes!("../../tests/data/url-hosts.json");

/// Lines whose host is not that of the standard: the line and the host found.
const DIFFERING: [(&str, Option<&str>); 22] = [
    // A line without a scheme is a host.
    ("a", Some("a")),
    ("a/", Some("a")),
    ("a//", Some("a")),
    ("blob:", Some("blob")),
    ("sc:\\../", Some("sc")),
    ("sc::a@example.net", Some("example.net")),
    // The standard leaves hosts as they are written where it does not know the scheme.
    ("sc://fa\u{df}.ExAmPlE/", Some("xn--fa-hia.example")),
    ("sc://\u{f1}.test/", Some("xn--ida.test")),
    ("sc://\u{f1}", Some("xn--ida")),
    ("sc://\u{f1}?x", Some("xn--ida")),
    ("sc://\u{f1}#x", Some("xn--ida")),
    ("non-special://%E2%80%A0/", Some("xn--lvg")),
    ("non-special://H%4fSt/path", Some("host")),
    ("sc://%/", None),
    ("asdf://%43%7C/", None),
    ("foo://!\"$%&'()*+,-.;=_`{}~/", None),
    (
        "sc://\u{1}\u{2}\u{3}\u{4}\u{5}\u{6}\u{7}\u{8}\u{b}\u{c}\u{e}\u{f}\u{10}\u{11}\u{12}\u{13}\u{14}\
         \u{15}\u{16}\u{17}\u{18}\u{19}\u{1a}\u{1b}\u{1c}\u{1d}\u{1e}\u{1f}\u{7f}!\"$%&'()*+,-.;=_`{}~/",
        None,
    ),
    // A quote shows that the line was cut in the middle of a quoted column.
    ("http://!\"$&'()*+,-.;=_`{}~/", None),
    ("wss://!\"$&'()*+,-.;=_`{}~/", None),
    // The crate `url` takes no host before a drive letter.
    ("file://example.net/C:/", None),
    ("file://1.2.3.4/C:/", None),
    ("file://[1::8]/C:/", None),
];

#[test]
fn hosts_are_those_of_the_url_standard() {
    let cases: Vec<(String, Option<String>)> = serde_json::from_slice(DATA).unwrap();
    assert_eq!(cases.len(), 503);
    let mut differing = Vec::new();
    for (line, standard) in &cases {
        let found = host(line);
        let standard = standard.as_deref().map(|host| host.trim_end_matches('.'));
        if found.as_deref() != standard.filter(|host| !host.is_empty()) {
            differing.push((line.clone(), found));
        }
    }
    let mut expected: Vec<_> =
        DIFFERING.map(|(line, host)| (line.to_owned(), host.map(str::to_owned))).into();
    expected.sort();
    differing.sort();
    assert_eq!(differing, expected);
}
