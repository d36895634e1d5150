//! Lists the circles of files in the crates named, or in all: `-- koel koel-store`.
//!
//! Prints each circle as its edges, with the names that make them. What a circle is:
//! `testkit::source::circles`.

use testkit::source::circles::{circles_of, graphs_of};
use testkit::workspace::{by_crate, root, sources};

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let crates = by_crate(sources(&root(), |path| path.ends_with(".rs")));
    for (name, files) in
        crates.iter().filter(|(name, _)| wanted.is_empty() || wanted.contains(name))
    {
        let circles: Vec<_> = graphs_of(files).iter().flat_map(circles_of).collect();
        println!("{name}: {} circles", circles.len());
        circles.iter().for_each(|circle| println!("{circle}"));
    }
}
