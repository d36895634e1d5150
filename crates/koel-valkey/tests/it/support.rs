//! A database in memory, driven by lines of text.

use koel_valkey::command::{self, reply::Reply};
use koel_valkey::error::Error;
use koel_valkey::filter::Filter;
use koel_valkey::keys::{Memory, MemoryKeys};

/// Numbers of a list, with booleans as numbers.
pub(crate) fn integers(reply: Reply) -> Vec<i64> {
    let number = |reply| match reply {
        Reply::Integer(number) => number,
        other => panic!("{other:?}"),
    };
    match reply {
        Reply::Array(replies) => replies.into_iter().map(number).collect(),
        Reply::Bools(answers) | Reply::Added(answers) => {
            answers.into_iter().map(i64::from).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// Keys in memory.
pub(crate) struct Database(pub(crate) Memory);

impl Database {
    pub(crate) fn new() -> Self {
        Self(Memory { limit: u64::MAX, ..Memory::default() })
    }

    /// Runs a command of words.
    pub(crate) fn run(&mut self, line: &str) -> Result<Reply, Error> {
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        self.call(&words)
    }

    /// Runs a command of bytes.
    pub(crate) fn call(&mut self, arguments: &[&[u8]]) -> Result<Reply, Error> {
        self.with_events(arguments).0
    }

    /// Runs a command, and returns the events too.
    pub(crate) fn with_events(
        &mut self,
        arguments: &[&[u8]],
    ) -> (Result<Reply, Error>, Vec<&'static str>) {
        let mut keys = MemoryKeys { memory: &mut self.0, arguments, events: Vec::new() };
        let outcome = command::run(&mut keys, arguments);
        (outcome, keys.events.into_iter().map(|(_, event)| event).collect())
    }

    pub(crate) fn filter(&self, key: &str) -> &Filter {
        self.0.values[key.as_bytes()].as_ref().expect("a filter")
    }

    /// The chunks of a filter with their iterators.
    pub(crate) fn dump(&mut self, key: &str) -> Vec<(i64, Vec<u8>)> {
        let (mut chunks, mut iterator) = (Vec::new(), 0);
        loop {
            let reply = self.run(&format!("SCANDUMP {key} {iterator}")).unwrap();
            let Reply::Array(pair) = reply else { panic!("no pair") };
            match &pair[..] {
                [Reply::Integer(0), Reply::Null] => return chunks,
                [Reply::Integer(next), Reply::Bytes(chunk)] => {
                    assert!(*next > iterator && !chunk.is_empty());
                    iterator = *next;
                    chunks.push((iterator, chunk.clone()));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn load(&mut self, key: &str, chunk: &(i64, Vec<u8>)) -> Result<Reply, Error> {
        let iterator = chunk.0.to_string();
        self.call(&[b"LOADCHUNK", key.as_bytes(), iterator.as_bytes(), &chunk.1])
    }

    pub(crate) fn load_all(&mut self, key: &str, chunks: &[(i64, Vec<u8>)]) {
        for chunk in chunks {
            assert_eq!(self.load(key, chunk), Ok(Reply::Ok));
        }
    }
}
