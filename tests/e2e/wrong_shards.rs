//! Configurations that name other shards than those that were migrated are refused before anything is
//! served.

use std::{fmt::Write as _, fs, path::Path};

use crate::node::Node;

/// A configuration whose shards are in these files of the folder.
fn config(folder: &Path, name: &str, shards: &[(u32, &str)]) -> Vec<String> {
    let mut text = String::from("[node]\ngrpc = \"127.0.0.1:0\"\nhttp = \"127.0.0.1:0\"\n");
    for (id, file) in shards {
        let path = folder.join(file);
        write!(text, "\n[[shard]]\nid = {id}\nurl = \"sqlite://{}\"\n", path.display()).unwrap();
    }
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    vec!["--config".into(), path.display().to_string()]
}

fn verb(verb: &str, config: &[String]) -> Vec<String> {
    [&[verb.to_owned()], config].concat()
}

#[tokio::test]
async fn swapped_urls_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let right = config(folder.path(), "right.toml", &[(1, "a.db"), (2, "b.db")]);
    Node::run(&verb("migrate", &right)).await;
    let swapped = config(folder.path(), "swapped.toml", &[(1, "b.db"), (2, "a.db")]);
    for refused in ["serve", "migrate"] {
        let said = Node::refused(&verb(refused, &swapped)).await;
        assert!(said.contains("shard 1") && said.contains("shard 2"), "{refused}: {said}");
        assert!(said.contains("the schema is shard 2 of cluster"), "{refused}: {said}");
    }
}

#[tokio::test]
async fn a_shard_of_another_queue_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (name, id, file) in [("ours.toml", 1, "a.db"), ("theirs.toml", 2, "b.db")] {
        Node::run(&verb("migrate", &config(folder.path(), name, &[(id, file)]))).await;
    }
    let both = config(folder.path(), "both.toml", &[(1, "a.db"), (2, "b.db")]);
    for refused in ["serve", "migrate"] {
        let said = Node::refused(&verb(refused, &both)).await;
        assert!(said.contains("shard 2 is of cluster"), "{refused}: {said}");
    }
}
