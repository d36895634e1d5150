//! Checks the bytes of each key type in docs/FORMAT.md against the code.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use koel::{CuckooFilter, HashedKey, Key, KeyData, KeyHash};

use crate::support::rows;

/// The bytes of a key, or of its hash, in hexadecimal.
fn hex<K: Key + ?Sized>(key: &K) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    key.with(|data| match data {
        KeyData::Bytes(bytes) => hex(bytes),
        KeyData::Parts(parts) => {
            let mut bytes = Vec::new();
            parts.for_each(|part| bytes.extend_from_slice(part));
            hex(&bytes)
        }
        KeyData::Hash(hash) => format!("hash {:016x}", hash.get()),
    })
}

/// Every key of the table, as the page writes it.
fn keys() -> Vec<(&'static str, String)> {
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    let socket = |text: &str| text.parse::<SocketAddr>().unwrap();
    vec![
        ("char U+00E9", hex(&'\u{e9}')),
        ("true", hex(&true)),
        ("usize 1", hex(&1_usize)),
        ("isize -2", hex(&-2_isize)),
        ("[u16; 3] 1, 2, 258", hex(&[1_u16, 2, 258])),
        ("[i32; 2] 1, -1", hex(&[1_i32, -1])),
        ("(\"ab\", \"c\")", hex(&("ab", "c"))),
        ("(\"a\", \"bc\")", hex(&("a", "bc"))),
        ("(u32 1,)", hex(&(1_u32,))),
        ("(u16 1, true, \"\")", hex(&(1_u16, true, ""))),
        ("((\"a\",), u8 2)", hex(&(("a",), 2_u8))),
        ("(hash 1, \"a\")", hex(&(KeyHash::new(1), "a"))),
        ("192.0.2.1", hex(&ip("192.0.2.1"))),
        ("2001:db8::1", hex(&ip("2001:db8::1"))),
        ("192.0.2.1:443", hex(&socket("192.0.2.1:443"))),
        ("[2001:db8::1]:443", hex(&socket("[2001:db8::1]:443"))),
        ("path a/b.txt", hex(std::path::Path::new("a/b.txt"))),
        ("()", hex(&())),
        ("None", hex(&None::<u32>)),
        ("Some(\"a\")", hex(&Some("a"))),
        ("NonZero u16 258", hex(&std::num::NonZero::new(258_u16).unwrap())),
        ("u64 slice 1, 2", hex(&[1_u64, 2][..])),
    ]
}

#[test]
fn the_key_vectors_match_the_format() {
    let rows = rows("| key | bytes |");
    let stated: Vec<_> = rows.iter().map(|row| (row[0], row[1].to_owned())).collect();
    assert_eq!(stated, keys());
}

#[test]
fn wrappers_of_a_key_have_the_bytes_of_the_key() {
    let key = hex("ada");
    assert_eq!(hex(&Cow::Borrowed("ada")), key);
    assert_eq!(hex(&Cow::<str>::Owned("ada".to_owned())), key);
    assert_eq!(hex(&Box::<str>::from("ada")), key);
    assert_eq!(hex(&Rc::<str>::from("ada")), key);
    assert_eq!(hex(&Arc::<[u8]>::from(*b"ada")), key);
    assert_eq!(hex(std::ffi::OsStr::new("ada")), key);
    assert_eq!(hex(&std::ffi::OsString::from("ada")), key);
    assert_eq!(hex(&std::path::PathBuf::from("ada")), key);
    assert_eq!(hex(&Box::new(KeyHash::new(7))), hex(&KeyHash::new(7)));
    assert_eq!(hex(&[1_u8, 2]), "0102");
}

#[test]
fn a_filter_is_collected_from_keys() {
    let keys: Vec<String> = (0..500).map(|key| key.to_string()).collect();
    let filter: CuckooFilter = keys.iter().collect();
    assert!(keys.iter().all(|key| filter.contains(key)) && filter.len() == 500);
    assert!(std::iter::empty::<u32>().collect::<CuckooFilter>().is_empty());
}

/// The bytes of the whole value, short and long, whatever the pieces that it writes.
#[test]
fn any_type_with_a_hash_is_a_key() {
    #[derive(Clone, Hash)]
    struct Visit<'a>(&'a str, u16, Vec<u8>);
    let visits: Vec<_> = (0..300)
        .flat_map(|len| ["ada", "grace"].map(|user| HashedKey(Visit(user, 7, vec![1; len]))))
        .collect();
    let all: std::collections::BTreeSet<_> = visits.iter().map(hex).collect();
    assert_eq!(all.len(), visits.len());
    for secret in [false, true] {
        let builder = CuckooFilter::builder(1000, 1e-6);
        let builder = if secret { builder.sip_key([7; 16]) } else { builder };
        let mut filter = builder.build().unwrap();
        filter.insert_many(&visits[..300]).unwrap();
        assert!(visits[..300].iter().all(|visit| filter.contains(&visit.clone())));
        assert!(!visits[300..].iter().any(|visit| filter.contains(visit)));
    }
}

#[cfg(feature = "uuid")]
#[test]
fn a_uuid_is_its_sixteen_bytes() {
    let uuid = uuid::Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
    assert_eq!(hex(&uuid), "00112233445566778899aabbccddeeff");
}
