//! A set that is spread over a cluster of Valkey or Redis with Koel's module.
//!
//! ```text
//! cargo run -p koel-valkey --example sharded_set redis://127.0.0.1:7000/ redis://127.0.0.1:7001/
//! ```

mod set;

use std::error::Error;

use redis::cluster::ClusterClient;

use set::ShardedSet;

const ITEMS: usize = 20_000;
const BATCH: usize = 2_000;

fn main() -> Result<(), Box<dyn Error>> {
    let nodes: Vec<String> = std::env::args().skip(1).collect();
    if nodes.is_empty() {
        println!("usage: sharded_set URL..   (nodes of a cluster with the module)");
        return Ok(());
    }
    let mut cluster = ClusterClient::new(nodes)?.get_connection()?;
    let seen = ShardedSet { name: "visited", filters: 24, replicas: 1, patience: 5000 };
    seen.reserve(&mut cluster, 2 * ITEMS as u64, 0.001)?;

    let pages: Vec<String> = (0..ITEMS).map(|page| format!("https://example.org/{page}")).collect();
    let mut new = 0;
    for batch in pages.chunks(BATCH) {
        new += seen.add(&mut cluster, batch)?;
    }
    // About one in a thousand is taken for another one.
    assert!(new > ITEMS * 99 / 100 && seen.add(&mut cluster, &pages[..BATCH])? == 0);
    assert!(seen.contains(&mut cluster, &pages[..BATCH])?.iter().all(|&found| found));
    let others: Vec<String> =
        (0..BATCH).map(|page| format!("https://example.com/{page}")).collect();
    let wrong = seen.contains(&mut cluster, &others)?.iter().filter(|&&found| found).count();
    assert!(wrong < BATCH / 100);
    println!(
        "{new} of {ITEMS} pages were new; {wrong} of {BATCH} other pages are reported as seen"
    );
    Ok(())
}
