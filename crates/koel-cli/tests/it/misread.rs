//! "None" and "0" are answers only where the input was understood.

use crate::support::{Shell, bash, keys, lines};

/// A filter and a store with something in them.
fn shell() -> Shell {
    let shell = Shell::with_filter("set", &keys("key", 100), "");
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
        bash(&shell, &format!("$K {words} <&-")).fails("standard input: it is closed");
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
        shell.run_with(words, &list).fails("use -0 if NUL ends each key");
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
    ran.says("no name matches the patterns");
    assert_eq!(shell.run("store export -o out --db log").code, 0);
}

/// Regression: the bytes of a file went to /dev/null.
#[test]
fn an_export_to_a_closed_standard_output_is_an_error() {
    let shell = shell();
    shell.ok("store import list --db log");
    bash(&shell, "$K store export list -o - --db log >&-").fails("it is closed");
}

/// Regression: the patch from a closed standard input was "damaged", and a folder had "names".
#[test]
fn a_closed_standard_input_is_no_damaged_patch_and_a_folder_has_no_hard_links() {
    let shell = shell();
    bash(&shell, "$K patch set - -o new <&-").fails("standard input: it is closed");
    shell.run("dedup --window 1h --state log list").fails("");
}

/// Regression: with `--secret`, `--keys` .. and a state without, the state won, and nothing was
/// said.
#[test]
fn an_option_that_a_state_was_made_without_is_an_error_and_not_ignored() {
    let shell = shell();
    shell.ok("dedup --window 1h --state grows list");
    shell.ok("dedup --window 1h --keys 500 --fpr 1e-4 --steps 6 --state fixed list");
    shell.ok("dedup --window 1h --secret --state keyed list");
    for (state, options, option) in [
        ("grows", "--secret", "--secret"),
        ("grows", "--keys 500", "--keys"),
        ("grows", "--fpr 1e-3", "--fpr"),
        ("grows", "--steps 12", "--steps"),
        ("grows", "--seed 5", "--seed"),
        ("keyed", "--seed 5", "--seed"),
        ("fixed", "--keys 1000", "--keys"),
        ("fixed", "--keys 500 --when-full fail", "--when-full"),
    ] {
        shell
            .run(&format!("dedup --window 1h --state {state} {options} list"))
            .fails(&format!("{state} was made with another {option}; give the options"));
    }
    // The same options again, or none of them.
    for (state, options) in [
        ("grows", ""),
        ("grows", "--steps 24 --fpr 1e-6"),
        ("fixed", ""),
        ("fixed", "--keys 500 --fpr 1e-4 --steps 6"),
        ("keyed", "--secret"),
    ] {
        let ran = shell.ok(&format!("dedup --window 1h --state {state} {options} list"));
        assert_eq!(ran.text(), "", "{state} {options}");
    }
}

/// A log that was cut while it was written begins with NUL bytes.
#[test]
fn lines_with_nul_bytes_are_read_if_asked_for() {
    let shell = shell();
    let log = b"\0\0\0first\nkey\0\nsecond\nkey\0\n".to_vec();
    for words in ["dedup", "check set", "build -o new"] {
        shell.run_with(words, &log).fails("or --text if lines may have them");
    }
    let ran = shell.run_with("dedup --text", &log);
    assert_eq!((ran.code, &ran.out[..]), (0, &b"\0\0\0first\nkey\0\nsecond\n"[..]), "{}", ran.err);
    // They are not taken for UTF-16, and -0 means something else.
    let ran = shell.run_with("dedup --text", b"a\0b\0\na\0b\0\n");
    assert_eq!((ran.code, &ran.out[..]), (0, &b"a\0b\0\n"[..]), "{}", ran.err);
    assert_eq!(shell.run("dedup --text -0 list").code, 2);
    // The records of a store have no such option.
    let ran = shell.run_with("store load --db log", b"k\0\tv\n");
    assert!(ran.code == 2 && !ran.err.contains("--text"), "{}", ran.err);
}

#[test]
fn what_is_no_filter_of_keys_is_refused_by_every_verb_that_asks_one() {
    let shell = shell();
    let mut maplet = koel::Maplet::builder(100, 0.01, 8).build().unwrap();
    maplet.insert("key", 7).unwrap();
    let mut counting = koel::CountingFilter::builder(100, 0.01).build().unwrap();
    counting.insert("key").unwrap();
    shell.write("maplet", maplet.to_bytes());
    shell.write("counting", counting.to_bytes());
    shell.ok("dedup --window 1h --state expiring list");
    shell.write("patch", "koelptch");
    for other in ["maplet", "counting", "expiring", "patch", "log", "sorted", "log/MANIFEST"] {
        let before = shell.path(other).is_file().then(|| shell.read(other));
        for words in [
            "check X list",
            "check -v X list",
            "check -q X list",
            "check -c --url X list",
            "count X list",
            "add X list",
            "remove X list",
            "refute X list",
            "info X",
            "info --json X",
            "grow X",
            "grow X --keys 5000",
            "similar set X",
            "similar X set",
            "diff set X",
            "diff X set",
            "merge set X -o new",
            "merge X set -o new",
            "patch X patch -o new",
            "patch set X -o new",
            "diff set set --patch set",
            "build list --like X -o new",
            "push X redis://127.0.0.1:1/x",
        ] {
            shell.run(&words.replace('X', other)).fails("");
        }
        if !["patch", "log", "sorted", "log/MANIFEST"].contains(&other) {
            for words in ["build X -o new", "build list --never X -o new", "dedup X"] {
                shell.run(&words.replace('X', other)).fails("this is a filter");
            }
        }
        assert_eq!(shell.path(other).is_file().then(|| shell.read(other)), before, "{other}");
    }
    for state in ["set", "maplet", "counting", "list", "log", "log/MANIFEST"] {
        shell.run(&format!("dedup --window 1h --state {state} list")).fails("");
    }
    assert!(!shell.path("new").exists());
}
