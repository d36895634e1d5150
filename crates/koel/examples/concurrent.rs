//! Several threads share one filter: exactly one of them takes each link of a crawl. Another writes
//! a file while they run.
//!
//! `cargo run -p koel --example concurrent`

use koel::{ConcurrentFilter, FilterView, FullError};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const LINKS: u32 = 100_000;
    let seen = ConcurrentFilter::builder(u64::from(LINKS), 0.001).build()?;

    // Every thread finds every link. The one for which it is new fetches it.
    let crawl = || -> Result<u32, FullError> {
        let mut fetched = 0;
        for link in 0..LINKS {
            fetched += u32::from(seen.insert_unique(&link)?);
        }
        Ok(fetched)
    };
    let (fetched, bytes) = std::thread::scope(|scope| {
        let workers = [scope.spawn(crawl), scope.spawn(crawl)];
        while seen.len() < u64::from(LINKS / 2) && !workers[0].is_finished() {
            std::thread::yield_now();
        }
        let bytes = seen.snapshot().map(|snapshot| snapshot.to_bytes());
        let fetched: Result<u32, FullError> =
            workers.into_iter().map(|worker| worker.join().expect("a worker returns")).sum();
        (fetched, bytes)
    });
    let (fetched, bytes) = (fetched?, bytes?);
    println!("{fetched} of {LINKS} links fetched, the others reported as seen: {seen:?}");
    assert_eq!(u64::from(fetched), seen.len());
    assert!(fetched <= LINKS && fetched > LINKS - LINKS / 1000);
    assert!((0..LINKS).all(|link| seen.contains(&link)));

    // The file is a valid filter of the links seen so far.
    let halfway = FilterView::open(&bytes)?;
    halfway.verify()?;
    println!("the file has {} of them", halfway.len());
    assert!(halfway.len() >= u64::from(LINKS / 2) && halfway.len() <= seen.len());
    Ok(())
}
