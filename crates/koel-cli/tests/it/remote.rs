//! `koel push` and `koel pull` against a small server in this process, which can also answer what
//! no server should. crates/koel-valkey/tests/servers runs them against real servers.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::support::{Ran, Shell, keys};

/// A reply as bytes of the protocol.
type Reply = Vec<u8>;
type Command = Vec<Vec<u8>>;

/// What a server holds: the type and the chunks of each key; and what was asked.
#[derive(Default)]
struct State {
    values: HashMap<Vec<u8>, (&'static str, Vec<Vec<u8>>)>,
    asked: Vec<String>,
}

/// A server. `answer` may answer a command in another way than the server does.
struct Fake {
    port: u16,
    state: Arc<Mutex<State>>,
}

impl Fake {
    fn start(
        answer: impl Fn(&mut State, &Command) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let (answer, shared) = (Arc::new(answer), Arc::clone(&state));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (answer, shared) = (Arc::clone(&answer), Arc::clone(&shared));
                thread::spawn(move || serve(&stream.unwrap(), &shared, &*answer));
            }
        });
        Self { port, state }
    }

    fn url(&self, key: &str) -> String {
        format!("redis://127.0.0.1:{}/{key}", self.port)
    }

    fn put(&self, key: &str, kind: &'static str, chunks: Vec<Vec<u8>>) {
        self.state.lock().unwrap().values.insert(key.into(), (kind, chunks));
    }

    fn names(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let names = state.values.keys().map(|key| String::from_utf8(key.clone()).unwrap());
        names.collect()
    }

    fn asked(&self) -> Vec<String> {
        self.state.lock().unwrap().asked.clone()
    }
}

fn serve(
    stream: &TcpStream,
    state: &Mutex<State>,
    answer: &dyn Fn(&mut State, &Command) -> Option<Reply>,
) {
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    let mut queued: Option<Vec<Command>> = None;
    while let Some(command) = read_command(&mut reader) {
        let state = &mut *state.lock().unwrap();
        let mut run =
            |command: &Command| answer(state, command).unwrap_or_else(|| execute(state, command));
        let reply = match (&command[0][..], &mut queued) {
            (b"MULTI", _) => {
                queued = Some(Vec::new());
                b"+OK\r\n".to_vec()
            }
            (b"EXEC", Some(commands)) => {
                let replies: Vec<Reply> = commands.iter().map(&mut run).collect();
                queued = None;
                [format!("*{}\r\n", replies.len()).into_bytes(), replies.concat()].concat()
            }
            (_, Some(commands)) => {
                commands.push(command);
                b"+QUEUED\r\n".to_vec()
            }
            (_, None) => run(&command),
        };
        if writer.write_all(&reply).is_err() {
            return;
        }
    }
}

/// The next command; `None` at the end of the connection.
fn read_command(reader: &mut impl BufRead) -> Option<Command> {
    let mut line = String::new();
    let mut number = |reader: &mut dyn BufRead| {
        line.clear();
        reader.read_line(&mut line).ok()?;
        line.get(1..)?.trim().parse::<usize>().ok()
    };
    let parts = number(reader)?;
    let part = |_| {
        let mut bytes = vec![0; number(reader)? + 2];
        reader.read_exact(&mut bytes).ok()?;
        bytes.truncate(bytes.len() - 2);
        Some(bytes)
    };
    (0..parts).map(part).collect()
}

fn integer(number: impl std::fmt::Display) -> Reply {
    format!(":{number}\r\n").into_bytes()
}

fn bulk(bytes: &[u8]) -> Reply {
    [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// The commands that koel sends, as a server with the module executes them.
fn execute(State { values, asked }: &mut State, command: &Command) -> Reply {
    let name = String::from_utf8(command[0].clone()).unwrap();
    asked.push(name.clone());
    let key = command.get(1).cloned().unwrap_or_default();
    match &name[..] {
        "HELLO" => b"%0\r\n".to_vec(),
        "TYPE" => format!("+{}\r\n", values.get(&key).map_or("none", |value| value.0)).into(),
        "EXPIRE" | "PERSIST" => integer(1),
        "UNLINK" => integer(u8::from(values.remove(&key).is_some())),
        "RENAMENX" if values.contains_key(&command[2]) => integer(0),
        "RENAME" | "RENAMENX" => {
            let value = values.remove(&key).unwrap();
            values.insert(command[2].clone(), value);
            if name == "RENAME" { b"+OK\r\n".to_vec() } else { integer(1) }
        }
        "COPY" => {
            values.insert(command[2].clone(), values[&key].clone());
            integer(1)
        }
        "CF.LOADCHUNK" => {
            values.entry(key).or_insert(("filter", Vec::new())).1.push(command[3].clone());
            b"+OK\r\n".to_vec()
        }
        "CF.SCANDUMP" => {
            let number: usize = std::str::from_utf8(&command[2]).unwrap().parse().unwrap();
            match values[&key].1.get(number) {
                Some(chunk) => [b"*2\r\n", &integer(number + 1)[..], &bulk(chunk)].concat(),
                None => b"*2\r\n:0\r\n$-1\r\n".to_vec(),
            }
        }
        _ => b"+OK\r\n".to_vec(),
    }
}

fn plain() -> Fake {
    Fake::start(|_, _| None)
}

#[test]
fn a_filter_is_the_same_after_push_and_pull() {
    let (shell, server) = (Shell::new(), plain());
    for (name, options) in [
        ("fixed", "--keys 1000"),
        ("growing", "--grow"),
        ("copies", "--keys 10"),
        ("secret", "--secret --keys 1000"),
        // Two chunks.
        ("large", "--keys 3M"),
    ] {
        let lines = if name == "copies" { vec!["a".into(); 100] } else { keys("key", 900) };
        shell.build(name, &lines, options);
        let url = server.url(name);
        let ran = shell.ok(&format!("push {name} {url}"));
        assert!(ran.text().starts_with(&format!("key   {name} in 127.0.0.1:")), "{}", ran.text());
        for options in ["", "--snapshot"] {
            let ran = shell.ok(&format!("pull {url} -o pulled {options} --json"));
            assert_eq!(ran.json()["keys"], u64::try_from(lines.len()).unwrap());
            assert!(shell.read("pulled") == shell.read(name), "{name} {options}");
        }
        assert!(shell.ok(&format!("pull {url} -o -")).out == shell.read(name), "{name}");
    }
    assert!(server.names().iter().all(|name| !name.contains("koel-part")), "{:?}", server.names());
}

#[test]
fn a_key_that_exists_is_replaced_only_by_a_filter_and_only_if_asked() {
    let (shell, server) = (Shell::new(), plain());
    shell.build("old", &keys("old", 10), "");
    shell.build("new", &keys("new", 10), "");
    server.put("names", "list", Vec::new());
    shell.ok(&format!("push old {}", server.url("seen")));
    shell.run(&format!("push new {}", server.url("seen"))).fails("exists in 127.0.0.1:");
    shell.run(&format!("push new {}", server.url("names"))).fails("--replace");
    let ran = shell.run(&format!("push --replace new {}", server.url("names")));
    ran.fails("names in 127.0.0.1:").says("is not a filter, its type is list");
    shell.ok(&format!("pull {} -o pulled", server.url("seen")));
    assert!(shell.read("pulled") == shell.read("old"));
    shell.ok(&format!("push --replace new {}", server.url("seen")));
    shell.ok(&format!("pull {} -o pulled", server.url("seen")));
    assert!(shell.read("pulled") == shell.read("new"));
    let mut names = server.names();
    names.sort();
    assert_eq!(names, ["names", "seen"]);
}

#[test]
fn a_filter_that_appears_meanwhile_stays() {
    let shell = Shell::new();
    let server = Fake::start(|state, command| {
        if command[0] == b"PERSIST" {
            state.values.insert(b"seen".to_vec(), ("filter", Vec::new()));
        }
        None
    });
    shell.build("new", &keys("new", 10), "");
    shell.run(&format!("push new {}", server.url("seen"))).fails("seen exists");
    assert_eq!(server.names(), ["seen"]);
}

#[test]
fn a_broken_push_leaves_nothing_and_what_cannot_be_removed_expires() {
    let shell = Shell::new();
    let refuse = |state: &mut State, command: &Command| {
        let loaded = state.asked.iter().filter(|&name| name == "CF.LOADCHUNK").count();
        let is_second = command[0] == b"CF.LOADCHUNK" && loaded == 1;
        is_second.then(|| b"-OOM command not allowed when used memory > 'maxmemory'.\r\n".to_vec())
    };
    let server = Fake::start(refuse);
    shell.build("new", &keys("new", 10), "");
    shell.run(&format!("push new {}", server.url("seen"))).fails("refuses: OOM command not");
    assert_eq!(server.names(), Vec::<String>::new());
    let asked = server.asked();
    assert_eq!(asked.iter().filter(|&name| name == "EXPIRE").count(), 2, "{asked:?}");
}

#[test]
fn the_node_of_a_cluster_that_has_the_key_is_asked() {
    let (shell, second) = (Shell::new(), plain());
    let port = second.port;
    let first = Fake::start(move |_, command| {
        (command[0] == b"TYPE").then(|| format!("-MOVED 5 :{port}\r\n").into_bytes())
    });
    shell.build("new", &keys("new", 10), "");
    let ran = shell.ok(&format!("push new {}", first.url("seen")));
    assert!(ran.text().contains(&port.to_string()), "{}", ran.text());
    assert_eq!(second.names(), ["seen"]);
    // The other host may be anybody's, and would get the password.
    let elsewhere = Fake::start(|_, command| {
        (command[0] == b"TYPE").then(|| b"-MOVED 5 127.0.0.2:1\r\n".to_vec())
    });
    let line = format!("pull {} -o x", elsewhere.url("seen"));
    shell.run(&line).fails("says that seen is on 127.0.0.2:1; name that host");
    shell.run(&format!("{line} --follow")).fails("no answer from 127.0.0.2:1");
    let turning = Fake::start(|_, command| {
        (command[0] == b"TYPE").then(|| b"-MOVED 5 127.0.0.1:1\r\n".to_vec())
    });
    shell.run(&format!("pull {} -o x", turning.url("seen"))).fails("127.0.0.1:1");
}

#[test]
fn what_a_server_refuses_gives_its_remedy() {
    let shell = Shell::with_filter("new", &keys("new", 10), "");
    for (reply, remedy) in [
        ("-ERR unknown command 'CF.LOADCHUNK', with args", "does not have Koel's module"),
        ("-Invalid header", "RedisBloom's module"),
        ("-READONLY You can't write against a read only replica.", "its primary"),
        ("-NOAUTH Authentication required.", "REDISCLI_AUTH"),
        ("-MOVED 7 10.0.0.1:1", "moving to another node"),
        ("-ERR the filter would take 9 bytes", "refuses: ERR the filter would take 9 bytes"),
    ] {
        let server = Fake::start(move |_, command| {
            (command[0] == b"CF.LOADCHUNK").then(|| format!("{reply}\r\n").into_bytes())
        });
        shell.run(&format!("push new {}", server.url("seen"))).fails(remedy);
    }
    // The port of a connection refuses others, and no other program can take it.
    let connection = TcpStream::connect(("127.0.0.1", plain().port)).unwrap();
    let closed = connection.local_addr().unwrap();
    shell.run(&format!("push new redis://{closed}/seen")).fails("no answer from 127.0.0.1:");
    shell.run(&format!("pull redis://{closed}/seen -o x")).fails("check the address");
    shell.run("pull redis://:secret@localhost -o x").fails("no key");
    shell.write("list", "no filter\n");
    shell.run("push list redis://localhost/seen").fails("not a Koel filter");
}

#[test]
fn a_password_comes_from_the_url_or_the_environment() {
    let shell = Shell::new();
    let server = Fake::start(|state, command| {
        let wanted = [&b"AUTH"[..], b"HELLO"].contains(&&command[0][..]);
        let is_right = command.iter().any(|word| word == b"p@ss");
        if wanted && is_right {
            state.asked.push("right".to_owned());
        }
        (wanted && !is_right).then(|| b"-WRONGPASS invalid password\r\n".to_vec())
    });
    shell.build("new", &keys("new", 10), "");
    let url = format!("127.0.0.1:{}/seen", server.port);
    shell.ok(&format!("push new redis://:p%40ss@{url}"));
    let mut command = shell.command();
    command.args(["push", "--replace", "new", &format!("redis://{url}")]);
    let ran = Ran::of(command.env("REDISCLI_AUTH", "p@ss").output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(server.asked().iter().filter(|&name| name == "right").count(), 2);
    let ran = shell.run(&format!("push --replace new redis://:wrong@{url}"));
    ran.fails("REDISCLI_AUTH");
    assert!(!ran.err.contains("wrong"), "{}", ran.err);
}

/// What a server answers to SCANDUMP with this iterator.
type Answer = Box<dyn Fn(u64) -> Reply + Send + Sync>;

/// A server that sends empty chunks for ever, skips bytes, announces a long reply, or has a filter
/// of any size.
#[test]
fn what_a_hostile_server_sends_is_bounded() {
    let shell = Shell::with_filter("one", &keys("one", 900), "");
    let plain = plain();
    shell.ok(&format!("push one {}", plain.url("seen")));
    let header = plain.state.lock().unwrap().values[&b"seen"[..]].1[0].clone();
    let large = [&header[..8], &(5_u64 << 30).to_le_bytes(), &header[16..]].concat();
    let pair = |next: u64, chunk: &[u8]| [b"*2\r\n".to_vec(), integer(next), bulk(chunk)].concat();
    let replies: [(&str, Answer); 4] = [
        ("was changed", Box::new(move |at| pair(at + 1, b""))),
        ("was changed", Box::new(move |at| pair(at + 100, b"few"))),
        ("longer than any of", Box::new(|_| b"*2\r\n:2\r\n$9000000000\r\n".to_vec())),
        ("raise --max-size", Box::new(move |_| pair(1, &large))),
    ];
    for (sentence, reply) in replies {
        let (first, is_first) = (pair(1, &header), sentence.starts_with("raise"));
        let is_endless = sentence.starts_with("longer");
        let server = Fake::start(move |_, command| match &command[0][..] {
            b"TYPE" => Some(b"+filter\r\n".to_vec()),
            b"CF.SCANDUMP" if command[2] == b"0" && !is_first => Some(first.clone()),
            b"CF.SCANDUMP" => {
                let at = std::str::from_utf8(&command[2]).unwrap().parse().unwrap();
                let mut reply = reply(at);
                reply.resize(if is_endless { 20 << 20 } else { reply.len() }, b'x');
                Some(reply)
            }
            _ => None,
        });
        shell.run(&format!("pull {} -o pulled", server.url("seen"))).fails(sentence);
        assert!(!shell.path("pulled").exists());
    }
}

#[test]
fn a_password_on_its_way_to_another_machine_is_warned_of() {
    let shell = Shell::new();
    for (host, is_warned) in [("127.0.0.1", false), ("localhost", false), ("koel.invalid", true)] {
        let ran = shell.run(&format!("pull redis://:secret@{host}:1/seen -o x"));
        assert_eq!(ran.err.contains("in clear"), is_warned, "{}", ran.err);
        assert!(ran.code == 2 && !ran.err.contains("secret"), "{}", ran.err);
    }
    let ran = shell.run("pull redis://koel.invalid:1/seen -o x");
    assert!(!ran.err.contains("in clear"), "{}", ran.err);
}

#[test]
fn what_is_not_one_filter_is_not_pulled() {
    let (shell, server) = (Shell::new(), plain());
    shell.build("one", &keys("one", 900), "");
    shell.build("two", &keys("two", 900), "");
    shell.ok(&format!("push one {}", server.url("seen")));
    let header = server.state.lock().unwrap().values[&b"seen"[..]].1[0].clone();
    let (one, two) = (shell.read("one"), shell.read("two"));
    assert_eq!(one.len(), two.len());
    let mixed = [&one[..700], &two[700..]].concat();
    let foreign = vec![0; 38];
    for (chunks, sentence) in [
        (vec![header.clone(), mixed], "was changed while it was read"),
        (vec![header.clone(), one[..700].to_vec()], "was changed while it was read"),
        (vec![header.clone(), one.clone(), vec![0; 9]], "was changed while it was read"),
        (vec![foreign, one.clone()], "RedisBloom's layout"),
        (vec![b"KOELXX99".to_vec(), one.clone()], "use a newer koel"),
        (vec![b"KOELXF01 and more".to_vec(), one.clone()], "has a window"),
        (vec![], "use a newer koel"),
    ] {
        server.put("seen", "filter", chunks);
        shell.run(&format!("pull {} -o pulled", server.url("seen"))).fails(sentence);
        assert!(!shell.path("pulled").exists());
    }
    server.put("names", "list", Vec::new());
    shell.run(&format!("pull {} -o x", server.url("names"))).fails("its type is list");
    shell.run(&format!("pull {} -o x", server.url("none"))).fails("has no key none");
    shell.write("text", "keep me\n");
    shell.run(&format!("pull {} -o text", server.url("seen"))).fails("is not a filter");
}
