//! `koel store`: files and records in and out, and the messages for damage and wrong use.

use std::fs;

use testkit::storage::Random;

use crate::support::Shell;

/// The first segment of the store `db`.
const LOG: &str = "db/0000000000000001.log";

/// Flips a bit of the byte at `at` in the segment.
fn flip(shell: &Shell, at: usize) {
    let mut bytes = shell.read(LOG);
    bytes[at] ^= 4;
    shell.write(LOG, bytes);
}

/// Flips a bit of the first occurrence of `text` in the segment.
fn flip_in_text(shell: &Shell, text: &str) {
    let bytes = shell.read(LOG);
    let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
    flip(shell, at);
}

#[test]
fn a_second_import_adds_no_chunk_and_by_content_finds_equal_parts_after_an_insertion() {
    let shell = Shell::new();
    let bytes = Random::new(5).bytes(2_000_000);
    shell.write("file", &bytes);
    shell.write("longer", [&bytes[..10], b"inserted", &bytes[10..]].concat());
    let import = |words: &str| shell.ok(&format!("store import --db db --json {words}")).json();
    let first = import("--by-content file");
    assert_eq!((&first["files"], &first["bytes"]), (&1.into(), &2_000_000.into()));
    assert_eq!(import("--by-content file")["new_chunks"], 0);
    assert!(import("--by-content longer")["new_chunks"].as_u64().unwrap() <= 3);
    let stats = shell.ok("store stats --db db --json").json();
    assert_eq!((&stats["files"], &stats["file_bytes"]), (&2.into(), &4_000_008.into()));
    shell.ok("store export longer --db db -o out");
    assert!(shell.read("out") == shell.read("longer"));
}

#[test]
fn importing_a_folder_skips_the_store_inside_it() {
    let shell = Shell::with("file", "text");
    for _ in 0..2 {
        shell.ok("store import . --db db");
        let listed = shell.ok("store ls --db db").text().to_owned();
        assert!(listed.lines().count() == 2 && listed.ends_with("/file\n"), "{listed}");
    }
}

#[test]
fn a_stream_is_imported_under_a_name() {
    let shell = Shell::new();
    shell.ok_with("store import - --name stream --db db", b"streamed");
    assert_eq!(shell.ok("store export stream --db db -o -").out, b"streamed");
    for words in ["store import - --db db", "store import a b --name c --db db"] {
        shell.write("a", "a");
        shell.write("b", "b");
        shell.run(words).fails("");
    }
}

#[test]
fn gc_frees_the_space_of_removed_files() {
    let shell = Shell::with("stays", Random::new(6).bytes(500_000));
    shell.write("goes", Random::new(7).bytes(5_000_000));
    shell.ok("store import stays goes --db db");
    let ran = shell.run("store rm goes absent --db db");
    assert_eq!((ran.code, &*ran.err), (1, "koel: db: \"absent\" not found\n"));
    assert_eq!(shell.run("store export goes --db db -o out").code, 2);
    let collected = shell.ok("store gc --db db --json").json();
    assert!(collected["deleted_chunks"].as_u64().unwrap() > 300, "{collected}");
    assert!(collected["log_bytes"].as_u64().unwrap() < 1_000_000, "{collected}");
    shell.ok("store export stays --db db -o out");
    assert!(shell.read("out") == shell.read("stays"));
    shell.ok("store verify --db db");
}

#[test]
fn records_are_put_got_and_deleted_in_both_kinds_of_stores() {
    for create in ["create db", "create db --ordered"] {
        let shell = Shell::new();
        shell.ok(&format!("store {create}"));
        shell.ok("store put greeting hello --db db");
        assert_eq!(shell.ok("store get greeting --db db").out, b"hello");
        let bytes = Random::new(8).bytes(300_000);
        shell.write("picture", &bytes);
        shell.ok("store put picture -f picture --db db");
        assert!(shell.ok("store get picture --db db").out == bytes);
        shell.ok_with("store put piped --db db", b"a\0b\n");
        assert_eq!(shell.ok("store get piped --db db").out, b"a\0b\n");
        let both = shell.ok("store get greeting piped --db db");
        assert_eq!(both.text(), "greeting\thello\npiped\ta\\x00b\\n\n");
        let ran = shell.run("store del greeting absent piped --db db");
        assert_eq!((ran.code, &*ran.err), (1, "koel: db: \"absent\" not found\n"));
        let gone = shell.run("store get greeting --db db");
        assert_eq!((gone.code, gone.out.len()), (1, 0));
        assert_eq!(gone.err, "koel: db: \"greeting\" not found\n");
        assert_eq!(shell.ok("store keys --db db").text(), "picture\n");
    }
}

/// Regression: the report named the damaged offset in the log, but the file only with `--json`.
#[test]
fn verify_names_damaged_files_and_none_is_exported() {
    let shell = Shell::new();
    for name in ["intact", "hurt"] {
        shell.write(name, format!("the bytes of {name}"));
    }
    shell.ok("store import intact hurt --db db");
    flip_in_text(&shell, "the bytes of hurt");
    let ran = shell.run("store verify --db db");
    assert_eq!(ran.code, 2);
    assert!(ran.text().contains("\nDAMAGED  hurt: 0000000000000001.log"), "{}", ran.text());
    assert!(!ran.text().contains("intact: "), "{}", ran.text());
    shell.write("out", "as it was");
    shell.run("store export hurt --db db -o out").fails("");
    assert_eq!(shell.read("out"), b"as it was");
}

/// Once the import said "new chunks 0" and its version could not be exported, `verify` advised what
/// did not help, and after `--checksum` the dead damaged record was an error for ever.
#[cfg(unix)]
#[test]
fn a_damaged_chunk_is_stored_again_by_an_import_and_dropped_by_gc() {
    for again in ["store import tree --db db", "store import tree --db db --checksum"] {
        let shell = Shell::new();
        fs::create_dir(shell.path("tree")).unwrap();
        for name in ["intact", "hurt"] {
            shell.write(&format!("tree/{name}"), format!("the bytes of {name}"));
        }
        // Until a later change is sure to have another time.
        std::thread::sleep(std::time::Duration::from_millis(120));
        shell.ok("store import tree --db db");
        assert_eq!(shell.ok("store import tree --db db").err, "");
        flip_in_text(&shell, "the bytes of hurt");
        shell.run("store verify --db db").fails_late("import the files again with --checksum");
        assert_eq!(shell.run("store gc --db db").code, 2, "the chunk is needed");
        let ran = shell.ok(again);
        assert!(ran.err.starts_with("koel: db: stored 1 damaged chunk again"), "{}", ran.err);
        shell.ok("store export tree --db db -o copy");
        assert_eq!(shell.read("copy/hurt"), b"the bytes of hurt");
        let report = shell.ok("store gc --db db --json").json();
        assert_eq!(report["dropped_damage"], 1, "{report}");
        shell.ok("store verify --db db");
        shell.ok("store export tree --db db -o copy");
    }
}

/// Regression: `ls` listed no file after the damaged one, and `verify` printed no report.
#[test]
fn damage_to_the_record_of_one_file_hides_no_other_file() {
    // The record of the version, after the copy of it; and that of its name, for which the
    // versions stand in.
    for (record, nth, intact) in [("hurt", 1, 2), ("nhurt", 0, 3)] {
        let shell = Shell::new();
        for name in ["first", "hurt", "last"] {
            shell.write(name, "bytes");
        }
        shell.ok("store import first hurt last --db db");
        let bytes = shell.read(LOG);
        let places = bytes.windows(record.len()).enumerate();
        let mut places = places.filter(|(_, found)| *found == record.as_bytes());
        flip(&shell, places.nth(nth).unwrap().0);
        let expected = if intact == 2 { (2, 1) } else { (0, 0) };
        let listed = shell.run("store ls --db db");
        assert_eq!((listed.code, listed.err.lines().count()), expected, "{}", listed.err);
        assert!(listed.text().contains("  first\n") && listed.text().ends_with("  last\n"));
        assert_eq!(listed.text().lines().count(), intact, "{}", listed.text());
        let counted = shell.run("store stats --db db");
        assert_eq!((counted.code, counted.err.lines().count()), expected, "{}", counted.err);
        assert!(counted.text().contains(&format!(" {intact} ({} B)\n", 5 * intact)));
        assert_eq!(shell.run("store export -o out --db db").code, expected.0, "{record}");
        assert_eq!(shell.read("out/last"), b"bytes");
        let verified = shell.run("store verify --db db");
        assert_eq!(verified.code, 2, "the record is damaged");
        let report = verified.text();
        assert!(report.contains(&format!("{intact} intact")), "{report}");
        assert_eq!(report.contains("version 2: "), intact == 2, "{report}");
        assert_eq!(shell.run("store gc --db db").code, 2, "{record}");
    }
}

#[test]
fn salvage_copies_everything_readable_from_a_damaged_store() {
    let shell = Shell::new();
    for name in ["one", "two"] {
        shell.write(name, Random::new(name.as_bytes()[0].into()).bytes(300_000));
    }
    shell.ok("store import one two --db db");
    shell.ok("store put key value --db db");
    let whole = shell.ok("store salvage --db db --to copy --json").json();
    assert_eq!((&whole["damage"], &whole["intact_files"]), (&serde_json::json!([]), &2.into()));
    // A byte in a chunk of the first file.
    flip(&shell, 100_000);
    let ran = shell.run("store salvage --db db --to known --json");
    assert_eq!((ran.code, &ran.json()["lost_keys"]), (1, &1.into()), "{}", ran.text());
    fs::remove_file(shell.path("db/MANIFEST")).unwrap();
    assert_eq!(shell.run("store get key --db db").code, 2);
    let ran = shell.run("store salvage --db db --to new");
    assert_eq!((ran.code, ran.text().matches("DAMAGED").count()), (1, 3), "{}", ran.text());
    assert_eq!(shell.ok("store get key --db new").text(), "value");
    shell.ok("store export two --db new -o out");
    assert!(shell.read("out") == shell.read("two"));
    for words in ["--db db --to new", "--db db --to db", "--db nowhere --to fresh"] {
        shell.run(&format!("store salvage {words}")).fails("");
    }
    assert!(!shell.path("fresh").exists());
}

#[test]
fn several_processes_can_read_a_store_at_the_same_time() {
    let shell = Shell::with("file", Random::new(3).bytes(100_000));
    shell.ok("store import file --db db");
    shell.ok("store put key value --db db");
    let reader = koel_store::LogOptions::default().read_only(true).open(shell.path("db")).unwrap();
    assert_eq!(shell.ok("store get key --db db").text(), "value");
    shell.ok("store export file --db db -o out");
    for words in ["store ls --db db", "store verify --db db", "store stats --db db"] {
        shell.ok(words);
    }
    for words in ["put key other", "import file", "del key", "rm file", "gc"] {
        shell.run(&format!("store {words} --wait 0 --db db")).fails("");
    }
    drop(reader);
    shell.ok("store del key --db db");
}

#[test]
fn wrong_use_gives_an_error_of_one_line() {
    let shell = Shell::new();
    shell.ok("store put a b --db db");
    shell.write("file", "not a folder");
    for words in [
        "store ls --db nowhere",
        "store get key --db nowhere",
        "store ls --db file",
        "store put a b --db file",
        "store import nothing --db db",
        "store import file --chunk 1 --db db",
        "store export nothing --db db -o out",
        "store export nothing --db db -o no/such/folder/out",
        "store put a b",
    ] {
        shell.run(words).fails("");
    }
    assert!(!shell.path("nowhere").exists(), "reading creates no store");
}

#[test]
fn a_value_of_unknown_length_is_read_to_its_end() {
    let shell = Shell::new();
    let value = "a line\n".repeat(40_000);
    for words in ["", "-f -", "-f /dev/stdin"] {
        shell.ok("store put key precious --db db");
        shell.ok_with(&format!("store put key --db db {words}"), value.as_bytes());
        assert!(shell.ok("store get key --db db").text() == value, "{words}");
    }
    shell.write("file", &value);
    shell.ok("store put other -f file --db db");
    assert!(shell.ok("store get other --db db").text() == value);
    if cfg!(target_os = "linux") {
        shell.ok("store put limits -f /proc/self/limits --db db");
        assert!(shell.ok("store get limits --db db").text().contains("Max open files"));
    }
}

/// Regression: an export replaced a file of the store, which then did not open. Through a dangling
/// link, it created a file in the store's folder, which the next cleanup after a crash deleted.
#[test]
fn the_files_of_the_store_are_neither_exported_to_nor_imported() {
    let shell = Shell::with("file", "bytes");
    shell.ok("store import file --db db");
    let before = shell.read("db/MANIFEST");
    let mut outputs = Vec::from(["db/MANIFEST", "./db/../db/MANIFEST", "db/0000000000000009.log"]);
    #[cfg(unix)]
    {
        for (link, file) in [("link", "db/MANIFEST"), ("to-nothing", "db/0000000000000009.log")] {
            std::os::unix::fs::symlink(file, shell.path(link)).unwrap();
            outputs.push(link);
        }
    }
    for out in outputs {
        shell.run(&format!("store export file --db db -o {out}")).fails("");
    }
    // The imported segment grew as it was read, until it was full.
    shell.run(&format!("store import file {LOG} --db db")).fails("");
    assert_eq!(shell.ok("store ls --db db").text().lines().count(), 1);
    assert_eq!(shell.read("db/MANIFEST"), before);
    shell.ok("store verify --db db");
}

/// Regression: the message had two pieces of advice.
#[test]
fn the_error_for_a_damaged_large_value_is_that_of_any_damaged_record() {
    let shell = Shell::with("large", Random::new(11).bytes(1_000_000));
    shell.ok("store put large -f large --db db");
    flip(&shell, 500_000);
    let ran = shell.run("store get large --db db");
    ran.fails_late("");
    assert!(ran.err.starts_with("koel: db: 0000000000000001.log is damaged"), "{}", ran.err);
    assert_eq!(ran.err.matches("; ").count(), 1, "{}", ran.err);
}

/// Regression: a name with a newline was listed as two lines, and an escape reached the terminal.
#[test]
fn a_name_with_control_characters_is_listed_in_one_line() {
    let shell = Shell::with("file", "bytes");
    let mut import = shell.command();
    import.args(["store", "import", "--db", "db", "--name", "two\nlines\u{1b}[2J", "file"]);
    assert!(import.output().unwrap().status.success());
    let listed = shell.ok("store ls --db db").text().to_owned();
    assert!(listed.ends_with("  two\\nlines\\x1b[2J\n") && listed.lines().count() == 1, "{listed}");
    assert_eq!(shell.ok("store ls --json --db db").json()["name"], "two\nlines\u{1b}[2J");
    flip_in_text(&shell, "bytes");
    let report = shell.run("store verify --db db").text().to_owned();
    assert!(report.contains("\nDAMAGED  two\\nlines\\x1b[2J: 00"), "{report}");
    assert_eq!(report.matches("DAMAGED").count() + 2, report.lines().count(), "{report}");
}
