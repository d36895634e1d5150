//! What a verb may open and replace: pipes, devices, files that are no filters, read-only files.
//!
//! Nothing is lost, nothing waits for ever, and nothing is left behind.

#![cfg(unix)]

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use crate::support::{Shell, bash, keys, lines};

/// A folder with a list, a filter of it, a named pipe and a socket.
fn with_special_files() -> Shell {
    let shell = Shell::with_list_and_set();
    bash(&shell, "mkfifo pipe");
    drop(UnixListener::bind(shell.path("socket")).unwrap());
    shell
}

/// The names in the folder that begin with a dot.
fn hidden(shell: &Shell) -> Vec<String> {
    let names = fs::read_dir(shell.folder()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with('.')).collect()
}

fn mode(shell: &Shell, name: &str) -> u32 {
    fs::metadata(shell.path(name)).unwrap().mode() & 0o777
}

fn set_mode(shell: &Shell, name: &str, mode: u32) {
    fs::set_permissions(shell.path(name), Permissions::from_mode(mode)).unwrap();
}

/// Regression: a path of `>(..)` was taken for a new file in a folder that does not exist.
#[test]
fn a_pipe_a_device_or_an_open_descriptor_is_written_and_not_replaced() {
    let shell = with_special_files();
    let set = shell.read("set");
    for line in [
        "$K build list -o >(cat > got; echo > done)",
        "$K merge set <(cat set) --max -o >(cat > got; echo > done)",
        "cat list | $K build --keys 3000 -o >(cat > got; echo > done)",
        "{ $K build list -o /dev/fd/5; echo > done; } 5> got",
        "{ $K build list -o /proc/self/fd/5; echo > done; } 5> got",
        "cat pipe > got & $K build list -o pipe; wait; echo > done",
        "ln -sf /dev/fd/5 link; { $K build list -o link; echo > done; } 5> got",
    ] {
        let ran = bash(&shell, &format!("{line}; until [ -e done ]; do sleep 0.01; done; rm done"));
        assert_eq!((ran.code, &*ran.err), (0, ""), "{line}");
        assert!(shell.read("got") == set, "{line}");
    }
    bash(&shell, "echo before > got; $K build list -o /dev/fd/5 5>> got");
    assert!(shell.read("got") == [b"before\n", &set[..]].concat());
    shell.ok("store import list --db db");
    for out in [">(cat > got; echo > done)", "/dev/fd/5 5> got; echo > done"] {
        let line = format!("$K store export list --db db -o {out}");
        bash(&shell, &format!("{line}; until [ -e done ]; do sleep 0.01; done; rm done"));
        assert!(shell.read("got") == shell.read("list"), "{line}");
    }
    for line in ["$K build list -o /dev/null", "$K store export list --db db -o /dev/null"] {
        assert_eq!(bash(&shell, line).code, 0, "{line}");
    }
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

/// Regression: opening a named pipe waited for a writer, and `/dev/zero` was read without end.
#[test]
fn only_a_regular_file_is_opened_as_a_filter() {
    let shell = with_special_files();
    for verb in [
        "info FILE",
        "check FILE list",
        "count FILE list",
        "add FILE list",
        "remove FILE list",
        "grow FILE",
        "merge FILE set -o new",
        "merge set FILE -o new",
        "similar set FILE",
        "diff FILE set",
    ] {
        for (file, kind) in [
            ("pipe", "a named pipe"),
            ("socket", "a socket"),
            ("/dev/zero", "a device"),
            (".", "a folder"),
        ] {
            let words = verb.replace("FILE", file);
            bash(&shell, &format!("timeout 120 $K {words}")).fails(kind);
        }
    }
    assert!(!shell.path("new").exists());
}

#[test]
fn a_stream_is_judged_by_its_header() {
    let shell = with_special_files();
    for line in [
        "$K info -",
        "$K info /dev/stdin",
        "$K check /dev/fd/0 list",
        "$K merge set /dev/stdin -o new",
    ] {
        bash(&shell, &format!("timeout 120 {line} < /dev/zero")).fails("not a Koel filter");
        assert_eq!(bash(&shell, &format!("cat set | {line}")).code, 0, "{line}");
    }
    for (line, fault) in [
        ("(cat set; cat /dev/zero) | $K info -", "bytes are expected; copy the file again"),
        ("(cat set; echo) | $K info -", "5176 are expected; copy the file again"),
        ("head -c 2000 set | $K info -", "cut short: 2000 bytes"),
        ("head -c 100 set | $K info -", "cut short: 100 bytes"),
        ("$K info - < /dev/null", "not a Koel filter"),
    ] {
        bash(&shell, &format!("timeout 120 bash -c '{line}'"))
            .fails(fault.trim_start_matches("bytes "));
    }
    assert!(bash(&shell, "$K check <(cat set) list").out == shell.read("list"));
}

/// Regression: any file was overwritten.
#[test]
fn a_file_that_is_no_filter_is_replaced_only_with_force() {
    let shell = with_special_files();
    for verb in ["build list", "merge set set"] {
        for text in ["another list\n", "k", "koel\r\n\x1a"] {
            shell.write("text", text);
            shell.run(&format!("{verb} -o text")).fails("is not a filter").says("--force");
            assert!(shell.read("text") == text.as_bytes());
        }
        shell.ok(&format!("{verb} -o text --force"));
        shell.ok(&format!("{verb} -o text"));
        // As `mktemp` makes.
        shell.write("empty", "");
        shell.ok(&format!("{verb} -o empty"));
        let mut damaged = shell.read("set");
        damaged[1000] ^= 1;
        shell.write("damaged", damaged);
        shell.ok(&format!("{verb} -o damaged"));
        symlink("list", shell.path("link")).unwrap();
        assert_eq!(shell.run(&format!("{verb} -o link")).code, 2, "{verb}");
        fs::remove_file(shell.path("link")).unwrap();
    }
}

/// Regression: the folder decides whether a file can be replaced, so its own mode did not count.
#[test]
fn a_read_only_file_is_replaced_only_with_force() {
    let shell = with_special_files();
    set_mode(&shell, "set", 0o444);
    symlink("set", shell.path("link")).unwrap();
    let before = shell.read("set");
    for words in [
        "add set list",
        "add link list",
        "remove set list",
        "grow set",
        "build list -o set",
        "build list -o link",
        "merge set set -o set",
    ] {
        shell.run(words).fails("read-only").says("chmod");
        assert!(shell.read("set") == before, "{words}");
    }
    for words in ["build list -o link --force", "merge set set -o set --force"] {
        shell.ok(words);
        assert_eq!(mode(&shell, "set"), 0o444, "{words}");
        assert!(shell.path("link").is_symlink());
    }
}

#[test]
fn the_other_names_of_a_replaced_file_are_reported() {
    let shell = with_special_files();
    let before = shell.read("set");
    for words in ["add set list", "grow set", "build list -o set", "merge set set -o set"] {
        shell.write("other", &before);
        fs::remove_file(shell.path("set")).unwrap();
        fs::hard_link(shell.path("other"), shell.path("set")).unwrap();
        let ran = shell.ok(words);
        assert!(ran.err.contains("set has 2 names"), "{words}: {}", ran.err);
        assert!(shell.read("other") == before, "{words}");
        assert_eq!(shell.ok(words).err, "", "{words}");
    }
}

/// The number of a process that has ended.
fn ended() -> u32 {
    let mut process = std::process::Command::new("true").spawn().unwrap();
    process.wait().unwrap();
    process.id()
}

#[test]
fn a_link_stays_and_the_file_behind_it_is_replaced() {
    let shell = with_special_files();
    fs::create_dir(shell.path("deep")).unwrap();
    fs::rename(shell.path("set"), shell.path("deep/set")).unwrap();
    symlink("deep/set", shell.path("middle")).unwrap();
    symlink("middle", shell.path("link")).unwrap();
    let left = format!("deep/.koel-{}-abc", ended());
    shell.write(&left, "left");
    for words in ["add link list", "build list -o link", "merge link link -o link", "grow link"] {
        let before = fs::metadata(shell.path("deep/set")).unwrap().ino();
        shell.ok(words);
        assert!(shell.path("link").is_symlink() && shell.path("middle").is_symlink(), "{words}");
        assert_ne!(fs::metadata(shell.path("deep/set")).unwrap().ino(), before, "{words}");
    }
    assert!(!shell.path(&left).exists());
}

/// Regression: the signal for a limit of the file size ended the process.
#[test]
fn a_limit_of_the_file_size_is_an_error_that_leaves_nothing() {
    let shell = Shell::with("list", lines(&keys("key", 300_000)));
    shell.ok("build list -o set");
    let before = shell.read("set");
    shell.ok("store import list --db db");
    for line in [
        "$K build list -o new",
        "$K build list -o set",
        "$K add set list",
        "$K grow set --keys 10M",
        "$K merge set set -o new",
        "$K build list -o - > stream",
        "$K check set list > stream",
        "$K dedup list > stream",
        "$K store export list --db db -o new",
    ] {
        let ran = bash(&shell, &format!("ulimit -f 100; {line}"));
        ran.fails("");
        assert!(ran.err.contains("ulimit -f") || ran.err.contains("too large"), "{}", ran.err);
        assert!(!shell.path("new").exists() && shell.read("set") == before, "{line}");
        assert_eq!(hidden(&shell), [""; 0], "{line}");
    }
}

#[test]
fn a_killed_process_leaves_nothing_that_the_next_one_does_not_remove() {
    let shell = Shell::with("list", lines(&keys("key", 30_000)));
    shell.ok("build list --keys 5M -o set");
    let before = shell.read("set");
    for millis in (0..12).map(|step| step * 15) {
        let mut child = shell.command();
        let mut child = child.args(["grow", "set", "--json"]).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(millis));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(shell.read("set").len() >= before.len());
    }
    shell.write(&format!(".koel-{}-0123456789ab", ended()), "left");
    let held = format!(".koel-{}-held", ended());
    let holder = File::create(shell.path(&held)).unwrap();
    holder.lock().unwrap();
    shell.ok("build list -o set");
    assert_eq!(hidden(&shell), [held]);
    drop(holder);
    shell.ok("build list -o new");
    assert_eq!(hidden(&shell), [""; 0]);
}

/// Regression: a damaged bucket gave wrong answers without a word.
#[test]
fn a_damaged_filter_gives_no_answers() {
    let shell = with_special_files();
    let mut damaged = shell.read("set");
    damaged[3000] ^= 0x10;
    shell.write("damaged", damaged);
    for words in [
        "check -c damaged list",
        "check -q damaged list",
        "check --url damaged list",
        "count damaged list",
        "add damaged list",
        "remove damaged list",
        "grow damaged",
        "merge set damaged -o new",
        "merge damaged set -o new",
        "similar set damaged",
        "diff damaged set",
        "info --json damaged",
    ] {
        shell.run(words).fails_late(
            "damaged: the checksum of the body does not match; restore the file from a copy",
        );
    }
}

/// Regression: a filter larger than the memory made the process panic.
#[test]
#[cfg(target_os = "linux")]
fn a_filter_larger_than_the_memory_is_an_error_of_one_line() {
    let shell = Shell::with("list", lines(&keys("key", 10)));
    shell.ok("build list --keys 12M -o big");
    shell.ok("build list --keys 12M --grow -o growing");
    let mut refused = 0;
    for kilobytes in [24_000, 60_000] {
        for words in [
            "add big list",
            "remove big list",
            "grow big",
            "grow growing --keys 10G",
            "grow growing --shrink",
            "merge big big -o new",
            "merge growing big -o new",
            "check big list",
            "count big list",
            "info big",
            "info - < big",
            "cat big | $K info -",
            "diff big big",
            "similar big growing",
            "build list --keys 1G -o new",
            "build list --keys 20M -o new",
            "dedup list --keys 1G",
        ] {
            let line = format!("ulimit -v {kilobytes}; $K {words}").replace("$K cat", "cat");
            let ran = bash(&shell, &line);
            assert!(matches!(ran.code, 0 | 2), "{line}: {} {}", ran.code, ran.err);
            if ran.code == 2 {
                assert_eq!(ran.err.lines().count(), 1, "{line}: {}", ran.err);
                assert!(ran.err.contains("memory") || ran.err.contains("room"), "{}", ran.err);
                refused += 1;
            }
        }
    }
    assert!(refused > 15, "{refused} verbs had too little memory");
    assert_eq!(shell.ok("info --json big").json()["keys"], 10);
}
