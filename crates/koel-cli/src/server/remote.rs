//! The name of a filter in a server: a URL, and the options of the verbs that take one.
//!
//! `redis://[USER][:PASSWORD@]HOST[:PORT]/KEY[?db=N]`, or `valkey://`. The path is the key, since
//! that is what these verbs are about; elsewhere it often is the number of the database.
//! The crate `redis` reads the rest of the URL.

use std::env;
use std::net::IpAddr;

use percent_encoding::percent_decode_str;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use url::Url;

use crate::failure::Failure;
use crate::output;
use crate::quantity::{bytes, grouped};
use crate::report::Report;
use crate::server::Server;
use crate::streams::Warnings;

/// Where a password may be, as in the clients of both servers. A URL is visible to other users.
const PASSWORDS: [&str; 2] = ["REDISCLI_AUTH", "VALKEYCLI_AUTH"];

/// Help and not a comment: rustdoc takes the brackets for links.
const WHERE: &str = "The filter in the server: redis://[USER:PASSWORD@]HOST[:PORT]/KEY[?db=N]";

const FORM: &str = "name the filter as redis://HOST/KEY";

/// The arguments of every verb that talks to a server.
#[derive(Debug, clap::Args)]
pub(crate) struct RemoteArgs {
    #[arg(value_name = "URL", help = WHERE)]
    url: String,

    /// What the commands of the module begin with, where that is not CF
    #[arg(long, value_name = "NAME", default_value = "CF", hide_default_value = true)]
    prefix: String,

    /// In a cluster, follow to nodes on other hosts, which get the password too
    #[arg(long)]
    follow: bool,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

impl RemoteArgs {
    /// Connects to the server that has the key.
    pub(crate) fn connect(&self) -> Result<Server, Failure> {
        let (mut info, key) = parse(&self.url).map_err(Failure::Usage)?;
        if info.redis_settings().password().is_none()
            && let Some(password) = PASSWORDS.iter().find_map(|name| env::var(name).ok())
        {
            let settings = info.redis_settings().clone().set_password(password);
            info = info.set_redis_settings(settings);
        }
        warn_of_password(&info);
        Server::connect(info, key, &self.prefix, self.follow)
    }

    /// The report on a filter that was sent or received.
    pub(crate) fn report(&self, server: &Server, keys: u64, size: usize) -> String {
        let place = output::escape_controls(&server.place());
        let mut report = Report::default();
        report
            .json("server", server.address())
            .add("key", server.key(), "key", place)
            .add("keys", keys, "keys", grouped(keys))
            .add("size_in_bytes", size, "size", bytes(size as u64));
        report.text(self.json)
    }
}

/// The connection and the key of a URL. The error does not repeat the URL, in which there may be a
/// password.
fn parse(text: &str) -> Result<(ConnectionInfo, Vec<u8>), String> {
    let mut url = Url::parse(text).map_err(|_| FORM)?;
    match url.scheme() {
        "redis" | "valkey" if url.has_host() => {}
        "rediss" | "valkeys" => {
            return Err("a URL with TLS is not supported; make a tunnel, such as \
                        `ssh -L 6379:localhost:6379 HOST`, and use redis://localhost/KEY"
                .to_owned());
        }
        _ => return Err(FORM.to_owned()),
    }
    let key: Vec<u8> = percent_decode_str(url.path().trim_start_matches('/')).collect();
    if key.is_empty() {
        return Err(format!("the URL has no key; {FORM}"));
    }
    let mut database = 0;
    for (name, value) in url.query_pairs() {
        match value.parse::<u32>() {
            Ok(number) if name == "db" => database = number,
            _ => return Err("after KEY, the URL may have ?db=N with a number N".to_owned()),
        }
    }
    if url.fragment().is_some() {
        return Err("the URL has a #; in a key it is written %23".to_owned());
    }
    url.set_query(None);
    url.set_path(&database.to_string());
    let info = url.into_connection_info().map_err(|error| format!("{error}; {FORM}"))?;
    Ok((info, key))
}

/// Says that others can read a password on its way to another machine.
fn warn_of_password(info: &ConnectionInfo) {
    let ConnectionAddr::Tcp(host, _) = info.addr() else { return };
    let is_here =
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if info.redis_settings().password().is_some() && !is_here {
        let warnings = Warnings::default();
        warnings.add(format!(
            "the password goes to {host} in clear; make a tunnel, such as \
             `ssh -L 6379:localhost:6379 {host}`"
        ));
        warnings.print();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, String, i64, Option<String>, Option<String>) {
        let (info, key) = parse(text).unwrap();
        let settings = info.redis_settings();
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let key = String::from_utf8(key).unwrap();
        let (user, password) = (owned(settings.username()), owned(settings.password()));
        (info.addr().to_string(), key, settings.db(), user, password)
    }

    #[test]
    fn the_path_of_a_url_is_the_key() {
        for (text, address, key, database) in [
            ("redis://localhost/seen", "localhost:6379", "seen", 0),
            ("valkey://10.0.0.1:7000/seen/2026-11?db=3", "10.0.0.1:7000", "seen/2026-11", 3),
            ("redis://host/0", "host:6379", "0", 0),
            ("redis://[::1]:7/{a}b", "::1:7", "{a}b", 0),
            ("redis://host/a%20b%2Fc%23%3F", "host:6379", "a b/c#?", 0),
            ("redis://host/%C3%A9", "host:6379", "\u{e9}", 0),
        ] {
            let got = parts(text);
            assert_eq!((&got.0[..], &got.1[..], got.2), (address, key, database), "{text}");
            assert_eq!((got.3, got.4), (None, None), "{text}");
        }
        let got = parts("redis://ann:p%40ss@host/k");
        assert_eq!((got.3.as_deref(), got.4.as_deref()), (Some("ann"), Some("p@ss")));
        let got = parts("redis://:pass@host/k");
        assert_eq!((got.3, got.4.as_deref()), (None, Some("pass")));
    }

    #[test]
    fn a_wrong_url_is_refused_without_its_password() {
        for (text, remedy) in [
            ("localhost/seen", "redis://HOST/KEY"),
            ("localhost:6379/seen", "redis://HOST/KEY"),
            ("http://:secret@host/seen", "redis://HOST/KEY"),
            ("redis:seen", "redis://HOST/KEY"),
            ("redis:///seen", "redis://HOST/KEY"),
            ("redis://:secret@host", "no key"),
            ("redis://:secret@host/", "no key"),
            ("rediss://:secret@host/seen", "tunnel"),
            ("redis://:secret@host/seen?db=x", "?db=N"),
            ("redis://:secret@host/seen?database=1", "?db=N"),
            ("redis://:secret@host/seen#1", "%23"),
            ("redis://:secret@0.0.0.0/seen", "redis://HOST/KEY"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(remedy) && !error.contains("secret"), "{text}: {error}");
        }
    }
}
