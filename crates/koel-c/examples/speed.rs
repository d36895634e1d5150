//! Prints the nanoseconds of a call of `contains`: the best of 9 rounds over 2,000,000 keys, half
//! of them in a filter of 1,000,000. tests/speed.c does the same in C (`scripts/c speed`).

use std::time::Instant;

const KEYS: usize = 1_000_000;
const ASKED: usize = 2 * KEYS;
const ROUNDS: usize = 9;

fn main() -> Result<(), koel::BuildError> {
    let mut filter = koel::CuckooFilter::builder(KEYS as u64, 0.001).build()?;
    let (mut text, mut ends) = (String::new(), vec![0]);
    for i in 0..ASKED {
        text += &format!("host-{i}.example");
        if i % 2 == 0 {
            filter.insert_unique(&text[ends[i]..])?;
        }
        ends.push(text.len());
    }
    let round = |_| {
        let start = Instant::now();
        let is_in = |i: &usize| filter.contains(&text.as_bytes()[ends[*i]..ends[*i + 1]]);
        let found = (0..ASKED).filter(is_in).count();
        assert!((KEYS..KEYS + KEYS / 500).contains(&found), "{found}");
        start.elapsed().as_nanos() as f64 / ASKED as f64
    };
    println!("{:.2}", (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min));
    Ok(())
}
