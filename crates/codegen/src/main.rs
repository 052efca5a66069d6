//! Writes the generated files, and says which of them are new.

use std::fs;

use forebay_codegen::{GeneratedFile, generate, workspace};

fn main() -> anyhow::Result<()> {
    for GeneratedFile { path, bytes } in generate(&workspace())? {
        let same = fs::read(&path).is_ok_and(|old| old == bytes);
        if !same {
            fs::write(&path, bytes)?;
        }
        let name = path.file_name().unwrap_or_default().display();
        println!("{name}: {}", if same { "as it was" } else { "written" });
    }
    Ok(())
}
