//! Outputs that are an input, standard output under another name, or a file that somebody else is changing: nothing is lost.

#![cfg(unix)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::{Output, Stdio};
use std::time::Duration;

use crate::support::{Shell, keys, lines};

/// A folder with a list and a filter of it.
fn listed() -> Shell {
    let shell = Shell::new();
    shell.write("list", lines(&keys("key", 3_000)));
    shell.ok("build list -o set");
    shell
}

/// Runs a line of the shell in which `$K` is koel.
fn bash(shell: &Shell, line: &str) -> Output {
    let mut command = std::process::Command::new("bash");
    command.current_dir(shell.folder()).env("K", env!("CARGO_BIN_EXE_koel"));
    command.args(["-c", line]).output().unwrap()
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

fn error(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn standard_output_is_that_by_any_name() {
    let shell = listed();
    let set = shell.read("set");
    for name in ["-", "/dev/stdout", "/dev/fd/1"] {
        let piped = bash(&shell, &format!("$K build list -o {name} | cat > piped"));
        assert!(error(&piped).contains("3,000"), "{name}: {}", error(&piped));
        assert!(shell.read("piped") == set, "{name}");
        bash(&shell, &format!("echo before > behind; $K build list -o {name} >> behind"));
        assert!(shell.read("behind") == [b"before\n", &set[..]].concat(), "{name}");
        shell.ok("store import list --db db");
        bash(&shell, &format!("(echo A; $K store export list --db db -o {name}; echo B) > ab"));
        assert!(shell.read("ab") == [b"A\n", &shell.read("list")[..], b"B\n"].concat(), "{name}");
    }
}

#[test]
fn no_input_is_replaced_by_a_filter() {
    let shell = listed();
    let list = shell.read("list");
    fs::hard_link(shell.path("list"), shell.path("twin")).unwrap();
    symlink("list", shell.path("link")).unwrap();
    for line in [
        "$K build list -o list",
        "$K build list -o ./link",
        "$K build list -o twin",
        "$K build -o list < list",
        "$K build - -o twin < link",
    ] {
        let refused = bash(&shell, line);
        assert_eq!(code(&refused), Some(2), "{line}");
        assert!(error(&refused).contains("is an input too"), "{line}: {}", error(&refused));
        assert!(shell.read("list") == list, "{line}");
    }
}

#[test]
fn no_verb_reads_what_it_prints() {
    let shell = listed();
    let list = shell.read("list");
    for line in [
        "$K check set list >> list",
        "$K check -v set - < list >> list",
        "$K count set list >> list",
        "$K dedup list >> list",
    ] {
        let refused = bash(&shell, line);
        assert_eq!(code(&refused), Some(2), "{line}");
        assert!(error(&refused).contains("the output too"), "{line}: {}", error(&refused));
        assert!(shell.read("list") == list, "{line}");
    }
    assert_eq!(code(&bash(&shell, "$K check set list > other")), Some(0));
    assert!(shell.read("other") == list);
}

#[test]
fn a_link_to_nothing_stays_a_link() {
    let shell = listed();
    fs::create_dir(shell.path("deep")).unwrap();
    symlink("deep/next", shell.path("link")).unwrap();
    symlink("last", shell.path("deep/next")).unwrap();
    shell.ok("build list -o link");
    assert!(shell.path("link").is_symlink() && shell.path("deep/next").is_symlink());
    assert!(shell.read("deep/last") == shell.read("set"));
    symlink("loop", shell.path("loop")).unwrap();
    assert_eq!(shell.run("build list -o loop").code, 2);
    assert!(shell.path("loop").is_symlink());
}

/// Only a superuser may give files away; for anybody else the test says nothing.
#[test]
fn a_file_that_is_changed_stays_its_owners() {
    let shell = listed();
    let path = shell.path("set");
    if std::os::unix::fs::chown(&path, Some(1234), Some(4321)).is_err() {
        return;
    }
    assert_eq!(shell.run_with("add set", b"new\n").code, 0);
    let owner = fs::metadata(&path).unwrap();
    assert_eq!((owner.uid(), owner.gid()), (1234, 4321));
}

#[test]
fn outputs_wait_for_edits_of_the_file_that_they_replace() {
    let shell = listed();
    shell.ok("build list -o other");
    for words in ["merge set other -o set", "build list -o set"] {
        let edit = File::open(shell.path("set")).unwrap();
        edit.lock().unwrap();
        let before = fs::metadata(shell.path("set")).unwrap().ino();
        let mut waiting =
            shell.command().args(words.split(' ')).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        assert!(waiting.try_wait().unwrap().is_none(), "{words}");
        assert_eq!(fs::metadata(shell.path("set")).unwrap().ino(), before, "{words}");
        drop(edit);
        assert!(waiting.wait().unwrap().success(), "{words}");
        assert_ne!(fs::metadata(shell.path("set")).unwrap().ino(), before, "{words}");
    }
}

#[test]
fn a_report_that_cannot_be_printed_does_not_hide_what_was_done() {
    let shell = listed();
    let before = shell.ok("info --json set").json()["keys"].as_u64().unwrap();
    for (line, done) in [
        ("echo new | $K add set > /dev/full", "set is changed"),
        ("echo new | $K remove set > /dev/full", "set is changed"),
        ("echo new | $K remove set > /dev/full", "set is unchanged"),
        ("$K grow set > /dev/full", "set is changed"),
        ("$K build list -o fresh > /dev/full", "fresh is written"),
        ("$K merge set set -o both > /dev/full", "both is written"),
    ] {
        let told = bash(&shell, line);
        assert_eq!(code(&told), Some(2), "{line}");
        assert!(error(&told).contains(done), "{line}: {}", error(&told));
    }
    assert_eq!(shell.ok("info --json set").json()["keys"], before);
    assert!(shell.path("fresh").exists() && shell.path("both").exists());
}

/// Runs koel with these words where the reader of its output has gone away.
fn unread(shell: &Shell, words: &str) -> Output {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = shell.command();
    command.args(words.split(' ')).stdout(writer).stderr(Stdio::piped());
    command.spawn().unwrap().wait_with_output().unwrap()
}

#[test]
fn damage_and_half_a_filter_are_told_also_when_nobody_reads() {
    let shell = listed();
    let mut damaged = shell.read("set");
    damaged[2000] ^= 1;
    shell.write("damaged", &damaged);
    for words in ["info damaged", "build list -o -"] {
        let told = unread(&shell, words);
        assert_eq!(code(&told), Some(2), "{words}");
        assert!(!error(&told).is_empty(), "{words}");
    }
    // Lines that nobody wants are no failure.
    for words in ["info set", "check set list"] {
        let told = unread(&shell, words);
        assert_eq!((code(&told), error(&told)), (Some(0), ""), "{words}");
    }
}

#[test]
fn an_answer_does_not_wait_for_the_next_question() {
    let shell = listed();
    let key = &keys("key", 1)[0];
    for (verb, answer) in [
        ("check set -", key.clone()),
        ("count set -", format!("1\t{key}")),
        ("dedup -", key.clone()),
    ] {
        let mut command = shell.command();
        command.args(verb.split(' ')).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let (mut ask, told) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        writeln!(ask, "{key}").unwrap();
        let (send, heard) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            drop(BufReader::new(told).read_line(&mut line));
            drop(send.send(line));
        });
        let line = heard.recv_timeout(Duration::from_secs(20)).unwrap_or_default();
        assert_eq!(line.trim_end(), answer, "{verb}");
        drop(ask);
        assert!(child.wait().unwrap().success(), "{verb}");
    }
}
