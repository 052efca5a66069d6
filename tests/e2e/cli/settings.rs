//! `forebay topic put`, `forebay topic delete`, `forebay namespace list`, `get`, `put` and `delete`

use forebay_proto::v1::{EnqueueItem, EnqueueRequest, queue_service_client::QueueServiceClient};
use serde_json::json;

use super::Server;

#[tokio::test]
async fn settings_of_a_topic_are_put_shown_and_deleted() {
    let server = Server::start().await;
    let put = ["topic", "put", "mail", "--default-lease", "2m", "--retry-delay", "10s", "--reason", "agreed"];
    let table = server.run(&put).await.done();
    assert!(table.contains("default lease") && table.contains("2m") && table.contains("set here"), "{table}");
    assert!(table.contains("inherited"), "{table}");
    let more =
        ["topic", "put", "mail", "--default-max-attempts", "5", "--retry-delay", "inherit", "-o", "json"];
    let answer = server.run(&more).await.json();
    assert_eq!(answer["settings"], json!({"defaultLease": "120s", "defaultMaxAttempts": 5, "weight": 0}));
    assert_eq!(answer["effectiveSettings"]["retryDelay"], json!("0s"));
    let shown = server.run(&["topic", "get", "mail", "-o", "json"]).await.json();
    assert_eq!(shown["topic"]["settings"], answer["settings"]);
    assert_eq!(shown["topic"]["settingsVersion"], answer["version"]);
    assert_eq!(shown["effectiveSettings"]["deadLetterRetention"], json!("1209600s"));
    let table = server.run(&["topic", "get", "mail"]).await.done();
    assert!(table.contains("default max attempts") && table.contains("14days"), "{table}");

    let stale = ["topic", "put", "mail", "--default-lease", "3m", "--if-version", "1"];
    let stderr = server.run(&stale).await.failed(1);
    assert!(stderr.contains("and 1 was named"), "{stderr}");
    server.run(&["topic", "put", "mail"]).await.failed(2);
    let table = server.run(&["topic", "put", "calls/7", "--weight", "7"]).await.done();
    assert!(table.contains("weight") && table.contains("7"), "{table}");
    let wrong = server.run(&["topic", "put", "calls/7", "--weight", "101"]).await.failed(1);
    assert!(wrong.contains("settings.weight"), "{wrong}");
    server.run(&["topic", "put", "calls/*", "--weight", "5", "--default-lease", "5m"]).await.done();
    let shown = server.run(&["topic", "get", "calls/*"]).await.done();
    assert!(shown.contains("5m") && shown.contains("set here"), "{shown}");
    server.run(&["topic", "put", "*/calls", "--default-lease", "3m"]).await.failed(1);
    server.run(&["topic", "delete", "calls/*"]).await.done();
    server.run(&["topic", "get", "calls/*"]).await.failed(3);
    server.run(&["topic", "put", "", "--default-lease", "3m"]).await.failed(2);
    server.run(&["topic", "put", "mail", "--dead-letter-retention", "0s"]).await.failed(2);
    let tried = ["topic", "put", "mail", "--dead-letter-retention", "forever", "--dry-run"];
    assert!(server.run(&tried).await.done().contains("for ever"));

    server.run(&["enqueue", "--topic", "mail", "x"]).await.done();
    let stderr = server.run(&["topic", "delete", "mail"]).await.failed(1);
    assert!(stderr.contains("NOT_EMPTY") && stderr.contains("1 ready"), "{stderr}");
    server.run(&["topic", "purge", "mail", "--yes"]).await.done();
    let gone = server.run(&["topic", "delete", "mail", "-o", "json"]).await.json();
    assert_eq!(gone["topic"]["settings"], answer["settings"]);
    // Also whoever mistypes the name is told.
    let nothing = server.run(&["topic", "delete", "never"]).await;
    assert!(nothing.stderr.contains("nothing was to be done"), "{}", nothing.stderr);
    assert_eq!(nothing.done(), "", "there is no topic to show");

    server.run(&["enqueue", "--topic", "mail", "x"]).await.done();
    let forced = ["topic", "delete", "mail", "--force"];
    assert!(server.run(&forced).await.failed(2).contains("add --yes"));
    server.run(&[&forced[..], &["--dry-run"]].concat()).await.done();
    let gone = server.run(&[&forced[..], &["--yes", "-o", "json"]].concat()).await.json();
    assert_eq!(gone["topic"]["readyCount"], json!("1"));
    let operation = gone["operationId"].as_str().unwrap();
    server.run(&["operation", "watch", operation]).await.done();
}

#[tokio::test]
async fn namespaces_are_listed_put_and_deleted() {
    let server = Server::start().await;
    server.run(&["enqueue", "--topic", "a", "--namespace", "shop", "x"]).await.done();
    server.run(&["namespace", "get", "--namespace", "none"]).await.failed(3);
    let put =
        ["namespace", "put", "--namespace", "club", "--dedupe-window", "2m", "--default-max-attempts", "3"];
    let table = server.run(&put).await.done();
    assert!(table.contains("dedupe window") && table.contains("2m"), "{table}");
    let listed = server.run(&["namespace", "list", "-o", "json"]).await.json();
    let names: Vec<_> = listed["namespaces"].as_array().unwrap().iter().map(|it| &it["namespace"]).collect();
    assert_eq!(names, [&json!("club"), &json!("shop")]);
    let settings = json!({"dedupeWindow": "120s", "defaultMaxAttempts": 3, "weight": 0});
    assert_eq!(listed["namespaces"][0]["settings"], settings);
    assert_eq!(listed["namespaces"][1]["readyCount"], json!("1"));
    assert_eq!(server.run(&["namespace", "list", "-o", "name"]).await.done(), "club\nshop\n");
    let table = server.run(&["namespace", "get", "--namespace", "shop"]).await.done();
    assert!(table.contains("topics") && table.contains("10m"), "{table}");

    let stderr = server.run(&["namespace", "delete", "--namespace", "shop"]).await.failed(1);
    assert!(stderr.contains("NOT_EMPTY") && stderr.contains("its topic a has 1 ready"), "{stderr}");
    server.run(&["namespace", "delete", "--namespace", "club", "--dry-run"]).await.done();
    server.run(&["namespace", "delete", "--namespace", "club"]).await.done();
    let nothing = server.run(&["namespace", "delete", "--namespace", "club"]).await;
    assert!(nothing.stderr.contains("nothing was to be done"), "{}", nothing.stderr);
    nothing.done();
    let forced = ["namespace", "delete", "--namespace", "shop", "--force"];
    assert!(server.run(&forced).await.failed(2).contains("add --yes"));
    let gone = server.run(&[&forced[..], &["--yes", "-o", "json"]].concat()).await.json();
    assert_eq!(gone["operationIds"].as_array().unwrap().len(), 1);
    let too_long = ["namespace", "put", "--dedupe-window", "1h"];
    let stderr = server.run(&too_long).await.failed(1);
    assert!(stderr.contains("settings.dedupe_window"), "{stderr}");
}

/// One call takes 100 of them.
#[tokio::test]
async fn a_namespace_of_many_topics_is_deleted_by_one_command() {
    let server = Server::start().await;
    let items =
        (0..130).map(|number| EnqueueItem { topic: format!("t{number}"), ..Default::default() }).collect();
    let request = EnqueueRequest { namespace: "shop".into(), items, ..Default::default() };
    let stored = QueueServiceClient::new(server.node.channel()).enqueue(request).await.unwrap().into_inner();
    assert!(stored.results.iter().all(|result| result.error.is_none()), "{stored:?}");
    let delete = ["namespace", "delete", "--namespace", "shop", "--force", "--yes", "-o", "json"];
    let gone = server.run(&delete).await.json();
    assert_eq!(gone["operationIds"].as_array().unwrap().len(), 130, "{gone}");
    assert_eq!(gone["goesOn"], json!(false));
}

#[tokio::test]
async fn settings_are_exported_compared_and_applied_as_one_document() {
    let server = Server::start().await;
    server.run(&["topic", "put", "mail*", "--default-lease", "2m", "--namespace", "shop"]).await.done();
    server.run(&["namespace", "put", "--namespace", "club", "--dedupe-window", "2m"]).await.done();
    let all = ["--namespace", "-"];
    let exported = server.run(&[&["settings", "export"], &all[..]].concat()).await.done();
    let mut document: serde_json::Value = serde_json::from_str(&exported).unwrap();
    assert_eq!(document["entries"].as_array().unwrap().len(), 2, "{document}");
    assert_eq!(document["entries"][1]["settings"]["defaultLease"], "120s");
    let apply = [&["settings", "apply", "-"], &all[..], &["--yes", "-o", "json"]].concat();
    let same = server.run_with(&apply, exported.as_str()).await.json();
    assert_eq!(same["differences"], json!([]));

    document["entries"][1]["settings"]["defaultLease"] = json!("60s");
    document["entries"].as_array_mut().unwrap().remove(0);
    let changed = document.to_string();
    let diff = [&["settings", "diff", "-"], &all[..]].concat();
    let table = server.run_with(&diff, changed.as_str()).await.done();
    assert!(table.contains("default lease") && table.contains("2m") && table.contains("1m"), "{table}");
    assert!(table.contains("club") && table.contains("dedupe window"), "{table}");
    let unasked = [&["settings", "apply", "-"], &all[..]].concat();
    assert!(server.run_with(&unasked, changed.as_str()).await.failed(2).contains("add --yes"));
    let applied = server.run_with(&apply, changed.as_str()).await.json();
    assert_eq!(applied["differences"].as_array().unwrap().len(), 2);
    let left = server.run(&[&["settings", "export"], &all[..]].concat()).await.json();
    assert_eq!(left["entries"], document["entries"]);

    // A page lacks what is behind it, which would be removed.
    let page = json!({"entries": document["entries"], "nextPageToken": "t"}).to_string();
    for verb in [&apply, &diff] {
        let refused = server.run_with(verb, page.as_str()).await.failed(1);
        assert!(refused.contains("one page of several: its nextPageToken is set"), "{refused}");
    }
    let wrong = server.run_with(&apply, "{\"entries\":[{\"colour\":1}]}").await.failed(1);
    assert!(wrong.contains("not a document of settings"), "{wrong}");
}
