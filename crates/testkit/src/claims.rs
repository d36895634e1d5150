//! What pages say with numbers and with words such as "never", and what proves it.
//!
//! A number in a page is part of a figure, which a command has recorded, or of a claim. So is a
//! word that promises. Claims stand in `docs/claims`, a file for each page:
//!
//! ```toml
//! page = "docs/CHOOSING.md"
//!
//! [[claim]]
//! says = "11.4 bits per key at 0.2 %"  # words of the page, and one of these as the proof:
//! plan = "1M 0.2%"            # bits per key of a filter, also with "fast" or "grow 1M"
//! constant = "FILE: TEXT"     # in that file, and the value behind its last `=` is in `says`
//! test = "NAME"               # such a test or fuzz target, or several: it asserts what is said
//! figure = "NAME"             # the numbers of `says` are in docs/figures/NAME.json
//! from = "FILE"               # the numbers of `says` are in this dated page
//! because = "REASON"          # an exception
//! ```
//!
//! Numbers need no claim in code, in targets of links, in numbers of lists and of decisions
//! (`0019`), and as powers (`2^64`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use koel::{CuckooFilter, Prefer};
use toml::{Table, Value};

/// Words of a page, and what proves them.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The words, with single spaces.
    pub says: String,
    /// The kind of the proof, and the proof.
    proof: (String, Vec<String>),
}

/// The claims of a page.
#[derive(Clone, Debug)]
pub struct Claims {
    /// The path of the page from the root of the repository, or a name for what is no file.
    pub page: String,
    /// What it claims.
    pub claims: Vec<Claim>,
}

impl Claims {
    /// Reads a file of claims.
    ///
    /// # Errors
    /// A sentence that says what is wrong about it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let table: Table = text.parse().map_err(|error| format!("{error}"))?;
        let page = table.get("page").and_then(Value::as_str).ok_or("no page")?.to_owned();
        if let Some(other) = table.keys().find(|key| !["page", "claim"].contains(&key.as_str())) {
            return Err(format!("no key {other}: use page and [[claim]]"));
        }
        let claims = table.get("claim").and_then(Value::as_array).cloned().unwrap_or_default();
        Ok(Self { page, claims: claims.iter().map(Claim::parse).collect::<Result<_, _>>()? })
    }

    /// What the page says with digits, or with one of these words, and no claim covers.
    #[must_use]
    pub fn uncovered(&self, page: &str, words: &[&str]) -> Vec<String> {
        self.without_claim(page, |word| is_number(word) || is_one_of(word, words))
    }

    /// What the page says with one of these words, and no claim covers.
    #[must_use]
    pub fn unpromised(&self, page: &str, words: &[&str]) -> Vec<String> {
        self.without_claim(page, |word| is_one_of(word, words))
    }

    /// Words that need a claim and have none, with those around them.
    fn without_claim(&self, page: &str, needs_claim: impl Fn(&str) -> bool) -> Vec<String> {
        let mut rest = prose(page);
        for claim in &self.claims {
            rest = rest.replace(&claim.says, " = ");
        }
        let rest = without_code(&rest);
        let all: Vec<&str> = rest.split_whitespace().collect();
        let found = (0..all.len())
            .filter(|&at| !is_option(all[at]))
            .filter(|&at| all[at].split(['/', '|']).any(|word| needs_claim(bare(word))));
        found
            .map(|at| {
                let around = &all[at.saturating_sub(6)..(at + 7).min(all.len())];
                format!("{}: `{}` in `{}`", self.page, all[at], around.join(" "))
            })
            .collect()
    }

    /// What is wrong about the claims of this page, by the sources of the repository.
    #[must_use]
    pub fn unproven(&self, page: &str, sources: &Sources<'_>) -> Vec<String> {
        let page = prose(page);
        let complaint = |claim: &Claim| {
            let problem = if page.contains(&claim.says) {
                sources.problem(claim)
            } else {
                Some("the page does not say so".to_owned())
            };
            problem.map(|problem| format!("{}: `{}`: {problem}", self.page, claim.says))
        };
        self.claims.iter().filter_map(complaint).collect()
    }
}

impl Claim {
    /// Whether tests prove it.
    #[must_use]
    pub fn is_tested(&self) -> bool {
        self.proof.0 == "test"
    }

    fn parse(value: &Value) -> Result<Self, String> {
        let table = value.as_table().ok_or("a claim is a table")?;
        let says = table.get("says").and_then(Value::as_str).ok_or("a claim without says")?;
        let mut proofs = table.iter().filter(|(key, _)| *key != "says");
        let (Some((kind, proof)), None) = (proofs.next(), proofs.next()) else {
            return Err(format!("`{says}` needs one proof"));
        };
        let all = match proof {
            Value::Array(all) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            one => one.as_str().map(str::to_owned).into_iter().collect::<Vec<_>>(),
        };
        if all.is_empty() {
            return Err(format!("`{says}`: {kind} is no text"));
        }
        Ok(Self { says: collapsed(says), proof: (kind.clone(), all) })
    }
}

/// What proves claims: the files of the repository.
#[derive(Clone, Debug)]
pub struct Sources<'a> {
    root: &'a Path,
    /// The names of tests and fuzz targets.
    tests: BTreeSet<String>,
}

impl<'a> Sources<'a> {
    /// The sources below this folder. `files` are those that may have tests, by their paths.
    #[must_use]
    pub fn new(root: &'a Path, files: &BTreeMap<String, String>) -> Self {
        let mut tests = BTreeSet::new();
        for (path, text) in files {
            if let Some(target) = path.strip_prefix("fuzz/fuzz_targets/") {
                tests.extend(target.strip_suffix(".rs").map(str::to_owned));
            }
            for line in text.lines().map(str::trim_start) {
                tests.extend(name_of_test(line).map(str::to_owned));
            }
        }
        Self { root, tests }
    }

    /// Why the proof of a claim is none.
    fn problem(&self, claim: &Claim) -> Option<String> {
        let (kind, proofs) = &claim.proof;
        let numbers = numbers(&claim.says);
        let problem = |proof: &String| match kind.as_str() {
            "test" => (!self.tests.contains(proof)).then(|| format!("no test {proof}")),
            "plan" => planned(proof, &numbers),
            "constant" => self.constant(proof, &claim.says),
            "figure" => self.has_numbers(&format!("docs/figures/{proof}.json"), &numbers),
            "from" => self.has_numbers(proof, &numbers),
            "because" => (proof.len() < 10).then(|| "no reason".to_owned()),
            other => Some(format!("no kind of proof is {other}")),
        };
        proofs.iter().find_map(problem)
    }

    fn constant(&self, proof: &str, says: &str) -> Option<String> {
        let Some((path, text)) = proof.split_once(": ") else {
            return Some("constant = \"FILE: TEXT\"".to_owned());
        };
        if !self.read(path).is_some_and(|file| file.contains(text)) {
            return Some(format!("{path} does not have `{text}`"));
        }
        let Some(value) = text.rsplit(['=', ':']).next().and_then(value) else {
            return Some(format!("`{text}` has no value"));
        };
        let is_said = amounts(says).contains(&value);
        (!is_said).then(|| format!("the value is {value}"))
    }

    fn has_numbers(&self, path: &str, numbers: &[String]) -> Option<String> {
        let Some(file) = self.read(path) else { return Some(format!("no file {path}")) };
        let parts = file.split(|c: char| c.is_whitespace() || "|\"[]()/<>`".contains(c));
        let there: BTreeSet<String> = parts.map(bare).map(plain).collect();
        let missing = numbers.iter().find(|number| !there.contains(*number));
        missing.map(|number| format!("{path} has no {number}"))
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }
}

/// The name of the test that this line begins: of Rust, of Python, or of JavaScript.
fn name_of_test(line: &str) -> Option<&str> {
    let line = line.strip_prefix("async ").unwrap_or(line);
    if let Some(rest) = line.strip_prefix("test(\"") {
        return rest.split('"').next();
    }
    let rest = line.strip_prefix("fn ").or_else(|| line.strip_prefix("def "))?;
    rest.split(['(', '<']).next()
}

/// Why this is not the number of bits per key of such a filter.
fn planned(plan: &str, numbers: &[String]) -> Option<String> {
    let words: Vec<&str> = plan.split(' ').collect();
    let bits = match words[..] {
        [keys, rate, ref more @ ..] => bits_per_key(quantity(keys)?, percent(rate)?, more),
        _ => None,
    };
    let Some(bits) = bits else { return Some(format!("no filter is planned by {plan}")) };
    let is_said = numbers.iter().any(|number| {
        let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        *number == format!("{bits:.decimals$}")
    });
    (!is_said).then(|| format!("{bits:.3} bits per key"))
}

fn bits_per_key(keys: u64, rate: f64, more: &[&str]) -> Option<f64> {
    let builder = CuckooFilter::builder(keys, rate);
    let plan = match more {
        [] => builder.plan(),
        ["fast"] => builder.prefer(Prefer::Fast).plan(),
        ["grow", to] => builder.grow_from(1000).plan_grown(quantity(to)?),
        _ => return None,
    };
    Some(plan.ok()?.bits_per_key)
}

/// A number of keys, such as `10K`, `1M` or `1B`.
fn quantity(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['K', 'M', 'B']);
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" => 1000,
        "M" => 1_000_000,
        "B" => 1_000_000_000,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

fn percent(text: &str) -> Option<f64> {
    Some(text.strip_suffix('%')?.parse::<f64>().ok()? / 100.0)
}

/// The value of an expression such as `256 << 20`, `24 * 60`, or `Duration::from_secs(30)`.
fn value(text: &str) -> Option<u64> {
    let text = text.trim_end_matches(|c: char| c.is_whitespace() || ";,}".contains(c));
    let text = text.rsplit_once('(').map_or(text, |(_, inner)| inner.trim_end_matches([')', ';']));
    let number = |text: &str| text.trim().replace('_', "").parse::<u64>().ok();
    if let Some((base, shift)) = text.split_once("<<") {
        return number(base)?.checked_shl(u32::try_from(number(shift)?).ok()?);
    }
    text.split('*').map(number).try_fold(1_u64, |product, factor| product.checked_mul(factor?))
}

/// The numbers of a text, multiplied by the units behind them: `16 KiB` is 16,384.
fn amounts(text: &str) -> Vec<u64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let amount = |at: usize| {
        let number = plain(bare(words[at])).parse::<u64>().ok()?;
        let unit = match words.get(at + 1).map_or("", |unit| bare(unit)) {
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            "KB" => 1000,
            "MB" | "million" => 1_000_000,
            "GB" | "billion" => 1_000_000_000,
            _ => 1,
        };
        Some(number.saturating_mul(unit))
    };
    (0..words.len()).filter_map(amount).collect()
}

/// The numbers of a text, as they stand there, without commas.
fn numbers(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| c.is_whitespace() || c == '/');
    parts.map(bare).filter(|word| is_number(word)).map(plain).collect()
}

/// A word without what stands before and behind its letters and digits.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// A number without commas.
fn plain(number: &str) -> String {
    number.replace(',', "")
}

/// Whether a word is an option of a command, such as `-0`.
fn is_option(word: &str) -> bool {
    let name = word.trim_end_matches([',', '.']);
    name.len() == 2 && name.starts_with('-')
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.contains(&word.to_lowercase().as_str())
}

/// Whether a word is a number that needs a claim.
fn is_number(word: &str) -> bool {
    let is_decision = word.len() == 4 && word.starts_with('0');
    word.starts_with(|c: char| c.is_ascii_digit()) && !word.contains('^') && !is_decision
}

/// The text of a page with single spaces, without blocks of code, figures, comments and the numbers
/// of lists.
fn prose(page: &str) -> String {
    let (mut kept, mut is_figure) = (String::new(), false);
    for line in lines_of_prose(page) {
        let text = line.trim_start();
        is_figure |= text.starts_with("<!-- figures:");
        if !is_figure {
            let number = text.split_once(". ").filter(|(mark, _)| mark.parse::<u32>().is_ok());
            kept.push_str(number.map_or(text, |(_, rest)| rest));
            kept.push(' ');
        }
        is_figure &= !text.starts_with("<!-- end of figures -->");
    }
    collapsed(&kept)
}

/// The lines of a page that are not in blocks of code.
pub fn lines_of_prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// A text without inline code and the targets of links.
fn without_code(text: &str) -> String {
    let prose = text.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let mut parts = prose.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| kept + "] " + part.split_once(')').map_or("", |(_, rest)| rest))
}

fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
