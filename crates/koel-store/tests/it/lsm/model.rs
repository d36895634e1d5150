//! Random programs, compared with a sorted map and its earlier versions: `crate::model`.

use koel_store::LsmStore;

use crate::model::model;
use crate::trial::count;

#[test]
fn an_ordered_store_behaves_like_a_sorted_map() {
    model::<LsmStore>(count(100_000, 1_000_000));
}
