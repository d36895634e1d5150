//! Wrong use gives an exit code, and an error of one line that says what to do.

use crate::support::{Ran, Shell};

/// A folder with one of each wrong kind of file.
fn broken_things() -> Shell {
    let shell = Shell::with_list_and_set();
    let set = shell.read("set");
    shell.write("cut", &set[..set.len() - 7]);
    shell.write("tiny", &set[..10]);
    shell.write("empty", "");
    let mut newer = set;
    // The format version follows the eight magic bytes.
    newer[8] = 99;
    shell.write("newer", &newer);
    std::fs::create_dir(shell.path("folder")).unwrap();
    shell
}

#[test]
fn every_wrong_use_gives_its_exit_code_and_one_line_with_the_remedy() {
    let shell = broken_things();
    for (words, code, remedy) in [
        ("check list list", 2, "koel build"),
        ("check empty list", 2, "koel build"),
        ("check tiny list", 2, "copy the file again"),
        ("check cut list", 2, "copy the file again"),
        ("check newer list", 2, "use a newer koel"),
        ("info list", 2, "koel build"),
        ("add newer list", 2, "use a newer koel"),
        ("check set absent", 2, "check the name"),
        ("check absent list", 2, "check the name"),
        ("similar set absent", 2, "check the name"),
        ("diff set absent", 2, "check the name"),
        ("check set folder", 2, "name the files in it"),
        ("check folder list", 2, "name the files in it"),
        ("add folder list", 2, "name the files in it"),
        ("build list -o absent/set", 2, "create the folder first"),
        ("build list -o folder", 2, "name a file in it"),
        ("build list -o list", 2, "write the filter to another file"),
        ("build list -o new --fpr 2", 2, "above 0 and below 1, such as 0.001"),
        ("build list -o new --fpr 0", 2, "above 0 and below 1, such as 0.001"),
        ("build list -o new --fpr often", 2, "above 0 and below 1, such as 0.001"),
        ("build list -o new --fpr 1e-30", 2, "ask for"),
        ("build list -o new --keys 0", 2, "such as 121570 or 10M"),
        ("build list -o new --keys 100", 3, "--keys"),
        ("build list -o new --fpr -1", 2, "above 0 and below 1, such as 0.001"),
        ("build list -o new --keys -5", 2, "at least 1 is needed"),
        ("build list -o new --keys 10m", 2, "k, M, G or T"),
        ("build list -o new --keys 1e15", 2, "at most"),
        ("build list -o new --keys 1e19", 2, "at most 9e18"),
        ("dedup list --fpr -1", 2, "above 0 and below 1, such as 0.001"),
        ("grow set --keys -1", 2, "at least 1 is needed"),
        ("plan --keys 10M --memory -1", 2, "at least 1 is needed"),
        ("plan --keys 10M --memory 1X", 2, "K, M, G, T or P"),
        ("build list", 2, "--out <OUT>"),
        ("build - list - -o new", 2, "name `-` once"),
        ("dedup - -", 2, "name `-` once"),
        ("build list -o new --fps 0.1", 2, "--fpr"),
        ("merge set -o new", 2, "koel merge --help"),
        ("plan --keys 10M --fpr 0.1 --memory 1M", 2, "or two of --keys"),
        ("plan --keys 10M --memory many", 2, "such as 64M or 1.5GiB"),
        ("plan --keys 10M --memory many", 2, "koel plan --help"),
        ("chek set list", 2, "check"),
        ("chek set list", 2, "koel --help"),
        ("build list -o new --grow --fpr 1e-9", 2, "ask for"),
        ("grow absent", 2, "check the name"),
        ("grow list", 2, "koel build"),
        ("grow set --keys 10k --shrink", 2, "koel grow --help"),
        ("grow set --keys 1000G", 2, "cannot reserve room for 1,000,000,000,000 keys"),
        ("grow set --keys 1000G", 2, "set is unchanged"),
        ("completions tcsh", 2, "bash"),
        ("dedup --keys 100 list", 3, "--keys"),
    ] {
        let ran = shell.run(words);
        assert_eq!((ran.code, ran.err.lines().count()), (code, 1), "koel {words}: {}", ran.err);
        assert!(ran.err.starts_with("koel: "), "koel {words}: {}", ran.err);
        assert!(ran.err.contains(remedy), "koel {words}: {}", ran.err);
    }
    assert!(!shell.path("new").exists());
}

/// Messages of the parser of arguments, in which nothing is said of another verb or of digits.
#[test]
fn a_word_that_is_not_understood_is_answered_with_the_one_that_may_be_meant() {
    let shell = broken_things();
    for (words, expected) in [
        (
            "help biuld",
            "unrecognized subcommand 'biuld'; a similar subcommand exists: 'build'; see",
        ),
        ("--quiet build", "unexpected argument '--quiet' found; see `koel --help`"),
        ("dedup --window 1h --steps x", "give a whole number from 1 to 200; see"),
        ("dedup --window 1h --time-field ts", "counted from 1, or --time-key NAME"),
        ("build list -o new --seed x", "give a whole number below 2^64; see"),
    ] {
        shell.run(words).fails(expected);
    }
}

#[test]
fn the_error_for_a_pipe_that_cannot_be_copied_names_both_remedies() {
    // The rules of an ad-block list can switch off earlier ones.
    let shell = Shell::new();
    let mut command = shell.command();
    command.args(["dedup", "--format", "adblock"]).env("TMPDIR", shell.path("absent"));
    let ran = Ran::of(command.stdin(std::process::Stdio::piped()).output().unwrap());
    ran.fails("TMPDIR").says("name a file");
}

#[cfg(unix)]
#[test]
fn an_argument_that_is_not_utf_8_gives_an_error_of_one_line() {
    use std::os::unix::ffi::OsStrExt;

    let shell = Shell::new();
    let word = std::ffi::OsStr::from_bytes(b"\xff");
    for before in [&[][..], &["store"], &["plan", "--keys"]] {
        Ran::of(shell.command().args(before).arg(word).output().unwrap()).fails("koel: ");
    }
}

/// Regression: a newline in a name split the error, and an escape reached the terminal.
#[test]
fn control_characters_in_a_name_are_escaped_in_the_error() {
    let shell = broken_things();
    let name = "two\nlines\u{1b}[2J";
    for words in
        [&["check", name][..], &["store", "ls", "--db", name], &["merge", "set", name, "-o", "new"]]
    {
        Ran::of(shell.command().args(words).output().unwrap()).fails(r"two\nlines\u{1b}[2J");
    }
}

#[test]
fn without_a_verb_the_help_is_printed_and_the_exit_code_is_2() {
    let ran = Shell::new().run("");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("Examples:"));
}

#[test]
fn a_list_before_its_filter_is_answered_with_their_order() {
    let shell = Shell::with_filter("set", &crate::support::keys("a", 9), "");
    shell.write("list.txt", "a\n");
    for verb in ["check", "count", "add", "remove", "refute"] {
        let ran = shell.run(&format!("{verb} list.txt set"));
        ran.fails("list.txt is not a Koel filter, but set is: name it first");
        shell.run(&format!("{verb} list.txt list.txt")).fails("build one with `koel build`");
    }
}

#[test]
fn a_filter_without_memory_is_refused_with_its_size() {
    let shell = Shell::with("list", "a\n");
    shell
        .run("build list --keys 1T -o set")
        .fails("would take 1.4 TiB, for which the system has no");
}

#[test]
fn quiet_verbs_print_no_report() {
    let shell = Shell::with("list", "a\n");
    for words in ["build list --quiet --keys 9 -o set", "merge set set --quiet -o sum"] {
        let ran = shell.ok(words);
        assert_eq!((ran.text(), &*ran.err), ("", ""), "{words}");
    }
    shell.run("build list --quiet --json -o set").fails("cannot be used with");
    assert_eq!(shell.ok("check sum list").text(), "a\n");
}
