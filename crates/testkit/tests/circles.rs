//! The import rules within a crate, file by file.
//!
//! No files import each other in a circle (`testkit::source::circles` defines one). In a crate with
//! layers, a module imports only from its own layer and those below. As in `layering.rs`, each rule
//! is also tested on small texts that break it.

use std::collections::BTreeMap;

use testkit::source::circles::{circles_of, graphs_of};
use testkit::workspace::{by_crate, root, sources};

/// The layers of a crate, top to bottom, with the modules on each. Modules on one layer may import
/// each other, but not in a circle. The root of the crate is above all layers.
type Layers = &'static [&'static [&'static str]];

/// The crates that have layers.
const CRATES_WITH_LAYERS: &[(&str, Layers)] =
    &[("koel", LAYERS_OF_THE_LIBRARY), ("koel-store", LAYERS_OF_THE_STORE)];

const LAYERS_OF_THE_STORE: Layers = &[&["content"], &["log", "lsm"], &["kernel", "error"]];

/// The layers of `koel`: types, rules, bytes, table, slots, addresses, machine.
const LAYERS_OF_THE_LIBRARY: Layers = &[
    &[
        "filter",
        "maplet",
        "counting",
        "expiring",
        "concurrent",
        "map",
        "file",
        "serde",
        "face",
        "host",
    ],
    &["state", "builder"],
    &["image", "error"],
    &["table"],
    &["packing"],
    &["address"],
    &["mem"],
];

type Files = BTreeMap<String, String>;

// ---- the rules

/// One complaint for each circle.
fn circles_in(files: &Files) -> Vec<String> {
    let circles = graphs_of(files).into_iter().flat_map(|graph| circles_of(&graph));
    circles.map(|circle| circle.to_string()).collect()
}

/// One complaint for each file that imports from a higher layer, or has no layer.
fn imports_of_a_higher_layer(files: &Files, layers: Layers) -> Vec<String> {
    let mut complaints = Vec::new();
    for path in files.keys() {
        if let Some((name, None)) = layer_of(path, layers) {
            complaints.push(format!("{path}: module `{name}` has no layer in this test"));
        }
    }
    for edge in graphs_of(files).iter().flat_map(|graph| graph.edges()) {
        let (Some((from, Some(upper))), Some((to, Some(lower)))) =
            (layer_of(&edge.from, layers), layer_of(&edge.to, layers))
        else {
            continue;
        };
        if lower < upper {
            complaints.push(format!(
                "{}: `{from}` may not import {} of `{to}`, which is above it; pass it as an \
                 argument, or move it down",
                edge.from,
                edge.names.join(", ")
            ));
        }
    }
    complaints
}

/// The module of a file, and its layer counted from the top. `None` for the root.
fn layer_of(path: &str, layers: Layers) -> Option<(&str, Option<usize>)> {
    let name = module_of(path)?;
    Some((name, layers.iter().position(|layer| layer.contains(&name))))
}

/// The module of the crate that a file belongs to. `None` for the root.
fn module_of(path: &str) -> Option<&str> {
    let (_, inside) = path.split_once("/src/")?;
    inside.split(['/', '.']).next().filter(|name| *name != "lib")
}

// ---- the workspace

fn crates() -> BTreeMap<String, Files> {
    by_crate(sources(&root(), |path| path.ends_with(".rs")))
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let complaints: Vec<_> = crates().values().flat_map(circles_in).collect();
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn each_module_imports_only_from_its_layer_and_those_below() {
    let crates = crates();
    for (name, layers) in CRATES_WITH_LAYERS {
        let complaints = imports_of_a_higher_layer(&crates[*name], layers);
        assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
    }
}

#[test]
fn every_name_on_a_layer_is_a_module() {
    let crates = crates();
    for (name, layers) in CRATES_WITH_LAYERS {
        for module in layers.iter().copied().flatten() {
            let is_there = crates[*name].keys().any(|path| module_of(path) == Some(module));
            assert!(is_there, "no module `{module}` in `{name}`");
        }
    }
}

#[test]
fn every_file_is_in_a_graph() {
    for files in crates().values() {
        let graphs = graphs_of(files);
        let seen: Vec<_> = graphs.iter().flat_map(|graph| graph.files()).collect();
        assert!(files.keys().all(|path| seen.contains(&path.as_str())));
    }
}

// ---- the rules on texts that break them

fn library(files: &[(&str, &str)]) -> Files {
    let path = |name: &str| format!("crates/koel/src/{name}");
    files.iter().map(|(name, text)| (path(name), (*text).to_owned())).collect()
}

#[test]
fn a_circle_is_named_with_the_names_that_make_it() {
    let files = library(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use crate::c; pub struct B(c::C);"),
        ("c.rs", "pub struct C; fn f(a: super::a::A) {}"),
    ]);
    let complaints = circles_in(&files);
    let expected = "circle of 3 files:\n  \
        crates/koel/src/a.rs -> crates/koel/src/b.rs: B\n  \
        crates/koel/src/b.rs -> crates/koel/src/c.rs: C\n  \
        crates/koel/src/c.rs -> crates/koel/src/a.rs: A";
    assert_eq!(complaints, [expected]);
}

#[test]
fn a_module_that_imports_from_a_higher_layer_is_named() {
    let complaints = |name: &str, text: &str| {
        let root = "mod filter; mod table; mod mem; pub use filter::Filter;";
        let files = [("lib.rs", root), ("filter.rs", "pub struct Filter;"), (name, text)];
        imports_of_a_higher_layer(&library(&files), LAYERS_OF_THE_LIBRARY)
    };
    assert!(complaints("table.rs", "use crate::Filter;")[0].contains("table.rs"));
    assert_eq!(complaints("mem/mod.rs", "use crate::filter::Filter;").len(), 1);
    assert_eq!(
        complaints("attic.rs", ""),
        ["crates/koel/src/attic.rs: module `attic` has no layer in this test"]
    );
    assert_eq!(complaints("table.rs", "use crate::mem::X;"), Vec::<String>::new());
    assert_eq!(
        complaints("filter.rs", "use crate::table::X; pub struct Filter;"),
        Vec::<String>::new()
    );
}
