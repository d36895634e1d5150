//! Circles: files that depend on each other in a cycle.
//!
//! A circle is a strongly connected component of the [`Graph`]. A module and its descendants form a
//! family, in which parent and child may use each other's definitions, as Rust's privacy allows. So
//! a cycle through the file of a common ancestor of all its files does not count. The rest of it,
//! without that file, may still be a circle.
//!
//! Computes reachability from every file, O(files * edges): a crate has some hundred of each.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::graph::{Edge, Graph};

/// Files that depend on each other in a cycle.
#[derive(Debug)]
pub struct Circle {
    /// Their paths.
    pub files: Vec<String>,
    /// The edges among them.
    pub edges: Vec<Edge>,
}

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "circle of {} files:", self.files.len())?;
        for Edge { from, to, names } in &self.edges {
            write!(f, "\n  {from} -> {to}: {}", names.join(", "))?;
        }
        Ok(())
    }
}

/// The graphs of all targets of a crate, given its files by path and text. A file that no other
/// file declares is the root of a target, so no file is left out.
#[must_use]
pub fn graphs_of(files: &BTreeMap<String, String>) -> Vec<Graph> {
    let mut roots: Vec<&String> = files.keys().collect();
    roots.sort_by_key(|path| !["/lib.rs", "/main.rs"].into_iter().any(|name| path.ends_with(name)));
    let (mut graphs, mut seen) = (Vec::new(), BTreeSet::new());
    for root in roots {
        if !seen.contains(root) {
            let graph = Graph::of(root, files);
            seen.extend(graph.files().into_iter().map(str::to_owned));
            graphs.push(graph);
        }
    }
    graphs
}

/// The circles of one target, largest first.
#[must_use]
pub fn circles_of(graph: &Graph) -> Vec<Circle> {
    let mut circles = Vec::new();
    let mut open = rings(graph.edges());
    while let Some(ring) = open.pop() {
        let is_head = |file: &&String| ring.files.iter().all(|other| graph.contains(file, other));
        match ring.files.iter().find(is_head) {
            None => circles.push(ring),
            Some(head) => {
                let rest = ring.edges.iter().filter(|edge| edge.from != *head && edge.to != *head);
                open.extend(rings(&rest.cloned().collect::<Vec<_>>()));
            }
        }
    }
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.files.len()));
    circles
}

/// The strongly connected components of more than one file.
fn rings(edges: &[Edge]) -> Vec<Circle> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        edges.iter().map(|edge| (edge.from.as_str(), reachable(&edge.from, edges))).collect();
    let leads = |from: &str, to: &str| reach.get(from).is_some_and(|all| all.contains(to));
    let mut rings: Vec<Circle> = Vec::new();
    for &file in reach.keys().filter(|file| leads(file, file)) {
        if rings.iter().any(|ring| ring.files.iter().any(|known| known == file)) {
            continue;
        }
        let files = reach[file].iter().filter(|other| leads(other, file));
        let files: Vec<String> = files.map(|&other| other.to_owned()).collect();
        let inside = |edge: &&Edge| files.contains(&edge.from) && files.contains(&edge.to);
        rings.push(Circle { edges: edges.iter().filter(inside).cloned().collect(), files });
    }
    rings
}

/// The files reachable from `start`; `start` itself only if it is on a cycle.
fn reachable<'a>(start: &'a str, edges: &'a [Edge]) -> BTreeSet<&'a str> {
    let (mut found, mut open) = (BTreeSet::new(), vec![start]);
    while let Some(file) = open.pop() {
        for edge in edges.iter().filter(|edge| edge.from == file) {
            if found.insert(edge.to.as_str()) {
                open.push(&edge.to);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files of each circle of a library.
    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let owned = |(path, text): &(&str, &str)| (format!("src/{path}"), (*text).to_owned());
        let files = files.iter().map(owned).collect();
        let circles = graphs_of(&files).into_iter().flat_map(|graph| circles_of(&graph));
        circles.map(|circle| circle.files).collect()
    }

    #[test]
    fn a_cycle_of_any_length_is_one_circle() {
        let two = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "use crate::a::A; pub struct B;"),
            ("c.rs", "use crate::a::A;"),
        ];
        assert_eq!(circles(&two), [["src/a.rs", "src/b.rs"]]);
        let chain = [two[0], two[1], ("b.rs", "pub struct B;"), two[3]];
        assert_eq!(circles(&chain), Vec::<Vec<String>>::new());
    }

    #[test]
    fn a_parent_and_its_children_are_a_family() {
        let parent = ("a/mod.rs", "mod b; mod c; pub struct A(b::B, c::C);");
        let family = [
            ("lib.rs", "mod a;"),
            parent,
            ("a/b.rs", "use super::A; pub struct B;"),
            ("a/c.rs", "use super::A; pub struct C;"),
        ];
        assert_eq!(circles(&family), Vec::<Vec<String>>::new());
        let siblings = [
            family[0],
            parent,
            ("a/b.rs", "use super::{A, c::C}; pub struct B;"),
            ("a/c.rs", "use super::{A, b::B}; pub struct C;"),
        ];
        assert_eq!(circles(&siblings), [["src/a/b.rs", "src/a/c.rs"]]);
    }

    #[test]
    fn a_cycle_through_another_family_is_a_circle() {
        let files = [
            ("lib.rs", "mod a; mod d; pub struct Root; fn f() { a::f(); d::f() }"),
            ("a/mod.rs", "mod b; pub fn f() { b::f() }"),
            ("a/b.rs", "use crate::Root; pub fn f() { crate::d::f() }"),
            ("d.rs", "pub fn f() { crate::a::f() }"),
        ];
        assert_eq!(circles(&files), [["src/a/b.rs", "src/a/mod.rs", "src/d.rs"]]);
    }

    #[test]
    fn no_file_is_left_out() {
        let files: BTreeMap<String, String> = [
            ("src/lib.rs", "#[cfg(test)] mod tests; mod a;"),
            ("src/a.rs", ""),
            ("src/tests.rs", ""),
            ("src/main.rs", ""),
            ("benches/x/y.rs", ""),
        ]
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .into();
        let graphs = graphs_of(&files);
        let seen: BTreeSet<_> = graphs.iter().flat_map(Graph::files).collect();
        assert_eq!(seen.len(), files.len());
        assert_eq!(graphs.len(), 4);
    }
}
