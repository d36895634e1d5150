//! A filter at a URL, against a small server in this process, which can also answer what no server
//! should. scripts/ranges runs the command against a real one.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::support::{Shell, keys, lines};

/// An answer: the status line, headers, the length that is said of the body, and the body.
struct Answer {
    status: &'static str,
    headers: String,
    length: usize,
    body: Vec<u8>,
}

/// A server of one file, and the ranges that it was asked for.
struct Web {
    url: String,
    asked: Arc<Mutex<Vec<Range<usize>>>>,
}

impl Web {
    /// `file` is the file at the time of a request, of which it gets the number. `change` may make
    /// another answer.
    fn start(
        file: impl Fn(usize) -> Vec<u8> + Send + Sync + 'static,
        change: impl Fn(&str, Answer) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/list.koel", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (serve, shared) = (Arc::new((file, change)), Arc::clone(&asked));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (serve, asked) = (Arc::clone(&serve), Arc::clone(&shared));
                thread::spawn(move || {
                    let stream = stream.unwrap();
                    let mut reader = BufReader::new(&stream);
                    while let Some((path, range)) = read_request(&mut reader) {
                        let number = {
                            let mut asked = asked.lock().unwrap();
                            asked.push(range.clone());
                            asked.len()
                        };
                        let file = serve.0(number);
                        let answer = serve.1(&path, ranged(&file, range));
                        if !answer.send(&stream) {
                            return;
                        }
                    }
                });
            }
        });
        Self { url, asked }
    }

    /// A server that does what servers should, with a strong ETag.
    fn good(file: Vec<u8>) -> Self {
        Self::start(move |_| file.clone(), |_, answer| answer.with("ETag: \"1\""))
    }

    /// A server of this file whose every answer is changed.
    fn bad(file: &[u8], change: impl Fn(&str, Answer) -> Answer + Send + Sync + 'static) -> Self {
        let file = file.to_vec();
        Self::start(move |_| file.clone(), change)
    }

    fn requests(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Answer {
    fn with(mut self, header: &str) -> Self {
        write!(self.headers, "{header}\r\n").unwrap();
        self
    }

    /// Whether the connection may be used again.
    fn send(&self, mut stream: &TcpStream) -> bool {
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Length: {}\r\n{}\r\n",
            self.status, self.length, self.headers
        );
        let sent = stream.write_all(&[head.as_bytes(), &self.body].concat());
        sent.is_ok() && self.length == self.body.len()
    }
}

/// The path and the range of the next request.
fn read_request(reader: &mut impl BufRead) -> Option<(String, Range<usize>)> {
    let (mut path, mut range) = (None, None);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(request) = line.strip_prefix("get ") {
            path = request.split(' ').next().map(str::to_owned);
        } else if let Some(bytes) = line.strip_prefix("range: bytes=") {
            let (first, last) = bytes.split_once('-')?;
            range = Some(first.parse().ok()?..last.parse::<usize>().ok()? + 1);
        } else if line.is_empty() {
            return path.zip(range);
        }
    }
}

fn ranged(file: &[u8], range: Range<usize>) -> Answer {
    if range.end > file.len() {
        let (headers, body) = (String::new(), Vec::new());
        return Answer { status: "416 Range Not Satisfiable", headers, length: 0, body };
    }
    let body = file[range.clone()].to_vec();
    let status = "206 Partial Content";
    let answer = Answer { status, headers: String::new(), length: body.len(), body };
    let (last, size) = (range.end - 1, file.len());
    answer.with(&format!("Content-Range: bytes {}-{last}/{size}", range.start))
}

/// A shell with a list of present and absent keys, and the filter of the present ones.
fn shell() -> (Shell, Vec<u8>) {
    let shell = Shell::with_filter("set", &keys("key", 50_000), "--fpr 0.0001");
    shell.write("some", lines(&[keys("key", 300), keys("absent", 300)].concat()));
    let file = shell.read("set");
    (shell, file)
}

#[test]
fn a_filter_is_asked_where_it_is() {
    let (shell, file) = shell();
    let web = Web::good(file.clone());
    for options in ["", "-v", "-c", "-q", "-n", "--url"] {
        let here = shell.run(&format!("check {options} set some"));
        let there = shell.run(&format!("check {options} {} some", web.url));
        assert_eq!((here.code, here.out), (there.code, there.out), "{options}: {}", there.err);
    }
    let before = web.requests();
    let ran = shell.ok(&format!("check --json {} some", web.url));
    let report = String::from_utf8(ran.out).unwrap();
    let asked = web.asked.lock().unwrap()[before..].to_vec();
    let read: usize = asked.iter().map(Range::len).sum();
    assert!(report.contains(&format!("\"requests\": {}", asked.len())), "{report}");
    assert!(report.contains(&format!("\"bytes\": {read}")), "{report}");
    assert!(read < file.len());
    let ran = shell.ok_with(&format!("check --traffic {}", web.url), b"key/7/49\n");
    assert!(ran.err.contains("koel: 3 requests, 2"), "{}", ran.err);
}

#[test]
fn many_lines_are_one_batch() {
    let (shell, file) = shell();
    shell.write("many", lines(&keys("absent", 10_000)));
    let web = Web::good(file);
    let here = shell.run("check -c set many");
    assert_eq!(shell.run(&format!("check -c {} many", web.url)).out, here.out);
    // The header, and of each read ranges so near that they are one.
    assert!(web.requests() < 5, "{}", web.requests());
}

#[test]
fn whole_pages_are_read_where_the_user_asks_for_them() {
    let (shell, file) = shell();
    let web = Web::good(file.clone());
    shell.ok_with(&format!("check --pages 4K {}", web.url), b"key/7/49\n");
    let asked = web.asked.lock().unwrap().clone();
    assert!(asked.len() > 1);
    for range in &asked[1..] {
        assert!(range.start % 4096 == 0 && (range.end % 4096 == 0 || range.end == file.len()));
    }
    shell.run("check --pages 4K set some").fails("--pages and --traffic are for a filter at a URL");
    shell.run(&format!("check --verify {} some", web.url)).fails("leave --verify out");
}

#[test]
fn exact_answers_are_read_first() {
    let (shell, _) = shell();
    shell.write("others", lines(&keys("absent", 300_000)));
    shell.ok("refute set others");
    let web = Web::good(shell.read("set"));
    let here = shell.run("check -c set others");
    assert_eq!(here.out, b"0\n");
    assert_eq!(shell.run(&format!("check -c {} others", web.url)).out, here.out);
    assert!(web.asked.lock().unwrap()[1].end == shell.read("set").len());
}

/// The header says how long they are, and a server may send any header.
#[test]
fn more_exact_answers_than_fit_into_memory_are_refused() {
    let (shell, mut file) = shell();
    file[22] = 12; // segment bits, so that there are slots for as many corrections
    file[140..144].copy_from_slice(&40_000_000_u32.to_le_bytes());
    testkit::image::reseal_header(&mut file);
    let web = Web::good(file);
    shell.run(&format!("check {} some", web.url)).fails("305.2 MiB of exact answers");
    assert_eq!(web.requests(), 1);
}

#[test]
fn lines_are_read_as_those_of_the_filter() {
    let shell = Shell::with("hosts", "0.0.0.0 ads.example.org\n0.0.0.0 B\u{fc}cher.example\n");
    shell.ok("build --format hosts hosts -o set");
    let web = Web::good(shell.read("set"));
    let urls = b"https://www.ads.example.org/x\nhttp://xn--bcher-kva.example\nexample.org\n\n";
    for options in ["", "--url"] {
        let here = shell.run_with(&format!("check {options} set"), urls);
        let there = shell.run_with(&format!("check {options} {}", web.url), urls);
        assert_eq!((here.code, here.out, here.err), (there.code, there.out, there.err));
    }
}

#[test]
fn the_header_is_shown() {
    let (shell, file) = shell();
    let web = Web::good(file);
    let shown = String::from_utf8(shell.ok(&format!("info {}", web.url)).out).unwrap();
    assert!(shown.contains("50,000 (built for 50,000)"), "{shown}");
    assert!(shown.contains("not checked: only the header and corrections were read"), "{shown}");
    assert!(shown.contains("1 request, 192 B of"), "{shown}");
    let json = String::from_utf8(shell.ok(&format!("info --json {}", web.url)).out).unwrap();
    assert!(json.contains("\"intact\": null") && json.contains("\"keys\": 50000"), "{json}");
    let advice = "which only `koel check` and `koel info` ask; fetch it and name the file";
    shell.run(&format!("count {} some", web.url)).fails(advice);
}

/// Asks a server that changes every answer, and expects this error.
#[track_caller]
fn refused(says: &str, change: impl Fn(&str, Answer) -> Answer + Send + Sync + 'static) {
    let (shell, file) = shell();
    let web = Web::bad(&file, change);
    shell.run(&format!("check {} some", web.url)).fails(says);
}

#[test]
fn a_server_without_ranges_is_refused() {
    let (_, file) = shell();
    refused("sends the whole file where a range is asked for; fetch the file", move |_, _| {
        let (headers, body) = (String::new(), file.clone());
        Answer { status: "200 OK", headers, length: body.len(), body }
    });
}

#[test]
fn another_range_is_refused() {
    refused("sent bytes 1-192/900 where bytes 0-191 were asked for", |_, answer| Answer {
        headers: "Content-Range: bytes 1-192/900\r\n".to_owned(),
        ..answer
    });
    refused("no range where bytes 0-191 were asked for", |_, answer| Answer {
        headers: String::new(),
        ..answer
    });
}

#[test]
fn an_answer_that_is_cut_is_refused() {
    refused("see whether a proxy is between", |_, mut answer| {
        answer.body.truncate(answer.body.len() / 2);
        answer
    });
    refused("96 bytes came of a range of 192", |_, mut answer| {
        answer.body.truncate(96);
        answer.length = 96;
        answer
    });
}

#[test]
fn a_proxy_that_compresses_is_refused() {
    refused(
        "sends gzip, so its ranges are not those of the file; switch compression",
        |_, answer| answer.with("Content-Encoding: gzip"),
    );
}

#[test]
fn a_status_that_is_no_answer_is_an_error() {
    for (status, says) in [
        ("404 Not Found", "there is no such file; check the address"),
        ("403 Forbidden", "the server refuses access; check the address"),
        ("503 Service Unavailable", "the server answered 503 Service Unavailable; try again later"),
        ("416 Range Not Satisfiable", "shorter than a filter"),
    ] {
        refused(says, move |_, answer| Answer { status, ..answer });
    }
}

#[test]
fn what_is_no_filter_is_refused() {
    let (shell, file) = shell();
    let page = b"<!doctype html><title>Sign in</title>".repeat(20);
    let web = Web::good(page);
    shell.run(&format!("check {} some", web.url)).fails("is not a Koel filter");
    let cut = Web::good(file[..file.len() - 1000].to_vec());
    shell.run(&format!("check {} some", cut.url)).fails("cut short");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    shell.run(&format!("check http://{nobody}/x some")).fails("check the address and the network");
    shell.run("check http:// some").fails("no URL of a file");
}

#[test]
fn redirects_are_followed_and_end() {
    let (shell, file) = shell();
    let web = Web::bad(&file, |path, answer| match path {
        "/list.koel" => Answer {
            status: "302 Found",
            length: 0,
            body: Vec::new(),
            ..answer.with("Location: /b")
        },
        _ => answer.with("ETag: \"1\""),
    });
    let ran = shell.ok_with(&format!("check {}", web.url), b"key/7/49\nabsent\n");
    assert_eq!(ran.out, b"key/7/49\n");
    // One request was redirected, and from then on the target was asked.
    assert_eq!(web.requests(), 1 + 1 + 4);
    refused("its redirects do not end; give the last address", |_, answer| Answer {
        status: "302 Found",
        length: 0,
        body: Vec::new(),
        ..answer.with("Location: /list.koel")
    });
}

/// Serves another filter from the third request on, of as many bytes.
fn replaced(change: impl Fn(&str, Answer) -> Answer + Send + Sync + 'static) {
    let (shell, file) = shell();
    shell.build("set", &keys("absent", 50_000), "--fpr 0.0001");
    let newer = shell.read("set");
    assert!(newer.len() == file.len() && newer != file);
    let web =
        Web::start(move |number| if number < 3 { file.clone() } else { newer.clone() }, change);
    let ran = shell.run(&format!("check {} some", web.url));
    ran.fails("the file was replaced meanwhile; ask again");
    assert!(ran.out.is_empty());
}

#[test]
fn a_file_that_was_replaced_is_noticed_by_its_tag() {
    let number = Mutex::new(0);
    replaced(move |_, answer| {
        let mut number = number.lock().unwrap();
        *number += 1;
        answer.with(if *number < 3 { "ETag: \"1\"" } else { "ETag: \"2\"" })
    });
}

#[test]
fn a_file_that_was_replaced_is_noticed_by_its_header() {
    replaced(|_, answer| answer);
    replaced(|_, answer| answer.with("ETag: W/\"1\""));
}
