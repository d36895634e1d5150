//! The READMEs of the command and of the repository: every command in them runs.

#![cfg(unix)]

use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Shell, keys, lines};

const README: &str = include_str!("../../README.md");
const README_OF_THE_REPOSITORY: &str = include_str!("../../../../README.md");

/// The lines of all `sh` blocks.
fn commands() -> Vec<&'static str> {
    let blocks = README.split("```sh\n").skip(1);
    blocks.flat_map(|block| block.split("```").next().unwrap().lines()).collect()
}

/// Runs a line in a folder, with the command in the path.
fn bash(folder: &Path, line: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_koel")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::new("bash");
    command.args(["-e", "-o", "pipefail", "-c", line]).current_dir(folder);
    command.env("PATH", format!("{}:{path}", program.display())).output().unwrap()
}

#[test]
fn the_lines_of_the_first_page_work_when_pasted_in_order() {
    let shell = Shell::new();
    // The others need the repository: the tour and scripts/test.
    let blocks = README_OF_THE_REPOSITORY.split("```sh\n").skip(1);
    let block = blocks.map(|block| block.split("```").next().unwrap());
    let lines: Vec<_> =
        block.filter(|block| block.contains("koel build")).flat_map(str::lines).collect();
    let mut printed = String::new();
    for line in &lines {
        let output = bash(shell.folder(), line);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {error}");
        printed += &String::from_utf8(output.stdout).unwrap();
    }
    assert_eq!(lines.len(), 6);
    for expected in ["\ntracker.example\n", "added    1 (about 1 new key)", "removed  0", "a\nb\n"]
    {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
    assert!(!printed.contains("news.example"), "{printed}");
}

#[test]
fn every_command_of_the_readme_succeeds() {
    let shell = Shell::new();
    let list = lines(&[keys("key", 1_000), vec!["listed.example".into()]].concat());
    for name in ["yesterday.txt", "today.txt", "friday.txt", "seen.txt"] {
        shell.write(name, &list);
    }
    shell.write("friday.txt", "new\n");
    shell.write("today.txt", "new\n");
    for name in ["domains.txt", "mail.log", "expired.txt", "huge.log", "monday.txt", "tuesday.txt"]
    {
        shell.write(name, &list);
    }
    shell.write("allowed.txt", "good.example\n");
    shell.write("urls.txt", "https://mail.listed.example/inbox\n");
    shell.write("hosts.txt", "127.0.0.1 localhost\n0.0.0.0 listed.example\n");
    shell.write("users.csv", "id,name,mail\n1,Ann,ann@listed.example\n");
    shell.write("new.csv", "mail,name\nANN@listed.example,x\n");
    shell.write("list.txt", "x;ANN@listed.example\n");
    shell.write("new.txt", lines(&keys("new", 1_000)));
    shell.write("huge", &list);
    std::fs::create_dir(shell.path("photos")).unwrap();
    shell.write("photos/a.jpg", [7; 100]);
    let bash = |line: &str| bash(shell.folder(), line);
    assert!(bash("gzip huge").status.success());
    assert!(commands().len() > 15);
    for line in commands() {
        let output = bash(line);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {error}");
    }
}
