//! Stores in a shell: side by side, many records at once, on a full disk, beside other files.

use std::fs;
use std::thread;
use std::time::Duration;

use koel_store::LogStore;

use crate::support::{Shell, bash};

#[test]
fn commands_wait_for_one_another() {
    let shell = Shell::new();
    let puts = "for i in 1 2 3 4 5 6 7 8; do $K store put k$i v$i --db db & done; \
                for job in $(jobs -p); do wait $job || exit 9; done";
    let ran = bash(&shell, puts);
    assert_eq!((ran.code, &ran.err[..]), (0, ""), "once all but one failed");
    assert_eq!(shell.ok("store keys --db db").text().lines().count(), 8);
    // Reading waits, too, and says so after a second.
    let held = LogStore::open(shell.path("db")).unwrap();
    let refused = shell.run("store ls --db db --wait 0");
    refused.fails("another process").says("--wait");
    let reader = thread::spawn(move || {
        let ran = shell.ok("store get k3 --db db");
        (ran.text().to_owned(), ran.err)
    });
    thread::sleep(Duration::from_millis(1500));
    drop(held);
    let (value, said) = reader.join().unwrap();
    assert_eq!(value, "v3");
    assert_eq!(said, "koel: db: waiting for another process that uses the store\n");
}

#[test]
fn what_scan_and_get_print_is_loaded() {
    let shell = Shell::new();
    shell.ok("store create sorted --ordered");
    let lines: String = (0..30_000).map(|n| format!("k{n:05}\tvalue\\t{n} \\xff\\\\\n")).collect();
    for db in ["sorted", "log"] {
        let ran = shell.run_with(&format!("store load --db {db} --json"), lines.as_bytes());
        assert_eq!(ran.json()["records"], 30_000, "{}", ran.err);
        assert_eq!(shell.ok(&format!("store get k00007 --db {db}")).out, b"value\t7 \xff\\");
    }
    assert!(shell.ok("store scan --db sorted").text() == lines);
    let copied = bash(&shell, "$K store scan -0 --db sorted | $K store load -0 --db copy");
    assert_eq!(copied.code, 0, "{}", copied.err);
    let got = bash(&shell, "$K store keys --db copy | $K store get - --db copy | sort");
    assert!(got.text() == lines);
    // A later value replaces an earlier one, also in one batch.
    shell.ok_with("store load --db log", b"k\t1\nk\t2\n\tempty key\n");
    assert_eq!(shell.ok("store get k --db log").out, b"2");
}

#[test]
fn csv_is_loaded_by_columns() {
    let shell = Shell::new();
    shell.write(
        "users.csv",
        "id,mail,name\r\n1,a@x,\"Ann, \"\"A\"\"\"\r\n\r\n2,b@x,\"two\nlines\"\r\n",
    );
    shell.ok("store load --csv --header --columns 2,3 users.csv --db users");
    assert_eq!(shell.ok("store keys --db users").text(), "a@x\nb@x\n");
    assert_eq!(shell.ok("store get a@x --db users").out, b"Ann, \"A\"");
    assert_eq!(shell.ok("store get b@x --db users").out, b"two\nlines");
    let ran = shell.run_with("store load --csv --db users", b"c,3\nd\n");
    assert_eq!((ran.code, ran.err.lines().count()), (2, 2), "{}", ran.err);
    ran.says("1 record stored before").says("record 2 has no");
    assert_eq!(shell.ok("store get c --db users").out, b"3", "what was stored stays");
}

#[test]
fn wrong_input_of_a_load_is_named() {
    let shell = Shell::new();
    for (words, input, what) in [
        ("", &b"key value\n"[..], "line 1 has no tab"),
        ("", b"a\\q\t1\n", "a backslash starts none"),
        ("", b"\\xff\t1\n", "reserved for imported files"),
        ("-0", b"key\0", "key 1 has no value"),
        ("--csv --columns 1,0", b"", "counted from 1"),
        ("--csv", b"a,\"b\n", "is not closed"),
    ] {
        shell.run_with(&format!("store load {words} --db db"), input).fails(what);
    }
    assert_eq!(shell.ok("store keys --db db").text(), "");
    shell.ok_with("store load --db db", b"");
}

/// Once a store was created among the pictures.
#[test]
fn a_folder_with_other_files_does_not_become_a_store() {
    let shell = Shell::new();
    fs::create_dir(shell.path("photos")).unwrap();
    shell.write("photos/a.jpg", "picture");
    shell.write("file", "text");
    for words in [
        "store put a b --db photos",
        "store load file --db photos",
        "store import file --db photos",
        "store create photos",
        "store create photos --ordered",
    ] {
        let ran = shell.run(words);
        ran.fails("photos is not a store").says("a.jpg");
    }
    assert_eq!(fs::read_dir(shell.path("photos")).unwrap().count(), 1);
    for words in ["store stats --db file", "store ls --db file", "store get a --db file"] {
        let ran = shell.run(words);
        ran.fails("");
        let says = ["name the folder of a store", "is not a store"];
        assert!(says.iter().any(|&says| ran.err.contains(says)), "{words}: {}", ran.err);
    }
    // A folder that a file system has made for itself is no other file.
    fs::create_dir_all(shell.path("disk/lost+found")).unwrap();
    shell.ok("store put a b --db disk");
}

/// A limit of the file size stands for a full disk. Once the part of a failed import stayed.
#[test]
fn a_failed_import_leaves_nothing_in_the_log() {
    let shell = Shell::with("small", "text");
    shell.write("large", testkit::storage::Random::new(1).bytes(3_000_000));
    shell.ok("store import small --db db");
    let log = |shell: &Shell| shell.read("db/0000000000000001.log").len();
    let before = log(&shell);
    bash(&shell, "ulimit -f 1000; $K store import large --db db").fails("");
    assert_eq!(log(&shell), before);
    shell.ok("store verify --db db");
    shell.ok("store rm small --db db");
    shell.ok("store gc --db db");
    shell.ok("store import large --db db");
}

/// Needs the rights to mount a file system; without them, the test above has to do.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_freed_by_rm_and_gc() {
    let shell = Shell::with("kept", testkit::storage::Random::new(1).bytes(300_000));
    shell.write("goes", testkit::storage::Random::new(2).bytes(9_000_000));
    let script = "mkdir disk && mount -t tmpfs -o size=12m none disk || exit 77
        db=disk/db
        $K store import kept --db $db >out && $K store import goes --db $db >>out || exit 1
        cat /dev/zero >disk/other 2>err
        $K store put key value --db $db 2>err && exit 2
        $K store rm goes --db $db || exit 3
        $K store gc --db $db >>out || exit 4
        test $(du -m $db | cut -f1) -lt 4 || exit 5
        $K store export kept --db $db -o copy && cmp kept copy || exit 6
        $K store put key value --db $db || exit 7";
    shell.write("script", script);
    let ran = bash(&shell, "export K; unshare -m bash script");
    assert!(
        ran.code == 0 || ran.code == 77 || ran.code == 1 && ran.err.contains("unshare"),
        "{}: {}",
        ran.code,
        ran.err
    );
}
