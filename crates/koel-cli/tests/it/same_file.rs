//! Outputs that are also an input, that are standard output, or that another process is editing.
//!
//! In each case no data is lost.

#![cfg(unix)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Stdio;
use std::time::Duration;

use crate::support::{Ran, Shell, bash, keys};

#[test]
fn every_name_of_standard_output_is_recognised() {
    let shell = Shell::with_list_and_set();
    let set = shell.read("set");
    for name in ["-", "/dev/stdout", "/dev/fd/1"] {
        let piped = bash(&shell, &format!("$K build list -o {name} | cat > piped"));
        assert!(piped.err.contains("3,000"), "{name}: {}", piped.err);
        assert!(shell.read("piped") == set, "{name}");
        bash(&shell, &format!("echo before > appended; $K build list -o {name} >> appended"));
        assert!(shell.read("appended") == [b"before\n", &set[..]].concat(), "{name}");
        shell.ok("store import list --db db");
        bash(&shell, &format!("(echo A; $K store export list --db db -o {name}; echo B) > ab"));
        assert!(shell.read("ab") == [b"A\n", &shell.read("list")[..], b"B\n"].concat(), "{name}");
    }
}

#[test]
fn a_filter_never_replaces_its_input() {
    let shell = Shell::with_list_and_set();
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
        bash(&shell, line).fails("is also an input");
        assert!(shell.read("list") == list, "{line}");
    }
}

#[test]
fn an_input_that_is_also_the_output_is_refused() {
    let shell = Shell::with_list_and_set();
    let list = shell.read("list");
    for line in [
        "$K check set list >> list",
        "$K check -v set - < list >> list",
        "$K count set list >> list",
        "$K dedup list >> list",
    ] {
        bash(&shell, line).fails("also the output");
        assert!(shell.read("list") == list, "{line}");
    }
    assert_eq!(bash(&shell, "$K check set list > other").code, 0);
    assert!(shell.read("other") == list);
}

#[test]
fn a_dangling_symbolic_link_stays_a_link() {
    let shell = Shell::with_list_and_set();
    fs::create_dir(shell.path("deep")).unwrap();
    symlink("deep/next", shell.path("link")).unwrap();
    symlink("last", shell.path("deep/next")).unwrap();
    shell.ok("build list -o link");
    assert!(shell.path("link").is_symlink() && shell.path("deep/next").is_symlink());
    assert!(shell.read("deep/last") == shell.read("set"));
    symlink("loop", shell.path("loop")).unwrap();
    shell.run("build list -o loop").fails("");
    assert!(shell.path("loop").is_symlink());
}

/// Only root may change the owner of a file; for other users the test checks nothing.
#[test]
fn a_changed_file_keeps_its_owner() {
    let shell = Shell::with_list_and_set();
    let path = shell.path("set");
    if std::os::unix::fs::chown(&path, Some(1234), Some(4321)).is_err() {
        return;
    }
    shell.ok_with("add set", b"new\n");
    let owner = fs::metadata(&path).unwrap();
    assert_eq!((owner.uid(), owner.gid()), (1234, 4321));
}

#[test]
fn replacing_a_file_waits_for_edits_of_it() {
    let shell = Shell::with_list_and_set();
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
fn the_error_for_an_unprintable_report_names_the_completed_work() {
    let shell = Shell::with_list_and_set();
    let before = shell.ok("info --json set").json()["keys"].as_u64().unwrap();
    for (line, done) in [
        ("echo new | $K add set > /dev/full", "set was changed"),
        ("echo new | $K remove set > /dev/full", "set was changed"),
        ("echo new | $K remove set > /dev/full", "set is unchanged"),
        ("$K grow set > /dev/full", "set was changed"),
        ("$K build list -o fresh > /dev/full", "fresh was written"),
        ("$K merge set set -o both > /dev/full", "both was written"),
    ] {
        bash(&shell, line).fails(done);
    }
    assert_eq!(shell.ok("info --json set").json()["keys"], before);
    assert!(shell.path("fresh").exists() && shell.path("both").exists());
}

/// Runs koel with these words; the reader of its output has closed the pipe.
fn run_with_closed_pipe(shell: &Shell, words: &str) -> Ran {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = shell.command();
    command.args(words.split(' ')).stdout(writer).stderr(Stdio::piped());
    Ran::of(command.spawn().unwrap().wait_with_output().unwrap())
}

#[test]
fn damage_and_an_incomplete_filter_are_errors_even_if_the_pipe_is_closed() {
    let shell = Shell::with_list_and_set();
    let mut damaged = shell.read("set");
    damaged[2000] ^= 1;
    shell.write("damaged", &damaged);
    for words in ["info damaged", "build list -o -"] {
        run_with_closed_pipe(&shell, words).fails("");
    }
    // Unread lines are not an error.
    for words in ["info set", "check set list", "dedup list", "count set list"] {
        let output = run_with_closed_pipe(&shell, words);
        assert_eq!((output.code, &*output.err), (0, ""), "{words}");
    }
}

#[test]
fn each_line_is_answered_before_the_next_one_arrives() {
    let shell = Shell::with_list_and_set();
    let key = &keys("key", 1)[0];
    for (verb, answer) in [
        ("check set -", key.clone()),
        ("count set -", format!("1\t{key}")),
        ("dedup -", key.clone()),
    ] {
        let mut command = shell.command();
        command.args(verb.split(' ')).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        writeln!(stdin, "{key}").unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            drop(BufReader::new(stdout).read_line(&mut line));
            drop(sender.send(line));
        });
        let line = receiver.recv_timeout(Duration::from_secs(120)).unwrap_or_default();
        assert_eq!(line.trim_end(), answer, "{verb}");
        drop(stdin);
        assert!(child.wait().unwrap().success(), "{verb}");
    }
}
