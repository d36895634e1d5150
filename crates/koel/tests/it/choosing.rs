//! The table "What each type has" of docs/CHOOSING.md is true, as far as it names traits.

use koel::{
    ConcurrentFilter, CountingFilter, CountingView, CuckooFilter, ExpiringFilter, ExpiringView,
    FilterView, Maplet, MapletView,
};

trait Yes {
    fn has(&self) -> bool {
        true
    }
}

trait No {
    fn has(&self) -> bool {
        false
    }
}

/// Whether a type has a trait: a method of the value goes before that of its reference.
macro_rules! has {
    ($type:ty: [$($bound:tt)+]) => {{
        struct Of<T>(core::marker::PhantomData<T>);
        impl<T: $($bound)+> Yes for Of<T> {}
        impl<T> No for &Of<T> {}
        (&Of::<$type>(core::marker::PhantomData)).has()
    }};
}

/// The cells of a row. "-" is no, anything else is yes.
fn row(name: &str) -> Vec<bool> {
    let page = include_str!("../../../../docs/CHOOSING.md");
    let start = format!("| {name} | ");
    let row = page.lines().find_map(|line| line.strip_prefix(&start)).expect("a row");
    row.trim_end_matches(" |").split(" | ").map(|cell| cell != "-").collect()
}

#[test]
fn the_table_of_types_names_the_traits_that_they_have() {
    macro_rules! each {
        ([$($type:ty),+] $bound:tt) => { vec![$(has!($type: $bound)),+] };
    }
    type Concurrent = ConcurrentFilter;
    let clone = each!([CuckooFilter, CountingFilter, ExpiringFilter, Maplet, Concurrent][Clone]);
    assert_eq!(row("`Clone`"), clone);
    let views = each!([
        FilterView<'_>, CountingView<'_>, ExpiringView<'_>, MapletView<'_>, Concurrent
    ] [Clone]);
    assert_eq!(row("`Clone` of the view"), views);
    let eq = each!([CuckooFilter, CountingFilter, ExpiringFilter, Maplet, Concurrent][Eq]);
    assert_eq!(row("`Eq`"), eq);
    let collected = each!(
        [CuckooFilter, CountingFilter, ExpiringFilter, Maplet, Concurrent] [FromIterator<u64>]
    );
    assert_eq!(row("`FromIterator`"), collected);
    let mut extended = each!([CuckooFilter, CountingFilter, ExpiringFilter] [Extend<u64>]);
    extended.extend(each!([Maplet, Concurrent] [Extend<(u64, u64)>]));
    assert_eq!(row("`Extend`, `try_extend`"), extended);
    let serde =
        each!([CuckooFilter, CountingFilter, ExpiringFilter, Maplet, Concurrent][serde::Serialize]);
    assert_eq!(row("serde"), serde);
}

#[test]
fn at_half_a_percent_and_below_a_large_filter_is_smaller_than_a_bloom_filter() {
    for keys in [100_000, 150_000, 1_000_000, 10_000_000] {
        let rates = (0..60).map(|step| 0.005 * 0.8_f64.powi(step));
        for rate in rates.take_while(|&rate| rate > 1e-8) {
            let koel = CuckooFilter::builder(keys, rate).plan().unwrap().bits_per_key;
            let bloom = -rate.log2() / core::f64::consts::LN_2;
            assert!(koel < bloom, "{keys} at {rate}: {koel}, a Bloom filter takes {bloom}");
        }
    }
}
