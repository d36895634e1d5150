//! `koel build` from a pipe, which can be read only once.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use crate::support::{Ran, Shell, copies, keys, lines};

/// One key more than `koel` keeps the hashes of in memory (`spool.rs`).
const TOO_MANY: usize = (2 << 20) + 1;

fn many_lines() -> Vec<u8> {
    (0..TOO_MANY).flat_map(|number| format!("{number}\n").into_bytes()).collect()
}

/// Starts koel with `folder` for temporary files, and gives it these lines.
fn start(shell: &Shell, words: &str, folder: &str, lines: &[u8]) -> Child {
    let mut command: Command = shell.command();
    command.args(words.split(' ')).env("TMPDIR", shell.path(folder));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The program may end before it has read everything.
    drop(child.stdin.as_mut().unwrap().write_all(lines));
    child
}

#[test]
fn a_pipe_gives_the_bytes_of_a_file_whether_its_lines_repeat_or_not() {
    let shell = Shell::new();
    let distinct = keys("key", 30_000);
    for (name, list) in [
        ("nothing", vec![]),
        ("one", keys("key", 1)),
        ("distinct", distinct.clone()),
        ("a few twice", [&distinct[..], &distinct[..500]].concat()),
        ("all twice", copies(&distinct, 2)),
        ("all nine times", copies(&distinct, 9)),
        ("one often", copies(&keys("key", 1), 50_000)),
    ] {
        shell.write("list", lines(&list));
        for options in ["", "--grow", "--unique", "--fpr 1e-9", "--prefer fast --seed 7", "--json"]
        {
            let by_file = shell.ok(&format!("build list -o by-file {options}"));
            let by_pipe = shell.run_with(&format!("build -o by-pipe {options}"), &lines(&list));
            assert!(by_pipe.out == by_file.out, "{name} {options}: {}", by_pipe.err);
            assert!(shell.read("by-pipe") == shell.read("by-file"), "{name} {options}");
            assert_eq!(shell.run("check -vq by-pipe list").code, 1, "{name} {options}");
        }
    }
}

#[test]
fn a_pipe_and_a_file_together_are_read_in_their_order() {
    let shell = Shell::with("first", lines(&keys("first", 5_000)));
    shell.write("second", lines(&keys("second", 5_000)));
    shell.ok("build first second -o by-files");
    shell.ok_with("build - second -o by-pipe", &shell.read("first"));
    assert!(shell.read("by-pipe") == shell.read("by-files"));
}

#[test]
fn the_filter_of_a_pipe_is_fixed_and_has_room_for_exactly_its_keys() {
    let shell = Shell::new();
    let built = shell.run_with("build --json -o set", &lines(&keys("key", 20_000))).json();
    assert_eq!((&built["capacity"], &built["growable"]), (&20_000.into(), &false.into()));
}

#[test]
fn repeated_lines_do_not_enlarge_a_filter() {
    let shell = Shell::new();
    let distinct = keys("key", 20_000);
    shell.write("list", lines(&copies(&distinct, 10)));
    for (options, capacity) in [("", 40_000), ("--unique", 20_000)] {
        let built = shell.ok(&format!("build list -o set --json {options}")).json();
        let found = built["capacity"].as_u64().unwrap();
        assert!((capacity..capacity * 11 / 10).contains(&found), "{options}: {found}");
    }
    shell.ok("build list -o set --fpr 1e-9");
    assert!(shell.ok("count set list").text().lines().all(|line| line.starts_with("10\t")));
}

/// The hashes of these keys have equal low bits, for which they count as one key.
#[test]
fn keys_chosen_against_the_estimate_of_distinct_keys_have_room() {
    let shell = Shell::new();
    let hasher = koel::KeyHasher::default();
    let is_chosen = |key: &String| hasher.hash(key.as_str()).get() % (1 << 14) == 7;
    let chosen: Vec<String> =
        (0_u64..).map(|number| number.to_string()).filter(is_chosen).take(2_000).collect();
    shell.write("list", lines(&chosen));
    shell.ok("build list -o by-file");
    assert_eq!(shell.run("check -vq by-file list").code, 1);
    shell.ok_with("build -o by-pipe", &lines(&chosen));
    assert!(shell.read("by-pipe") == shell.read("by-file"));
    assert_eq!(shell.ok("info --json by-file").json()["capacity"], 2_000);
}

#[test]
fn a_long_pipe_gives_the_bytes_of_a_file() {
    let shell = Shell::new();
    let many = many_lines();
    shell.write("list", &many);
    shell.ok("build list -o by-file");
    let ran = start(&shell, "build -o set", ".", &many).wait_with_output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(shell.read("set") == shell.read("by-file"));
}

#[test]
fn a_long_pipe_without_temporary_space_is_refused_with_the_remedies() {
    let shell = Shell::with("set", "");
    let ran = start(&shell, "build -o set", "absent", &many_lines()).wait_with_output().unwrap();
    let ran = Ran::of(ran);
    ran.fails("TMPDIR").says("--keys").says("--grow");
    assert!(shell.read("set").is_empty());
}

#[cfg(unix)]
#[test]
fn a_build_that_is_killed_while_it_reads_a_pipe_leaves_nothing() {
    let shell = Shell::new();
    std::fs::create_dir(shell.path("temporary")).unwrap();
    for words in ["build -o set", "build -o set --memory 32M"] {
        let mut child = start(&shell, words, "temporary", &many_lines());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(std::fs::read_dir(shell.path("temporary")).unwrap().count(), 0, "{words}");
        assert_eq!(std::fs::read_dir(shell.folder()).unwrap().count(), 1, "{words}");
    }
}
