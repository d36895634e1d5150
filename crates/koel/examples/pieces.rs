//! Builds one filter on several machines (here: threads), and compares what it costs.
//!
//! `cargo run --release -p koel --example pieces 8000000` prints the time of each step for a key.

use std::time::{Duration, Instant};

use koel::{CuckooFilter, Part, Piece};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args().nth(1).map_or(Ok(2_000_000), |count| count.parse())?;
    let keys: Vec<u64> = (0..count).collect();
    let builder = CuckooFilter::builder(count, 0.001);

    // Every machine makes the same plan, and splits the keys that it has.
    let plan = builder.pieces()?;
    let (split, parts) = timed(|| {
        let shares = keys.chunks(keys.len().div_ceil(4));
        shares.map(|share| plan.split(share)).collect::<Result<Vec<_>, _>>()
    });
    let parts: Vec<Part> = parts?.concat();

    // A segment is built where all its parts are.
    let of = |segment| parts.iter().filter(move |part| part.segment() == segment);
    let (build, pieces) = timed(|| {
        let segments = 0..plan.segments();
        segments.map(|segment| plan.build(segment, of(segment))).collect::<Result<Vec<Piece>, _>>()
    });
    let pieces = pieces?;

    // The number of keys shows that nothing was lost on the way.
    let (join, filter) = timed(|| plan.join(&pieces, Some(count)));
    let filter = filter?;
    assert!(keys.iter().all(|key| filter.contains(key)));

    let (at_once, whole) = timed(|| builder.build_from(&keys));
    assert_eq!(whole?.len(), filter.len());
    for (name, time) in
        [("build_from", at_once), ("split", split), ("build", build), ("join", join)]
    {
        println!("{name:<12}{:>6.1} ns a key", time.as_nanos() as f64 / count as f64);
    }
    println!("build / build_from   {:.2}", build.as_secs_f64() / at_once.as_secs_f64());
    Ok(())
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}
