//! `seeds FOLDER` writes the inputs that fuzzing starts from, in a folder for each target.

use std::path::Path;
use std::{env, fs, io};

use testkit::fuzz::TARGETS;

fn main() -> io::Result<()> {
    for target in TARGETS {
        let seeds = (target.seeds)();
        println!("{}: {} seeds", target.name, seeds.len());
        let Some(folder) = env::args_os().nth(1) else { continue };
        let folder = Path::new(&folder).join(target.name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(folder.join(format!("seed-{number:02}")), seed)?;
        }
    }
    Ok(())
}
