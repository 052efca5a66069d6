//! The list of topics that have something to deliver.

use forebay_engine::*;

use crate::queue::{Queue, item};

#[tokio::test]
async fn active_topics_are_listed_most_urgent_first() {
    let queue = Queue::start(2).await;
    for (topic, priority) in [("b", 2), ("a", 2), ("c", 1)] {
        let mut new = item(priority, topic);
        new.topic = topic.into();
        queue.put(vec![new]).await;
    }
    let queue = queue.restart().await;
    let call = ActiveTopicsCall {
        namespace: "ns".into(),
        limit: 2,
        after: None,
        prefix: String::new(),
        named: Vec::new(),
    };
    let page = queue.engine.active_topics(call.clone()).await.unwrap();
    let names: Vec<&str> = page.topics.iter().map(|topic| &*topic.position.topic).collect();
    assert_eq!((names, page.next.is_some()), (vec!["c", "b"], true));
    let after = Some(page.topics[1].position.clone());
    let rest = queue.engine.active_topics(ActiveTopicsCall { after, ..call }).await.unwrap();
    assert_eq!((&*rest.topics[0].position.topic, rest.topics.len(), rest.next.is_some()), ("a", 1, false));
    queue.engine.stop().await;
}
