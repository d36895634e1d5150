//! Starts servers, and talks to them.

use std::env;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use redis::{Client, Connection, Value, cmd};
use tempfile::TempDir;

/// A running server, killed when dropped.
pub(crate) struct Server {
    process: Child,
    port: u16,
    program: PathBuf,
    folder: TempDir,
}

/// The programs under test.
pub(crate) fn programs() -> Vec<PathBuf> {
    let programs = env::var("KOEL_SERVERS").expect("KOEL_SERVERS: run scripts/valkey");
    programs.split(':').map(PathBuf::from).collect()
}

/// The module, with its arguments.
pub(crate) fn module(arguments: &str) -> String {
    let path = env::var("KOEL_MODULE").expect("KOEL_MODULE: run scripts/valkey");
    format!("{path} {arguments}")
}

/// The module to compare with.
pub(crate) fn reference() -> String {
    env::var("KOEL_REFERENCE").expect("KOEL_REFERENCE: run scripts/valkey")
}

/// Runs `test` on every server with the module, with RESP2 and with RESP3.
pub(crate) fn on_each(test: impl Fn(&Server, &mut Connection)) {
    for program in programs() {
        for protocol in ["resp2", "resp3"] {
            let server = Server::start(&program, &[module("")]);
            let mut connection = server.connect(protocol);
            println!("{} {protocol}", program.display());
            test(&server, &mut connection);
        }
    }
}

impl Server {
    /// Starts a server with modules.
    pub(crate) fn start(program: &Path, modules: &[String]) -> Self {
        Self::start_with(program, modules, &[])
    }

    /// Starts a server with modules and further arguments.
    pub(crate) fn start_with(program: &Path, modules: &[String], further: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let mut command = Command::new(program);
        command.args(further);
        command.args(["--bind", "127.0.0.1", "--save", "", "--enable-debug-command", "yes"]);
        command.args(["--port", &port.to_string(), "--logfile", "log", "--dir"]);
        command.arg(folder.path());
        for module in modules {
            command.arg("--loadmodule").args(module.split_whitespace());
        }
        let process = command.stdout(Stdio::null()).spawn().unwrap();
        let mut server = Self { process, port, program: program.into(), folder };
        for _ in 0..400 {
            if server.process.try_wait().unwrap().is_some() {
                break;
            }
            if server.client("resp2").get_connection().is_ok() {
                return server;
            }
            sleep(Duration::from_millis(25));
        }
        panic!("{} did not start:\n{}", server.program.display(), server.log())
    }

    fn client(&self, protocol: &str) -> Client {
        Client::open(format!("redis://127.0.0.1:{}/?protocol={protocol}", self.port)).unwrap()
    }

    pub(crate) fn connect(&self, protocol: &str) -> Connection {
        self.client(protocol).get_connection().unwrap()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Another server of the same program.
    pub(crate) fn another(&self) -> Self {
        Self::start(&self.program, &[module("")])
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

/// A port that nothing listens on. The nodes of a cluster also use the one that is 10,000 above.
fn free_port() -> u16 {
    let port = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    std::iter::repeat_with(port).find(|&port| port < 55_000).unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Sends a line of words, and returns the reply or the text of the error.
pub(crate) fn run(connection: &mut Connection, line: &str) -> Result<Value, String> {
    let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
    call(connection, &words)
}

/// Sends a command of bytes, and returns the reply or the text of the error.
pub(crate) fn call(connection: &mut Connection, arguments: &[&[u8]]) -> Result<Value, String> {
    let mut command = cmd(std::str::from_utf8(arguments[0]).unwrap());
    for argument in &arguments[1..] {
        command.arg(argument);
    }
    let reply = command.query::<Value>(connection);
    reply.map_err(|error| match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    })
}

/// Sends a line that must succeed.
#[track_caller]
pub(crate) fn ok(connection: &mut Connection, line: &str) -> Value {
    run(connection, line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// A number, or a boolean as one.
#[track_caller]
pub(crate) fn number(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        Value::Boolean(yes) => i64::from(*yes),
        other => panic!("no number: {other:?}"),
    }
}

/// Numbers, or booleans as numbers.
#[track_caller]
pub(crate) fn numbers(value: &Value) -> Vec<i64> {
    match value {
        Value::Array(values) => values.iter().map(number).collect(),
        other => panic!("no list: {other:?}"),
    }
}

/// Bytes of a string.
#[track_caller]
pub(crate) fn bytes(value: Value) -> Vec<u8> {
    match value {
        Value::BulkString(bytes) => bytes,
        Value::SimpleString(text) => text.into_bytes(),
        other => panic!("no string: {other:?}"),
    }
}

/// Words `name0 name1 ..`.
pub(crate) fn items(name: &str, range: std::ops::Range<usize>) -> String {
    let words: Vec<String> = range.map(|number| format!("{name}{number}")).collect();
    words.join(" ")
}

/// The chunks of a filter with their iterators.
pub(crate) fn dump(connection: &mut Connection, key: &str) -> Vec<(i64, Vec<u8>)> {
    let (mut chunks, mut iterator) = (Vec::new(), 0);
    loop {
        let reply = ok(connection, &format!("CF.SCANDUMP {key} {iterator}"));
        let Value::Array(pair) = reply else { panic!("no pair") };
        let [next, chunk] = <[Value; 2]>::try_from(pair).unwrap();
        iterator = number(&next);
        if iterator == 0 {
            return chunks;
        }
        chunks.push((iterator, bytes(chunk)));
    }
}

/// Loads chunks.
pub(crate) fn load(connection: &mut Connection, key: &str, chunks: &[(i64, Vec<u8>)]) {
    for (iterator, chunk) in chunks {
        let iterator = iterator.to_string();
        let command = [b"CF.LOADCHUNK", key.as_bytes(), iterator.as_bytes(), chunk];
        assert_eq!(call(connection, &command), Ok(Value::Okay));
    }
}
