//! The dependencies among the files of a crate.
//!
//! A node is a file. An edge goes from a file to the file that **defines** a name which the first
//! one imports or reaches by a path: `crate::`, `super::`, `self::`, a child, an imported module, a
//! glob. The rules:
//!
//! * `mod child;` is no edge: it names a file, not its content.
//! * A re-export, `pub use child::Name`, is no edge. A file that imports the name through it has an
//!   edge to the file that defines the name, and so has the re-exporting file if its own code uses
//!   the name. So a facade is never part of a circle.
//! * An imported module is no edge; each path through it is one. A glob is one, used or not.
//! * A method call is no edge: `value.method()` names no file.
//! * Code for tests alone has no edges.
//!
//! Files are found by the names of their modules; `#[path]` is not followed. Source: "Paths" and
//! "Modules" in the Rust reference.

use std::collections::{BTreeMap, BTreeSet};

use super::scope::{Path, Scope, read};

/// The longest chain of re-exports that is followed.
const MAX_DEPTH: usize = 8;

/// The modules of one target of a crate: a library, a program, a test.
#[derive(Debug, Default)]
pub struct Graph {
    /// The first one is the root.
    modules: Vec<Module>,
    /// Macros, which are called without a path, and the modules that define them.
    macros: BTreeMap<String, usize>,
    edges: Vec<Edge>,
}

#[derive(Debug)]
struct Module {
    file: String,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    scope: Scope,
}

/// The target of a path.
#[derive(Clone, Copy, Debug)]
enum Target {
    Module(usize),
    /// An item defined in this module.
    Item(usize),
}

/// One file uses names that another defines.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Edge {
    /// The file that uses the names.
    pub from: String,
    /// The file that defines them.
    pub to: String,
    /// The names.
    pub names: Vec<String>,
}

impl Graph {
    /// The modules reachable from the file `root`, among files given by path and text.
    #[must_use]
    pub fn of(root: &str, files: &BTreeMap<String, String>) -> Self {
        let mut graph = Self::default();
        if let Some(text) = files.get(root) {
            let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
            graph.add(read(text), root, folder, None, files);
        }
        graph.edges = graph.find_edges();
        graph
    }

    /// All edges.
    #[must_use]
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The files of all modules.
    #[must_use]
    pub fn files(&self) -> BTreeSet<&str> {
        self.modules.iter().map(|module| module.file.as_str()).collect()
    }

    /// Whether the module of the file `above` is an ancestor of, or equal to, that of the file
    /// `below`.
    pub(super) fn contains(&self, above: &str, below: &str) -> bool {
        let mut at = self.modules.iter().position(|module| module.file == below);
        while let Some(id) = at {
            if self.modules[id].file == above {
                return true;
            }
            at = self.modules[id].parent;
        }
        false
    }

    /// Adds a module whose children have their files in `folder`, and these children.
    fn add(
        &mut self,
        mut scope: Scope,
        file: &str,
        folder: &str,
        parent: Option<usize>,
        files: &BTreeMap<String, String>,
    ) -> usize {
        let id = self.modules.len();
        self.macros.extend(scope.macros.iter().map(|name| (name.clone(), id)));
        let blocks = std::mem::take(&mut scope.blocks);
        let declared = std::mem::take(&mut scope.declared);
        let file = file.to_owned();
        self.modules.push(Module { file: file.clone(), parent, children: BTreeMap::new(), scope });
        for (name, block) in blocks {
            let child = self.add(block, &file, &format!("{folder}/{name}"), Some(id), files);
            self.modules[id].children.insert(name, child);
        }
        for name in declared {
            let folder = format!("{folder}/{name}");
            let places = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
            if let Some((file, text)) = places.iter().find_map(|file| files.get_key_value(file)) {
                let child = self.add(read(text), file, &folder, Some(id), files);
                self.modules[id].children.insert(name, child);
            }
        }
        id
    }

    fn find_edges(&self) -> Vec<Edge> {
        let mut names: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
        for (id, module) in self.modules.iter().enumerate() {
            for (target, name) in self.uses_of(id) {
                let to = &self.modules[target].file;
                if *to != module.file {
                    names.entry((&module.file, to)).or_default().insert(name);
                }
            }
        }
        let edge = |((from, to), names): ((&str, &str), BTreeSet<String>)| Edge {
            from: from.to_owned(),
            to: to.to_owned(),
            names: names.into_iter().collect(),
        };
        names.into_iter().map(edge).collect()
    }

    /// The names that a module uses, each with the module that defines it.
    fn uses_of(&self, id: usize) -> Vec<(usize, String)> {
        let scope = &self.modules[id].scope;
        let imports = scope.imports.iter();
        let used = imports.filter(|(name, import)| !import.public || scope.words.contains(*name));
        let paths = used.map(|(_, import)| &import.path).chain(&scope.paths);
        let by_path = paths.filter_map(|path| self.item_at(id, path));
        let by_glob = scope.globs.iter().filter_map(|path| match self.resolve(id, path, 0)?.0 {
            Target::Item(module) | Target::Module(module) => Some((module, "*".to_owned())),
        });
        let is_foreign =
            |name: &&String| !scope.defined.contains(*name) && !scope.imports.contains_key(*name);
        let macros = scope.calls.iter().filter(is_foreign);
        let macros = macros.filter_map(|name| Some((*self.macros.get(name)?, format!("{name}!"))));
        by_path.chain(by_glob).chain(macros).collect()
    }

    /// The module that defines the item to which a path leads, and the item's name.
    fn item_at(&self, id: usize, path: &Path) -> Option<(usize, String)> {
        match self.resolve(id, path, 0)? {
            (Target::Item(module), segments) => Some((module, path[segments - 1].clone())),
            (Target::Module(_), _) => None,
        }
    }

    /// The target of a path, and the number of segments that lead there; `None` in another crate.
    fn resolve(&self, id: usize, path: &Path, depth: usize) -> Option<(Target, usize)> {
        let mut at = Target::Module(id);
        for (number, segment) in path.iter().enumerate() {
            let Target::Module(module) = at else { return Some((at, number)) };
            let is_last = number + 1 == path.len();
            at = match segment.as_str() {
                "crate" => Target::Module(0),
                "self" => at,
                "super" => Target::Module(self.modules[module].parent?),
                _ => match self.member(module, segment, is_last, depth) {
                    Some(target) => target,
                    // A macro of this module makes it.
                    None if number > 0 => Target::Item(module),
                    None => return None,
                },
            };
        }
        Some((at, path.len()))
    }

    /// Resolves a name in a module. A module and a function may share a name: a path that continues
    /// means the module, one that ends there the function.
    fn member(&self, id: usize, name: &str, is_last: bool, depth: usize) -> Option<Target> {
        let Module { children, scope, .. } = &self.modules[id];
        let child = children.get(name).map(|&child| Target::Module(child));
        let item = scope.defined.contains(name).then_some(Target::Item(id));
        let own = if is_last { item.or(child) } else { child.or(item) };
        if own.is_some() || depth > MAX_DEPTH {
            return own;
        }
        // `use name;` names the crate.
        let import = scope.imports.get(name).filter(|import| import.path != [name])?;
        self.resolve(id, &import.path, depth + 1).map(|(target, _)| target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The edges of a library as `from -> to: names`.
    fn edges(files: &[(&str, &str)]) -> Vec<String> {
        let owned = |(path, text): &(&str, &str)| (format!("src/{path}"), (*text).to_owned());
        let graph = Graph::of("src/lib.rs", &files.iter().map(owned).collect());
        let short = |path: &str| path.trim_start_matches("src/").trim_end_matches(".rs").to_owned();
        let edge = |edge: &Edge| {
            format!("{} -> {}: {}", short(&edge.from), short(&edge.to), edge.names.join(" "))
        };
        graph.edges().iter().map(edge).collect()
    }

    #[test]
    fn a_use_in_any_form_is_an_edge() {
        for text in [
            "use crate::b::B;",
            "use super::b::{B as C};",
            "use crate::{b::{self, B}};",
            "use crate::b; fn f() -> b::B { x }",
            "fn f() { crate::b::B::new() }",
            "fn f() { super::b::B { x } }",
            "impl<T> From<crate::b::B> for T {}",
            "fn f() { use crate::b::B; }",
            "mod inner { use super::super::b::B; }",
        ] {
            let files = [("lib.rs", "mod a; mod b;"), ("a.rs", text), ("b.rs", "pub struct B;")];
            assert_eq!(edges(&files), ["a -> b: B"], "{text}");
        }
    }

    #[test]
    fn a_glob_is_an_edge_to_the_module() {
        let files = [("lib.rs", "mod a; mod b;"), ("a.rs", "use super::b::*;"), ("b.rs", "")];
        assert_eq!(edges(&files), ["a -> b: *"]);
    }

    #[test]
    fn text_that_uses_no_name_is_no_edge() {
        for text in [
            "// use crate::b::B;",
            "#[cfg(test)] mod tests { use crate::b::B; }",
            "use crate::b;",
            "use core::b::B;",
            "fn f(x: X) { x.b() }",
            "use ::b::B; use b::B;",
        ] {
            let files = [("lib.rs", "mod a; mod b;"), ("a.rs", text), ("b.rs", "pub struct B;")];
            assert_eq!(edges(&files), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn a_facade_is_an_address() {
        let facade = "mod b; mod c; pub use b::B; pub(crate) use c::{C as D};";
        let files = |facade| {
            [
                ("lib.rs", "mod a; mod user;"),
                ("a/mod.rs", facade),
                ("a/b.rs", "pub struct B;"),
                ("a/c.rs", "use super::B; pub struct C;"),
                ("user.rs", "use crate::a::{B, D};"),
            ]
        };
        let through = ["a/c -> a/b: B", "user -> a/b: B", "user -> a/c: D"];
        assert_eq!(edges(&files(facade)), through);
        let with_code = edges(&files(&format!("{facade} fn f(b: B) {{}}")));
        assert!(with_code.contains(&"a/mod -> a/b: B".to_owned()));
    }

    #[test]
    fn macros_and_files_beside_their_folders_are_found() {
        let files = [
            ("lib.rs", "#[macro_use] mod m; mod a;"),
            ("m.rs", "macro_rules! both { () => {} } pub(crate) use both;"),
            ("a.rs", "mod b; fn f() { both!() }"),
            ("a/b.rs", "use crate::m::both; fn g() { super::f() }"),
        ];
        assert_eq!(edges(&files), ["a -> m: both!", "a/b -> a: f", "a/b -> m: both"]);
    }
}
