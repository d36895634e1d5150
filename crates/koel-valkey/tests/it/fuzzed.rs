//! Any bytes as a value of an RDB file, and then as chunks and commands on it: refused with an
//! error, or a filter that takes whatever is done to it. The fuzz target `valkey` includes this
//! file.

use koel_valkey::command;
use koel_valkey::filter::header::Origin;
use koel_valkey::filter::record::{self, ENCODING, Source};
use koel_valkey::keys::{Memory, MemoryKeys};

/// What fuzzing may make a filter grow to.
const LIMIT: u64 = 1 << 18;
const REFERENCE_ENCODING: i32 = 4;
const COMMANDS: [&str; 16] = [
    "RESERVE",
    "ADD",
    "ADDNX",
    "INSERT",
    "INSERTNX",
    "EXISTS",
    "MEXISTS",
    "COUNT",
    "MCOUNT",
    "DEL",
    "MDEL",
    "COMPACT",
    "MERGE",
    "INFO",
    "SCANDUMP",
    "LOADCHUNK",
];

/// The bytes that are left.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    /// As many bytes as the next one says.
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::from(self.byte()?).min(self.0.len());
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        Some(bytes)
    }
}

/// Small numbers in one byte, the others in eight.
impl Source for Input<'_> {
    fn number(&mut self) -> Option<u64> {
        let small = self.byte()?;
        if small < 0xff {
            return Some(small.into());
        }
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn string<T>(&mut self, use_it: impl FnOnce(&[u8]) -> T) -> Option<T> {
        self.bytes().map(use_it)
    }
}

/// Panics if a promise is broken.
pub(crate) fn fuzzed_bytes(bytes: &[u8]) {
    let mut input = Input(bytes);
    let encoding = if input.byte() == Some(0) { REFERENCE_ENCODING } else { ENCODING };
    let mut memory = Memory { limit: LIMIT, ..Memory::default() };
    if let Ok(filter) = record::load(encoding, Origin::Anywhere, &mut input) {
        memory.values.insert(b"a".to_vec(), Some(filter));
    }
    while let Some(byte) = input.byte() {
        let name = COMMANDS[usize::from(byte % 16)];
        let key: &[u8] = if byte & 16 == 0 { b"a" } else { b"b" };
        let mut arguments = vec![name.as_bytes(), key];
        for _ in 0..byte >> 5 {
            arguments.extend(input.bytes());
        }
        memory.now = memory.now.saturating_add(1 << (byte >> 3));
        let mut keys =
            MemoryKeys { memory: &mut memory, arguments: &arguments, events: Vec::new() };
        drop(command::run(&mut keys, &arguments));
    }
    for filter in memory.values.values().flatten() {
        assert!(filter.bytes() < 1 << 22, "more memory than the limit explains");
    }
}

#[cfg(test)]
#[test]
fn any_bytes_are_refused_or_a_filter_that_takes_whatever_is_done_to_it() {
    for seed in 0..50_000 {
        let mut random = testkit::storage::Random::new(seed);
        let len = random.below(200);
        fuzzed_bytes(&random.bytes(len));
    }
}
