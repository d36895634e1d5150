//! The command runs the scenarios of docs/conformance: each step is a process or two.
//!
//! Keys end with NUL on standard input, or with LF if one has a NUL. A filter is a file of its
//! name, and so is a patch.
//!
//! The image of a new list is in the message of the test that fails without it.

use std::fmt::Write as _;

use serde_json::{Value, json};
use testkit::conformance::{Door, Step, bytes_of, hex, run};

use crate::support::{Ran, Shell};

#[test]
fn the_command_does_what_the_scenarios_say() {
    run("command", || Files { shell: Shell::new(), hosts: "" });
}

/// Filters and patches, as files of their names.
struct Files {
    shell: Shell,
    /// What says that a key of a list of rules is a host, and no rule.
    hosts: &'static str,
}

/// The code of an error, which the exit code and the verb tell.
fn code(verb: &str, ran: &Ran) -> String {
    let other = match verb {
        "build" => "settings",
        "open" | "reopen" => "bytes",
        "merge" | "diff" | "common" | "same" | "patch" => "different",
        "patched" if ran.err.contains("patch is for") || ran.err.contains("already") => "base",
        "patched" => "bytes",
        _ => "lines",
    };
    let code = match ran.code {
        _ if ran.err.contains("2^64") => "range",
        _ if ran.err.contains("chance explains") => "members",
        3 => "full",
        _ => other,
    };
    code.to_owned()
}

impl Door for Files {
    fn run(&mut self, step: &Step) -> Result<Value, String> {
        let (filter, verb, of) = (step.filter(), step.verb(), step.text("of"));
        let (with, patch) = (step.text("with"), step.text("patch"));
        let info = || self.ok(step, &format!("info --json {filter}"), &[]).map(|ran| ran.json());
        match verb {
            "build" => {
                let words = format!("build -o {filter}{}", self.settings(step));
                self.ok(step, &words, &[]).map(|_| Value::Null)
            }
            "list" => self.list(step),
            "open" => {
                let image = step.hex("image").unwrap_or_else(|| self.shell.read(of));
                self.shell.write(filter, step.edited(image));
                info().map(|_| Value::Null)
            }
            "reopen" => info().map(|_| Value::Null),
            "copy" => {
                self.shell.write(filter, self.shell.read(of));
                Ok(Value::Null)
            }
            "add" | "add_many" | "remove" | "remove_many" | "refute" | "refute_many" => {
                self.changed(step)
            }
            "contains" | "contains_many" | "contains_url" | "count" | "count_many" => {
                self.answered(step)
            }
            "merge" => {
                let max = if step.text("counts") == "max" { " --max" } else { "" };
                self.ok(step, &format!("merge {filter} {with} -o {filter}{max}"), &[])?;
                Ok(Value::Null)
            }
            "same" => {
                let ran = self.asked(step, &format!("diff {filter} {with}"), &[])?;
                Ok(json!(ran.code == 0))
            }
            "diff" => {
                let found = self.asked(step, &format!("diff --json {filter} {with}"), &[])?.json();
                Ok(json!([
                    found["removed"],
                    found["added"],
                    found["corrections_removed"],
                    found["corrections_added"]
                ]))
            }
            "common" => {
                let found = self.ok(step, &format!("similar --json {filter} {with}"), &[])?.json();
                Ok(json!(whole(&found["common"]["value"])))
            }
            "patch" => {
                let (from, to) = (step.text("from"), step.text("to"));
                self.ok(step, &format!("diff {from} {to} --patch {patch}.patch"), &[])?;
                Ok(json!(hex(&self.shell.read(&format!("{patch}.patch")))))
            }
            "patched" => {
                self.shell.write("edited", step.edited(self.shell.read(&format!("{patch}.patch"))));
                self.ok(step, &format!("patch {of} edited -o {filter}"), &[]).map(|_| Value::Null)
            }
            "bytes" => Ok(json!(self.shell.read(filter) == self.shell.read(with))),
            "header" => Ok(json!(hex(&self.shell.read(filter)[..192]))),
            verb => Ok(told(verb, &info()?)),
        }
    }
}

impl Files {
    /// Asks for keys.
    fn answered(&self, step: &Step) -> Result<Value, String> {
        let filter = step.filter();
        match step.verb() {
            "contains" => self.found(step, &step.0["key"], ""),
            "contains_url" => self.found(step, &step.0["url"], "--url"),
            "contains_many" if step.0["is"].is_array() => {
                let keys = step.keys();
                let found = keys.iter().map(|key| self.found(step, key, ""));
                found.collect::<Result<Vec<_>, _>>().map(Value::from)
            }
            "contains_many" => {
                let ran = self.asked(step, &format!("check -c {filter}"), &step.keys())?;
                Ok(ran.json())
            }
            verb => {
                let ran = self.asked(step, &format!("count {filter}"), &step.keys())?;
                let records = ran.out.split(|&byte| byte == 0).filter(|it| !it.is_empty());
                let counts = records.map(|it| it.split(|&byte| byte == b'\t').next().unwrap());
                let mut counts: Vec<Value> =
                    counts.map(|it| serde_json::from_slice(it).unwrap()).collect();
                Ok(if verb == "count" { counts.remove(0) } else { json!(counts) })
            }
        }
    }

    /// Runs a verb with keys. An exit code of 0 or 1 is an answer.
    fn asked(&self, step: &Step, words: &str, keys: &[Value]) -> Result<Ran, String> {
        let keys: Vec<_> = keys.iter().map(bytes).collect();
        // The keys themselves, also where the filter is of a column.
        let (end, options) = match keys.iter().any(|key| key.contains(&0)) {
            _ if keys.is_empty() => (0, ""),
            true => (b'\n', " --text --field 0"),
            false => (0, " -0 --field 0"),
        };
        let input: Vec<u8> = keys.iter().flat_map(|key| [key, &[end][..]].concat()).collect();
        let hosts = if keys.is_empty() { "" } else { self.hosts };
        let ran = self.shell.run_with(&format!("{words}{options}{hosts}"), &input);
        if ran.code > 1 { Err(code(step.verb(), &ran)) } else { Ok(ran) }
    }

    /// The same. An exit code of 0 is an answer.
    fn ok(&self, step: &Step, words: &str, keys: &[Value]) -> Result<Ran, String> {
        let ran = self.asked(step, words, keys)?;
        if ran.code == 0 { Ok(ran) } else { Err(code(step.verb(), &ran)) }
    }

    fn found(&self, step: &Step, key: &Value, options: &str) -> Result<Value, String> {
        let words = format!("check -q {options} {}", step.filter());
        Ok(json!(self.asked(step, &words, std::slice::from_ref(key))?.code == 0))
    }

    fn changed(&self, step: &Step) -> Result<Value, String> {
        let verb = step.verb();
        let (verb, many) = verb.split_once('_').map_or((verb, false), |(verb, _)| (verb, true));
        let unique = if verb == "add" && !step.flag("copies") { " --unique" } else { "" };
        let force = if step.flag("force") { " --force" } else { "" };
        let words = format!("{verb}{unique}{force} --json {}", step.filter());
        let keys = step.keys();
        let report = self.asked(step, &words, &keys)?.json();
        let done = report[match verb {
            "add" => "added",
            "remove" => "removed",
            _ => "refuted",
        }]
        .clone();
        Ok(if many { done } else { json!(done == 1) })
    }

    /// Builds a filter of lines, which is the one whose image every other door opens.
    fn list(&mut self, step: &Step) -> Result<Value, String> {
        let words = format!("build -o {} {}", step.filter(), step.text("options"));
        let ran = self.shell.run_with(&words, step.text("lines").as_bytes());
        if ran.code != 0 {
            return Err(code("list", &ran));
        }
        if words.contains("adblock") {
            self.hosts = " --format hosts";
        }
        let image = hex(&self.shell.read(step.filter()));
        if image != step.text("image") {
            return Err(format!("image {image}"));
        }
        Ok(Value::Null)
    }

    fn settings(&self, step: &Step) -> String {
        let mut options = String::from(if step.flag("grow") { " --grow" } else { "" });
        for (field, option) in
            [("capacity", "keys"), ("rate", "fpr"), ("prefer", "prefer"), ("seed", "seed")]
        {
            let value = &step.0[field];
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if value != "null" {
                write!(options, " --{option}={value}").unwrap();
            }
        }
        if let Some(secret) = step.hex("secret") {
            self.shell.write("secret", secret);
            options += " --secret=secret";
        }
        options
    }
}

/// What `info` tells.
fn told(verb: &str, info: &Value) -> Value {
    match verb {
        "len" => info["keys"].clone(),
        "rate" => info["fpr_requested"].clone(),
        "grown" => info["has_grown"].clone(),
        "line_options" => options_of(&info["line_options"]),
        same => info.get(same).unwrap_or_else(|| panic!("no verb {verb}")).clone(),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "small numbers of keys")]
fn whole(estimate: &Value) -> i64 {
    estimate.as_f64().unwrap().round() as i64
}

/// How keys were made, as options: what `info` says of it, without how a line is read.
fn options_of(said: &Value) -> Value {
    let options = [
        ("--format hosts", said["format"] != "lines"),
        ("--ignore-case", said["ignore_case"] == true),
        ("--trim", said["trim"] == true),
        ("--keep-cr", said["keep_cr"] == true),
    ];
    let options = options.into_iter().filter(|(_, is_set)| *is_set).map(|(option, _)| option);
    json!(options.collect::<Vec<_>>().join(" "))
}

/// The bytes of a key.
fn bytes(key: &Value) -> Vec<u8> {
    let bytes = key["hex"].as_str().map(bytes_of);
    bytes.unwrap_or_else(|| key.as_str().expect("a text").as_bytes().to_vec())
}
