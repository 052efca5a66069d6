//! Committed files are the same as those that `proto/` makes.

use std::fs;

use forebay_codegen::{generate, workspace};

#[test]
fn the_committed_code_is_generated_from_the_protobuf_files() {
    let generated = generate(&workspace()).unwrap();
    assert!(generated.iter().all(|file| !file.bytes.is_empty()) && generated.len() == 3);
    for file in generated {
        let committed = fs::read(&file.path).unwrap_or_default();
        assert!(committed == file.bytes, "{}: run cargo xtask codegen", file.path.display());
    }
}
