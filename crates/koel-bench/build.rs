//! Links RocksDB where `KOEL_ROCKSDB` is set, for `stores`: Debian has it in `librocksdb-dev`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=KOEL_ROCKSDB");
    println!("cargo::rustc-check-cfg=cfg(rocksdb)");
    if std::env::var_os("KOEL_ROCKSDB").is_some() {
        println!("cargo::rustc-cfg=rocksdb");
        println!("cargo::rustc-link-lib=rocksdb");
    }
}
