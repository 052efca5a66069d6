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
    let said = Node::refused(&verb("serve", &swapped)).await;
    assert!(said.contains("shard 1 is listed at") && said.contains("shard 2 is listed at"), "{said}");
    let said = Node::refused(&verb("migrate", &swapped)).await;
    assert!(said.contains("shard 1: the schema is shard 2 of cluster"), "{said}");
    assert!(said.contains("shard 2: the schema is shard 1 of cluster"), "{said}");
    Node::run(&verb("check-config", &right)).await;
    Node::run(&verb("migrate", &right)).await;
}

/// Its catalog finds it again where it is now, and no empty schema takes its place.
#[tokio::test]
async fn a_shard_that_was_moved_is_found_by_a_migration() {
    let folder = tempfile::tempdir().unwrap();
    Node::run(&verb("migrate", &config(folder.path(), "before.toml", &[(1, "a.db"), (2, "b.db")]))).await;
    let moved = config(folder.path(), "moved.toml", &[(1, "a.db"), (2, "c.db")]);
    let said = Node::refused(&verb("migrate", &moved)).await;
    assert!(
        said.contains("shard 2: it has another address in the catalog, and there is no shard at"),
        "{said}"
    );
    let said = Node::refused(&verb("serve", &moved)).await;
    assert!(said.contains("shard 2 is listed at") && said.contains("run `forebay migrate`"), "{said}");
    fs::rename(folder.path().join("b.db"), folder.path().join("c.db")).unwrap();
    Node::run(&verb("migrate", &moved)).await;
    let node = Node::start(&verb("serve", &moved), &folder.path().join("log")).await;
    assert!(node.terminate().await.0.success());
}

/// As where the shards are of a release whose nodes had no catalog.
#[tokio::test]
async fn a_catalog_is_made_for_shards_that_have_none() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), "forebay.toml", &[(1, "a.db"), (2, "b.db")]);
    let (log, catalog) = (folder.path().join("log"), folder.path().join("catalog.db"));
    Node::run(&verb("migrate", &config)).await;
    fs::remove_file(&catalog).unwrap();
    let node = Node::start(&verb("serve", &config), &log).await;
    assert!(catalog.exists() && node.terminate().await.0.success());
    fs::remove_file(&catalog).unwrap();
    Node::run(&verb("migrate", &config)).await;
    let node = Node::start(&verb("serve", &config), &log).await;
    assert!(node.terminate().await.0.success());
}

#[tokio::test]
async fn a_shard_of_another_queue_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("theirs")).unwrap();
    for (name, id, file) in [("ours.toml", 1, "a.db"), ("theirs.toml", 2, "theirs/b.db")] {
        Node::run(&verb("migrate", &config(folder.path(), name, &[(id, file)]))).await;
    }
    let both = config(folder.path(), "both.toml", &[(1, "a.db"), (2, "theirs/b.db")]);
    let said = Node::refused(&verb("migrate", &both)).await;
    assert!(said.contains("shard 2 is of cluster"), "{said}");
    let said = Node::refused(&verb("serve", &both)).await;
    assert!(said.contains("shard 2 is listed at") && said.contains("has it nowhere"), "{said}");
}
