//! A connection whose replies are bounded: no server can make koel take more memory than a chunk
//! needs, whatever length it announces.
//!
//! The crate `redis` packs commands and parses replies. Its own connection takes any reply.

use std::io::{self, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use redis::{
    ConnectionAddr, ConnectionInfo, ConnectionLike, Parser, RedisError, RedisResult, Value, cmd,
};

/// How long a server may take to accept a connection, and to answer.
const CONNECT: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(120);
/// The longest reply: a chunk of `CF.SCANDUMP` is at most 16 MiB.
const LONGEST_REPLY: u64 = (16 << 20) + 4096;

/// A connection.
pub(super) struct Wire {
    reader: BufReader<TcpStream>,
    parser: Parser,
    database: i64,
    is_open: bool,
}

impl Wire {
    /// Connects, sends the password, and chooses the database.
    pub(super) fn connect(info: &ConnectionInfo) -> RedisResult<Self> {
        let ConnectionAddr::Tcp(host, port) = info.addr() else {
            return Err(io::Error::from(io::ErrorKind::Unsupported).into());
        };
        let stream = open(host, *port)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.set_write_timeout(Some(ANSWER))?;
        let settings = info.redis_settings();
        let (reader, parser, database) = (BufReader::new(stream), Parser::new(), settings.db());
        let mut wire = Self { reader, parser, database, is_open: true };
        if let Some(password) = settings.password() {
            let mut auth = cmd("AUTH");
            if let Some(user) = settings.username() {
                auth.arg(user);
            }
            auth.arg(password).exec(&mut wire)?;
        }
        if database != 0 {
            cmd("SELECT").arg(database).exec(&mut wire)?;
        }
        Ok(wire)
    }

    fn send(&mut self, bytes: &[u8]) -> RedisResult<()> {
        Ok(self.reader.get_mut().write_all(bytes)?)
    }

    /// The next reply. After an error nobody knows where the next one begins.
    fn reply(&mut self) -> RedisResult<Value> {
        if !self.is_open {
            return Err(io::Error::from(io::ErrorKind::NotConnected).into());
        }
        let mut bounded = (&mut self.reader).take(LONGEST_REPLY);
        let reply = self.parser.parse_value(&mut bounded);
        let is_longer = bounded.limit() == 0;
        self.is_open = reply.is_ok();
        reply.map_err(|error| if is_longer { too_long() } else { error })
    }
}

/// The first address of the host that answers.
fn open(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn too_long() -> RedisError {
    io::Error::new(io::ErrorKind::InvalidData, "its reply is longer than any of Koel's module")
        .into()
}

impl ConnectionLike for Wire {
    fn req_packed_command(&mut self, command: &[u8]) -> RedisResult<Value> {
        self.send(command)?;
        self.reply()
    }

    /// The replies to all commands but the first `offset`, which must succeed.
    fn req_packed_commands(
        &mut self,
        commands: &[u8],
        offset: usize,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        self.send(commands)?;
        let mut replies = Vec::new();
        for _ in 0..offset + count {
            replies.push(self.reply()?);
        }
        let wanted = replies.split_off(offset);
        replies.into_iter().try_for_each(|reply| reply.extract_error().map(drop))?;
        Ok(wanted)
    }

    fn get_db(&self) -> i64 {
        self.database
    }

    fn check_connection(&mut self) -> bool {
        cmd("PING").exec(self).is_ok()
    }

    fn is_open(&self) -> bool {
        self.is_open
    }
}
