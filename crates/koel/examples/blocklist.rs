//! A block list that is edited while it is in use: build, save, open in place, remove.

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

    // A view reads the bytes where they lie: a memory map would do as well.
    let view = FilterView::open(&image)?;
    view.verify()?;
    assert!(view.contains("spam77.example"));
    let wrong = (0..100_000).filter(|n| view.contains(&format!("ham{n}.example"))).count();
    println!("{wrong} of 100000 absent names reported present, {:.0} expected", {
        view.false_positive_rate() * 100_000.0
    });

    // spam77 has been bought by somebody honest.
    let mut edited = CuckooFilter::from_bytes(&image)?;
    assert!(edited.remove("spam77.example"));
    let others = (0..100_000).filter(|&n| n != 77);
    assert!(others.map(|n| format!("spam{n}.example")).all(|name| edited.contains(&name)));
    Ok(())
}
