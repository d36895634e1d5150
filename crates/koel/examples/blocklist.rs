//! A block list that changes while it is in use: build it, save it, open the bytes in place, remove
//! a name.
//!
//! `cargo run -p koel --example blocklist`

use koel::{CuckooFilter, FilterView};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut blocked = CuckooFilter::builder(100_000, 0.001).build()?;
    for number in 0..100_000 {
        blocked.insert(&format!("spam{number}.example"))?;
    }
    println!("{blocked:?}");

    let path = std::env::temp_dir().join(format!("blocklist-{}.koel", std::process::id()));
    std::fs::write(&path, blocked.to_bytes())?;
    let image = std::fs::read(&path)?;
    std::fs::remove_file(&path)?;

    // A view reads the bytes in place. A memory map works as well.
    let view = FilterView::open(&image)?;
    view.verify()?;
    assert!(view.contains("spam77.example"));
    let wrong = (0..100_000).filter(|n| view.contains(&format!("ham{n}.example"))).count();
    println!("{wrong} of 100000 absent names reported present, {:.0} expected", {
        view.false_positive_rate() * 100_000.0
    });

    // An honest owner has bought spam77.
    let mut edited = CuckooFilter::from_bytes(&image)?;
    assert!(edited.remove("spam77.example"));
    let others = (0..100_000).filter(|&n| n != 77);
    assert!(others.map(|n| format!("spam{n}.example")).all(|name| edited.contains(&name)));
    Ok(())
}
