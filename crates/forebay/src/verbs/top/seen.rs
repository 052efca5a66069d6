//! The question to a server for a frame: one call.

use forebay_client::{
    Client, Error,
    v1::{GetTopicRequest, GetTopicResponse, ListTopicsRequest, Topic as Figures},
};
use forebay_types::ALL_NAMESPACES;

use super::view::View;

/// The most topics on the screen.
const TOPICS_MAX: u32 = 100;

/// The answer for a frame.
pub enum FrameAnswer {
    /// The topics.
    Topics(Vec<Figures>, Vec<u32>),
    /// One of them.
    Topic(Box<GetTopicResponse>),
}

/// One call.
pub async fn ask(client: Client, view: View) -> Result<FrameAnswer, Error> {
    if let Some(topic) = view.open() {
        let (namespace, topic) = (client.namespace().to_owned(), topic.to_owned());
        let report = client.ask(GetTopicRequest { namespace, topic }).await?;
        return Ok(FrameAnswer::Topic(Box::new(report)));
    }
    let request = ListTopicsRequest {
        namespace: if view.all_namespaces() { ALL_NAMESPACES } else { client.namespace() }.to_owned(),
        filter: view.query(),
        order_by: view.order().to_owned(),
        page_size: TOPICS_MAX,
        ..Default::default()
    };
    let list = client.ask(request).await?;
    Ok(FrameAnswer::Topics(list.topics, list.incomplete_shards))
}
