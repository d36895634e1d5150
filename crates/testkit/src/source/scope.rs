//! The text of one module: its children, the names it defines, its imports and the paths it uses.
//!
//! Reads tokens, not syntax: words, `::` and single characters of the code without comments,
//! literals and tests. A module is a file, or a block `mod name { .. }` inside one. One pass over
//! the tokens of a file, O(n).

use std::collections::{BTreeMap, BTreeSet};

use super::{code_of, is_word, tokens_of, without_tests};

/// The segments of a path, as written: `["super", "table", "Table"]`.
pub(super) type Path = Vec<String>;

/// A module, as its own text describes it.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// Names of the modules declared with `mod name;`, which have files of their own.
    pub(super) declared: BTreeSet<String>,
    /// Modules with a body: `mod name { .. }`.
    pub(super) blocks: BTreeMap<String, Scope>,
    /// Names of the items and macros defined here.
    pub(super) defined: BTreeSet<String>,
    /// Imported names.
    pub(super) imports: BTreeMap<String, Import>,
    /// Paths imported with `::*`.
    pub(super) globs: Vec<Path>,
    /// Paths of two segments or more outside imports.
    pub(super) paths: BTreeSet<Path>,
    /// Words outside imports.
    pub(super) words: BTreeSet<String>,
    /// Names of the macros called without a path.
    pub(super) calls: BTreeSet<String>,
    /// Names of macros defined with `macro_rules!`.
    pub(super) macros: BTreeSet<String>,
}

/// The target of an imported name.
#[derive(Debug)]
pub(super) struct Import {
    pub(super) path: Path,
    /// Whether the import is a re-export: `pub use`, `pub(crate) use`.
    pub(super) public: bool,
}

/// Reads the text of a file. Test code is left out.
pub(super) fn read(text: &str) -> Scope {
    let code = without_tests(&code_of(text));
    let tokens = tokens_of(&code);
    Reader { tokens: &tokens, at: 0 }.scope()
}

fn is_name(token: &str) -> bool {
    token.starts_with(is_word)
}

/// Keywords followed by the name that they define.
const ITEMS: [&str; 9] =
    ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "mod"];

struct Reader<'a> {
    tokens: &'a [&'a str],
    at: usize,
}

impl<'a> Reader<'a> {
    fn token(&self, ahead: usize) -> &'a str {
        self.tokens.get(self.at + ahead).copied().unwrap_or("")
    }

    /// Reads up to the brace that closes the scope, or to the end.
    fn scope(&mut self) -> Scope {
        let (mut scope, mut depth) = (Scope::default(), 0_usize);
        while self.at < self.tokens.len() {
            match self.token(0) {
                "{" => depth += 1,
                "}" if depth == 0 => break,
                "}" => depth -= 1,
                "use" => {
                    self.import(&mut scope);
                    continue;
                }
                "mod" if depth == 0 && self.token(2) == "{" => {
                    let name = self.token(1).to_owned();
                    self.at += 3;
                    let block = self.scope();
                    scope.blocks.insert(name, block);
                }
                word if is_name(word) => {
                    self.word(&mut scope, depth);
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
        scope
    }

    /// A word outside imports, with the rest of its path.
    fn word(&mut self, scope: &mut Scope, depth: usize) {
        let (word, next) = (self.token(0), self.token(1));
        if word == "mod" && is_name(next) && self.token(2) == ";" {
            scope.declared.insert(next.to_owned());
        } else if word == "macro_rules" && next == "!" {
            scope.macros.insert(self.token(2).to_owned());
            scope.defined.insert(self.token(2).to_owned());
        } else if depth == 0 && ITEMS.contains(&word) && is_name(next) {
            scope.defined.insert(next.to_owned());
        }
        let follows_a_path = self.at > 0 && self.tokens[self.at - 1] == "::";
        let path = self.path();
        scope.words.extend(path.iter().cloned());
        if path.len() == 1 && self.token(0) == "!" {
            scope.calls.insert(path[0].clone());
        } else if path.len() > 1 && !follows_a_path {
            scope.paths.insert(path);
        }
    }

    /// Words with `::` between them.
    fn path(&mut self) -> Path {
        let mut path = vec![self.token(0).to_owned()];
        self.at += 1;
        while self.token(0) == "::" && is_name(self.token(1)) {
            path.push(self.token(1).to_owned());
            self.at += 2;
        }
        path
    }

    /// `use tree;`, with the visibility before it.
    fn import(&mut self, scope: &mut Scope) {
        let before = &self.tokens[self.at.saturating_sub(4)..self.at];
        let public =
            before.ends_with(&["pub"]) || before.contains(&"pub") && before.ends_with(&[")"]);
        self.at += 1;
        self.tree(&mut Vec::new(), public, scope);
    }

    /// One tree of imports below a prefix.
    fn tree(&mut self, prefix: &mut Path, public: bool, scope: &mut Scope) {
        let length = prefix.len();
        loop {
            match self.token(0) {
                "::" => self.at += 1,
                "{" => {
                    self.at += 1;
                    while !["}", ""].contains(&self.token(0)) {
                        self.tree(prefix, public, scope);
                        self.at += usize::from(self.token(0) == ",");
                    }
                    self.at += 1;
                    break;
                }
                "*" => {
                    scope.globs.push(prefix.clone());
                    self.at += 1;
                    break;
                }
                word if is_name(word) => {
                    prefix.push(word.to_owned());
                    self.at += 1;
                    if self.token(0) != "::" {
                        self.name(prefix, public, scope);
                        break;
                    }
                }
                _ => {
                    self.at += 1;
                    break;
                }
            }
        }
        prefix.truncate(length);
    }

    /// The name under which a path is imported.
    fn name(&mut self, path: &Path, public: bool, scope: &mut Scope) {
        let mut path = path.clone();
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let mut name = path.last().cloned().unwrap_or_default();
        if self.token(0) == "as" {
            name = self.token(1).to_owned();
            self.at += 2;
        }
        if name == "_" {
            name = format!("_ as {}", path.join("::"));
        }
        scope.imports.insert(name, Import { path, public });
    }
}
