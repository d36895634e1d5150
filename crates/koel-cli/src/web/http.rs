//! Ranges of one file on a web server. Every way in which a server gives another thing than the
//! range is an error that says what to do.
//!
//! | what comes | what it means |
//! |---|---|
//! | 200 instead of 206 | the server does not serve ranges |
//! | another range, or a body of another length | the answer was cut, or a proxy answered |
//! | a `Content-Encoding` | a proxy compresses |
//! | another ETag | the file was replaced |
//! | a redirect from https to http, or too many | the last address is to be given |
//!
//! Redirects are followed when the file is opened; from then on their target is asked.

use std::fmt::Display;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use ureq::http::header::{self, HeaderName};
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body, Error, ResponseExt};

use crate::failure::{Failure, describe};
use crate::quantity::counted;

/// Requests that are on their way at once.
pub(super) const AT_ONCE: usize = 8;
/// How long a server may be silent.
const PATIENCE: Duration = Duration::from_secs(30);

const CUT: &str = "try again, and see whether a proxy is between";

/// A file on a web server.
#[derive(Debug)]
pub(super) struct Source {
    agent: Agent,
    /// As the user named it.
    name: PathBuf,
    /// Where redirects led.
    url: String,
    /// The strong ETag: equal ones are of equal bytes.
    tag: Option<String>,
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl Source {
    /// Opens the file by reading this range of it. Returns its bytes too, and the size of the file
    /// if the server says it.
    pub(super) fn open(
        name: &Path,
        range: &Range<u64>,
    ) -> Result<(Self, Vec<u8>, Option<u64>), Failure> {
        let url = name.to_str().ok_or_else(|| Failure::about(name, "is not UTF-8, and no URL"))?;
        let mut source = Self {
            agent: agent(url),
            name: name.to_owned(),
            url: url.to_owned(),
            tag: None,
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        };
        let answer = source.ask(range)?;
        source.url = answer.get_uri().to_string();
        source.tag = strong_tag(&answer);
        let size = content_range(&answer).and_then(|(_, size)| size);
        let bytes = source.read(answer, range)?;
        Ok((source, bytes, size))
    }

    /// The bytes of these ranges.
    pub(super) fn fetch(&self, ranges: &[Range<u64>]) -> Result<Vec<Vec<u8>>, Failure> {
        let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
        let done: Vec<_> = ranges.iter().map(|_| OnceLock::new()).collect();
        let work = || {
            while let Some((range, done)) = pair_at(ranges, &done, &next) {
                match self.fetch_one(range) {
                    Ok(bytes) => drop(done.set(bytes)),
                    Err(failure) => {
                        // The others end when they look for their next range.
                        next.store(ranges.len(), Ordering::Relaxed);
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        failed.get_or_insert(failure);
                    }
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..ranges.len().min(AT_ONCE) {
                scope.spawn(work);
            }
            work();
        });
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)?;
        Ok(done.into_iter().filter_map(OnceLock::into_inner).collect())
    }

    fn fetch_one(&self, range: &Range<u64>) -> Result<Vec<u8>, Failure> {
        let answer = self.ask(range)?;
        if strong_tag(&answer) != self.tag {
            return Err(self.was_replaced());
        }
        self.read(answer, range)
    }

    /// Sends a request for a range. The answer begins as it should.
    fn ask(&self, range: &Range<u64>) -> Result<Response<Body>, Failure> {
        let asked = format!("bytes={}-{}", range.start, range.end - 1);
        self.requests.fetch_add(1, Ordering::Relaxed);
        let answer = self.agent.get(&self.url).header(header::RANGE, asked).call();
        let answer = answer.map_err(|error| self.failure(&sentence(error)))?;
        if let Some(coding) =
            text(&answer, &header::CONTENT_ENCODING).filter(|it| *it != "identity")
        {
            let of = "so its ranges are not those of the file; switch compression off for it";
            return Err(self.failure(&format_args!("the server or a proxy sends {coding}, {of}")));
        }
        if answer.status() != StatusCode::PARTIAL_CONTENT {
            return Err(self.failure(&refusal(answer.status())));
        }
        if content_range(&answer).is_none_or(|(got, _)| got != *range) {
            let got = text(&answer, &header::CONTENT_RANGE).unwrap_or("no range");
            let asked = format_args!("where bytes {}-{}", range.start, range.end - 1);
            let failure = format_args!("the server sent {got} {asked} were asked for; {CUT}");
            return Err(self.failure(&failure));
        }
        Ok(answer)
    }

    /// The body of an answer, which is a range.
    fn read(&self, answer: Response<Body>, range: &Range<u64>) -> Result<Vec<u8>, Failure> {
        let expected = range.end - range.start;
        let (mut bytes, mut body) = (Vec::new(), answer.into_body().into_reader());
        // One more, so that a body that is too long is noticed.
        let read = body.by_ref().take(expected + 1).read_to_end(&mut bytes);
        let got = bytes.len() as u64;
        self.bytes.fetch_add(got, Ordering::Relaxed);
        if let Err(error) = read {
            return Err(self.failure(&format_args!("{}; {CUT}", describe(&error))));
        }
        if got != expected {
            let got = counted(got, "byte");
            return Err(self.failure(&format_args!("{got} came of a range of {expected}; {CUT}")));
        }
        Ok(bytes)
    }

    /// Whether the server's answers tell of a file that was replaced.
    pub(super) fn has_tag(&self) -> bool {
        self.tag.is_some()
    }

    pub(super) fn was_replaced(&self) -> Failure {
        self.failure(&"the file was replaced meanwhile; ask again")
    }

    /// A failure of this file: what happened, and what to do.
    pub(super) fn failure(&self, sentence: &dyn Display) -> Failure {
        Failure::Usage(format!("cannot ask {}: {sentence}", self.name.display()))
    }

    /// The requests and the bytes of bodies so far.
    pub(super) fn traffic(&self) -> (u64, u64) {
        (self.requests.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

/// A client for this URL. Compression would make other ranges of the file.
fn agent(url: &str) -> Agent {
    let is_secure = url.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("https:"));
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .https_only(is_secure)
        .user_agent(concat!("koel/", env!("CARGO_PKG_VERSION")))
        .accept_encoding("identity")
        .max_idle_connections_per_host(AT_ONCE)
        .timeout_resolve(Some(PATIENCE))
        .timeout_connect(Some(PATIENCE))
        .timeout_recv_response(Some(PATIENCE))
        .timeout_per_read(Some(PATIENCE));
    config.build().into()
}

/// The next of the ranges that nobody has taken, and the place for its bytes.
fn pair_at<'a, T>(
    ranges: &'a [Range<u64>],
    done: &'a [T],
    next: &AtomicUsize,
) -> Option<(&'a Range<u64>, &'a T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    ranges.get(at).zip(done.get(at))
}

/// A header of an answer.
fn text<'a>(answer: &'a Response<Body>, name: &HeaderName) -> Option<&'a str> {
    answer.headers().get(name).and_then(|value| value.to_str().ok())
}

fn strong_tag(answer: &Response<Body>) -> Option<String> {
    text(answer, &header::ETAG).filter(|tag| !tag.starts_with("W/")).map(str::to_owned)
}

/// The range that an answer has, and the size of the file: `bytes 0-191/1000`.
fn content_range(answer: &Response<Body>) -> Option<(Range<u64>, Option<u64>)> {
    let range = text(answer, &header::CONTENT_RANGE)?.trim().strip_prefix("bytes ")?;
    let (range, size) = range.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let end = last.parse::<u64>().ok()?.checked_add(1)?;
    Some((first.parse().ok()?..end, size.parse().ok()))
}

/// What an answer without a range means, and what to do.
fn refusal(status: StatusCode) -> String {
    match status.as_u16() {
        200 => "the server sends the whole file where a range is asked for; fetch the file, or \
                serve it with ranges, as nginx, Apache and object stores do"
            .to_owned(),
        404 | 410 => "there is no such file; check the address".to_owned(),
        401 | 403 => "the server refuses access; check the address".to_owned(),
        416 => "the file is shorter than a filter with its header; check the address, or ask \
                again if it was replaced"
            .to_owned(),
        _ => format!("the server answered {status}; try again later"),
    }
}

/// What went wrong before an answer came, and what to do.
fn sentence(error: Error) -> String {
    match error {
        Error::Io(error) => format!("{}; check the address and the network", describe(&error)),
        Error::HostNotFound => "no such host; check the address and the network".to_owned(),
        Error::BadUri(_) | Error::Http(_) => "this is no URL of a file; check it".to_owned(),
        Error::RequireHttpsOnly(url) => {
            format!("it redirects to {url} without encryption; give an address that stays https")
        }
        Error::TooManyRedirects | Error::RedirectFailed => {
            "its redirects do not end; give the last address".to_owned()
        }
        Error::Timeout(_) => "the server does not answer; try again later".to_owned(),
        error => format!("{error}; check the address and the network"),
    }
}
