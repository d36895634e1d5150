//! "None" and "0" are answers only where the input was understood.

use crate::support::{Shell, bash, keys, lines};

/// A filter and a store with something in them.
fn shell() -> Shell {
    let shell = Shell::new();
    shell.build("set", &keys("key", 100), "");
    shell.write("list", lines(&keys("key", 100)));
    shell.ok("store put key value --db log");
    shell.ok("store create sorted --ordered");
    shell
}

/// Regression: it looked like an empty input. A filter of nothing was built, an empty value was
/// stored, and a check answered "none".
#[test]
fn a_closed_standard_input_is_an_error_and_no_empty_input() {
    let shell = shell();
    for words in [
        "build -o new",
        "build -o new -",
        "add set",
        "remove set",
        "check set",
        "check -c set",
        "count set",
        "dedup",
        "info -",
        "store put empty --db log",
        "store load --db log",
        "store load --db sorted",
        "store get - --db log",
        "store del - --db log",
        "store import - --name stream --db log",
    ] {
        let ran = bash(&shell, &format!("$K {words} <&-"));
        assert_eq!((ran.code, ran.err.lines().count()), (2, 1), "{words}: {}", ran.err);
        assert!(ran.err.contains("standard input: it is closed"), "{words}: {}", ran.err);
    }
    assert!(!shell.path("new").exists());
    assert_eq!(shell.run("store get empty --db log").code, 1);
    // Who names files needs no standard input.
    assert_eq!(bash(&shell, "$K check -c set list <&-").text(), "100\n");
}

#[test]
fn keys_that_end_with_nul_are_not_taken_for_one_line() {
    let shell = shell();
    let list: Vec<u8> = lines(&keys("key", 100)).iter().map(|&b| b * u8::from(b != 10)).collect();
    for words in ["check set", "check -v set", "count set", "remove set", "add set", "dedup"] {
        let ran = shell.run_with(words, &list);
        assert_eq!((ran.code, ran.out.len()), (2, 0), "{words}: {}", ran.err);
        assert!(ran.err.contains("use -0 if NUL ends each key"), "{words}: {}", ran.err);
    }
    assert_eq!(shell.run_with("check -0 -c set", &list).text(), "100\n");
}

#[test]
fn lines_that_are_read_as_one_key_are_a_warning() {
    let shell = shell();
    let list = shell.read("list");
    let with_cr: Vec<u8> = list.iter().map(|&b| if b == b'\n' { b'\r' } else { b }).collect();
    for (words, list, sentence) in [
        ("check -0 set", &list, "leave out -0 if keys are lines"),
        ("remove -0 set", &list, "leave out -0 if keys are lines"),
        ("check set", &with_cr, "a CR ends no line"),
        ("remove set", &with_cr, "a CR ends no line"),
    ] {
        let ran = shell.run_with(words, list);
        assert_eq!(ran.code, 1, "{words}: {}", ran.err);
        assert!(ran.err.contains(sentence), "{words}: {}", ran.err);
    }
    // One key of exact bytes, a line that ends with CR LF.
    for (words, list) in
        [("check -0 set", &b"a key"[..]), ("check set", b"a\r\nb\r\n"), ("check set", b"a\r")]
    {
        assert_eq!(shell.run_with(words, list).err, "", "{words}");
    }
}

#[test]
fn a_pattern_that_matches_nothing_is_said_of_an_empty_store_too() {
    let shell = shell();
    let ran = shell.run("store export --include *.jpg -o out --db log");
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("no name matches the patterns"), "{}", ran.err);
    assert_eq!(shell.run("store export -o out --db log").code, 0);
}

/// Regression: the bytes of a file went to /dev/null.
#[test]
fn an_export_to_a_closed_standard_output_is_an_error() {
    let shell = shell();
    shell.ok("store import list --db log");
    let ran = bash(&shell, "$K store export list -o - --db log >&-");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("it is closed"), "{}", ran.err);
}
