//! The module runs the scenarios of docs/conformance.

use std::cell::RefCell;

use redis::{Connection, Value as Reply};
use serde_json::{Value, json};
use testkit::conformance::{Door, Step, bytes_of, hex, run};

use crate::server::{bytes, call, dump, number, numbers, ok, on_each};

#[test]
#[ignore = "needs servers: scripts/valkey"]
fn the_module_does_what_the_scenarios_say() {
    on_each(|_, connection| {
        let connection = RefCell::new(connection);
        run("module", || {
            ok(&mut connection.borrow_mut(), "FLUSHALL");
            Keys(&connection)
        });
    });
}

/// Filters, as the values of keys.
struct Keys<'a>(&'a RefCell<&'a mut Connection>);

/// The code of an error, which its words and the verb tell.
fn code(verb: &str, text: &str) -> String {
    let says = |words: &[&str]| words.iter().any(|words| text.contains(words));
    let code = match verb {
        _ if says(&["likely added"]) => "members",
        _ if says(&["2^64"]) => "range",
        _ if says(&["full", "Maximum expansions", "more corrections", "does not fit"]) => "full",
        "build" => "settings",
        "open" | "list" => "bytes",
        "merge" => "different",
        _ => "lines",
    };
    code.to_owned()
}

impl Door for Keys<'_> {
    fn run(&mut self, step: &Step) -> Result<Value, String> {
        let (filter, verb, of) = (step.filter(), step.verb(), step.text("of"));
        let copies = step.flag("copies");
        let info =
            |field: &str| self.call(step, &[b"CF.INFO", filter.as_bytes(), field.as_bytes()]);
        let nothing = |_| Value::Null;
        match verb {
            "build" => self.built(step).map(nothing),
            "list" => self.loaded(step, &step.hex("image").expect("an image")).map(nothing),
            "open" => {
                let image = step.hex("image").unwrap_or_else(|| self.image(of));
                self.loaded(step, &step.edited(image)).map(nothing)
            }
            "copy" => self.words(step, &format!("COPY {of} {filter} REPLACE")).map(nothing),
            "reopen" => {
                let payload = bytes(self.words(step, &format!("DUMP {filter}"))?);
                let restored = [b"RESTORE", filter.as_bytes(), b"0", &payload, b"REPLACE"];
                self.call(step, &restored).map(nothing)
            }
            "add" if copies => self.one(step, "CF.ADD"),
            "add" => self.one(step, "CF.ADDNX"),
            "add_many" => {
                let command = if copies { "CF.INSERT" } else { "CF.INSERTNX" };
                let answers = numbers(&self.items(step, &[command, filter, "NOCREATE", "ITEMS"])?);
                let added = answers.iter().filter(|&&answer| answer == 1).count();
                // A filter that is full answers -1, or in RESP3 no.
                let is_full = answers.iter().any(|&answer| answer < 0 || copies && answer != 1);
                if is_full { Err("full".to_owned()) } else { Ok(json!(added)) }
            }
            "remove" => self.one(step, "CF.DEL"),
            "remove_many" => self.flags(step, "CF.MDEL"),
            "contains" => self.one(step, "CF.EXISTS"),
            "contains_many" => self.flags(step, "CF.MEXISTS"),
            "count" => Ok(json!(number(&self.items(step, &["CF.COUNT", filter])?))),
            "count_many" => Ok(json!(numbers(&self.items(step, &["CF.MCOUNT", filter])?))),
            "refute" => Ok(self.flags(step, "CF.REFUTE")?[0].clone()),
            "refute_many" => self.flags(step, "CF.REFUTE"),
            "merge" => {
                self.words(step, &format!("CF.MERGE {filter} {}", step.text("with"))).map(nothing)
            }
            "bytes" => Ok(json!(self.image(filter) == self.image(step.text("with")))),
            "header" => Ok(json!(hex(&self.image(filter)[..192]))),
            "len" => Ok(json!(number(&info("ITEMS")?))),
            "capacity" => Ok(json!(number(&info("CAPACITY")?))),
            "corrections" => Ok(json!(number(&info("CORRECTIONS")?))),
            "growable" => Ok(json!(number(&info("EXPANSION")?) != 0)),
            "rate" => Ok(match info("ERROR")? {
                Reply::Double(rate) => json!(rate),
                text => serde_json::from_slice(&bytes(text)).unwrap(),
            }),
            other => panic!("no verb {other}"),
        }
    }
}

impl Keys<'_> {
    fn call(&self, step: &Step, words: &[&[u8]]) -> Result<Reply, String> {
        let reply = call(&mut self.0.borrow_mut(), words);
        reply.map_err(|error| code(step.verb(), &error))
    }

    fn words(&self, step: &Step, line: &str) -> Result<Reply, String> {
        self.call(step, &line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    /// These words, and the keys of the step.
    fn items(&self, step: &Step, words: &[&str]) -> Result<Reply, String> {
        let keys: Vec<_> = step.keys().iter().map(key).collect();
        let words = words.iter().map(|word| word.as_bytes());
        self.call(step, &words.chain(keys.iter().map(Vec::as_slice)).collect::<Vec<_>>())
    }

    fn one(&self, step: &Step, command: &str) -> Result<Value, String> {
        Ok(json!(number(&self.items(step, &[command, step.filter()])?) == 1))
    }

    fn flags(&self, step: &Step, command: &str) -> Result<Value, String> {
        let answers = numbers(&self.items(step, &[command, step.filter()])?);
        Ok(answers.into_iter().map(|answer| answer == 1).collect())
    }

    fn built(&self, step: &Step) -> Result<Reply, String> {
        let rate = step.0["rate"].as_f64().unwrap_or(0.001);
        let prefer = if step.text("prefer") == "fast" { "FAST" } else { "SMALL" };
        let expansion = u8::from(step.flag("grow"));
        let secret = Some(step.text("secret")).filter(|it| !it.is_empty()).unwrap_or("NO");
        let (filter, capacity) = (step.filter(), step.number("capacity").unwrap());
        let line = format!(
            "CF.RESERVE {filter} {capacity} ERROR {rate} PREFER {prefer} EXPANSION {expansion} \
             SECRET {secret}"
        );
        self.words(step, &line)
    }

    /// All chunks but the first, which is a header.
    fn image(&self, filter: &str) -> Vec<u8> {
        let chunks = dump(&mut self.0.borrow_mut(), filter);
        chunks.into_iter().skip(1).flat_map(|(_, chunk)| chunk).collect()
    }

    /// Loads an image after its header ("Chunks" of docs/VALKEY-BYTES.md).
    fn loaded(&self, step: &Step, image: &[u8]) -> Result<Reply, String> {
        let filter = step.filter().as_bytes();
        let field =
            |at: usize| *image.get(at..at + 8).and_then(<[u8]>::first_chunk).unwrap_or(&[1; 8]);
        let grows = image.get(28).copied().unwrap_or(0);
        let header = [
            &b"KOELCF01"[..],
            &(image.len() as u64).to_le_bytes(),
            &field(80),
            &field(72),
            &[0; 8],
            &[2, 0, 20, 0, grows, 0, 0, 0, 0, 0],
        ];
        self.call(step, &[b"DEL", filter])?;
        self.call(step, &[b"CF.LOADCHUNK", filter, b"1", &header.concat()])?;
        let end = (image.len() + 1).to_string();
        self.call(step, &[b"CF.LOADCHUNK", filter, end.as_bytes(), image])
    }
}

/// The bytes of a key.
fn key(key: &Value) -> Vec<u8> {
    let bytes = key["hex"].as_str().map(bytes_of);
    bytes.unwrap_or_else(|| key.as_str().expect("a text").as_bytes().to_vec())
}
