//! The scenarios of docs/conformance, which every door of Koel runs: read, and run step by step.
//!
//! A door is a way into a filter: the library, the command, the module. It maps each verb to what
//! it has, and its errors to codes; what must be answered stands in the scenarios alone. The
//! runners of Python and of npm do the same in their languages. docs/conformance/README.md has the
//! vocabulary.
//!
//! What a scenario *needs* are names: of its verbs (`add`), of their options (`merge counts max`),
//! of the kinds of its keys (`key tuple`) and of its errors (`error range`). A door skips a
//! scenario if doors.json says that it cannot do one of these, and only then.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::workspace;

/// The verbs that there are.
const VERBS: [&str; 32] = [
    "add",
    "add_many",
    "bytes",
    "capacity",
    "clear",
    "common",
    "contains",
    "contains_many",
    "contains_url",
    "copy",
    "corrections",
    "count",
    "count_many",
    "diff",
    "growable",
    "grown",
    "header",
    "len",
    "line_options",
    "list",
    "merge",
    "open",
    "patch",
    "patched",
    "rate",
    "refute",
    "refute_many",
    "remove",
    "remove_many",
    "reopen",
    "same",
    "build",
];
/// Fields of a step that no door can lack.
const PLAIN: [&str; 12] =
    ["do", "filter", "is", "error", "key", "keys", "of", "from", "to", "with", "patch", "capacity"];

/// The filter of a step that names none.
pub const FILTER: &str = "f";

/// A file of scenarios.
#[derive(Debug)]
pub struct Theme {
    /// Its name, without `.json`.
    pub name: String,
    /// Its scenarios.
    pub scenarios: Vec<Scenario>,
}

/// Steps, and what each must answer.
#[derive(Debug)]
pub struct Scenario {
    /// What it says.
    pub name: String,
    /// Its steps.
    pub steps: Vec<Step>,
}

/// One verb with its arguments.
#[derive(Debug)]
pub struct Step(pub Value);

/// A door: it does a step with filters that it keeps by their names.
pub trait Door {
    /// Does a step. Returns its answer (null if the verb has none), or the code of its error.
    ///
    /// # Errors
    ///
    /// The code of an error of the door.
    fn run(&mut self, step: &Step) -> Result<Value, String>;
}

fn folder() -> PathBuf {
    workspace::root().join("docs/conformance")
}

fn read(name: &str) -> Value {
    let path = folder().join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// All scenarios, theme by theme.
///
/// # Panics
///
/// If a file does not have the form of a theme.
#[must_use]
pub fn themes() -> Vec<Theme> {
    let files = fs::read_dir(folder()).expect("docs/conformance");
    let names = files.map(|file| file.expect("a file").file_name().into_string().expect("ASCII"));
    let names = names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned));
    let mut names: Vec<String> = names.filter(|name| name != "doors").collect();
    names.sort();
    names.into_iter().map(theme).collect()
}

fn theme(name: String) -> Theme {
    let file = read(&format!("{name}.json"));
    let scenario = |scenario: &Value| {
        assert!(scenario["why"].is_string(), "{name}.json: no reason for {}", scenario["name"]);
        let steps = scenario["steps"].as_array().expect("steps");
        let name = scenario["name"].as_str().expect("a name").to_owned();
        Scenario { name, steps: steps.iter().map(|step| Step(step.clone())).collect() }
    };
    let scenarios = file["scenarios"].as_array().expect("scenarios").iter().map(scenario).collect();
    Theme { name, scenarios }
}

/// What a door cannot do, and why: from a need to a reason.
#[must_use]
pub fn cannot(door: &str) -> BTreeMap<String, String> {
    let doors = read("doors.json");
    let cannot = doors[door]["cannot"].as_object().expect("a door of doors.json");
    let reason = |reason: &Value| reason.as_str().expect("a reason").to_owned();
    cannot.iter().map(|(need, why)| (need.clone(), reason(why))).collect()
}

/// The table of docs/conformance/README.md: what each door has, and how many scenarios it runs.
#[must_use]
pub fn table() -> String {
    let doors = read("doors.json");
    let doors: BTreeSet<&String> = doors.as_object().expect("doors").keys().collect();
    let cannot: Vec<_> = doors.iter().map(|door| cannot(door)).collect();
    let scenarios: Vec<_> = themes().into_iter().flat_map(|theme| theme.scenarios).collect();
    let ran = |lacks: &BTreeMap<String, String>| {
        let runs = |it: &&Scenario| !it.needs().iter().any(|need| lacks.contains_key(need));
        scenarios.iter().filter(runs).count().to_string()
    };
    let mut table = row("", doors.iter().map(|door| format!("`{door}`")));
    table += &row("---", doors.iter().map(|_| "---".to_owned()));
    let title = format!("scenarios that it runs, of {}", scenarios.len());
    table += &row(&title, cannot.iter().map(ran));
    let needs: BTreeSet<&String> = cannot.iter().flat_map(BTreeMap::keys).collect();
    for need in needs {
        let cell = |lacks: &BTreeMap<String, String>| match lacks.get(need) {
            Some(why) => format!("no: {why}"),
            None => "yes".to_owned(),
        };
        table += &row(&format!("`{need}`"), cannot.iter().map(cell));
    }
    table
}

fn row(title: &str, cells: impl Iterator<Item = String>) -> String {
    format!("| {title} | {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

impl Scenario {
    /// What a door must be able to do.
    #[must_use]
    pub fn needs(&self) -> BTreeSet<String> {
        self.steps.iter().flat_map(Step::needs).collect()
    }
}

impl Step {
    /// The verb.
    #[must_use]
    pub fn verb(&self) -> &str {
        self.text("do")
    }

    /// The name of the filter that it is about.
    #[must_use]
    pub fn filter(&self) -> &str {
        self.0["filter"].as_str().unwrap_or(FILTER)
    }

    /// A field that is a text; empty if it is not there.
    #[must_use]
    pub fn text(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap_or_default()
    }

    /// A field that is a number.
    #[must_use]
    pub fn number(&self, field: &str) -> Option<u64> {
        self.0[field].as_u64()
    }

    /// A field that is a number, or the digits of one that JavaScript would round.
    #[must_use]
    pub fn big(&self, field: &str) -> Option<u64> {
        self.number(field).or_else(|| self.0[field].as_str()?.parse().ok())
    }

    /// A field that is true.
    #[must_use]
    pub fn flag(&self, field: &str) -> bool {
        self.0[field] == true
    }

    /// A field of hexadecimal digits.
    #[must_use]
    pub fn hex(&self, field: &str) -> Option<Vec<u8>> {
        self.0[field].as_str().map(bytes_of)
    }

    /// The key, or each of the keys; none for a verb without keys.
    #[must_use]
    pub fn keys(&self) -> Vec<Value> {
        match &self.0["keys"] {
            Value::Null => self.0.get("key").cloned().into_iter().collect(),
            Value::Array(keys) => keys.clone(),
            many => match many["texts"].as_str() {
                Some(pattern) => range(&many["range"])
                    .map(|number| json!(pattern.replace("{}", &number.to_string())))
                    .collect(),
                None => range(&many["integers"]).map(Value::from).collect(),
            },
        }
    }

    /// These bytes, changed as the step says: `flip` a bit of a byte, `cut` bytes off the end, and
    /// `append` others.
    #[must_use]
    pub fn edited(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        if let Some(at) = self.number("flip") {
            bytes[usize::try_from(at).expect("an offset")] ^= 1;
        }
        let cut = usize::try_from(self.number("cut").unwrap_or(0)).expect("a length");
        bytes.truncate(bytes.len() - cut);
        bytes.extend(self.hex("append").unwrap_or_default());
        bytes
    }

    /// This step with keys as hexadecimal digits, and large numbers as digits.
    fn plain(&self) -> Value {
        let mut step = self.0.clone();
        let fields = step.as_object_mut().expect("a step");
        let mut keys: Vec<_> = self.keys().iter().map(|key| hex(&bytes_of_key(key))).collect();
        if fields.contains_key("keys") {
            fields.insert("keys".to_owned(), json!(keys));
        } else if let Some(key) = keys.pop() {
            fields.insert("key".to_owned(), json!(key));
        }
        for name in ["capacity", "seed"] {
            if let Some(number) = self.big(name) {
                fields.insert(name.to_owned(), json!(number.to_string()));
            }
        }
        step
    }

    /// What a door must be able to do.
    fn needs(&self) -> Vec<String> {
        let verb = self.verb();
        assert!(VERBS.contains(&verb), "an unknown verb: {}", self.0);
        let mut needs = vec![verb.to_owned()];
        for (field, value) in self.0.as_object().expect("a step") {
            match (field.as_str(), value.as_str()) {
                ("error", Some(code)) => needs.push(format!("error {code}")),
                ("counts" | "prefer", Some(word)) => needs.push(format!("{verb} {field} {word}")),
                (plain, _) if PLAIN.contains(&plain) => {}
                _ => needs.push(format!("{verb} {field}")),
            }
        }
        let keys = self.keys();
        let kinds: BTreeSet<_> = keys.iter().map(kind).collect();
        needs.extend(kinds.into_iter().map(|kind| format!("key {kind}")));
        if keys.is_empty() && !self.0["keys"].is_null() {
            needs.push("no keys".to_owned());
        }
        needs
    }

    /// Whether this is what the step must answer. Of many keys, a number is the sum of the answers.
    fn accepts(&self, answer: &Result<Value, String>) -> bool {
        if let (Ok(answer), Some(most)) = (answer, self.number("at_most")) {
            return answer.as_u64().unwrap_or_else(|| sum(answer.as_array().expect("many")))
                <= most;
        }
        match (answer, self.0["error"].as_str(), &self.0["is"]) {
            (Err(code), expected, _) => expected == Some(code),
            (Ok(_), Some(_), _) => false,
            (Ok(_), None, Value::Null) => true,
            (Ok(Value::Array(answers)), None, Value::Number(expected)) => {
                expected.as_u64() == Some(sum(answers))
            }
            (Ok(answer), None, expected) => answer == expected,
        }
    }
}

/// The kind of a key, as "Keys" of docs/conformance/README.md names it.
fn kind(key: &Value) -> &str {
    match key {
        Value::String(text) if text.is_empty() => "empty",
        Value::String(_) => "text",
        Value::Number(_) => "integer",
        Value::Object(fields) => fields.keys().next().expect("a kind"),
        other => panic!("no key: {other}"),
    }
}

/// An answer in a message; that for many keys as its sum.
fn shown(answer: &Result<Value, String>) -> String {
    match answer {
        Ok(Value::Array(answers)) if answers.len() > 9 => sum(answers).to_string(),
        Ok(answer) => answer.to_string(),
        Err(code) => format!("with the error {code}"),
    }
}

/// The sum of numbers, or how many answers are true.
fn sum(answers: &[Value]) -> u64 {
    answers.iter().map(|it| it.as_u64().unwrap_or_else(|| u64::from(it == true))).sum()
}

fn range(ends: &Value) -> std::ops::Range<u64> {
    let end = |at: usize| ends[at].as_u64().expect("a range has two numbers");
    end(0)..end(1)
}

/// The bytes of hexadecimal digits.
///
/// # Panics
///
/// If they are none.
#[must_use]
pub fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = (0..hex.len()).step_by(2);
    digits.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

/// Bytes as hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(digits, "{byte:02x}").expect("a string");
    }
    digits
}

/// The scenarios that a door runs, as one JSON text for a runner in another language: of each its
/// `place` and its `steps`. What a runner would have to know of the vocabulary is done: each key is
/// the hexadecimal digits of its bytes, `capacity` and `seed` are decimal digits, and there is no
/// scenario that needs what the door lacks.
///
/// # Panics
///
/// If nothing needs what the door says that it cannot do.
#[must_use]
pub fn for_other_languages(door: &str) -> String {
    let cannot = cannot(door);
    let (mut unused, mut kept) = (BTreeSet::from_iter(cannot.keys()), Vec::new());
    for theme in themes() {
        for scenario in theme.scenarios {
            let needs = scenario.needs();
            unused.retain(|&need| !needs.contains(need));
            if needs.iter().any(|need| cannot.contains_key(need)) {
                continue;
            }
            let steps: Vec<Value> = scenario.steps.iter().map(Step::plain).collect();
            let place = format!("{}.json, \"{}\"", theme.name, scenario.name);
            kept.push(json!({ "place": place, "steps": steps }));
        }
    }
    assert!(unused.is_empty(), "doors.json: no scenario needs {unused:?}, which {door} cannot do");
    Value::Array(kept).to_string()
}

/// The bytes of a key: those of docs/conformance/README.md that are the same behind every door.
///
/// # Panics
///
/// If it is a tuple, or no key.
fn bytes_of_key(key: &Value) -> Vec<u8> {
    let wide = |digits: &str| {
        let signed = || digits.parse::<i128>().map(i128::cast_unsigned);
        digits.parse::<u128>().or_else(|_| signed()).expect("an integer of 128 bits").to_le_bytes()
    };
    let low = |digits: &str| wide(digits)[..8].to_vec();
    match (kind(key), key) {
        ("text" | "empty", key) => key.as_str().expect("a text").as_bytes().to_vec(),
        ("integer", key) => low(&key.to_string()),
        ("u64", key) => low(key["u64"].as_str().expect("digits")),
        ("wide", key) => wide(key["wide"].as_str().expect("digits")).to_vec(),
        ("hex", key) => bytes_of(key["hex"].as_str().expect("digits")),
        (kind, _) => panic!("a {kind} has no bytes of its own"),
    }
}

/// Runs every scenario that the door can, each with a new `door`, and says how many these are.
///
/// # Panics
///
/// If a step answers something else, or nothing needs what the door says that it cannot do.
pub fn run<D: Door>(name: &str, mut door: impl FnMut() -> D) {
    let (cannot, mut failures, mut unused) = (cannot(name), Vec::new(), BTreeSet::new());
    unused.extend(cannot.keys().cloned());
    let (mut ran, mut skipped) = (0, 0);
    for (theme, scenario) in
        themes().iter().flat_map(|it| it.scenarios.iter().map(move |s| (it, s)))
    {
        let needs = scenario.needs();
        unused.retain(|need| !needs.contains(need));
        if needs.iter().any(|need| cannot.contains_key(need)) {
            skipped += 1;
            continue;
        }
        ran += 1;
        let mut door = door();
        for (number, step) in scenario.steps.iter().enumerate() {
            let answer = door.run(step);
            if !step.accepts(&answer) {
                let place =
                    format!("{}.json, \"{}\", step {}", theme.name, scenario.name, number + 1);
                failures.push(format!("{place}: {} answers {}", step.0, shown(&answer)));
                break;
            }
        }
    }
    println!("{name}: ran {ran} scenarios, skipped {skipped}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(unused.is_empty(), "doors.json: no scenario needs {unused:?}, which {name} cannot do");
}
