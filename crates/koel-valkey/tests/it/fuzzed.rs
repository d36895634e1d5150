//! Any bytes as a value of an RDB file, and then as chunks and commands on it: refused with an
//! error, or a filter that takes whatever is done to it: first every command at its bounds, then
//! those that the bytes say. The fuzz target `valkey` includes this file.

use koel_valkey::command;
use koel_valkey::command::reply::Reply;
use koel_valkey::error::Error;
use koel_valkey::filter::header::Origin;
use koel_valkey::filter::record::{self, ENCODING, Source};
use koel_valkey::keys::{Memory, MemoryKeys};

/// What fuzzing may make a filter grow to.
const LIMIT: u64 = 1 << 18;
const REFERENCE_ENCODING: i32 = 4;
/// Commands at their bounds: with items that are in, absent, there twice, and refuted.
const AT_BOUNDS: [&str; 20] = [
    "INFO a",
    "DEBUG a",
    "COUNT a x",
    "ADD a x",
    "EXISTS a x",
    "ADDNX a x",
    "INSERT a ITEMS x x y z",
    "INSERTNX a NOCREATE ITEMS x w",
    "MCOUNT a w x y z",
    "MDEL a x y y z",
    "REFUTE a x y z u v t s r q p",
    "INSERT a ITEMS u x",
    "MEXISTS a u v x y",
    "MERGE b a",
    "MERGE a b",
    "MERGE a a",
    "COMPACT a",
    "DEL a x",
    "DEL a v",
    "INFO b",
];
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
        at_bounds(&mut memory);
    }
    while let Some(byte) = input.byte() {
        let name = COMMANDS[usize::from(byte % 16)];
        let key: &[u8] = if byte & 16 == 0 { b"a" } else { b"b" };
        let mut arguments = vec![name.as_bytes(), key];
        for _ in 0..byte >> 5 {
            arguments.extend(input.bytes());
        }
        memory.now = memory.now.saturating_add(1 << (byte >> 3));
        drop(run(&mut memory, &arguments));
    }
    assert_small(&memory);
}

fn assert_small(memory: &Memory) {
    for filter in memory.values.values().flatten() {
        assert!(filter.bytes() < 1 << 22, "more memory than the limit explains");
    }
}

fn run(memory: &mut Memory, arguments: &[&[u8]]) -> Result<Reply, Error> {
    let mut keys = MemoryKeys { memory, arguments, events: Vec::new() };
    command::run(&mut keys, arguments)
}

/// Runs each command. An item that was added is found, and the chunks of the filter, loaded again,
/// are those of an equal one.
fn at_bounds(memory: &mut Memory) {
    for line in AT_BOUNDS {
        let arguments: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        if run(memory, &arguments).is_ok_and(|reply| reply == Reply::Bool(true))
            && arguments[0] == b"ADD"
        {
            let found = run(memory, &[b"EXISTS", b"a", b"x"]);
            assert_eq!(found, Ok(Reply::Bool(true)), "an item is lost");
        }
        assert_small(memory);
    }
    let chunks = dump(memory, b"a");
    for (iterator, chunk) in &chunks {
        let loaded = run(memory, &[b"LOADCHUNK", b"c", iterator.to_string().as_bytes(), chunk]);
        assert_eq!(loaded, Ok(Reply::Ok));
    }
    assert!(dump(memory, b"c") == chunks, "not loaded back");
}

/// All chunks of a filter, each with its iterator; none of one that is not complete.
fn dump(memory: &mut Memory, key: &[u8]) -> Vec<(i64, Vec<u8>)> {
    let (mut chunks, mut iterator) = (Vec::new(), 0);
    loop {
        let Ok(Reply::Array(pair)) =
            run(memory, &[b"SCANDUMP", key, iterator.to_string().as_bytes()])
        else {
            return chunks;
        };
        let [Reply::Integer(next @ 1..), Reply::Bytes(chunk)] = &pair[..] else { return chunks };
        iterator = *next;
        chunks.push((iterator, chunk.clone()));
    }
}

#[cfg(test)]
mod tests {
    use koel::CuckooFilter;
    use koel_valkey::filter::Filter;
    use koel_valkey::filter::record::Sink;

    use super::*;

    /// Strings and numbers, as [`Input`] reads them.
    #[derive(Default)]
    struct Output {
        bytes: Vec<u8>,
        strings: Vec<Vec<u8>>,
    }

    impl Sink for Output {
        fn number(&mut self, number: u64) {
            self.bytes.push(0xff);
            self.bytes.extend(number.to_le_bytes());
        }

        fn string(&mut self, bytes: &[u8]) {
            self.strings.push(bytes.to_vec());
            for piece in bytes.chunks(255) {
                self.bytes.push(u8::try_from(piece.len()).expect("a short piece"));
                self.bytes.extend(piece);
            }
        }
    }

    /// The value of a filter as bytes, and its header and body.
    fn saved(filter: &Filter) -> Output {
        let mut output = Output { bytes: vec![1], ..Output::default() };
        record::save(filter, &mut output);
        output
    }

    /// Values of filters that these commands make, which are followed by such commands.
    fn values(lines: &[&str]) -> Output {
        let mut memory = Memory { limit: LIMIT, ..Memory::default() };
        for line in lines {
            let arguments: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            assert!(run(&mut memory, &arguments).is_ok(), "{line}");
        }
        saved(memory.values[&b"a"[..]].as_ref().expect("a filter"))
    }

    #[test]
    fn any_bytes_are_refused_or_a_filter_that_takes_whatever_is_done_to_it() {
        for seed in 0..50_000 {
            let mut random = testkit::storage::Random::new(seed);
            let len = random.below(200);
            fuzzed_bytes(&random.bytes(len));
        }
    }

    /// Payloads of filters whose fields and records are at their bounds.
    #[test]
    fn filters_at_their_bounds_take_every_command_at_its_bounds() {
        let mut tried = 0;
        for create in ["RESERVE a 20", "RESERVE a 20 EXPANSION 0", "RESERVE a 20 WINDOW 60"] {
            let sound = values(&[create, "INSERT a ITEMS x x x x y z", "DEL a y"]);
            fuzzed_bytes(&sound.bytes);
            let [header, image] = &sound.strings[..] else { panic!("a header and an image") };
            for image in testkit::seeds::at_bounds::<CuckooFilter>([image]) {
                let mut header = header.clone();
                let old_len = (sound.strings[1].len() as u64).to_le_bytes();
                let at = header.windows(8).position(|it| it == old_len).expect("a length");
                header[at..at + 8].copy_from_slice(&(image.len() as u64).to_le_bytes());
                let mut output = Output { bytes: vec![1], ..Output::default() };
                output.string(&header);
                output.number(image.len() as u64);
                output.string(&image);
                fuzzed_bytes(&output.bytes);
                let mut input = Input(&output.bytes[1..]);
                tried += u32::from(record::load(ENCODING, Origin::Anywhere, &mut input).is_ok());
            }
        }
        assert!(tried > 10, "{tried}");
    }
}
