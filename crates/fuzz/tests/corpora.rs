//! Every target over its corpus. The name of a file says why it is there.

use std::{collections::BTreeSet, fs, path::PathBuf};

use forebay_fuzz::TARGETS;

fn corpora() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpora")
}

#[test]
fn every_target_holds_for_its_corpus() {
    for (name, target) in TARGETS {
        let files = fs::read_dir(corpora().join(name)).unwrap();
        let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        assert!(files.len() >= 12, "{name} has {} files", files.len());
        for file in files {
            println!("{}", file.display());
            target(&fs::read(file).unwrap());
        }
    }
}

#[test]
fn each_corpus_has_a_target() {
    let folders = fs::read_dir(corpora()).unwrap().map(|folder| folder.unwrap());
    let folders = folders.filter(|folder| folder.file_type().unwrap().is_dir());
    let folders: BTreeSet<String> = folders.map(|folder| folder.file_name().into_string().unwrap()).collect();
    assert_eq!(folders, TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect());
}

/// Purpose of the corpora: each target reaches the code that it checks.
#[test]
fn corpora_reach_what_is_checked() {
    let read = |file: &str| fs::read(corpora().join(file)).unwrap();
    let filter = String::from_utf8(read("filters/all-operators")).unwrap();
    assert!(filter.contains(" AND ") && filter.contains("!="));
    let receipt = String::from_utf8(read("receipts/of-this-namespace")).unwrap();
    assert!(forebay_types::Receipt::decode("tenant", &receipt).is_ok());
    let column = |file: &str| read(&format!("packed_columns/{file}")).split_off(1);
    for row in ["row", "row-of-an-earlier-program"] {
        assert!(forebay_store::unpack_operation_row(&column(row)).is_some(), "{row}");
    }
    for part in ["part", "part-with-what-is-to-be-done"] {
        assert!(forebay_store::unpack_operation_part(&column(part)).is_some(), "{part}");
    }
}
