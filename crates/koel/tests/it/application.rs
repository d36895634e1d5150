//! The bytes that a filter keeps for its application.

use koel::{CountingFilter, CuckooFilter, FilterView, Maplet};

use crate::support::field;

const BYTES: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 255];

#[test]
fn every_kind_of_filter_keeps_the_bytes_of_its_application() {
    let filter = CuckooFilter::builder(100, 0.01).application(BYTES).build().unwrap();
    let image = filter.to_bytes();
    assert_eq!(image[field("application bytes")], BYTES);
    assert_eq!(FilterView::open(&image).unwrap().application(), BYTES);
    assert_eq!(CuckooFilter::from_bytes(&image).unwrap(), filter);
    let grown = CuckooFilter::builder(100, 0.01).application(BYTES).growable();
    let mut grown = grown.build().unwrap();
    grown.try_extend(0..10_000_u32).unwrap();
    grown.shrink_to_fit();
    grown.clear();
    assert_eq!(grown.application(), BYTES);
    let maplet = Maplet::builder(100, 0.01, 8).application(BYTES).build().unwrap();
    assert_eq!(Maplet::from_bytes(&maplet.to_bytes()).unwrap().application(), BYTES);
    let counting = CountingFilter::builder(100, 0.01).application(BYTES).build().unwrap();
    assert_eq!(CountingFilter::from_bytes(&counting.to_bytes()).unwrap(), counting);
}

#[test]
fn a_shared_filter_keeps_the_bytes_of_its_application() {
    let filter = CuckooFilter::builder(100, 0.01).application(BYTES).build().unwrap();
    let shared = koel::ConcurrentFilter::try_from(filter).unwrap();
    assert_eq!(shared.application(), BYTES);
    assert_eq!(shared.snapshot().unwrap().application(), BYTES);
}
