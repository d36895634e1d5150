//! Ordered stores: every verb of records works on them, and the folder says what kind it has.

use std::collections::BTreeMap;
use std::fs;

use testkit::storage::Random;

use crate::support::Shell;

/// An ordered store `db` with records whose keys are not in order.
fn ordered() -> Shell {
    let shell = Shell::new();
    shell.ok("store create db --ordered");
    for (key, value) in [("user/2", "two"), ("b", "bee"), ("user/1", "one"), ("a\\n", "x")] {
        shell.ok(&format!("store put {key} {value} --db db"));
    }
    shell
}

#[test]
fn records_of_an_ordered_store_are_listed_by_key_from_both_ends() {
    let shell = ordered();
    assert_eq!(shell.ok("store keys --db db").text(), "a\\n\nb\nuser/1\nuser/2\n");
    assert_eq!(shell.ok("store keys --prefix user/ --db db").text(), "user/1\nuser/2\n");
    let scan = |options: &str| shell.ok(&format!("store scan {options} --db db")).text().to_owned();
    assert_eq!(scan(""), "a\\n\tx\nb\tbee\nuser/1\tone\nuser/2\ttwo\n");
    assert_eq!(scan("--reverse --from b"), "user/2\ttwo\nuser/1\tone\nb\tbee\n");
    assert_eq!(scan("--prefix user/ --to user/2"), "user/1\tone\n");
    assert_eq!(scan("--from b --to b"), "");
    assert_eq!(shell.ok("store scan -0 --to b --db db").out, b"a\n\0x\0");
}

#[test]
fn a_part_of_the_keys_is_deleted_at_once() {
    let shell = ordered();
    let keys = || shell.ok("store keys --db db").text().to_owned();
    shell.ok("store del --prefix user/ --to user/2 --db db");
    assert_eq!(keys(), "a\\n\nb\nuser/2\n");
    shell.ok("store del --to b --db db");
    shell.ok("store del --from c --to d --db db");
    assert_eq!(keys(), "b\nuser/2\n");
    shell.ok("store del --from a --db db");
    assert_eq!(keys(), "");
    shell.run("store del b --from a --db db").fails("not both");
    assert_eq!(shell.run("store del --db db").code, 2);
    shell.ok("store create log");
    shell.run("store del --prefix a --db log").fails("`koel store copy`");
}

#[test]
fn each_kind_refuses_what_only_the_other_can_do() {
    let shell = ordered();
    shell.ok("store create log");
    shell.write("file", "text");
    for verb in ["import file", "export x -o out", "ls", "rm x"] {
        shell
            .run(&format!("store {verb} --db db"))
            .fails("db is an ordered store, which holds no files");
    }
    shell.run("store scan --db log").fails("`koel store copy`");
    for create in ["store create db --ordered", "store create log --ordered", "store create db"] {
        shell.run(create).fails("already has a store");
    }
}

#[test]
fn a_copy_into_the_other_kind_and_back_has_the_same_records() {
    let shell = ordered();
    assert!(shell.ok("store copy db log").text().contains("4 copied"));
    // A log store lists its keys as they were written, which was in order.
    let keys = shell.ok("store keys --db db");
    assert_eq!(shell.ok("store keys --db log").text(), keys.text());
    shell.write("photo", [7; 5000]);
    shell.ok("store import photo --db log");
    let ran = shell.run("store copy log db2");
    assert!(ran.code == 1 && ran.err.contains("of imported files left behind"), "{}", ran.err);
    let scan = shell.ok("store scan --db db");
    assert_eq!(shell.ok("store scan --db db2").text(), scan.text());
    shell.run("store copy db log").fails("already has a store");
}

#[test]
fn gc_stats_and_verify_know_the_kind() {
    let shell = ordered();
    shell.ok("store put b again --db db");
    let gc = shell.ok("store gc --json --db db").json();
    assert_eq!(gc["runs"], 1);
    let stats = shell.ok("store stats --json --db db").json();
    assert_eq!((&stats["kind"], &stats["entries"]), (&"ordered".into(), &4.into()));
    assert_eq!(stats["runs"][0]["keys"], 4);
    let text = shell.ok("store stats --db db");
    assert!(text.text().contains("in 1 run\n"), "{}", text.text());
    let verified = shell.ok("store verify --json --db db").json();
    assert_eq!((&verified["records"], &verified["damage"]), (&4.into(), &serde_json::json!([])));
}

#[test]
fn damage_is_found_and_the_rest_is_salvaged() {
    let shell = Shell::new();
    shell.ok("store create db --ordered");
    let mut random = Random::new(1);
    let mut records = BTreeMap::new();
    for number in 0..40 {
        let value: String =
            (0..500).map(|_| char::from(b"abcdefghijklmnopqrstuvwxyz"[random.below(26)])).collect();
        records.insert(format!("key{number:02}"), value);
    }
    let lines: String = records.iter().map(|(key, value)| format!("{key}\t{value}\n")).collect();
    shell.ok_with("store load --db db", lines.as_bytes());
    shell.ok("store gc --db db");
    let tables = fs::read_dir(shell.path("db")).unwrap().map(|file| file.unwrap().path());
    let table = tables.filter(|path| path.extension().is_some_and(|end| end == "table")).last();
    let table = table.expect("a table");
    let mut bytes = fs::read(&table).unwrap();
    // In the first of several blocks.
    bytes[1000] ^= 4;
    fs::write(&table, &bytes).unwrap();
    let ran = shell.run("store verify --db db");
    assert!(ran.code == 2 && ran.text().contains("DAMAGED"), "{} {}", ran.text(), ran.err);
    // What is behind the damage is printed.
    for reverse in ["", " --reverse"] {
        let scan = shell.run(&format!("store scan --db db{reverse}"));
        assert!(scan.code == 2 && scan.err.contains("is damaged at byte"), "{}", scan.err);
        let lines: Vec<&str> = scan.text().lines().collect();
        assert!((20..40).contains(&lines.len()), "{} lines", lines.len());
        assert!(lines.iter().all(|line| {
            line.split_once('\t').is_some_and(|(key, value)| records[key] == value)
        }));
        assert!(scan.text().contains("key39\t"));
    }
    let ran = shell.run("store salvage --db db --to new --json");
    assert_eq!(ran.code, 1, "{}", ran.err);
    let report = ran.json();
    let kept = report["keys"].as_u64().unwrap();
    assert!((20..40).contains(&kept) && kept + report["lost_keys"].as_u64().unwrap() == 40);
    let scan = shell.ok("store scan --db new");
    assert_eq!(scan.text().lines().count() as u64, kept);
    for line in scan.text().lines() {
        let (key, value) = line.split_once('\t').unwrap();
        assert_eq!(records[key], value);
    }
}
