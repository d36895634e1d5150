//! `koel build --never` and `koel refute`: mistakes that a filter knows of.

use std::collections::BTreeSet;

use crate::support::{Ran, Shell, copies, gzip, keys, lines};

/// The lines of a text that are in a set.
fn of<'a>(text: &'a str, set: &BTreeSet<&str>) -> Vec<&'a str> {
    text.lines().filter(|line| set.contains(line)).collect()
}

fn corrections(shell: &Shell, filter: &str) -> u64 {
    shell.ok(&format!("info --json {filter}")).json()["corrections"].as_u64().unwrap()
}

/// A list, allowed lines of which some are in it, and both as files.
struct Lists {
    shell: Shell,
    list: String,
    allowed: String,
}

impl Lists {
    fn new() -> Self {
        let listed = keys("listed", 5_000);
        let list = [copies(&listed[..100], 4), listed.clone()].concat();
        let allowed =
            [keys("allowed", 20_000), listed[..300].to_vec(), keys("allowed", 50)].concat();
        let [list, allowed] = [list, allowed].map(|it| String::from_utf8(lines(&it)).unwrap());
        let shell = Shell::with("list", &list);
        shell.write("allowed", &allowed);
        shell.write("list.gz", gzip(list.as_bytes()));
        shell.write("allowed.gz", gzip(allowed.as_bytes()));
        Self { shell, list, allowed }
    }

    /// Checks the filter `set`, which was built with `--never`.
    fn check(&self, words: &str, ran: &Ran) {
        let Self { shell, list, allowed } = self;
        assert_eq!((ran.code, &*ran.err), (0, ""), "{words}");
        let listed: BTreeSet<&str> = list.lines().collect();
        assert_eq!(shell.ok("check set list").text(), list, "{words}");
        let reported = shell.ok("check set allowed");
        let reported: Vec<&str> = reported.text().lines().collect();
        assert_eq!(reported, of(allowed, &listed), "{words}");

        let never = &ran.json()["never"];
        let conflicts: BTreeSet<&str> = of(allowed, &listed).into_iter().collect();
        assert_eq!(never["conflicts"], conflicts.len(), "{words}");
        assert_eq!(never["lines"], allowed.lines().count(), "{words}");
        assert_eq!(never["corrections"], corrections(shell, "set"), "{words}");
        let first = never["first_conflicts"].as_array().unwrap();
        assert!(
            first.len() == 3 && first.iter().all(|it| conflicts.contains(it.as_str().unwrap()))
        );
    }
}

#[test]
fn no_allowed_line_is_reported_unless_it_is_listed_wherever_the_list_comes_from() {
    let lists = Lists::new();
    let never = "--never allowed -o set --json --fpr 0.02";
    for words in [
        format!("build list {never}"),
        format!("build list.gz {never} --keys 6k"),
        format!("build list {never} --grow"),
        format!("build list {never} --grow --keys 100"),
        format!("build list {never} --unique --prefer fast --seed 9"),
        "build list --never allowed.gz -o set --json --fpr 0.02 --secret".to_owned(),
    ] {
        // The oracle: what the same filter reports without the option.
        lists.shell.ok(&words.replace("--never allowed.gz", "").replace("--never allowed", ""));
        let before = lists.shell.ok("check set allowed");
        let listed: BTreeSet<&str> = lists.list.lines().collect();
        let wrong: BTreeSet<&str> =
            before.text().lines().filter(|line| !listed.contains(line)).collect();
        assert!(!wrong.is_empty(), "{words}");
        lists.check(&words, &lists.shell.ok(&words));
        if !words.contains("--secret") {
            assert_eq!(corrections(&lists.shell, "set"), wrong.len() as u64, "{words}");
        }
    }
    lists.shell.ok(&format!("build list {never}"));
    let by_file = lists.shell.read("set");
    for (options, list) in [
        ("", lists.shell.read("list")),
        ("", lists.shell.read("list.gz")),
        ("--grow", lists.shell.read("list")),
        ("--keys 6k", lists.shell.read("list.gz")),
    ] {
        let words = format!("build {options} - {never}");
        lists.check(&words, &lists.shell.run_with(&words, &list));
        assert!(!options.is_empty() || lists.shell.read("set") == by_file);
    }
    let words = "build list --never - -o set --json --fpr 0.02";
    lists.check(words, &lists.shell.run_with(words, &lists.shell.read("allowed.gz")));
    assert!(lists.shell.read("set") == by_file);
}

/// `check --url` asks for parent domains, so an allowed host needs corrections for these too.
#[test]
fn no_allowed_host_is_reported_because_of_a_parent_that_is_not_listed() {
    let shell = Shell::new();
    let hosts = |name: &str, count: u32| -> Vec<String> {
        (0..count).map(|number| format!("{name}{number}.of{}.example", number % 700)).collect()
    };
    let listed =
        [hosts("bad", 3000), (0..20).map(|it| format!("of{it}.example")).collect()].concat();
    let mut allowed = hosts("good", 30_000);
    allowed.extend(["192.0.2.7".to_owned(), listed[5].clone()]);
    shell.write("list", lines(&listed));
    let urls: Vec<String> = allowed.iter().map(|host| format!("https://{host}:8080/x")).collect();
    shell.write("allowed", lines(&urls));
    let is_listed = |host: &&String| {
        let names = std::iter::successors(Some(&***host), |it| it.split_once('.').map(|it| it.1));
        let mut names: Vec<&str> = names.collect();
        names.retain(|name| listed.iter().any(|it| it == name));
        !names.is_empty()
    };
    let expected: Vec<String> =
        allowed.iter().filter(is_listed).map(|host| format!("https://{host}:8080/x")).collect();

    let options = "--format hosts --fpr 0.02 --json -o set";
    shell.ok(&format!("build list {options}"));
    let wrong = shell.ok("check --url set allowed").text().lines().count();
    assert!(wrong > expected.len() + 500, "{wrong}");
    let never = shell.ok(&format!("build list --never allowed {options}")).json()["never"].clone();
    assert_eq!(shell.ok("check --url set allowed").text().as_bytes(), lines(&expected));
    assert_eq!(shell.ok("check --url -c set list").text(), "3020\n");
    // The 20 parents and the host itself.
    assert_eq!(never["conflicts"], 21);

    // Without the list, only the user can say that no parent is in.
    shell.write("unlisted", "a.b.c.example\nx.y.example\n");
    shell.ok("build unlisted --format hosts -o own --fpr 0.4 --keys 2");
    shell.ok("refute own allowed --json");
    assert!(shell.run("check -c own allowed").text() == "0\n");
    let refuted = shell.ok("refute own allowed --parents --json").json()["refuted"].clone();
    assert!(refuted.as_u64().unwrap() > 0 && shell.run("check --url -c own allowed").code == 1);
}

#[test]
fn allowed_lines_are_read_as_the_list_is() {
    let shell = Shell::new();
    let list: String = (0..3000).map(|number| format!("{number},Name {number}\r\n")).collect();
    let allowed: String = (2990..20_000).map(|number| format!("x,NAME {number}\n")).collect();
    shell.write("list", format!("id,name\r\n{list}"));
    shell.write("allowed", format!("name,other\nname 5,\n\n{}", allowed.replace("x,", "")));
    let options = "--csv --field name --ignore-case --trim --fpr 0.02 -o set";
    let ran = shell.ok(&format!("build list --never allowed {options}"));
    let row = ran.text().lines().find(|line| line.starts_with("conflicts")).unwrap().to_owned();
    assert!(
        row.contains("11 allowed names in the list, so reported: name 5, name 2990, name 2991, ..")
    );
    let row = ran.text().lines().find(|line| line.starts_with("allowed lines")).unwrap().to_owned();
    assert!(row.contains("17,011, ") && row.contains("; skipped 1 empty line"), "{row}");
    assert_eq!(shell.ok("check -c set allowed").text(), "11\n");
    assert_eq!(shell.ok("check -c set list").text(), "3000\n");
}

#[test]
fn odd_allowed_lists_are_answered_or_refused_before_anything_is_written() {
    let shell = Shell::with("list", "a\nb\n");
    shell.write("empty", "");
    shell.write("more", "b\nc\n");
    let ran = shell.ok("build list --never empty -o set");
    assert!(ran.text().contains("allowed lines        0, 0 corrections\n"), "{}", ran.text());
    assert!(!ran.text().contains("conflicts"));
    let without = shell.ok("build list -o other --json").json();
    assert!(without["never"].is_null() && shell.read("set") == shell.read("other"));
    let ran = shell.ok("build list --never empty --never more -o set");
    assert!(
        ran.text().contains("conflicts            1 allowed name in the list, so reported: b\n")
    );
    let ran = shell.run_with("build --never more -o set", b"");
    assert!(ran.code == 0 && ran.text().contains("allowed lines        2, 0 corrections\n"));
    std::fs::create_dir(shell.path("folder")).unwrap();
    shell.write("broken.gz", &gzip(b"one\ntwo\n")[..15]);
    for (words, said) in [
        ("build list --never missing -o new", "cannot read missing: no such file"),
        ("build list --never folder -o new", "it is a folder"),
        ("build list --never broken.gz -o new", "broken.gz"),
        ("build - --never - -o new", "can be read only once"),
        ("build --never - -o new", "can be read only once"),
        ("build list --never more -o new --memory 1G", "cannot be used with"),
        ("build list --format hosts --never list --never empty2 -o new", "empty2"),
        ("build list --never more -o more --force", "is also an input"),
        ("refute set missing", "cannot read missing"),
        ("refute missing list", "cannot read missing"),
        ("refute list more", "is not a Koel filter"),
    ] {
        shell.run_with(words, b"a\n").fails(said);
        assert!(!shell.path("new").exists(), "{words}");
    }
    let ran = shell.run_with("build list --format adblock --never more -o new", b"");
    assert_eq!(ran.code, 2, "plain lines are no rules of an ad-block list");
}

/// A key that was added between the two passes would be refuted.
#[cfg(unix)]
#[test]
fn a_list_that_changes_while_it_is_read_is_refused() {
    for change in ["echo new >> list", "sed -i s/listed.1/changed/ list"] {
        let Lists { shell, .. } = Lists::new();
        // The allowed lines are read after the filter is built.
        let run = format!(
            "mkfifo pipe; (exec 3>pipe; {change}; cat allowed >&3) & \
             $K build list --fpr 0.02 --never pipe -o set"
        );
        crate::support::bash(&shell, &run).fails("the list has changed");
        assert!(!shell.path("set").exists());
    }
}

#[test]
fn corrections_take_eight_bytes_each_and_are_shown_and_survive_growth() {
    let Lists { shell, list, allowed } = Lists::new();
    shell.ok("build list -o set --fpr 0.02 --keys 6k");
    shell.ok("build list -o old --fpr 0.02 --keys 6k");
    let absent: String = allowed
        .lines()
        .filter(|it| it.starts_with("allowed"))
        .map(|it| format!("{it}\n"))
        .collect();
    shell.write("absent", &absent);
    let wrong = shell.ok("check set absent");
    let distinct: BTreeSet<&str> = wrong.text().lines().collect();

    let report = shell.ok("refute set absent --json").json();
    assert_eq!(report["refuted"], distinct.len());
    assert_eq!(report["corrections"], distinct.len());
    let saved = |name: &str| shell.read(name).len();
    assert_eq!(saved("set"), saved("old") + 8 * distinct.len());
    assert_eq!(report["size_in_bytes"], saved("set"));
    let ran = shell.ok("refute set absent");
    assert!(ran.text().contains("refuted        0\n"), "{}", ran.text());
    let info = shell.ok("info set");
    let row =
        format!("beside the table     0 keys, {} corrections (koel refute)\n", distinct.len());
    assert!(info.text().contains(&row), "{}", info.text());

    // Growth keeps corrections.
    shell.ok("grow set --keys 50k");
    shell.ok("grow set --shrink");
    assert_eq!(corrections(&shell, "set"), distinct.len() as u64);
    assert_eq!(shell.run("check -c set absent").text(), "0\n");
    assert_eq!(shell.run("check -c set list").text(), format!("{}\n", list.lines().count()));
}

#[test]
fn more_lines_than_slots_are_not_refuted_and_nothing_is_written() {
    let shell = Shell::with("list", lines(&keys("listed", 1_000)));
    shell.write("allowed", lines(&keys("allowed", 100_000)));
    shell.ok("build list -o set --fpr 0.1");
    let before = shell.read("set");
    for words in ["refute set allowed", "build list --never allowed -o new --fpr 0.1"] {
        let ran = shell.run(words);
        assert_eq!((ran.code, ran.text()), (3, ""), "{words}");
        ran.says("corrections").says("lower --fpr");
    }
    assert!(shell.read("set") == before && !shell.path("new").exists());
}

/// `head list | koel refute set` would hide what is listed.
#[test]
fn listed_lines_are_not_refuted_by_accident() {
    let Lists { shell, list, .. } = Lists::new();
    shell.ok("build list -o set --fpr 0.02");
    let before = shell.read("set");
    let head =
        |lines: usize| -> String { list.lines().take(lines).map(|it| format!("{it}\n")).collect() };
    for words in ["refute set", "refute set --json"] {
        let ran = shell.run_with(words, head(410).as_bytes());
        ran.fails("set reports 100 of 410 names, and chance explains about 6");
        ran.says("--force").says("build --never").says("nothing was changed");
    }
    // The list of allowed lines has 300 that are listed, among 20,000.
    shell.run("refute set allowed").fails("names that were added would be hidden");
    assert!(shell.read("set") == before);
}
