//! Starts servers, and talks to them.
//!
//! **Ports** come from below the range from which the system takes ports for outgoing connections
//! (32,768 on Linux), because any connection of another test may have one of those. A server that
//! finds its port taken all the same is started again with another one.
//!
//! **Waits** end when what they wait for happens. Their limit is for tests that hang.

use std::env;
use std::net::TcpListener;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::{Client, Connection, Value, cmd};
use tempfile::TempDir;

/// A running server, killed when dropped.
pub(crate) struct Server {
    process: Child,
    port: u16,
    program: PathBuf,
    folder: Arc<TempDir>,
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

/// The module that is upgraded to the other one.
pub(crate) fn module_before() -> String {
    env::var("KOEL_MODULE_BEFORE").expect("KOEL_MODULE_BEFORE: run scripts/valkey")
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
        Self::start_in(Arc::new(tempfile::tempdir().unwrap()), program, modules, further)
    }

    /// Starts a server in the folder of one that is over, whose files it loads.
    fn start_in(
        folder: Arc<TempDir>,
        program: &Path,
        modules: &[String],
        further: &[&str],
    ) -> Self {
        let start = || Self::start_on(free_port(), Arc::clone(&folder), program, modules, further);
        (0..ATTEMPTS).find_map(|_| start()).expect("a port that nobody takes")
    }

    /// Starts a server on a port. `None` if another process has taken that.
    fn start_on(
        port: u16,
        folder: Arc<TempDir>,
        program: &Path,
        modules: &[String],
        further: &[&str],
    ) -> Option<Self> {
        let mut command = Command::new(program);
        command.args(further);
        command.args(["--bind", "127.0.0.1", "--save", "", "--enable-debug-command", "yes"]);
        command.args(["--repl-diskless-sync-delay", "0", "--port", &port.to_string()]);
        command.args(["--logfile", &log_name(port), "--dir"]).arg(folder.path());
        for module in modules {
            command.arg("--loadmodule").args(module.split_whitespace());
        }
        let process = command.stdout(Stdio::null()).spawn().unwrap();
        let mut server = Self { process, port, program: program.into(), folder };
        let is_ready = until("a start", || server.is_ready());
        if is_ready {
            return Some(server);
        }
        let log = server.log();
        assert!(log.contains(TAKEN), "{} did not start:\n{log}", server.program.display());
        None
    }

    /// Whether it has loaded its files and listens. `None`: not yet. The log tells it: a connection
    /// could be one to another process on the same port, which may not answer.
    fn is_ready(&mut self) -> Option<bool> {
        let has_ended = self.process.try_wait().unwrap().is_some();
        let is_ready = self.log().contains("Ready to accept connections");
        (has_ended || is_ready).then_some(!has_ended)
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

    /// A replica, and a connection to it.
    pub(crate) fn replica(&self) -> (Self, Connection) {
        let replica = self.another();
        let mut connection = replica.connect("resp2");
        ok(&mut connection, &format!("REPLICAOF 127.0.0.1 {}", self.port));
        (replica, connection)
    }

    /// Kills the server, and starts one with other modules in its folder.
    pub(crate) fn then_with(self, modules: &[String], further: &[&str]) -> Self {
        let (folder, program) = (Arc::clone(&self.folder), self.program.clone());
        drop(self);
        Self::start_in(folder, &program, modules, further)
    }

    /// Kills the process.
    pub(crate) fn kill(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }

    /// Starts a server as this one, which was killed, on its port: a node of a cluster.
    pub(crate) fn again(self) -> Self {
        self.again_with(&[module("")])
    }

    /// The same with other modules.
    pub(crate) fn again_with(self, modules: &[String]) -> Self {
        let (port, folder, program) = (self.port, Arc::clone(&self.folder), self.program.clone());
        drop(self);
        // The log tells when a server is ready.
        std::fs::remove_file(folder.path().join(log_name(port))).unwrap();
        until("its port", || Self::start_on(port, Arc::clone(&folder), &program, modules, &NODE))
    }

    /// Stops the process, as if its machine hung.
    pub(crate) fn stop(&self) {
        self.signal("-STOP");
    }

    /// Lets a stopped process go on.
    pub(crate) fn go_on(&self) {
        self.signal("-CONT");
    }

    /// Lets the process take so many bytes more than it has; `None` for any number.
    pub(crate) fn limit_memory(&self, further: Option<u64>) {
        let process = self.process.id().to_string();
        let limit = match further {
            None => "unlimited".to_owned(),
            Some(further) => {
                let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
                let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
                let size: u64 = size.trim().trim_end_matches(" kB").parse().unwrap();
                (size * 1024 + further).to_string()
            }
        };
        // Only the soft limit, which any user may raise again.
        let limited =
            Command::new("prlimit").args(["--pid", &process, &format!("--as={limit}:")]).status();
        assert!(limited.unwrap().success());
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.process.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits until the server has ended by itself. Whether it was not killed.
    pub(crate) fn ends_well(&mut self) -> bool {
        until("an end", || self.process.try_wait().unwrap()).success()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join(log_name(self.port))).unwrap_or_default()
    }
}

/// What makes a server a node of a cluster.
pub(crate) const NODE: [&str; 4] = ["--cluster-enabled", "yes", "--cluster-node-timeout", "5000"];

/// How often a server is started when its port is taken.
const ATTEMPTS: usize = 10;
/// What servers log then.
const TAKEN: &str = "Address already in use";
/// Ports of servers. Nodes of a cluster also use the one that is `BUS` above.
const PORTS: Range<u16> = 10_000..20_000;
const BUS: u16 = 10_000;

/// The log of a start. No other start of this process has the same port.
fn log_name(port: u16) -> String {
    format!("{port}.log")
}

/// A port that nothing listens on, nor on that of its cluster bus. Each call returns another one.
/// Processes begin at different places.
fn free_port() -> u16 {
    static RETURNED: AtomicU16 = AtomicU16::new(0);
    let count = u32::from(PORTS.end - PORTS.start);
    let next = || {
        let before = u32::from(RETURNED.fetch_add(1, Ordering::Relaxed));
        let place = (std::process::id() % count * 61 + before) % count;
        PORTS.start + u16::try_from(place).unwrap()
    };
    let is_free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let mut ports = std::iter::repeat_with(next).take(PORTS.len());
    ports.find(|&port| is_free(port) && is_free(port + BUS)).expect("a free port")
}

/// Tries until it succeeds.
pub(crate) fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(300) {
        if let Some(done) = attempt() {
            return done;
        }
        sleep(Duration::from_millis(25));
    }
    panic!("{what} takes more than five minutes")
}

/// Waits until two servers have equal data.
pub(crate) fn await_equal(one: &Server, other: &Server) {
    let digest = |server: &Server| run(&mut server.connect("resp2"), "DEBUG DIGEST").ok();
    until("equal data", || {
        let one = digest(one)?;
        (Some(one) == digest(other)).then_some(())
    });
}

/// Waits until a replica has all that was written through this connection.
pub(crate) fn await_replica(connection: &mut Connection) {
    assert_eq!(number(&ok(connection, "WAIT 1 300000")), 1);
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
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

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn a_server_whose_port_is_taken_gets_another() {
    for program in programs() {
        for (taken, further) in [(0, vec![]), (BUS, vec!["--cluster-enabled", "yes"])] {
            let port = free_port();
            let other = TcpListener::bind(("127.0.0.1", port + taken)).unwrap();
            let folder = Arc::new(tempfile::tempdir().unwrap());
            let start = || Server::start_on(port, Arc::clone(&folder), &program, &[], &further);
            assert!(start().is_none());
            drop(other);
            drop(start().expect("the port is free"));
        }
    }
}
