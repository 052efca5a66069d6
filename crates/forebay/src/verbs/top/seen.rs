//! What is asked of a server for a frame: one call.

use forebay_client::{Client, Error, TopicFigures, TopicListQuery, TopicReport};

use super::view::View;

/// The most topics on the screen.
const TOPICS_MAX: u32 = 100;

/// What was asked for and answered.
pub enum Seen {
    /// The topics.
    Topics(Vec<TopicFigures>, Vec<u32>),
    /// One of them.
    Topic(Box<TopicReport>),
}

/// One call.
pub async fn ask(client: Client, view: View) -> Result<Seen, Error> {
    if let Some(topic) = view.open() {
        return client.topic(topic).await.map(|report| Seen::Topic(Box::new(report)));
    }
    let query = TopicListQuery {
        all_namespaces: view.all_namespaces(),
        filter: view.query(),
        order_by: view.order().to_owned(),
        page_size: TOPICS_MAX,
        page_token: String::new(),
    };
    let list = client.list_topics(query).await?;
    Ok(Seen::Topics(list.topics, list.incomplete_shards))
}
