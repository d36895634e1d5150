//! include/koel.h has what the functions are. To write it: `KOEL_WRITE=1 cargo test -p koel-c
//! --test header`.

use std::path::Path;
use std::{env, fs};

#[test]
fn the_header_has_every_function_as_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a configuration");
    let sources = ["status", "raw", "filter", "exports"];
    let with_source = |builder: cbindgen::Builder, name: &&str| {
        builder.with_src(root.join(format!("src/{name}.rs")))
    };
    let builder = sources.iter().fold(cbindgen::Builder::new().with_config(config), with_source);
    let mut made = Vec::new();
    builder.generate().expect("a header").write(&mut made);
    // cbindgen would put the name of the type into each: KOEL_STATUS_FULL.
    let made = String::from_utf8(made).expect("a text").replace("KOEL_STATUS_", "KOEL_");
    let path = root.join("include/koel.h");
    if env::var_os("KOEL_WRITE").is_some() {
        fs::write(&path, &made).expect("a file of the repository");
    }
    let kept = fs::read_to_string(&path).expect("koel.h");
    assert!(kept == made, "koel.h is not made of these functions: KOEL_WRITE=1 writes it");
}
