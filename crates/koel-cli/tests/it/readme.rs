//! The READMEs of the command and of the repository, and the pages about lists and about types:
//! every command in them runs.

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

/// The blocks of the page about lists, in order: two nights, two nights with allowed names, and
/// what somebody does who has the files of the first night.
#[test]
fn the_nights_of_the_page_about_lists_follow_one_another() {
    const PAGE: &str = include_str!("../../../../docs/LISTS.md");
    let blocks: Vec<_> =
        PAGE.split("```sh\n").skip(1).map(|it| it.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 6);
    let shell = Shell::new();
    let run = |block: &str| {
        let output = bash(shell.folder(), block);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{block}: {error}");
    };
    let reported = |filter: &str, names: &str| {
        shell.run(&format!("check --url -c {filter} {names}")).text().trim().parse::<u64>().unwrap()
    };
    let names = |name: &str, range: std::ops::Range<u32>| -> String {
        range.map(|number| format!("{name}{number}.example\n")).collect()
    };
    shell.write("allowed.txt", names("allowed", 0..30_000));
    shell.write("mine.txt", names("mine", 0..30_000));
    let files = || ["list.koel", "list.koel.sha256"].map(|name| shell.read(name));
    for (allowed, nights) in [(false, &blocks[..2]), (true, &blocks[2..4])] {
        shell.write("list.txt", names("bad", 0..2000));
        // Room as on the page would leave a short list without false positives.
        run(&nights[0].replace("1.2M", "2500"));
        let first = files();
        assert_eq!(reported("list.koel", "allowed.txt") == 0, allowed);
        shell.write("list.txt", names("bad", 50..2100));
        run(nights[1]);
        assert_eq!(reported("list.koel", "list.txt"), 2050);
        assert_eq!(reported("list.koel", "allowed.txt") == 0, allowed);
        let published = files();
        assert!(published[0] != first[0] && published[1] != first[1]);
        if !allowed {
            // Who has the list of the first night, and gets the patch and the checksum.
            shell.write("list.koel", &first[0]);
            run(blocks[4]);
            assert!(files() == published && reported("list.koel", "mine.txt") > 0);
            run(blocks[5]);
            assert_eq!(reported("mine.koel", "mine.txt"), 0);
            assert_eq!(reported("mine.koel", "list.txt"), 2050);
            assert!(files() == published);
        }
    }
}

/// The blocks of the page about types: three plans, and what to do with a full filter.
#[test]
fn the_commands_of_the_page_about_types_work_when_pasted_in_order() {
    const PAGE: &str = include_str!("../../../../docs/CHOOSING.md");
    let blocks: Vec<_> =
        PAGE.split("```sh\n").skip(1).map(|it| it.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 2);
    let shell = Shell::with("list.txt", lines(&keys("listed", 1000)));
    let more = lines(&keys("more", 3000));
    shell.write("more.txt", &more);
    for line in blocks.iter().flat_map(|block| block.lines()) {
        let output = bash(shell.folder(), line);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {error}");
        if line.contains("exit code 3") {
            assert!(error.contains("full"), "{error}");
        }
    }
    assert_eq!(shell.ok("check seen.koel more.txt").text().as_bytes(), more);
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
