//! Whole trees through the command: in, listed, out, as they were.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::process::Command;

use koel_store::{Durability, LogStore};
use testkit::storage::Random;
use testkit::trees::{create_random, snapshot};

use crate::support::{Ran, Shell, bash};

/// A shell with a folder `tree`: files, an empty folder, links, and a mode.
fn shell_with_tree() -> Shell {
    let shell = Shell::new();
    fs::create_dir_all(shell.path("tree/empty")).unwrap();
    fs::create_dir_all(shell.path("tree/sub/node_modules")).unwrap();
    for name in ["a.txt", "b.log", "sub/c.txt", "sub/node_modules/d.txt"] {
        shell.write(&format!("tree/{name}"), name);
    }
    symlink("nowhere", shell.path("tree/dangling")).unwrap();
    fs::hard_link(shell.path("tree/a.txt"), shell.path("tree/hard")).unwrap();
    fs::set_permissions(shell.path("tree/sub"), fs::Permissions::from_mode(0o750)).unwrap();
    shell
}

/// The same, and a store `db` with the folder.
fn shell_with_store() -> Shell {
    let shell = shell_with_tree();
    shell.ok("store import tree --db db");
    shell
}

fn paths(shell: &Shell, name: &str) -> Vec<String> {
    let found = snapshot(&shell.path(name)).unwrap();
    found.into_keys().map(|path| String::from_utf8(path).unwrap()).collect()
}

/// The names that `ls` prints.
fn listed(shell: &Shell, words: &str) -> Vec<String> {
    let ran = shell.ok(&format!("store ls --db db {words}"));
    ran.text().lines().map(|line| line[41..].to_owned()).collect()
}

fn with_arguments(shell: &Shell, words: &str, arguments: &[&str]) -> Ran {
    Ran::of(shell.command().args(words.split(' ')).args(arguments).output().unwrap())
}

/// Runs a copy of the program without the rights of root, which reads and writes everything. As
/// root, `open` lets others reach what they need.
///
/// Another process makes the copy: a child that a thread of this one starts meanwhile would have
/// the open file, and then it cannot be run.
fn as_another_user(shell: &Shell, open: &str, words: &str) -> Ran {
    assert_eq!(bash(shell, "[ -e koel ] || cp $K koel").code, 0);
    let mut command = Command::new(shell.path("koel"));
    command.current_dir(shell.folder()).args(words.split(' '));
    if fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0) {
        let opened = bash(shell, &format!("chmod 777 . && chmod a+rx koel && {open}"));
        assert_eq!(opened.code, 0, "{}", opened.err);
        command.uid(65534).gid(65534);
    }
    Ran::of(command.output().unwrap())
}

#[test]
fn a_tree_that_is_imported_and_exported_is_the_same() {
    let shell = shell_with_tree();
    let report = shell.ok("store import tree --db db --json").json();
    assert_eq!((&report["files"], &report["folders"]), (&5.into(), &4.into()), "{report}");
    assert_eq!((&report["links"], &report["not_kept"]), (&1.into(), &serde_json::json!([])));
    shell.ok("store export tree --db db -o copy");
    let expected = snapshot(&shell.path("tree")).unwrap();
    assert_eq!(snapshot(&shell.path("copy")).unwrap(), expected);
    shell.ok("store export tree/sub --db db -o sub");
    assert_eq!(snapshot(&shell.path("sub")).unwrap(), snapshot(&shell.path("tree/sub")).unwrap());
    shell.ok("store export tree/hard --db db -o hard");
    assert_eq!(shell.read("hard"), b"a.txt");
    // Everything, and two names, below a folder.
    for words in ["", "tree/sub tree/a.txt"] {
        shell.ok(&format!("store export {words} --db db -o all"));
        assert_eq!(shell.read("all/tree/sub/c.txt"), b"sub/c.txt");
        fs::remove_dir_all(shell.path("all")).unwrap();
    }
    shell.ok("store verify --db db");
}

#[test]
fn what_is_not_kept_is_named_counted_and_in_the_exit_code() {
    let shell = shell_with_tree();
    let made = Command::new("mkfifo").arg(shell.path("tree/fifo")).status().unwrap();
    assert!(made.success());
    let ran = shell.run("store import tree --db db --json");
    let report = ran.json();
    assert_eq!((ran.code, ran.err.lines().count()), (1, 1), "{}", ran.err);
    assert_eq!(ran.err, "koel: tree/fifo: a FIFO is not kept\n");
    assert_eq!(report["not_kept"][0]["name"], "tree/fifo");
    assert_eq!((&report["files"], report["not_kept"].as_array().unwrap().len()), (&5.into(), 1));
    let ran = shell.run("store import tree --db db");
    assert!(ran.code == 1 && ran.text().contains("not kept    1\n"), "{}", ran.text());
}

#[test]
fn an_unreadable_file_or_folder_is_named_and_the_rest_is_kept() {
    let shell = shell_with_tree();
    for folder in ["tree/closed", "db"] {
        fs::create_dir(shell.path(folder)).unwrap();
    }
    let closed = ["tree/b.log", "tree/closed"];
    let set_mode = |name, mode| {
        fs::set_permissions(shell.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    closed.iter().for_each(|name| set_mode(name, 0o0));
    // Whatever the umask is.
    let open = "chmod -R a+rX . && chmod 777 db && chmod 0 tree/b.log tree/closed";
    let ran = as_another_user(&shell, open, "store import tree --db db --json");
    assert_eq!((ran.code, ran.err.lines().count()), (1, 2), "{}", ran.err);
    for name in closed {
        ran.says(&format!("koel: {name}: it cannot be read"));
    }
    let report = ran.json();
    assert_eq!((&report["files"], &report["folders"]), (&4.into(), &5.into()), "{report}");
    set_mode("tree/closed", 0o700);
    assert!(listed(&shell, "").contains(&"tree/sub/node_modules/d.txt".to_owned()));
}

#[test]
fn each_import_is_a_version_and_older_ones_still_have_deleted_files() {
    let shell = shell_with_store();
    let before = snapshot(&shell.path("tree")).unwrap();
    fs::remove_file(shell.path("tree/b.log")).unwrap();
    shell.write("tree/a.txt", "changed");
    let report = shell.ok("store import tree --db db --json").json();
    assert_eq!(report["versions"][0]["version"], 2);
    assert!(!listed(&shell, "").contains(&"tree/b.log".to_owned()));
    assert!(listed(&shell, "--version 1").contains(&"tree/b.log".to_owned()));
    assert_eq!(shell.run("store export tree/b.log --db db -o -").code, 2);
    assert_eq!(shell.ok("store export tree/b.log --version 1 --db db -o -").out, b"b.log");
    shell.ok("store export tree --version 1 --db db -o old");
    assert_eq!(snapshot(&shell.path("old")).unwrap(), before);
    let versions = shell.ok("store ls --versions --db db").text().to_owned();
    assert_eq!(versions.lines().count(), 2, "{versions}");
    assert!(versions.lines().all(|line| line.ends_with("Z  tree")), "{versions}");
    for _ in 0..3 {
        shell.ok("store import tree --db db");
    }
    shell.ok("store rm tree --version 4 --db db");
    assert_eq!(shell.run("store rm tree --version 4 --db db").code, 1);
    shell.ok("store rm --keep 2 --db db");
    let versions = shell.ok("store ls --versions --json --db db").text().to_owned();
    assert_eq!(versions.lines().count(), 2, "{versions}");
    assert!(versions.contains("\"version\":3") && versions.contains("\"version\":5"));
    shell.ok("store gc --db db");
    shell.ok("store verify --db db");
    assert_eq!(shell.run("store export --version 1 --db db -o none").code, 2);
}

#[test]
fn patterns_select_what_is_exported() {
    let shell = shell_with_store();
    let export = |options: &str, expected: &[&str]| {
        shell.ok(&format!("store export tree --db db -o out {options}"));
        assert_eq!(paths(&shell, "out"), expected, "{options}");
        fs::remove_dir_all(shell.path("out")).unwrap();
    };
    export("--include *.log", &["", "b.log"]);
    export("--include c.txt", &["", "sub", "sub/c.txt"]);
    export("--include tree/*.txt", &["", "a.txt"]);
    export("--include /tree/sub/ --exclude node_modules", &["", "sub", "sub/c.txt"]);
    export(
        "--include tree/**/d.* --include empty",
        &["", "empty", "sub", "sub/node_modules", "sub/node_modules/d.txt"],
    );
    export("--exclude sub --exclude *.txt --exclude hard", &["", "b.log", "dangling", "empty"]);
    let ran = shell.run("store export tree --db db -o out --include nothing");
    assert_eq!((ran.code, ran.err.lines().count()), (1, 1), "{}", ran.err);
    assert!(!shell.path("out").exists());
    assert_eq!(shell.run("store export tree --db db -o out --include [").code, 2);
}

#[test]
fn every_name_that_is_printed_is_accepted() {
    let shell = Shell::new();
    let mut random = Random::new(7);
    create_random(&mut random, &shell.path("tree"), 80).unwrap();
    for name in [&b"one\nline\\n"[..], b"\xff", b"\xe2\x80\xaegnp.exe", b" space ", b"\\"] {
        fs::write(shell.path("").join(OsStr::from_bytes(name)), name).unwrap();
        let path = OsStr::from_bytes(name);
        let imported = shell.command().args(["store", "import", "--db", "db"]).arg(path).output();
        assert!(imported.unwrap().status.success());
    }
    shell.ok("store import tree --db db");
    let names = listed(&shell, "");
    let json = shell.ok("store ls --json --db db").text().to_owned();
    let escaped: Vec<String> = json
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|object| object["escaped"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, escaped);
    let raw = shell.ok("store ls -0 --db db").out;
    assert_eq!(raw.iter().filter(|byte| **byte == 0).count(), names.len());
    for name in &names {
        assert!(name.chars().all(|c| !c.is_control() && c != '\u{202e}'), "{name:?}");
        let ran = with_arguments(&shell, "store export --db db -o out --", &[name]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.err);
        let out = shell.path("out");
        if out.is_dir() { fs::remove_dir_all(out) } else { fs::remove_file(out) }.unwrap();
        let ran = with_arguments(&shell, "store ls --db db --", &[name]);
        assert_eq!(ran.text().lines().next().unwrap()[41..], *name);
    }
    // Innermost first, so that each is still there.
    for name in names.iter().rev() {
        let ran = with_arguments(&shell, "store rm --inside --db db --", &[name]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.err);
    }
    assert!(listed(&shell, "").is_empty());
}

#[test]
fn names_are_relative_paths() {
    let shell = shell_with_tree();
    let absolute = shell.path("tree/a.txt");
    let absolute = absolute.to_str().unwrap();
    // Its folder may have spaces.
    let run = |words: &str| {
        let ran = with_arguments(&shell, words, &[absolute]);
        assert_eq!(ran.code, 0, "{words}: {}", ran.err);
        ran.out
    };
    run("store import --db db");
    assert_eq!(listed(&shell, ""), [absolute.trim_start_matches('/')]);
    assert_eq!(run("store export --db db -o -"), b"a.txt");
    run("store rm --db db");
    fs::create_dir(shell.path("inside")).unwrap();
    let mut import = shell.command();
    import.current_dir(shell.path("inside"));
    import.args(["store", "import", "../tree/sub/", ".", "--db", "../db"]);
    assert!(import.output().unwrap().status.success());
    let names = listed(&shell, "");
    assert!(names.contains(&"tree/sub".to_owned()) && names.contains(&"inside".to_owned()));
    shell.run("store import tree --db db").fails("");
}

#[test]
fn wrong_exports_give_an_error_of_one_line() {
    let shell = shell_with_store();
    shell.write("file", "in the way");
    for words in [
        "tree --db db -o -",
        "tree --db db -o file",
        "tree --db db -o no/such/folder",
        "tree/a.txt --db db -o no/such/file",
        "tree --db db -o db",
        "tree --db db -o db/new",
        "tree/none --db db -o out",
        r"tree\q --db db -o out",
        "/ --db db -o out",
        "tree --version 9 --db db -o out",
    ] {
        shell.run(&format!("store export {words}")).fails("");
    }
    assert!(shell.read("file") == b"in the way" && !shell.path("out").exists());
    shell.ok("store verify --db db");
}

#[test]
fn compressed_chunks_take_less_and_come_back() {
    let shell = Shell::new();
    let text = "the same line, again and again\n".repeat(20_000);
    let varied: String = (0..20_000).map(|line| format!("line {line} of {text:.9}\n")).collect();
    shell.write("file", &varied);
    shell.ok("store import file --db db --zstd");
    let stats = shell.ok("store stats --db db --json").json();
    assert!(stats["log_bytes"].as_u64().unwrap() * 3 < varied.len() as u64, "{stats}");
    // Without compression the chunks are found all the same, and the other way round.
    let again = shell.ok("store import file --db db --checksum --json").json();
    assert_eq!(again["new_chunks"], 0, "{again}");
    shell.ok("store export file --db db -o out");
    assert!(shell.read("out") == varied.as_bytes());
    shell.ok("store verify --db db");
    assert_eq!(shell.ok("store gc --db db --json").json()["deleted_chunks"], 0);
    shell.ok("store rm file --db db");
    assert!(shell.ok("store gc --db db --json").json()["deleted_chunks"].as_u64().unwrap() > 20);
    assert_eq!(shell.run("store import file --db db --zstd=99").code, 2);
}

/// A limit of the file size stands for a full disk: no later file would fit either.
#[test]
fn a_full_disk_ends_an_export_and_leaves_no_part_of_a_file() {
    let shell = Shell::new();
    fs::create_dir(shell.path("tree")).unwrap();
    for name in ["a", "b", "c"] {
        shell.write(&format!("tree/{name}"), Random::new(1).bytes(300_000));
    }
    shell.ok("store import tree --db db");
    bash(&shell, "ulimit -f 100; $K store export tree --db db -o out").fails("");
    assert_eq!(paths(&shell, "out"), [""]);
    shell.ok("store export tree --db db -o out");
    assert_eq!(paths(&shell, "out"), ["", "a", "b", "c"]);
}

/// Once an import of a tree with a socket failed each night.
#[test]
fn sockets_and_excluded_files_are_left_out() {
    let shell = shell_with_tree();
    let _socket = std::os::unix::net::UnixListener::bind(shell.path("tree/socket")).unwrap();
    let ran = shell.ok("store import tree --exclude node_modules --exclude *.log --db db --json");
    assert_eq!(ran.err, "koel: tree/socket: a socket is left out\n");
    let report = ran.json();
    assert_eq!((&report["excluded"], &report["files"]), (&2.into(), &3.into()), "{report}");
    assert_eq!(report["sockets"][0]["name"], "tree/socket");
    let names = listed(&shell, "");
    assert!(names.contains(&"tree/sub/c.txt".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("node_modules") || name.ends_with(".log")));
    assert_eq!(shell.run("store import tree --exclude [ --db db").code, 2);
}

/// Once one folder had three names, each with versions of its own.
#[test]
fn a_folder_keeps_its_name_however_its_path_is_given() {
    let shell = shell_with_tree();
    shell.ok("store import tree/sub --db db");
    let said = shell.ok("store import tree/sub/../../tree/./sub --db db").err;
    assert_eq!(said, "", "the same name");
    fs::create_dir(shell.path("x")).unwrap();
    for path in [shell.path("tree/sub").to_str().unwrap(), "./sub"] {
        let mut import = shell.command();
        import.current_dir(shell.path("tree"));
        import.args(["store", "import", "--db", "../db", path]);
        let output = import.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && said.contains("imported as \"tree/sub\""), "{said}");
    }
    let versions = shell.ok("store ls --versions --db db").text().to_owned();
    assert_eq!(versions.lines().filter(|line| line.ends_with("  tree/sub")).count(), 4);
    assert_eq!(versions.lines().count(), 4, "{versions}");
    // Another name, if it is asked for; and the path again, once the name is gone.
    shell.ok("store import tree/sub --name other --db db");
    shell.ok("store rm other --db db");
    assert_eq!(shell.ok("store import tree/sub --db db").err, "");
}

/// Once it was gone from every version, without a word.
#[test]
fn a_part_of_a_folder_is_removed_only_if_that_is_asked_for() {
    let shell = shell_with_store();
    shell.ok("store import tree --db db");
    shell.ok_with("store import - --name a --db db", b"text");
    let ran = shell.run("store rm a tree/sub/c.txt --db db");
    ran.fails("");
    assert!(listed(&shell, "").contains(&"a".to_owned()), "nothing is removed");
    assert!(ran.err.contains("part of the imported \"tree\"") && ran.err.contains("--inside"));
    assert!(listed(&shell, "").contains(&"tree/sub/c.txt".to_owned()));
    let ran = shell.ok("store rm --inside tree/sub/c.txt --db db");
    assert_eq!(ran.err, "koel: db: \"tree/sub/c.txt\" removed from 2 versions\n");
    for version in ["--version 1", "--version 2"] {
        assert!(!listed(&shell, version).contains(&"tree/sub/c.txt".to_owned()));
    }
    assert_eq!(shell.run("store rm --inside tree/sub/c.txt --db db").code, 1);
    // What only older versions have goes, too.
    fs::remove_file(shell.path("tree/b.log")).unwrap();
    shell.ok("store import tree --db db");
    let ran = shell.ok("store rm --inside tree/b.log --db db");
    assert_eq!(ran.err, "koel: db: \"tree/b.log\" removed from 2 versions\n");
}

#[test]
fn times_are_listed() {
    let shell = shell_with_tree();
    let file = fs::File::options().write(true).open(shell.path("tree/a.txt")).unwrap();
    let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    file.set_modified(time).unwrap();
    shell.ok("store import tree --db db");
    shell.ok_with("store import - --name stream --db db", b"text");
    let text = shell.ok("store ls tree/a.txt stream --db db").text().to_owned();
    let file = "                5  2001-09-09T01:46:40Z  tree/a.txt\n";
    let stream = "                4  -                     stream\n";
    assert_eq!(text, [file, stream].concat());
}

/// Once what was missing did not come back.
#[test]
fn an_export_over_read_only_folders_restores_what_is_missing() {
    let shell = shell_with_tree();
    let set_mode = |name: &str, mode| {
        fs::set_permissions(shell.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    for name in ["tree/sub/node_modules", "tree/sub", "tree"] {
        set_mode(name, 0o555);
    }
    shell.ok("store import tree --db db");
    let export = || {
        let words = "store export tree --db db -o copy";
        let ran = as_another_user(&shell, "chmod -R a+rX db", words);
        assert_eq!(ran.code, 0, "{}", ran.err);
    };
    export();
    let expected = snapshot(&shell.path("tree")).unwrap();
    for missing in ["copy/sub/c.txt", "copy/a.txt", "copy/empty"] {
        ["copy/sub", "copy"].iter().for_each(|folder| set_mode(folder, 0o755));
        let path = shell.path(missing);
        if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) }.unwrap();
        ["copy/sub", "copy"].iter().for_each(|folder| set_mode(folder, 0o555));
        export();
        let found = snapshot(&shell.path("copy")).unwrap();
        let difference = expected.iter().zip(&found).find(|(one, other)| one != other);
        assert_eq!((difference, found.len()), (None, expected.len()), "{missing}");
    }
    bash(&shell, "chmod -R u+w tree copy");
}

/// Once everything belonged to root after its export, without a word.
#[test]
fn other_owners_than_the_imported_ones_are_told_once() {
    let shell = shell_with_tree();
    for file in ["a.txt", "b.log", "sub/c.txt"] {
        if std::os::unix::fs::chown(shell.path(&format!("tree/{file}")), Some(4242), None).is_err()
        {
            // Only the superuser can give files away. Then nothing has another owner.
            break;
        }
    }
    let is_root = fs::metadata(shell.path("tree/a.txt")).unwrap().uid() == 4242;
    shell.ok("store import tree --db db");
    let ran = shell.ok("store export tree --db db -o copy");
    let told = "koel: 3 of the restored files, folders and links got another owner or group than \
                imported; --owners restores them, as the superuser\n";
    assert_eq!(ran.err, if is_root { told } else { "" });
    let report = shell.ok("store export tree --db db -o copy --json").json();
    assert_eq!(report["other_owners"], if is_root { 3 } else { 0 });
    assert_eq!(shell.ok("store export tree --db db -o owned --owners").err, "");
}

/// Once the summary said "not restored 1" where a folder had lost all its entries.
#[test]
fn the_summary_counts_what_is_missing_of_a_folder() {
    let shell = shell_with_store();
    let store = LogStore::open(shell.path("db")).unwrap();
    let keys: Vec<_> = store.keys().map(Result::unwrap).collect();
    // The copies of the listings, and the listings: docs/FORMAT-STORES.md.
    for copy in keys.iter().filter(|key| key.starts_with(b"\xffC")) {
        assert!(store.delete(copy, Durability::None).unwrap());
        assert!(store.delete(&[b"\xffc", &copy[2..]].concat(), Durability::None).unwrap());
    }
    store.close().unwrap();
    let ran = shell.run("store export tree --db db -o copy");
    assert!(ran.code == 1 && ran.text().contains("\nmissing       9\n"), "{}", ran.text());
    assert!(ran.err.ends_with("; 9 files, folders and links in it are missing\n"), "{}", ran.err);
    let ran = shell.run("store verify --db db");
    assert!(ran.code == 2 && ran.text().contains("\nmissing  9\n"), "{}", ran.text());
}
