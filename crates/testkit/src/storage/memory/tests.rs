//! Synced data survives every crash; unsynced data is sometimes kept and sometimes lost.

use super::*;

const CRASHES: u64 = 200;

fn crashes(folder: &MemoryFolder, kept: u32) -> Vec<BTreeMap<String, Vec<u8>>> {
    (0..CRASHES).map(|seed| folder.crash_clone(kept, seed).contents()).collect()
}

/// A folder with one durable file: four sectors of ones.
fn folder_with_a_file() -> (MemoryFolder, Arc<dyn File>) {
    let folder = MemoryFolder::new();
    let file = folder.create("a").unwrap();
    file.write_at(&[1; 4 * SECTOR], 0).unwrap();
    file.sync().unwrap();
    folder.sync().unwrap();
    (folder, file)
}

#[test]
fn synced_data_survives_every_crash() {
    let (folder, _file) = folder_with_a_file();
    for kept in [0, 50, 100] {
        assert!(crashes(&folder, kept).iter().all(|crash| crash["a"] == [1; 4 * SECTOR]));
    }
}

#[test]
fn unsynced_sectors_are_independently_new_or_old() {
    let (folder, file) = folder_with_a_file();
    file.write_at(&[2; 2 * SECTOR], SECTOR as u64).unwrap();
    let kept = |percent| -> BTreeSet<Vec<u8>> {
        crashes(&folder, percent).into_iter().map(|crash| crash["a"].clone()).collect()
    };
    let state = |sectors: [u8; 4]| sectors.map(|byte| [byte; SECTOR]).concat();
    assert_eq!(kept(0), BTreeSet::from([state([1; 4])]));
    assert_eq!(kept(100), BTreeSet::from([state([1, 2, 2, 1])]));
    let torn = [[1; 4], [1, 2, 1, 1], [1, 1, 2, 1], [1, 2, 2, 1]].map(state);
    assert_eq!(kept(50), BTreeSet::from(torn));
}

#[test]
fn an_unsynced_length_is_the_old_one_the_new_one_or_between() {
    let (folder, file) = folder_with_a_file();
    for new in [2 * SECTOR, 6 * SECTOR] {
        file.set_len(new as u64).unwrap();
        let lengths: BTreeSet<usize> =
            crashes(&folder, 50).iter().map(|crash| crash["a"].len()).collect();
        let (low, high) = (new.min(4 * SECTOR), new.max(4 * SECTOR));
        assert!(lengths.contains(&new) && lengths.len() > 10);
        assert!(lengths.iter().all(|len| (low..=high).contains(len)));
        assert!(crashes(&folder, 0).iter().all(|crash| crash["a"].len() == 4 * SECTOR));
        file.set_len(4 * SECTOR as u64).unwrap();
        file.write_at(&[1; 4 * SECTOR], 0).unwrap();
        file.sync().unwrap();
    }
}

#[test]
fn bytes_cut_off_and_added_again_are_zero() {
    let (folder, file) = folder_with_a_file();
    file.set_len(10).unwrap();
    file.write_at(&[3], 20).unwrap();
    let expected = [vec![1; 10], vec![0; 10], vec![3]].concat();
    assert_eq!(folder.contents()["a"], expected);
    file.sync().unwrap();
    assert!(crashes(&folder, 50).iter().all(|crash| crash["a"] == expected));
}

#[test]
fn an_unsynced_name_may_be_there_or_not_even_of_a_synced_file() {
    let (folder, _file) = folder_with_a_file();
    folder.create("b").unwrap().sync().unwrap();
    let with_b = crashes(&folder, 50).iter().filter(|crash| crash.contains_key("b")).count();
    assert!((50..150).contains(&with_b), "{with_b}");
    assert!(crashes(&folder, 0).iter().all(|crash| !crash.contains_key("b")));
    folder.sync().unwrap();
    assert!(crashes(&folder, 0).iter().all(|crash| crash.contains_key("b")));
    folder.remove("b").unwrap();
    let with_b = crashes(&folder, 50).iter().filter(|crash| crash.contains_key("b")).count();
    assert!((50..150).contains(&with_b), "{with_b}");
}

#[test]
fn a_rename_happened_or_did_not() {
    let (folder, _file) = folder_with_a_file();
    let new = folder.create("new").unwrap();
    new.write_at(b"new", 0).unwrap();
    new.sync().unwrap();
    folder.sync().unwrap();
    folder.rename("new", "a").unwrap();
    let seen: BTreeSet<Vec<String>> =
        crashes(&folder, 50).iter().map(|crash| crash.keys().cloned().collect()).collect();
    let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    assert_eq!(seen, BTreeSet::from([names(&["a"]), names(&["a", "new"])]));
    for crash in crashes(&folder, 50) {
        assert_eq!(crash["a"] == b"new", !crash.contains_key("new"));
    }
}

#[test]
fn a_link_may_be_lost_and_shares_the_bytes_of_its_file() {
    let (folder, file) = folder_with_a_file();
    let other = MemoryFolder::new();
    folder.link("a", &other).unwrap();
    assert_eq!(folder.link("a", &other).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(folder.link("b", &other).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(crashes(&other, 0).iter().all(BTreeMap::is_empty));
    other.sync().unwrap();
    assert!(crashes(&other, 50).iter().all(|crash| crash["a"] == [1; 4 * SECTOR]));
    file.write_at(&[9], 0).unwrap();
    folder.remove("a").unwrap();
    assert_eq!(other.contents()["a"][..2], [9, 1]);
}

#[test]
fn a_file_that_is_removed_while_it_is_linked_is_counted_once() {
    for _ in 0..500 {
        let (folder, other) = (MemoryFolder::new(), MemoryFolder::new());
        let names: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        for name in &names {
            folder.create(name).unwrap().write_at(&[1; 10], 0).unwrap();
        }
        let linked = std::thread::scope(|scope| {
            scope.spawn(|| names.iter().for_each(|name| folder.remove(name).unwrap()));
            names.iter().rev().filter(|name| folder.link(name, &other).is_ok()).count()
        });
        assert_eq!(folder.used(), 10 * linked as u64);
    }
}

#[test]
fn a_clone_is_independent() {
    let (folder, file) = folder_with_a_file();
    let _guard = folder.lock().unwrap();
    assert_eq!(folder.lock().err().unwrap().kind(), io::ErrorKind::WouldBlock);
    let clone = folder.crash_clone(100, 0);
    assert!(clone.lock().is_ok());
    file.write_at(&[9], 0).unwrap();
    folder.remove("a").unwrap();
    assert_eq!(clone.contents()["a"], [1; 4 * SECTOR]);
    let mut byte = [0];
    assert_eq!(file.read_at(&mut byte, 0).unwrap(), 1, "who has it open goes on reading");
    assert_eq!(byte, [9]);
}
