//! `koel push` and `koel pull` with every server. crates/koel-cli/tests/it/remote.rs has the errors
//! that need no server.

use std::env;
use std::fs;
use std::process::{Command, Output, Stdio};

use redis::{Connection, Value};
use tempfile::TempDir;

use crate::server::{Server, call, items, load, module, number, ok, on_each, programs, reference};
use crate::values::reference_chunks;

/// A folder in which `koel` runs.
struct Shell(TempDir);

impl Shell {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn run(&self, line: &str) -> Output {
        let mut command = Command::new(env::var("KOEL").expect("KOEL: run scripts/valkey"));
        command.args(line.split_whitespace()).current_dir(&self.0).stdin(Stdio::null());
        command.output().unwrap()
    }

    #[track_caller]
    fn ok(&self, line: &str) {
        let ran = self.run(line);
        assert!(ran.status.success(), "{line}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    #[track_caller]
    fn fails(&self, line: &str, sentence: &str) {
        let ran = self.run(line);
        let error = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.code() == Some(2) && error.contains(sentence), "{line}: {error}");
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.path().join(name)).unwrap()
    }

    /// Builds the filter `name` from the lines `name0`, `name1` and so on.
    fn build(&self, name: &str, count: usize, options: &str) {
        let lines: String = (0..count).map(|number| format!("{name}{number}\n")).collect();
        fs::write(self.0.path().join("lines"), lines).unwrap();
        self.ok(&format!("build lines -o {name} {options}"));
    }

    /// Pulls a filter, which must be the file `name`.
    #[track_caller]
    fn pulls_same(&self, url: &str, name: &str, options: &str) {
        self.ok(&format!("pull {url} -o pulled {options}"));
        assert!(self.read("pulled") == self.read(name), "{url} {options}");
    }
}

fn url(server: &Server, key: &str) -> String {
    format!("redis://127.0.0.1:{}/{key}", server.port())
}

fn exists(connection: &mut Connection, key: &str, item: &str) -> bool {
    number(&ok(connection, &format!("CF.EXISTS {key} {item}"))) == 1
}

/// All keys of a server.
fn names(connection: &mut Connection) -> usize {
    usize::try_from(number(&ok(connection, "DBSIZE"))).unwrap()
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn filters_of_files_answer_in_servers_and_come_back_as_they_were() {
    let shell = Shell::new();
    shell.build("fixed", 3000, "--keys 3000");
    shell.build("grown", 3000, "--grow");
    shell.build("secret", 100, "--secret --prefer fast --fpr 1e-6");
    on_each(|server, connection| {
        for name in ["fixed", "grown", "secret"] {
            let url = url(server, name);
            shell.ok(&format!("push {name} {url}"));
            assert!(exists(connection, name, &format!("{name}99")), "{name}");
            assert!(!exists(connection, name, "another"), "{name}");
            assert_eq!(number(&ok(connection, &format!("PTTL {name}"))), -1);
            shell.pulls_same(&url, name, "");
            shell.pulls_same(&url, name, "--snapshot");
        }
        // A filter that grows in a file grows in the server.
        let more = items("more", 0..1000);
        ok(connection, &format!("CF.INSERT grown NOCREATE ITEMS {more}"));
        shell.ok(&format!("pull {} -o more", url(server, "grown")));
        shell.ok(&format!("push --replace more {}", url(server, "fixed")));
        assert!(exists(connection, "fixed", "more7") && exists(connection, "fixed", "grown7"));
        // A filter of the server becomes a file.
        ok(connection, &format!("CF.INSERT made ITEMS {}", items("item", 0..50)));
        shell.ok(&format!("pull {} -o made", url(server, "made")));
        shell.ok("info made");
        assert_eq!(names(connection), 4);
    });
}

/// Regression: `CF.EXISTS key KEY99` was 0, and `koel check` found it.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_filter_of_lines_is_asked_as_koel_check_asks_it() {
    let shell = Shell::new();
    shell.build("key", 1000, "--ignore-case");
    on_each(|server, connection| {
        shell.ok(&format!("push key {}", url(server, "key")));
        assert!(exists(connection, "key", "KEY99") && !exists(connection, "key", "KEY1000"));
        ok(connection, "CF.ADD key MORE");
        assert!(exists(connection, "key", "more"));
        // After it was saved, loaded and copied too.
        ok(connection, "COPY key copy");
        ok(connection, "DEBUG RELOAD");
        assert!(exists(connection, "copy", "More") && exists(connection, "key", "More"));
    });
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_large_filter_travels_in_chunks() {
    let shell = Shell::new();
    shell.build("large", 1000, "--keys 15M");
    assert!(shell.read("large").len() > 20 << 20);
    let server = Server::start(&programs()[0], &[module("")]);
    shell.ok(&format!("push large {}", url(&server, "large?db=3")));
    shell.pulls_same(&url(&server, "large?db=3"), "large", "");
    shell.fails(&format!("pull {} -o x", url(&server, "large")), "has no key large");
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn what_cannot_be_pushed_or_pulled_changes_nothing() {
    let shell = Shell::new();
    shell.build("new", 100, "");
    on_each(|server, connection| {
        ok(connection, "CF.ADD seen ada");
        ok(connection, "LPUSH names ada");
        shell.fails(&format!("push new {}", url(server, "seen")), "seen exists in");
        shell.fails(&format!("push new {}", url(server, "names")), "names exists in");
        let replace = |key: &str| format!("push --replace new {}", url(server, key));
        shell.fails(&replace("names"), "is not a filter, its type is list");
        shell.fails(&format!("pull {} -o x", url(server, "names")), "its type is list");
        let chunks = reference_chunks();
        load(connection, "compat", &chunks);
        shell.fails(&format!("pull {} -o x", url(server, "compat")), "RedisBloom's layout");
        load(connection, "half", &chunks[..2]);
        shell.fails(&format!("pull {} -o x", url(server, "half")), "half in 127.0.0.1:");
        ok(connection, "CONFIG SET maxmemory 1");
        shell.fails(&format!("push new {}", url(server, "other")), "refuses: OOM");
        ok(connection, "CONFIG SET maxmemory 0");
        assert_eq!(names(connection), 4);
        assert!(exists(connection, "seen", "ada"));
        ok(connection, "CONFIG SET requirepass p@ss");
        shell.fails(&replace("seen"), "REDISCLI_AUTH");
        shell.ok(&replace("seen").replace("redis://", "redis://:p%40ss@"));
    });
}

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn servers_without_the_module_are_told_apart() {
    let shell = Shell::new();
    shell.build("new", 100, "");
    let program = &programs()[0];
    let server = Server::start(program, &[]);
    shell.fails(&format!("push new {}", url(&server, "seen")), "does not have Koel's module");
    let server = Server::start(program, &[module("PREFIX KF TYPE koelfiltr")]);
    shell.fails(&format!("push new {}", url(&server, "seen")), "--prefix");
    shell.ok(&format!("push --prefix KF new {}", url(&server, "seen")));
    shell.ok(&format!("push --replace --prefix KF new {}", url(&server, "seen")));
    shell.pulls_same(&url(&server, "seen"), "new", "--prefix KF");
    let server = Server::start(program, &[reference()]);
    shell.fails(&format!("push new {}", url(&server, "seen")), "RedisBloom's module");
    ok(&mut server.connect("resp2"), "CF.ADD seen ada");
    shell.fails(&format!("pull {} -o x", url(&server, "seen")), "RedisBloom's layout");
    assert_eq!(names(&mut server.connect("resp2")), 1);
}

/// In a cluster, every node sends `koel` on to the one that has the key.
pub(crate) fn through_any_node(nodes: &[Server]) {
    let shell = Shell::new();
    shell.build("new", 100, "");
    for (index, node) in nodes.iter().enumerate() {
        let key = format!("pushed{index}");
        shell.ok(&format!("push new {}", url(node, &key)));
        for other in nodes {
            shell.pulls_same(&url(other, &key), "new", "");
        }
    }
}

/// Keys with any bytes.
#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_key_may_have_any_bytes() {
    let shell = Shell::new();
    shell.build("new", 100, "");
    let server = Server::start(&programs()[0], &[module("")]);
    let mut connection = server.connect("resp2");
    for (written, key) in [("a%20b%0A%FF", &b"a b\n\xff"[..]), ("%7B%7D", b"{}"), ("a/b", b"a/b")] {
        shell.ok(&format!("push new {}", url(&server, written)));
        assert_eq!(call(&mut connection, &[b"EXISTS", key]), Ok(Value::Int(1)));
        shell.pulls_same(&url(&server, written), "new", "");
    }
}
