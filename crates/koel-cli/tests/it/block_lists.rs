//! Hosts files and ad-block lists, and filters that know what they were built from.

use crate::lists::filter_of;
use crate::support::Shell;

const HOSTS: &str =
    "\u{feff}# Blocked hosts\r\n127.0.0.1 localhost\r\n::1 localhost ip6-localhost\r
0.0.0.0 0.0.0.0\r\n0.0.0.0 Ads.example  tracker.example # two\r\n0.0.0.0\tb\u{fc}cher.example\r
fe80::1%lo0 localhost\r\n0.0.0.0 not%a%host\r\n";

#[test]
fn hosts_are_counted_added_and_printed_line_by_line() {
    let shell = filter_of(HOSTS, "--format hosts");
    assert_eq!(shell.ok("info --json set").json()["keys"], 3);
    let ran = shell.run_with("add set", b"::1 More.example localhost\nbad host\n");
    assert_eq!((ran.code, &*ran.err), (0, ""));
    let expected = "skipped              1 line without a host, 1 name of the local machine\n";
    assert!(ran.text().contains(expected), "{}", ran.text());
    assert_eq!(shell.check("-q", "more.example").code, 0);
    // With a format, each host is a line.
    let ran = shell.run_with("dedup --format hosts", HOSTS.as_bytes());
    assert_eq!(ran.text(), "ads.example\ntracker.example\nxn--bcher-kva.example\n");
    let ran = shell.run_with("count set --format hosts", b"0.0.0.0 ads.example x.example\n");
    assert_eq!(ran.text(), "1\tads.example\n0\tx.example\n");
}

/// Without the format, a line of a hosts file was one key, and a URL was absent.
#[test]
fn a_key_is_made_as_the_build_made_it_by_every_verb() {
    let shell = filter_of("0.0.0.0 ads.example\n", "--format hosts");
    shell.ok_with("add set", b"0.0.0.0 evil.example\n");
    assert_eq!(shell.check("", "http://evil.example/\n").text(), "evil.example\n");
    assert_eq!(shell.check("--url", "http://a.evil.example/\n").text(), "http://a.evil.example/\n");
    let ran = shell.check("--url -v", "http://b.example/\ntwo words\n\n");
    assert_eq!(
        (ran.text(), &*ran.err),
        ("http://b.example/\n", "koel: skipped 2 lines without a host\n")
    );
    assert_eq!(shell.check("--url -v", "two words\n").code, 2);
    assert_eq!(shell.run_with("count set", b"EVIL.example\n").text(), "1\tevil.example\n");
    shell.ok_with("remove set", b"::1 evil.example\n");
    assert_eq!(shell.check("-q", "http://evil.example/\n").code, 1);
    assert!(shell.ok("info set").text().contains("line options         --format hosts\n"));
    // Hosts of an ad-block list are the same kind of keys, and lines are not.
    let list = |name: &str, options: &str| {
        let line = if name == "adblock" { "||x.example^" } else { "x.example" };
        shell.build(name, &[line.into()], &format!("--fpr 1e-6 --keys 9 {options}"));
    };
    list("hosts", "--format hosts");
    list("adblock", "--format adblock");
    list("lines", "");
    shell.ok("merge adblock hosts -o both");
    assert_eq!(shell.ok("info --json both").json()["line_options"]["format"], "adblock");
    for words in ["merge hosts lines -o no", "similar lines adblock", "diff hosts lines"] {
        shell.run(words).fails("--format hosts");
    }
    let long = filter_of("a::b\n", "--field 2 --delimiter ::");
    long.check("-q", "a::b\n").fails("--delimiter");
    assert_eq!(long.check("-q --field 2 --delimiter ::", "c::b\n").code, 0);
}

#[test]
fn a_list_of_urls_gives_their_hosts() {
    let urls =
        "id,url\n1,https://Bad.example:8080/x?y#z\n2,bad.example/other\n3,http://192.0.2.1/\n";
    let shell = filter_of(urls, "--csv --field 2 --format hosts");
    assert_eq!(shell.check("--url -c", "http://www.bad.example\nhttp://192.0.2.1\n").text(), "2\n");
    assert_eq!(shell.check("-c --field 0", "bad.example\n192.0.2.1\nurl\n").text(), "3\n");
    assert_eq!(shell.check("-c", "7,http://bad.example/\n8,x.example\n").text(), "1\n");
}

#[test]
fn an_adblock_list_says_what_it_skips() {
    for (list, expected) in [
        (
            "[Adblock Plus 2.0]\n! Title: a list\n||ads.example^\n||Tracker.example^$third-party\n\
             @@||good.example^\n##.banner\nexample.com##.x\n/banner/*\n||part.example/x\n",
            "2 comments, 1 rule that takes out others, 2 cosmetic rules, 2 rules for less than a host",
        ),
        (
            "||x.example^\n||a.x.example^\n||y.example^\n@@||x.example^\n\
             @@||y.example^$script\n",
            "1 rule that takes out others, 1 exception rule for less than a host, 2 rules that an \
             exception takes out",
        ),
    ] {
        let ran = Shell::new().run_with("build --format adblock -o set", list.as_bytes());
        assert_eq!((ran.code, &*ran.err), (0, ""));
        let expected = format!("skipped              {expected}\n");
        assert!(ran.text().contains(&expected), "{}", ran.text());
    }
}

/// A list of exceptions says what is allowed, as a plain list does.
#[test]
fn exceptions_are_allowed_names() {
    let shell = Shell::new();
    let blocked: String = (0..2_000).map(|i| format!("||b{i}.example^\n")).collect();
    shell.write("list", &blocked);
    let allowed: String = (0..2_000).map(|i| format!("@@||a{i}.example^\n")).collect();
    shell.write("allowed", &(allowed + "@@||b7.example^\n"));
    let urls: String = (0..2_000).map(|i| format!("http://a{i}.example/\n")).collect();
    shell.ok("build --format adblock --fpr 0.03 -o plain list");
    assert_ne!(shell.run_with("check --url -c plain", urls.as_bytes()).text(), "0\n");
    let report = shell.ok("build --format adblock --fpr 0.03 --never allowed --json -o set list");
    assert_eq!(report.json()["never"]["lines"], 2_001);
    assert_eq!(report.json()["never"]["conflicts"], 1);
    assert_eq!(shell.run_with("check --url -c set", urls.as_bytes()).text(), "0\n");
    assert_eq!(shell.run_with("check --url -q set", b"http://b7.example/\n").code, 0);
}

/// Lines of a hosts file were keys as they are, and every URL was absent without a word.
#[test]
fn a_list_that_was_read_as_plain_lines_is_noticed() {
    let hosts = "# x\n0.0.0.0 ads.example\n0.0.0.0 b.example\n";
    let rules = "! x\n||ads.example^\n@@||b.example^\n||c.example^\n";
    let log = "192.0.2.1 - - [29/Nov/2026] GET /\n192.0.2.2 - - x\n";
    let shell = filter_of("a.example\n", "");
    for (list, said) in [(hosts, "--format hosts"), (rules, "--format adblock"), (log, "")] {
        for words in ["build -o new", "check -v set"] {
            let ran = shell.run_with(words, list.as_bytes());
            assert_eq!(ran.code, 0);
            assert!(ran.err.contains(said) && ran.err.is_empty() == said.is_empty(), "{}", ran.err);
        }
        let given = shell.run_with("build --format lines -o new", list.as_bytes());
        assert_eq!(given.err, "");
        let ran = shell.run_with("dedup", list.as_bytes());
        assert!(!ran.err.contains("looks like"), "{}", ran.err);
    }
    let ran = shell.check("--url", "http://ads.example/\n");
    assert!(ran.code == 1 && ran.err.contains("was built from plain lines"), "{}", ran.err);
}

/// The column was taken for a URL with its quotes, and every line was absent.
#[test]
fn a_quoted_column_is_a_url_and_no_line_with_a_host_is_no_answer() {
    for format in ["", "--format hosts"] {
        let shell = filter_of("ads.example\n", format);
        let log = "1 \"https://ads.example/x\" 200\n2 \"-\" 200\n";
        let found = shell.check("--url --field 2 --delimiter whitespace -c", log);
        assert_eq!((found.code, found.text()), (0, "1\n"));
        for log in ["\"GET / HTTP/1.1\"\n", "a b\n"] {
            shell.check("--url", log).fails("no line of the input has a host");
        }
        let ran = shell.check("--url", "http://ads.example/\na b\n");
        assert_eq!(ran.text(), "http://ads.example/\n");
        assert!(ran.err.contains("1 line without a host"), "{}", ran.err);
    }
}

#[test]
fn reports_count_the_lines_without_a_key() {
    let shell = filter_of("a\n", "");
    let skipped = |words: &str, input: &str| {
        let ran = shell.run_with(words, input.as_bytes());
        assert_eq!(ran.err, "", "{words}");
        ran.json()["skipped"].clone()
    };
    let expected = |counts: &[(&str, u64)]| {
        let names =
            ["empty", "comment", "no_field", "no_host", "local_name", "exception", "applied"];
        let more = ["cosmetic", "partial_host", "too_long", "address_range", "some_requests"];
        let names = names.iter().chain(&more).chain(&["no_block", "disabled", "allowed"]);
        let count =
            |name| counts.iter().find(|(counted, _)| counted == name).map_or(0_u64, |it| it.1);
        names.map(|name| ((*name).to_owned(), count(name))).collect::<serde_json::Value>()
    };
    let list = expected(&[("empty", 1), ("comment", 3), ("no_host", 1), ("local_name", 2)]);
    let hosts = "# a\n#b\n\n # c\n::1 localhost\n0.0.0.0 0.0.0.0\nno host\n::1 x\n";
    assert_eq!(skipped("build --format hosts --json -o new", hosts), list);
    assert_eq!(skipped("build --keys 9 --format hosts --json -o new", hosts), list);
    assert_eq!(skipped("add set --format hosts --json", hosts), list);
    let field = expected(&[("empty", 2), ("no_field", 1)]);
    assert_eq!(skipped("remove set --json --field 2", "a\n\nb\tx\n\n"), field);
    // The same, from nothing that was understood, is no answer.
    for (words, input) in [
        ("build --format hosts -o new", "no host\n"),
        ("add set --field 2", "a\n"),
        ("remove set --format hosts", "# x\na b\n"),
        ("check -v set --format adblock", "http://a.example/\n"),
        ("count set --format hosts", "a b\n"),
        ("dedup --field 3", "a\tb\n"),
    ] {
        let ran = shell.run_with(words, input.as_bytes());
        assert_eq!((ran.code, ran.text(), ran.err.lines().count()), (2, "", 1), "{words}");
        assert!(ran.err.starts_with("koel: no key in standard input: "), "{}", ran.err);
    }
    shell.write("list", "[head]\n! x\n\n@@||a^\n##.x\n||a/b\n||b.example^\n");
    let adblock = [("empty", 1), ("comment", 2), ("applied", 1), ("cosmetic", 1)];
    let adblock = expected(&[&adblock[..], &[("partial_host", 1)]].concat());
    assert_eq!(skipped("build list --format adblock --json -o new", ""), adblock);
    let rules = "||a^\n||b^$script\n||c^$cookie\n||d^$csp=x\n||a^$badfilter\n||e^\n";
    let counts = [("applied", 1), ("some_requests", 1), ("no_block", 2), ("disabled", 1)];
    assert_eq!(skipped("build --format adblock --json -o new", rules), expected(&counts));
    assert_eq!(shell.ok("info --json new").json()["keys"], 1);
    let ranges = "192.0.2.0/24\n2001:db8::/32\n192.0.2.1\n";
    let expected_ranges = expected(&[("address_range", 2)]);
    assert_eq!(skipped("build --format hosts --json -o new", ranges), expected_ranges);
    assert_eq!(shell.run_with("check -q new --field 0", b"192.0.2.0\n").code, 1);
    assert_eq!(skipped("build list --json -o new", ""), expected(&[]));
}
