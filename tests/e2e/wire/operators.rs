//! Views of operators over HTTP.

use super::{Wire, item};

#[tokio::test]
async fn the_pages_show_the_queue() {
    let wire = Wire::start().await;
    wire.stored(vec![item("orders"); 3]).await;
    wire.take("orders", 1).await;

    for path in ["/healthz", "/readyz", "/", "/metrics", "/status.json"] {
        assert_eq!(wire.node.get(path).await, 200, "{path}");
    }
    assert_eq!(wire.node.get("/nothing").await, 404);

    for (path, texts) in [
        ("/", ["<!DOCTYPE html>", "serving", "wire", &wire.node.grpc]),
        ("/topics", ["<!DOCTYPE html>", "serving", "wire", "orders"]),
        ("/shards", ["<!DOCTYPE html>", "serving", "active", "closed"]),
    ] {
        let page = wire.page(path).await;
        for text in texts {
            assert!(page.contains(text), "{text} is missing in {page}");
        }
    }
    let metrics = wire.page("/metrics").await;
    for line in [
        "forebay_shard_owned{shard=\"1\"} 1",
        "method=\"Enqueue\",protocol=\"grpc\",code=\"Ok\"} 1",
        "forebay_topic_enqueued_total{namespace=\"wire\",topic=\"orders\"} 3",
    ] {
        assert!(metrics.contains(line), "{line} is missing in {metrics}");
    }

    let status = wire.status().await;
    let shards = status["engine"]["shards"].as_array().unwrap();
    let sum = |field: &str| shards.iter().map(|shard| shard[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("ready"), sum("leased"), sum("dead")), (2, 1, 0));
    assert_eq!(status["engine"]["topic_count"], 1);
}
