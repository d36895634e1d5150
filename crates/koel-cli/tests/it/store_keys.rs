//! Keys of records: what `store keys` prints, every verb accepts.

use std::ffi::OsStr;
use std::fs;

use crate::support::{Ran, Shell};

/// Keys that a line of text cannot hold as they are.
const KEYS: [&[u8]; 8] = [
    b"plain",
    b"",
    b"two\nlines\r\n",
    b"tab\tand \\ backslash\\n",
    b"-",
    b"\x1b[2J",
    b"m\xfft\xc3",
    "\u{202e}gpj.exe".as_bytes(),
];

/// Runs `koel store WORDS ARGUMENT --db db`, with this on standard input.
fn run(shell: &Shell, words: &str, argument: &OsStr, input: &[u8]) -> Ran {
    shell.write("input", input);
    let mut command = shell.command();
    command.arg("store").args(words.split_whitespace()).args(["--db", "db", "--"]).arg(argument);
    command.stdin(fs::File::open(shell.path("input")).unwrap());
    Ran::of(command.output().unwrap())
}

fn store(shell: &Shell) -> Vec<String> {
    for (number, key) in KEYS.into_iter().enumerate() {
        let text = key.iter().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
        let ran = run(shell, "put -f -", text.as_ref(), format!("value\n{number}").as_bytes());
        assert_eq!(ran.code, 0, "{text}: {}", ran.err);
    }
    let listed = shell.ok("store keys --db db").text().to_owned();
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn every_key_is_accepted_as_it_is_printed() {
    let shell = Shell::new();
    let printed = store(&shell);
    assert_eq!(printed.len(), KEYS.len(), "{printed:?}");
    for (number, text) in printed.iter().enumerate() {
        if text != "-" {
            let ran = run(&shell, "get", text.as_ref(), b"");
            assert_eq!((ran.code, ran.text()), (0, &*format!("value\n{number}")), "{text}");
        }
    }
    let list = printed.join("\n");
    let got = run(&shell, "get", "-".as_ref(), list.as_bytes());
    let expected: String =
        printed.iter().enumerate().map(|(i, key)| format!("{key}\tvalue\\n{i}\n")).collect();
    assert_eq!((got.code, got.text()), (0, &*expected), "{}", got.err);
    let json = shell.ok("store keys --json --db db");
    let escaped = json.text().lines().map(|line| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["escaped"].as_str().unwrap().into()
    });
    assert_eq!(escaped.collect::<Vec<String>>(), printed);
    let deleted = run(&shell, "del", "-".as_ref(), list.as_bytes());
    assert_eq!(deleted.code, 0, "{}", deleted.err);
    assert_eq!(shell.ok("store keys --db db").text(), "");
}

#[test]
fn with_0_keys_and_values_are_bytes() {
    let shell = Shell::new();
    store(&shell);
    let listed = shell.ok("store keys -0 --db db").out;
    assert_eq!(listed, KEYS.map(|key| [key, b"\0"].concat()).concat());
    let got = run(&shell, "get -0", "-".as_ref(), &listed);
    let pairs = KEYS.iter().enumerate();
    let expected: Vec<u8> = pairs
        .flat_map(|(i, key)| [key, &b"\0"[..], format!("value\n{i}\0").as_bytes()].concat())
        .collect();
    assert!(got.code == 0 && got.out == expected, "{}", got.err);
    let exact = run(&shell, "get -0", OsStr::new("tab\tand \\ backslash\\n"), b"");
    assert_eq!((exact.code, exact.text()), (0, "value\n3"));
}

#[test]
fn a_prefix_selects_keys_and_those_of_files_are_not_listed() {
    let shell = Shell::with("file", "bytes");
    shell.ok("store import file --db db");
    for key in ["user/1", "user/2", "users"] {
        shell.ok(&format!("store put {key} value --db db"));
    }
    assert_eq!(shell.ok("store keys --db db").text(), "user/1\nuser/2\nusers\n");
    assert_eq!(shell.ok("store keys --prefix user/ --db db").text(), "user/1\nuser/2\n");
    assert_eq!(shell.ok(r"store keys --prefix us\x65r\x2f --db db").text(), "user/1\nuser/2\n");
    assert_eq!(shell.ok("store keys --prefix nothing --db db").text(), "");
    for words in [r"keys --prefix \xff", r"get \xff", r"get \q", r"put a\ value", r"del user/1 \q"]
    {
        shell.run(&format!("store {words} --db db")).fails("");
    }
    assert_eq!(shell.ok("store keys --db db").text().lines().count(), 3, "nothing was done");
}

#[test]
fn missing_keys_of_several_are_reported_and_the_others_printed() {
    let shell = Shell::new();
    for key in ["a", "b"] {
        shell.ok(&format!("store put {key} value-{key} --db db"));
    }
    let ran = shell.run("store get a nothing b --db db");
    assert_eq!((ran.code, ran.text()), (1, "a\tvalue-a\nb\tvalue-b\n"));
    assert_eq!(ran.err, "koel: db: \"nothing\" not found\n");
    let one = shell.run("store get nothing --db db");
    assert_eq!((one.code, one.text()), (1, ""));
    assert_eq!(one.err, "koel: db: \"nothing\" not found\n");
    let nowhere = shell.run("store keys --db nowhere");
    assert!(nowhere.code == 2 && nowhere.err.contains("nowhere"), "{}", nowhere.err);
}

#[test]
fn a_large_value_is_escaped_piece_by_piece() {
    let shell = Shell::new();
    let value = "\u{e9}\\\u{7f}".repeat(100_000);
    shell.write("value", &value);
    shell.ok("store put large -f value --db db");
    shell.ok("store put small x --db db");
    let expected = value.replace('\\', r"\\").replace('\u{7f}', r"\x7f");
    let got = shell.ok("store get large small --db db");
    assert!(got.text() == format!("large\t{expected}\nsmall\tx\n"));
}

#[test]
fn a_list_without_line_ends_takes_bounded_memory() {
    let shell = Shell::new();
    shell.ok("store put key value --db db");
    let list = fs::File::create(shell.path("list")).unwrap();
    list.set_len(8 << 30).unwrap();
    let mut get = shell.command();
    get.args(["store", "get", "-", "--db", "db"])
        .stdin(fs::File::open(shell.path("list")).unwrap());
    Ran::of(get.output().unwrap()).fails("64 MiB");
}

/// Only a shell or a file system can make such a limit; the failing folders of `koel-store` make
/// all others.
#[cfg(target_os = "linux")]
#[test]
fn what_a_full_disk_refuses_leaves_no_record_and_no_file() {
    use crate::support::bash;

    let shell = Shell::with("value", vec![b'x'; 300_000]);
    shell.ok("store put key value --db db");
    let listing = "ls -l db | awk '{print $5, $9}'";
    let before = bash(&shell, listing);
    for _ in 0..3 {
        let ran = bash(&shell, "ulimit -f 64; trap '' XFSZ; $K store put key -f value --db db");
        ran.fails("limit of file sizes");
    }
    assert_eq!(bash(&shell, listing).text(), before.text());
    assert_eq!(shell.ok("store get key --db db").text(), "value");
}

/// Files of Windows. A CR that belongs to a value is written `\r`.
#[test]
fn lines_of_records_and_keys_may_end_with_cr_lf() {
    for create in ["store create db", "store create db --ordered"] {
        let shell = Shell::new();
        shell.ok(create);
        let ran = shell.ok_with("store load --db db", b"k1\tv1\r\nk2\tv2\\r\r\nk3\tv3\r");
        assert!(ran.text().contains("3 stored"), "{}", ran.text());
        for (key, value) in [("k1", &b"v1"[..]), ("k2", b"v2\r"), ("k3", b"v3")] {
            assert_eq!(shell.ok(&format!("store get {key} --db db")).out, value);
        }
        let ran = shell.ok_with("store get - --db db", b"k1\r\nk2\r\n");
        assert_eq!(ran.text(), "k1\tv1\nk2\tv2\\r\n");
        shell.ok_with("store del - --db db", b"k1\r\nk3\r\n");
        assert_eq!(shell.ok("store keys --db db").text(), "k2\n");
        // Exact bytes are exact.
        shell.ok_with("store load -0 --db db", b"k\r\0v\r\0");
        assert_eq!(shell.ok_with("store get -0 - --db db", b"k\r\0").out, b"k\r\0v\r\0");
    }
}
