//! Makes the inputs that fuzzing starts from; `seeds FOLDER` writes them to FOLDER/image,
//! FOLDER/maplet, FOLDER/model, FOLDER/expiring, FOLDER/store, FOLDER/ordered, FOLDER/table and
//! FOLDER/patch, `seeds` alone only checks them.

use std::path::Path;
use std::{env, fs, io};

use koel::{CountingFilter, CuckooFilter, Maplet};
use testkit::cases::Case;
use testkit::{ordered, patches, seeds, stores, tables};

fn main() -> io::Result<()> {
    let (images, models, stores) = (seeds::images(), seeds::models(), stores::seeds());
    let (tables, ordered) = (tables::seeds(), ordered::seeds());
    let (mut maplets, counting) = (seeds::maplets(), seeds::counting());
    assert!(maplets.iter().all(|image| Maplet::from_bytes(image).is_ok()));
    assert!(counting.iter().all(|image| CountingFilter::from_bytes(image).is_ok()));
    maplets.extend(counting);
    assert!(images.iter().all(|image| CuckooFilter::from_bytes(image).is_ok()));
    assert!(models.iter().all(|model| Case::decode(model, 24).ops.len() >= 8));
    println!(
        "{} filters, {} maplets and counting filters, {} stores, {} ordered ones, {} tables and {} runs of operations",
        images.len(),
        maplets.len(),
        stores.len(),
        ordered.len(),
        tables.len(),
        models.len()
    );
    let Some(folder) = env::args_os().nth(1) else { return Ok(()) };
    let targets = [
        ("image", images),
        ("maplet", maplets),
        ("model", models),
        ("expiring", seeds::expiring()),
        ("store", stores),
        ("ordered", ordered),
        ("table", tables),
        ("patch", patches::seeds()),
    ];
    for (target, seeds) in targets {
        let folder = Path::new(&folder).join(target);
        fs::create_dir_all(&folder)?;
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(folder.join(format!("seed-{number:02}")), seed)?;
        }
    }
    Ok(())
}
