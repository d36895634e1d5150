//! Talks to Valkey and Redis, and says what a refusal means.
//!
//! A filter travels in chunks, as `CF.SCANDUMP` returns and `CF.LOADCHUNK` takes them: a header of
//! 50 bytes, then the bytes of the filter file (docs/VALKEY-BYTES.md).
//!
//! A filter is loaded under a name of its own, and renamed when it is complete. So others see the
//! old filter or the new one. What an interrupted command leaves in the server expires.
//!
//! In a cluster, a node that does not have the key names the one that has it. Only who asks for it
//! is sent on to another host, because that gets the password too.
//!
//! No reply is longer than a chunk, and no chunk is empty: so a server can neither take more memory
//! than the user allows nor keep koel busy for ever.

pub(crate) mod remote;
mod wire;

use koel::FilterView;
use redis::{
    Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, FromRedisValue, RedisError, cmd, pipe,
};

use crate::failure::{Failure, describe};
use crate::quantity;
use wire::Wire;

/// Bytes that are sent at once: no request takes the server long.
pub(crate) const CHUNK: usize = 4 << 20;
/// Seconds until an incomplete filter disappears.
const EXPIRY: u64 = 600;
/// A cluster that is changing may send a client on more than once.
const REDIRECTIONS: usize = 4;

const MAGIC: &[u8; 8] = b"KOELCF01";
const HEADER: usize = 50;
/// Of the header of a filter with a window.
const WINDOW_MAGIC: &[u8] = b"KOELXF01";
/// Bytes of the header of a filter in RedisBloom's layout.
const FOREIGN_HEADER: usize = 38;

/// The types of values that servers have without modules.
const PLAIN_TYPES: [&str; 6] = ["string", "list", "set", "zset", "hash", "stream"];

/// A connection to the server that has a key.
pub(crate) struct Server {
    connection: Wire,
    /// Its host and port.
    address: String,
    key: Vec<u8>,
    /// The type of the key's value, if there is one.
    kind: Option<String>,
    prefix: String,
}

impl Server {
    /// Connects to the server that has the key. Goes to another host only if it `follows`.
    pub(crate) fn connect(
        mut info: ConnectionInfo,
        key: Vec<u8>,
        prefix: &str,
        follows: bool,
    ) -> Result<Self, Failure> {
        let first = info.clone();
        for _ in 0..REDIRECTIONS {
            let address = info.addr().to_string();
            let connection = Wire::connect(&info).map_err(|error| failure(&address, &error))?;
            let (kind, prefix) = (None, prefix.to_owned());
            let mut server = Self { connection, address, key: key.clone(), kind, prefix };
            match server.kind_of(&key) {
                Ok(kind) => return Ok(Self { kind, ..server }),
                Err(error) => {
                    let next = error.redirect_node().and_then(|(node, _)| redirected(&info, node));
                    info = next.ok_or_else(|| server.failure(&error))?;
                    if !follows && host(&info) != host(&first) {
                        return Err(server.elsewhere(&info));
                    }
                }
            }
        }
        Err(Failure::Usage(format!("{}: the cluster is changing; try again", info.addr())))
    }

    /// The key, for people.
    pub(crate) fn key(&self) -> String {
        String::from_utf8_lossy(&self.key).into_owned()
    }

    /// The key and the server, for people.
    pub(crate) fn place(&self) -> String {
        format!("{} in {}", self.key(), self.address)
    }

    /// The host and the port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Loads a filter under the name of the key. Where `replaces`, it may replace a filter.
    pub(crate) fn push(
        &mut self,
        filter: &FilterView<'_>,
        bytes: &[u8],
        replaces: bool,
        progress: impl Fn(u64),
    ) -> Result<(), Failure> {
        if self.kind.is_some() && !replaces {
            return Err(self.exists());
        }
        let part = self.new_name()?;
        let pushed =
            self.load(&part, filter, bytes, progress).and_then(|()| self.rename(&part, replaces));
        if pushed.is_err() {
            self.remove(&part);
        }
        pushed
    }

    fn load(
        &mut self,
        part: &[u8],
        filter: &FilterView<'_>,
        bytes: &[u8],
        progress: impl Fn(u64),
    ) -> Result<(), Failure> {
        self.load_chunk(part, 1, &header(filter, bytes.len()))?;
        if let Some(kind) = self.kind.clone()
            && self.ask(|server| server.kind_of(part))?.as_ref() != Some(&kind)
        {
            return Err(self.not_a_filter(&kind));
        }
        let mut iterator = 1;
        for chunk in bytes.chunks(CHUNK) {
            iterator += chunk.len() as u64;
            self.load_chunk(part, iterator, chunk)?;
            progress(chunk.len() as u64);
        }
        Ok(())
    }

    fn load_chunk(&mut self, part: &[u8], iterator: u64, chunk: &[u8]) -> Result<(), Failure> {
        let mut pipe = pipe();
        pipe.cmd(&self.name("LOADCHUNK")).arg(part).arg(iterator).arg(chunk).ignore();
        pipe.cmd("EXPIRE").arg(part).arg(EXPIRY).ignore();
        self.ask(|server| pipe.query(&mut server.connection))
    }

    /// Renames a complete filter. It does not expire any more.
    fn rename(&mut self, part: &[u8], replaces: bool) -> Result<(), Failure> {
        let mut pipe = pipe();
        pipe.atomic().cmd("PERSIST").arg(part).ignore();
        pipe.cmd(if replaces { "RENAME" } else { "RENAMENX" }).arg(part).arg(&self.key);
        let (is_done,): (bool,) = self.ask(|server| pipe.query(&mut server.connection))?;
        if is_done { Ok(()) } else { Err(self.exists()) }
    }

    /// The bytes of the filter of the key; with `snapshot`, of a copy that the server makes first.
    pub(crate) fn pull(
        &mut self,
        snapshot: bool,
        most: u64,
        start: impl FnOnce(u64) -> Box<dyn Fn(u64)>,
    ) -> Result<Vec<u8>, Failure> {
        let Some(kind) = self.kind.clone() else {
            let (key, address) = (self.key(), &self.address);
            return Err(Failure::Usage(format!("{address} has no key {key}; check the name")));
        };
        if PLAIN_TYPES.contains(&&*kind) {
            return Err(self.not_a_filter(&kind));
        }
        if !snapshot {
            return self.dump(&self.key.clone(), most, start);
        }
        let copy = self.new_name()?;
        let mut pipe = pipe();
        pipe.atomic().cmd("COPY").arg(&self.key).arg(&copy).ignore();
        pipe.cmd("EXPIRE").arg(&copy).arg(EXPIRY).ignore();
        let dumped = self
            .ask(|server| pipe.query::<()>(&mut server.connection))
            .and_then(|()| self.dump(&copy, most, start));
        self.remove(&copy);
        dumped
    }

    fn dump(
        &mut self,
        name: &[u8],
        most: u64,
        start: impl FnOnce(u64) -> Box<dyn Fn(u64)>,
    ) -> Result<Vec<u8>, Failure> {
        let (mut iterator, header) = self.dump_chunk(name, 0)?;
        let len = self.body_len(&header)?;
        if len > most {
            let (place, len, most) = (self.place(), quantity::bytes(len), quantity::bytes(most));
            return Err(Failure::Usage(format!(
                "{place} has {len}, and koel takes {most}; raise --max-size if you trust the server"
            )));
        }
        let (mut bytes, progress) = (Vec::new(), start(len));
        loop {
            let (next, chunk) = self.dump_chunk(name, iterator)?;
            if next == 0 {
                break;
            }
            if chunk.is_empty() || (bytes.len() + chunk.len()) as u64 > len {
                return Err(self.changed());
            }
            bytes.try_reserve(chunk.len()).map_err(|_| {
                let key = self.key();
                Failure::Usage(format!("no memory for {key} of {len} bytes; free some memory"))
            })?;
            bytes.extend_from_slice(&chunk);
            progress(chunk.len() as u64);
            iterator = next;
        }
        if bytes.len() as u64 == len { Ok(bytes) } else { Err(self.changed()) }
    }

    fn dump_chunk(&mut self, name: &[u8], iterator: u64) -> Result<(u64, Vec<u8>), Failure> {
        let mut command = cmd(&self.name("SCANDUMP"));
        command.arg(name).arg(iterator);
        let (next, chunk): (u64, Option<Vec<u8>>) = self.query(&command)?;
        Ok((next, chunk.unwrap_or_default()))
    }

    /// The length of the filter that this header announces.
    fn body_len(&self, header: &[u8]) -> Result<u64, Failure> {
        let len = header.strip_prefix(MAGIC).and_then(|fields| fields.first_chunk());
        let Some(len) = len.filter(|_| header.len() == HEADER) else {
            let what = if header.len() == FOREIGN_HEADER {
                "has RedisBloom's layout, which a filter file cannot have; build a filter from its \
                 items"
            } else if header.starts_with(WINDOW_MAGIC) {
                "has a window, and koel has no files of such filters"
            } else {
                "comes in a form that this koel does not know; use a newer koel"
            };
            return Err(Failure::Usage(format!("{} {what}", self.place())));
        };
        Ok(u64::from_le_bytes(*len))
    }

    /// The failure of a pull that did not get one filter.
    pub(crate) fn changed(&self) -> Failure {
        let key = self.key();
        Failure::Usage(format!(
            "{key} was changed while it was read; pull it again with --snapshot"
        ))
    }

    fn elsewhere(&self, info: &ConnectionInfo) -> Failure {
        let (key, address, other) = (self.key(), &self.address, info.addr());
        Failure::Usage(format!(
            "{address} says that {key} is on {other}; name that host in the URL, or trust it with \
             --follow"
        ))
    }

    fn exists(&self) -> Failure {
        let (key, address) = (self.key(), &self.address);
        Failure::Usage(format!(
            "{key} exists in {address}; choose another key, or replace it with --replace"
        ))
    }

    fn not_a_filter(&self, kind: &str) -> Failure {
        let place = self.place();
        Failure::Usage(format!("{place} is not a filter, its type is {kind}; choose another key"))
    }

    /// A name that nothing has, for which the same node of a cluster is responsible.
    fn new_name(&self) -> Result<Vec<u8>, Failure> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| {
            Failure::Usage(format!("the system has no random numbers: {error}; try again"))
        })?;
        let suffix = format!(".koel-part-{:016x}", u64::from_le_bytes(random));
        Ok(with_suffix(&self.key, suffix.as_bytes()))
    }

    /// Removes an incomplete filter or a copy. If that fails, it expires.
    fn remove(&mut self, name: &[u8]) {
        drop(cmd("UNLINK").arg(name).exec(&mut self.connection));
    }

    fn kind_of(&mut self, key: &[u8]) -> Result<Option<String>, RedisError> {
        let kind: String = cmd("TYPE").arg(key).query(&mut self.connection)?;
        Ok((kind != "none").then_some(kind))
    }

    /// The name of a command of the module.
    fn name(&self, command: &str) -> String {
        format!("{}.{command}", self.prefix)
    }

    fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, Failure> {
        self.ask(|server| command.query(&mut server.connection))
    }

    fn ask<T>(
        &mut self,
        request: impl FnOnce(&mut Self) -> Result<T, RedisError>,
    ) -> Result<T, Failure> {
        request(self).map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &RedisError) -> Failure {
        failure(&self.address, error)
    }
}

fn host(info: &ConnectionInfo) -> Option<&str> {
    if let ConnectionAddr::Tcp(host, _) = info.addr() { Some(host) } else { None }
}

/// The same connection to the node `host:port`. A node without a host is on the same one.
fn redirected(info: &ConnectionInfo, node: &str) -> Option<ConnectionInfo> {
    let (host, port) = node.rsplit_once(':')?;
    let ConnectionAddr::Tcp(same, _) = info.addr() else { return None };
    let host = if host.is_empty() { same.clone() } else { host.to_owned() };
    Some(info.clone().set_addr(ConnectionAddr::Tcp(host, port.parse().ok()?)))
}

/// The key with a suffix, in the hash slot of the key where that is possible. Servers hash what is
/// between the first braces, if there is anything.
fn with_suffix(key: &[u8], suffix: &[u8]) -> Vec<u8> {
    let position = |byte, bytes: &[u8]| bytes.iter().position(|&it| it == byte);
    let tag = position(b'{', key).and_then(|open| position(b'}', &key[open + 1..]));
    if tag.is_some_and(|len| len > 0) || key.contains(&b'}') {
        return [key, suffix].concat();
    }
    [b"{", key, b"}", suffix].concat()
}

/// The header of a filter of `len` bytes. The module shows these figures.
fn header(filter: &FilterView<'_>, len: usize) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    let rate = filter.requested_false_positive_rate().to_bits();
    for field in [len as u64, rate, filter.capacity(), 0] {
        bytes.extend_from_slice(&field.to_le_bytes());
    }
    // Bucket size and most iterations have no effect. The expansion says whether it grows.
    for option in [2, 20, u16::from(filter.is_growable())] {
        bytes.extend_from_slice(&option.to_le_bytes());
    }
    bytes.extend_from_slice(&[0; 4]);
    bytes
}

/// What an error of the server or the connection means.
fn failure(address: &str, error: &RedisError) -> Failure {
    let (code, text) = words(error);
    let is_refused = ["NOAUTH", "WRONGPASS"].contains(&&*code);
    let sentence = if error.kind() == ErrorKind::AuthenticationFailed || is_refused {
        format!(
            "{address} refuses the password; put it into {} or into redis://USER:PASSWORD@HOST/KEY",
            "REDISCLI_AUTH"
        )
    } else if error.is_io_error() {
        let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref());
        let cause = cause.map_or(text, describe);
        format!("no answer from {address}: {cause}; check the address and the server")
    } else if text.contains("unknown command") {
        format!(
            "{address} does not have Koel's module; load it (docs/VALKEY.md), or give the PREFIX \
             that it was loaded with as --prefix"
        )
    } else if text == "Invalid header" {
        format!("{address} has RedisBloom's module, which loads no filter of Koel; load Koel's")
    } else if code == "READONLY" {
        format!("{address} is a replica; give the address of its primary")
    } else if ["MOVED", "ASK", "TRYAGAIN"].contains(&&*code) {
        format!("{address}: the key is moving to another node of the cluster; try again")
    } else {
        format!("{address} refuses: {text}")
    };
    Failure::Usage(sentence)
}

/// The code of an error of the server, and its whole text.
fn words(error: &RedisError) -> (String, String) {
    let errors = error.clone().into_server_errors();
    let Some((_, first)) = errors.as_ref().and_then(|errors| errors.first()) else {
        return (String::new(), error.to_string());
    };
    let code = first.code().to_owned();
    let text = first.details().map_or_else(|| code.clone(), |details| format!("{code} {details}"));
    (code, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server hashes of a key in a cluster.
    fn hashed(key: &[u8]) -> &[u8] {
        let Some(open) = key.iter().position(|&byte| byte == b'{') else { return key };
        let rest = &key[open + 1..];
        match rest.iter().position(|&byte| byte == b'}') {
            None | Some(0) => key,
            Some(close) => &rest[..close],
        }
    }

    #[test]
    fn a_temporary_name_is_in_the_slot_of_its_key() {
        for key in ["seen", "{seen}:1", "a{b}c", "a{b", "{", "{{a}b", "\0"] {
            let name = with_suffix(key.as_bytes(), b".x");
            assert_eq!(hashed(&name), hashed(key.as_bytes()), "{key}");
            assert!(name.ends_with(b".x"));
        }
    }

    #[test]
    fn a_node_without_a_host_is_on_the_same_one() {
        let info =
            redis::IntoConnectionInfo::into_connection_info("redis://:secret@host:1").unwrap();
        let at = |node| redirected(&info, node).map(|info| info.addr().to_string());
        assert_eq!(at(":2").as_deref(), Some("host:2"));
        assert_eq!(at("10.0.0.1:3").as_deref(), Some("10.0.0.1:3"));
        assert_eq!(at("10.0.0.1"), None);
        let next = redirected(&info, ":2").unwrap();
        assert_eq!(next.redis_settings().password(), Some("secret"));
    }
}
