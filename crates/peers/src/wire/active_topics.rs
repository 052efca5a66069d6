//! Active topics between nodes.

use forebay_engine::{ActiveTopic, ActiveTopics, ActiveTopicsCall, TopicPosition};
use forebay_proto::peer;
use forebay_types::{Refusal, ShardId, Timestamp};

use super::refusal;

fn position_message(position: TopicPosition) -> peer::ActiveTopic {
    let TopicPosition { best_priority, oldest_ready_at, topic } = position;
    let (topic, oldest_ready_at) = (topic.to_string(), oldest_ready_at.as_micros());
    peer::ActiveTopic { topic, best_priority, oldest_ready_at, ..peer::ActiveTopic::default() }
}

fn position(message: peer::ActiveTopic) -> TopicPosition {
    let (best_priority, topic) = (message.best_priority, message.topic.into());
    TopicPosition { best_priority, oldest_ready_at: Timestamp::from_micros(message.oldest_ready_at), topic }
}

/// The request for a node's active topics.
pub fn active_topics_request(call: ActiveTopicsCall) -> peer::ListActiveTopicsRequest {
    let ActiveTopicsCall { namespace, limit, after, prefix, named } = call;
    peer::ListActiveTopicsRequest {
        namespace: namespace.to_string(),
        limit: u32::try_from(limit).unwrap_or(u32::MAX),
        after: after.map(position_message),
        prefix,
        named: named.iter().map(ToString::to_string).collect(),
    }
}

/// The call of another node.
pub fn active_topics_call(request: peer::ListActiveTopicsRequest) -> ActiveTopicsCall {
    let peer::ListActiveTopicsRequest { namespace, limit, after, prefix, named } = request;
    ActiveTopicsCall {
        namespace: namespace.into(),
        limit: limit as usize,
        after: after.map(position),
        prefix,
        named: named.into_iter().map(Into::into).collect(),
    }
}

/// The answer to another node.
pub fn active_topics_response(answer: Result<ActiveTopics, Refusal>) -> peer::ListActiveTopicsResponse {
    match answer {
        Ok(ActiveTopics { topics, next, missing, nodes: _ }) => peer::ListActiveTopicsResponse {
            topics: topics.into_iter().map(topic_message).collect(),
            next: next.map(position_message),
            missing: missing.into_iter().map(|id| id.0).collect(),
            refusal: None,
        },
        Err(refused) => {
            let refusal = Some(refusal::message(refused));
            peer::ListActiveTopicsResponse { refusal, ..peer::ListActiveTopicsResponse::default() }
        }
    }
}

fn topic_message(topic: ActiveTopic) -> peer::ActiveTopic {
    let ActiveTopic { position, ready, leased, scheduled } = topic;
    peer::ActiveTopic { ready, leased, scheduled, ..position_message(position) }
}

/// The answer of another node.
pub fn active_topics(response: peer::ListActiveTopicsResponse) -> Result<ActiveTopics, Refusal> {
    let peer::ListActiveTopicsResponse { topics, next, missing, refusal } = response;
    if let Some(refused) = refusal {
        return Err(refusal::refusal(refused));
    }
    let topic = |topic: peer::ActiveTopic| {
        let (ready, leased, scheduled) = (topic.ready, topic.leased, topic.scheduled);
        ActiveTopic { position: position(topic), ready, leased, scheduled }
    };
    Ok(ActiveTopics {
        topics: topics.into_iter().map(topic).collect(),
        next: next.map(position),
        missing: missing.into_iter().map(ShardId).collect(),
        nodes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_arrives_as_it_was() {
        let oldest_ready_at = Timestamp::from_micros(-5);
        let position = TopicPosition { best_priority: -3, oldest_ready_at, topic: "t".into() };
        let named = vec!["t".into(), "u".into()];
        let after = Some(position.clone());
        let call = ActiveTopicsCall { namespace: "ns".into(), limit: 7, after, prefix: "p".into(), named };
        let arrived = active_topics_call(active_topics_request(call.clone()));
        assert_eq!(format!("{arrived:?}"), format!("{call:?}"));
        let topics = vec![ActiveTopic { position: position.clone(), ready: 1, leased: 2, scheduled: 3 }];
        let missing = vec![ShardId(4)];
        let sent = ActiveTopics { topics, next: Some(position), missing, nodes: Vec::new() };
        assert_eq!(active_topics(active_topics_response(Ok(sent.clone()))), Ok(sent));
        let refused = Refusal::new(forebay_types::Reason::ShardUnavailable, "no");
        assert_eq!(active_topics(active_topics_response(Err(refused.clone()))), Err(refused));
    }
}
