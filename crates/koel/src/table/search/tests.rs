//! Eviction paths are valid, as short as possible, and found within the budget.

extern crate std;

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use std::println;

use super::*;
use testkit::keys::splitmix64 as hash;

use crate::address::geometry::{Geometry, Location};
use crate::mem::buffer::Buffer;
use crate::packing::{Codec, Layout};
use crate::table::{Place, Put, Table, table_bytes};

fn empty_table(segment_bits: u32, buckets: u32, fingerprint_bits: u32) -> Table<Buffer> {
    let geometry = Geometry::new(segment_bits, buckets, fingerprint_bits);
    let layout = Layout::new(Codec::SemiSorted, fingerprint_bits, 0).unwrap();
    let bytes = Buffer::zeroed(table_bytes(layout, geometry.buckets()).unwrap(), false).unwrap();
    Table::fixed(geometry, layout, bytes)
}

/// Carries out `path` and puts the arriving entry into the freed slot.
fn carry_out(table: &mut Table<Buffer>, path: &EvictionPath, mut arriving: u64) {
    for &(bucket, leaving) in &path.moves {
        assert!(table.replace(bucket, leaving, arriving));
        arriving = leaving;
    }
    if let End::Empty(bucket) = path.end {
        assert!(table.replace(bucket, 0, arriving));
    }
}

/// The number of entries in all buckets.
fn entries(table: &Table<Buffer>) -> usize {
    table.iter().map(|bucket| bucket.entries().count()).sum()
}

/// The number of moves to an empty slot, found by flooding the whole segment one move at a time.
fn distance_to_room(table: &Table<Buffer>, location: &Location) -> Option<usize> {
    let (home, alternate) = location.buckets();
    let mut reached = BTreeSet::from([home, alternate]);
    for moves in 0.. {
        if reached.iter().any(|&bucket| table.read(bucket).copies(0) > 0) {
            return Some(moves);
        }
        let beyond = reached.iter().flat_map(|&bucket| {
            let entries: Vec<_> = table.read(bucket).entries().collect();
            entries
                .into_iter()
                .map(move |entry| table.base().location_of(bucket, entry).buckets().1)
        });
        let grown: BTreeSet<_> = beyond.chain(reached.iter().copied()).collect();
        if grown.len() == reached.len() {
            return None;
        }
        reached = grown;
    }
    None
}

fn assert_is_a_path(table: &Table<Buffer>, location: &Location, path: &EvictionPath) {
    let (home, alternate) = location.buckets();
    assert!([home, alternate].contains(&path.moves[0].0));
    let distinct: BTreeSet<_> = path.moves.iter().map(|&(bucket, _)| bucket).collect();
    assert_eq!(distinct.len(), path.moves.len());
    for (step, &(bucket, leaving)) in path.moves.iter().enumerate() {
        let other = table.base().location_of(bucket, leaving).buckets().1;
        match (path.moves.get(step + 1), path.end) {
            (Some(&(next, _)), _) | (None, End::Empty(next)) => assert_eq!(other, next),
            (None, End::Spare) => {
                assert!(table.equals(&table.entry(bucket, leaving)) > 1);
            }
        }
    }
}

#[test]
fn a_path_has_the_fewest_moves_or_there_is_no_room_at_all() {
    for buckets in [1, 2, 3, 7, 30, 100, 700] {
        let mut table = empty_table(1, buckets, 16);
        let mut search = Search::default();
        let mut refused = 0;
        for counter in 0.. {
            let location = table.base().locate(hash(counter));
            if table.pair_mut(location.buckets()).put(location.fingerprint, 0) != Put::Full {
                continue;
            }
            let fewest = distance_to_room(&table, &location);
            match table.path_to_room(
                &mut search,
                &location.general(table.addresses()),
                Spares::Keep,
                None,
            ) {
                Some(path) => {
                    assert_is_a_path(&table, &location, &path);
                    assert_eq!(Some(path.moves.len()), fewest);
                    carry_out(&mut table, &path, location.fingerprint);
                }
                None => {
                    assert_eq!(fewest, None);
                    refused += 1;
                }
            }
            if refused == 20 {
                break;
            }
        }
    }
}

/// Answers the queries of a search from decoded buckets.
struct Decoded<'a>(&'a Table<Buffer>);

impl Neighbourhood for Decoded<'_> {
    fn expand(&self, base: u64, bucket: u64, found: &mut Neighbours) {
        let (slots, geometry) = (self.0.read(bucket).0, self.0.base());
        let others = slots.map(|slot| geometry.alternate(base, bucket, slot));
        *found = Neighbours { slots, others };
    }

    fn rooms(&self, buckets: &[u64; SLOTS]) -> u32 {
        let bits = (0..).zip(buckets).filter(|&(_, &bucket)| self.0.read(bucket).copies(0) > 0);
        bits.map(|(i, _)| 1 << i).sum()
    }

    fn holds(&self, bucket: u64, slot: u64) -> bool {
        self.0.read(bucket).copies(slot) > 0
    }

    fn is_near(&self) -> bool {
        true
    }
}

#[test]
fn a_search_for_one_move_finds_the_path_of_the_breadth_first_search() {
    for (segment_bits, buckets) in [(0, 1), (1, 2), (0, 3), (2, 50), (1, 2000)] {
        let mut table = empty_table(segment_bits, buckets, 12);
        let mut search = Search::default();
        let (mut counter, mut one, mut more, mut none) = (0, 0, 0, 0);
        while none < 20 {
            counter += 1;
            let location = table.base().locate(hash(counter));
            if table.pair_mut(location.buckets()).put(location.fingerprint, 0) != Put::Full {
                continue;
            }
            let (base, pair, decoded) = (location.base, location.buckets().into(), Decoded(&table));
            let expand = |bucket, found: &mut _| decoded.expand(base, bucket, found);
            let first = search.one_move(pair, expand, |buckets| decoded.rooms(buckets));
            let path = search.start(pair).and_then(|()| search.go_on(&decoded, base, false));
            let looked = search.looked;
            let is_one = path.as_ref().is_some_and(|path| path.moves.len() == 1);
            assert_eq!(first, path.clone().filter(|_| is_one));
            assert_eq!(
                table.path_to_room(
                    &mut search,
                    &location.general(table.addresses()),
                    Spares::Keep,
                    None
                ),
                path
            );
            assert_eq!(search.looked, looked);
            match &path {
                Some(path) => carry_out(&mut table, path, location.fingerprint),
                None => none += 1,
            }
            one += u32::from(is_one);
            more += u32::from(path.is_some() && !is_one);
        }
        assert!(buckets < 50 || one > more && more > 0, "{one} and {more}");
    }
}

#[test]
fn a_spare_copy_makes_room_only_when_it_may() {
    let mut table = empty_table(0, 50, 16);
    let mut search = Search::default();
    // Puts every entry twice, until one finds no room.
    let (location, counter) = (0..)
        .find_map(|counter| {
            let location = table.base().locate(hash(counter));
            let full = (0..2).any(|most| {
                table.pair_mut(location.buckets()).put(location.fingerprint, most) == Put::Full
            });
            full.then_some((location, counter))
        })
        .unwrap();
    // Fills the remaining empty slots, so that no path ends in one.
    for counter in counter + 1..counter + 10_000 {
        let location = table.base().locate(hash(counter));
        table.pair_mut(location.buckets()).put(location.fingerprint, 0);
    }
    assert_eq!(entries(&table), 200);
    assert_eq!(
        table.path_to_room(&mut search, &location.general(table.addresses()), Spares::Keep, None),
        None
    );
    for spares in [Spares::IfNeeded, Spares::AtOnce] {
        let path = table
            .path_to_room(&mut search, &location.general(table.addresses()), spares, None)
            .unwrap();
        assert_eq!(path.end, End::Spare);
        assert_is_a_path(&table, &location, &path);
    }
}

/// Buckets that other threads emptied while the search looked at them.
struct Emptied;

impl Neighbourhood for Emptied {
    fn expand(&self, _: u64, bucket: u64, found: &mut Neighbours) {
        *found = Neighbours { slots: [0; SLOTS], others: [bucket + 1; SLOTS] };
    }

    fn rooms(&self, _: &[u64; SLOTS]) -> u32 {
        0
    }

    fn holds(&self, _: u64, slot: u64) -> bool {
        slot == 0
    }

    fn is_near(&self) -> bool {
        true
    }
}

/// A search once took an empty slot for a copy of another empty slot and counted it, after other
/// threads had emptied two slots of a bucket.
#[test]
fn an_empty_slot_is_not_a_spare_copy() {
    assert_eq!(Search::default().many_moves(&Emptied, 0, [0, 9], Spares::AtOnce), None);
}

#[test]
fn no_search_examines_more_slots_than_its_budget() {
    let mut table = empty_table(0, 20_000, 13);
    let mut search = Search::default();
    for counter in 0..80_000 {
        let location = table.base().locate(hash(counter));
        if table.pair_mut(location.buckets()).put(location.fingerprint, 0) == Put::Full {
            let path = table.path_to_room(
                &mut search,
                &location.general(table.addresses()),
                Spares::Keep,
                None,
            );
            assert!(search.looked <= BUDGET);
            path.inspect(|path| carry_out(&mut table, path, location.fingerprint));
        }
    }
    assert!((77_600..80_000).contains(&entries(&table)));
}

#[test]
#[ignore = "a measurement: prints the table of docs/decisions/0001-addressing.md"]
fn cost_of_search() {
    let mut table = empty_table(4, 262_144, 13);
    let slots = table.base().buckets() * 4;
    let mut search = Search::default();
    let (mut counter, mut longest) = (0, 0);
    println!("up to load | slots looked at | moves | longest path so far");
    for load in [0.85, 0.88, 0.90, 0.92, 0.93, 0.94, 0.95, 0.96, 0.965, 0.97] {
        let (first, mut looked, mut moves) = (counter, 0, 0);
        while (counter as f64) < slots as f64 * load {
            let location = table.base().locate(hash(counter));
            if table.pair_mut(location.buckets()).put(location.fingerprint, 0) == Put::Full {
                let path = table
                    .path_to_room(
                        &mut search,
                        &location.general(table.addresses()),
                        Spares::Keep,
                        None,
                    )
                    .unwrap();
                looked += search.looked;
                moves += path.moves.len();
                longest = longest.max(path.moves.len());
                carry_out(&mut table, &path, location.fingerprint);
            }
            counter += 1;
        }
        let inserts = (counter - first) as f64;
        let (looked, moves) = (looked as f64 / inserts, moves as f64 / inserts);
        println!("{load} | {looked:.1} | {moves:.2} | {longest}");
    }
}
