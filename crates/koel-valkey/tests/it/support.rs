//! A database in memory, driven by lines of text.

use std::cell::Cell;

use koel_valkey::command::parts::{self, Host, Made};
use koel_valkey::command::{self, COMMANDS, reply::Reply};
use koel_valkey::error::Error;
use koel_valkey::filter::Filter;
use koel_valkey::keys::{Keys, Memory, MemoryKeys};

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

/// Words `name0 name1 ..`.
pub(crate) fn items(name: &str, numbers: std::ops::Range<usize>) -> String {
    let words: Vec<String> = numbers.map(|number| format!("{name}{number}")).collect();
    words.join(" ")
}

/// Inserts 3,000 items into `f`, which takes its capacity and few more. Returns a refused one.
pub(crate) fn fill(database: &mut Database, capacity: usize, refusal: &str) -> usize {
    let line = items("i", 0..3000);
    let added = database.numbers(&format!("INSERT f ITEMS {line}"));
    assert!(added[..capacity].iter().all(|&added| added == 1));
    assert!(added.iter().filter(|&&added| added == 0).count() > 3000 - 2 * capacity);
    // An item that was refused is not in, unless another one looks like it.
    let found = database.numbers(&format!("MEXISTS f {line}"));
    assert!(added.iter().zip(&found).all(|(added, found)| added <= found));
    let wrong = added.iter().zip(&found).filter(|(added, found)| added != found).count();
    assert!(wrong < 30, "{wrong}");
    let refused = added.iter().position(|&added| added == 0).unwrap();
    let text = database.run(&format!("ADDNX f i{refused}")).unwrap_err().to_string();
    assert!(text.contains(refusal), "{text}");
    refused
}

/// The header of a filter in RedisBloom's layout: items, buckets of the first table, deletions and
/// tables; then slots of a bucket, most iterations and expansion.
pub(crate) fn compat_header(numbers: [u64; 4], options: [u16; 3]) -> Vec<u8> {
    let numbers = numbers.into_iter().flat_map(u64::to_le_bytes);
    numbers.chain(options.into_iter().flat_map(u16::to_le_bytes)).collect()
}

/// The number of the journals of a command in parts.
const NUMBER: u64 = 7;
/// The name that a new value has beside its key.
const BESIDE: &str = "beside";

/// A database that the part of a command on a thread asks for keys.
struct Shared<'a> {
    database: Cell<Option<&'a mut Database>>,
    line: &'a str,
    steps: Cell<usize>,
}

impl Host for Shared<'_> {
    fn with_keys(&self, look: &mut dyn FnMut(&mut dyn Keys)) -> Result<(), Error> {
        let database = self.database.take().expect("asked for once at a time");
        database.with_keys(self.line, |keys, _| look(keys));
        self.steps.set(self.steps.get() + 1);
        self.database.set(Some(database));
        Ok(())
    }
}

/// A command of which the last part is missing.
pub(crate) struct Unfinished<'a> {
    pub(crate) database: &'a mut Database,
    line: &'a str,
    /// How often it asked for keys.
    pub(crate) steps: usize,
    made: Option<Result<Made, Error>>,
}

impl Unfinished<'_> {
    /// Puts the new value beside its key, lets it follow the key, and then replaces that.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        let value = match self.made.take().expect("once")? {
            Made::Value(value) => value,
            Made::Rest(rest) => {
                return self.database.with_keys(self.line, |keys, of| rest(keys, of));
            }
        };
        let mut filter = value.filter;
        filter.begin_journal(NUMBER);
        self.database.0.values.insert(BESIDE.into(), Some(Filter::Native(filter)));
        let line = format!("{} {BESIDE}", self.line);
        let outcome: Result<_, Error> = self.database.with_keys(&line, |keys, arguments| {
            let new = arguments.len() - 1;
            while parts::follow(keys, new, value.follows, NUMBER)?.is_some() {}
            Ok(arguments[1].to_vec())
        });
        let filter = self.database.0.values.remove(BESIDE.as_bytes()).expect("it is there");
        self.database.0.values.insert(outcome?, filter);
        Ok(())
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
        self.with_events(line).0
    }

    /// Runs a command that returns a number, or a boolean.
    pub(crate) fn number(&mut self, line: &str) -> i64 {
        match self.run(line).unwrap() {
            Reply::Integer(number) => number,
            Reply::Bool(yes) => i64::from(yes),
            other => panic!("{line}: {other:?}"),
        }
    }

    /// Runs a command that returns a list.
    pub(crate) fn numbers(&mut self, line: &str) -> Vec<i64> {
        integers(self.run(line).unwrap())
    }

    /// Runs a command of words, and returns the events too.
    pub(crate) fn with_events(&mut self, line: &str) -> (Result<Reply, Error>, Vec<&'static str>) {
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        self.call_with_events(&words)
    }

    /// Runs a command of bytes.
    pub(crate) fn call(&mut self, arguments: &[&[u8]]) -> Result<Reply, Error> {
        self.call_with_events(arguments).0
    }

    fn call_with_events(
        &mut self,
        arguments: &[&[u8]],
    ) -> (Result<Reply, Error>, Vec<&'static str>) {
        let mut keys = MemoryKeys { memory: &mut self.0, arguments, events: Vec::new() };
        let outcome = command::run(&mut keys, arguments);
        (outcome, keys.events.into_iter().map(|(_, event)| event.name()).collect())
    }

    /// Does a command but for its last part.
    pub(crate) fn parts<'a>(&'a mut self, line: &'a str) -> Unfinished<'a> {
        let name = line.split(' ').next().unwrap();
        let command = COMMANDS.iter().find(|command| command.name == name).unwrap();
        let host = Shared { database: Cell::new(Some(self)), line, steps: Cell::new(0) };
        let arguments: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let made = (command.parts().expect("it has parts").work)(&host, &arguments, NUMBER);
        let database = host.database.take().expect("it was given back");
        Unfinished { database, line, steps: host.steps.get(), made: Some(made) }
    }

    /// Calls `work` with the keys of a command.
    pub(crate) fn with_keys<T>(
        &mut self,
        line: &str,
        work: impl FnOnce(&mut MemoryKeys<'_>, &[&[u8]]) -> T,
    ) -> T {
        let arguments: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let memory = &mut self.0;
        work(&mut MemoryKeys { memory, arguments: &arguments, events: Vec::new() }, &arguments)
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
