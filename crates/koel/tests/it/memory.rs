//! Where the memory is short, everything returns its error or goes without, and nothing is lost.
//!
//! A limit on memory holds for a process. So a test starts this binary again under `ulimit`, for
//! [`without_memory`] alone.

use std::process::Command;

use koel::{
    CountingFilter, CuckooFilter, FilterView, FullError, ImageError, InsertError, Maplet,
    MapletView, Merge, MergeError,
};

/// The limit of the process, in KiB: room for what the test makes, and for little more.
const LIMIT: u32 = 512 << 10;
/// Nothing of this many bytes or more is left. All tables below are larger, but those that grow.
const LEFT: usize = 64 << 10;

#[test]
fn short_memory_is_an_error_and_nothing_is_lost() {
    let script = format!("ulimit -v {LIMIT}; exec \"$0\" --exact memory::without_memory --ignored");
    let binary = std::env::current_exe().unwrap();
    let output = Command::new("sh").arg("-c").arg(script).arg(binary).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
}

/// Takes all memory, in pieces of at least [`LEFT`] bytes.
fn take_all_memory() -> Vec<Vec<u8>> {
    let mut taken = Vec::with_capacity(10_000);
    for size in [1 << 20, LEFT] {
        let mut piece = Vec::new();
        while taken.len() < taken.capacity() && piece.try_reserve_exact(size).is_ok() {
            taken.push(std::mem::take(&mut piece));
        }
    }
    assert!(taken.len() < taken.capacity());
    taken
}

#[test]
#[ignore = "started by the test above, under a limit"]
fn without_memory() {
    let keys: Vec<u64> = (0..2000).collect();
    let mut filter = CuckooFilter::builder(200_000, 0.001).growable().build().unwrap();
    filter.insert_many(&keys).unwrap();
    let filter_bytes = filter.to_bytes();
    let view = FilterView::open(&filter_bytes).unwrap();
    let mut counting = CountingFilter::builder(200_000, 0.001).build().unwrap();
    counting.insert_many(&keys).unwrap();
    let counting_bytes = counting.to_bytes();
    // Has grown, and could be smaller.
    let mut maplet = Maplet::builder(1_000_000, 1e-5, 38).grow_from(100).build().unwrap();
    maplet.try_extend((0..100_000_u64).map(|key| (key, key))).unwrap();
    assert!((20_000..100_000_u64).all(|key| maplet.remove(&key, key)));
    let maplet_bytes = maplet.to_bytes();
    let mut widening = CuckooFilter::builder(40_000, 0.001).growable().build().unwrap();
    widening.try_extend(0..40_000_u64).unwrap();
    let mut next = 40_000_u64;
    while !widening.has_grown() {
        widening.insert(&next).unwrap();
        next += 1;
    }
    let expected = widening.to_bytes();
    let mut small = CuckooFilter::builder(1000, 0.001).growable().build().unwrap();
    let mut small_maplet = Maplet::builder(1_000_000, 0.001, 8).grow_from(1000).build().unwrap();
    let mut small_counting =
        CountingFilter::builder(1_000_000, 0.001).grow_from(1000).build().unwrap();
    let taken = take_all_memory();

    // Copies.
    assert!(filter.try_clone().is_err() && maplet.try_clone().is_err());
    assert!(counting.try_clone().is_err());
    assert_eq!(CuckooFilter::from_bytes(&filter_bytes).err(), Some(ImageError::NoMemory));
    assert_eq!(<Maplet>::try_from(&*maplet_bytes).err(), Some(ImageError::NoMemory));
    assert_eq!(CountingFilter::from_bytes(&counting_bytes).err(), Some(ImageError::NoMemory));
    assert_eq!(view.to_owned().err(), Some(ImageError::NoMemory));
    assert_eq!(<CuckooFilter>::try_from(view).err(), Some(ImageError::NoMemory));
    let view = FilterView::open(&filter_bytes).unwrap();
    assert!(MapletView::try_from(&*maplet_bytes).is_ok_and(|view| view.to_owned().is_err()));

    // Unions, and room.
    assert_eq!(filter.merge(&view, Merge::Sum), Err(MergeError::NoMemory));
    assert_eq!(filter.merge(&view, Merge::Max), Err(MergeError::NoMemory));
    assert!(matches!(filter.reserve(10_000_000), Err(FullError::Slots { .. })));
    assert!(CuckooFilter::builder(200_000, 0.001).build_from(&keys).is_err());
    let slots = maplet.slots();
    maplet.shrink_to_fit();
    assert_eq!(maplet.slots(), slots);

    // What needs no memory.
    assert!(filter.compare(&view).unwrap().surplus_first() == 0 && filter.verify().is_ok());
    let mut written = 0;
    widening
        .write_to(|piece| {
            assert!(piece == &expected[written..][..piece.len()]);
            written += piece.len();
            Ok::<(), ()>(())
        })
        .unwrap();
    assert_eq!((written, widening.verify()), (expected.len(), Ok(())));

    // Growth, until it needs more than is left.
    let in_filter = (0_u64..).find(|key| small.insert(key).is_err()).unwrap();
    let mut refused = |key: &u64| small_maplet.insert(key, key % 256).err();
    let error = (0_u64..).find_map(|key| refused(&key)).unwrap();
    let in_counting = (0_u64..).find(|key| small_counting.insert(key).is_err()).unwrap();
    drop(taken);

    assert!(matches!(error, InsertError::Full(FullError::Slots { .. })), "{error:?}");
    assert!((0..in_filter).all(|key| small.contains(&key)) && small.verify().is_ok());
    assert!(small_maplet.len() > 1000 && small_maplet.verify().is_ok());
    let values = (0..small_maplet.len()).map(|key| (key, key % 256));
    assert!({ values }.all(|(key, value)| small_maplet.get(&key).any(|found| found == value)));
    assert!((0..in_counting).all(|key| small_counting.count(&key) > 0));
    assert!(small_counting.verify().is_ok());
    assert!(keys.iter().all(|key| filter.count(key) == view.count(key)));
    assert!((0..20_000_u64).all(|key| maplet.get(&key).any(|value| value == key)));
    assert!((0..next).all(|key| widening.contains(&key)));
    // And now there is memory again.
    assert!(filter.try_clone().unwrap() == filter && view.to_owned().unwrap() == filter);
    maplet.shrink_to_fit();
    assert!(maplet.slots() < slots && maplet.verify().is_ok());
    assert!(widening == CuckooFilter::from_bytes(&expected).unwrap());
}
