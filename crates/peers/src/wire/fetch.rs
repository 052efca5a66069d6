//! Items that are leased for another node, and what nodes tell each other of topics.

use std::{sync::Arc, time::Duration};

use forebay_engine::{
    DeliveredItem, FetchCall, FetchedItems, HeadPosition, PeerFault, ReadyState, Subscription, TopicHead,
};
use forebay_proto::peer;
use forebay_types::{Body, DeliveryPolicy, Refusal, Timestamp, TopicName, topic_covers};

use super::{
    MalformedMessage, micros, refusal,
    settle::{delivery, receipt},
};

fn name(message: Option<peer::TopicName>) -> Result<TopicName, MalformedMessage> {
    let peer::TopicName { namespace, topic } = message.ok_or(MalformedMessage("topic"))?;
    Ok(TopicName::new(namespace, topic))
}

fn name_message(name: &TopicName) -> peer::TopicName {
    peer::TopicName { namespace: name.namespace.to_string(), topic: name.topic.to_string() }
}

/// The payer, if the calling node has named one.
fn payer(message: &str) -> Option<Arc<str>> {
    (!message.is_empty()).then(|| message.into())
}

fn payer_message(payer: Option<Arc<str>>) -> String {
    payer.map_or_else(String::new, |payer| payer.to_string())
}

fn position(message: peer::HeadPosition) -> HeadPosition {
    HeadPosition { priority: message.priority, rank: message.rank }
}

fn position_message(position: HeadPosition) -> peer::HeadPosition {
    peer::HeadPosition { priority: position.priority, rank: position.rank }
}

/// The request for changes of subscriptions.
pub fn watch_request(subscriptions: Vec<Subscription>) -> peer::WatchTopicsRequest {
    let message = |one: Subscription| peer::Subscription {
        topic: Some(name_message(&one.name)),
        wanted: one.wanted,
        payer: payer_message(one.payer),
    };
    peer::WatchTopicsRequest { subscriptions: subscriptions.into_iter().map(message).collect() }
}

/// The changes that another node has sent. One without a topic is none.
pub fn subscriptions(request: peer::WatchTopicsRequest) -> Vec<Subscription> {
    let read = |one: peer::Subscription| match name(one.topic) {
        Ok(name) => Some(Subscription { name, wanted: one.wanted, payer: payer(&one.payer) }),
        Err(_) => left_out(PeerFault::Subscription),
    };
    request.subscriptions.into_iter().filter_map(read).collect()
}

fn left_out<T>(fault: PeerFault) -> Option<T> {
    fault.count();
    None
}

/// News of a topic, for another node.
pub fn head_message(head: TopicHead) -> peer::TopicHead {
    let TopicHead { name, state, offered } = head;
    peer::TopicHead { topic: Some(name_message(&name)), offered, ..state_message(state) }
}

/// News of topics, from another node. One without a topic is none.
pub fn heads(messages: Vec<peer::TopicHead>) -> Vec<TopicHead> {
    let read = |message: peer::TopicHead| {
        let state = state(&message);
        match name(message.topic) {
            Ok(name) => Some(TopicHead { name, state, offered: message.offered }),
            Err(_) => left_out(PeerFault::Head),
        }
    };
    messages.into_iter().filter_map(read).collect()
}

fn state_message(state: ReadyState) -> peer::TopicHead {
    let ReadyState { head, ready, round } = state;
    peer::TopicHead { head: head.map(position_message), ready, round, ..peer::TopicHead::default() }
}

fn state(message: &peer::TopicHead) -> ReadyState {
    ReadyState { head: message.head.map(position), ready: message.ready, round: message.round }
}

/// The request for items of another node.
pub fn fetch_request(call: FetchCall) -> peer::LeaseItemsRequest {
    let FetchCall { name, max_items, max_bytes, before, lease, consumer, link, payer } = call;
    let size = |number| u32::try_from(number).unwrap_or(u32::MAX);
    peer::LeaseItemsRequest {
        topic: Some(name_message(&name)),
        max_items: size(max_items),
        max_bytes: size(max_bytes),
        before: before.map(position_message),
        lease: lease.map(micros),
        consumer,
        link,
        payer: payer_message(payer),
    }
}

/// The call by which another node leases items.
pub fn fetch_call(request: peer::LeaseItemsRequest) -> Result<FetchCall, MalformedMessage> {
    Ok(FetchCall {
        name: name(request.topic)?,
        max_items: request.max_items as usize,
        max_bytes: request.max_bytes as usize,
        before: request.before.map(position),
        lease: request.lease.map(Duration::from_micros),
        consumer: request.consumer,
        link: request.link,
        payer: payer(&request.payer),
    })
}

/// The answer to another node.
pub fn fetch_response(answer: Result<FetchedItems, Refusal>) -> peer::LeaseItemsResponse {
    match answer {
        Ok(FetchedItems { items, left }) => peer::LeaseItemsResponse {
            items: items.into_iter().filter_map(item_message).collect(),
            left: left.map(state_message),
            refusal: None,
        },
        Err(refused) => {
            peer::LeaseItemsResponse { refusal: Some(refusal::message(refused)), ..Default::default() }
        }
    }
}

/// `None`: the item was not leased, which those of a fetch always are.
fn item_message(item: DeliveredItem) -> Option<peer::LeasedItem> {
    let Body { payload, metadata, headers } = item.body;
    Some(peer::LeasedItem {
        delivery: Some(delivery(item.receipt?)),
        priority: item.priority,
        rank: item.rank,
        payload,
        metadata,
        headers: headers.into_iter().map(|(name, value)| peer::Header { name, value }).collect(),
        failures: item.failures,
        enqueued_at: item.enqueued_at.as_micros(),
        lease_ends_at: item.lease_expires_at?.as_micros(),
        lease: micros(item.lease),
        expires_at: item.expires_at.map(Timestamp::as_micros),
        at_most_once: item.policy == DeliveryPolicy::AtMostOnce,
        topic: item.topic.to_string(),
    })
}

/// The answer of another node about a topic.
pub fn fetched(topic: &TopicName, response: peer::LeaseItemsResponse) -> Result<FetchedItems, Refusal> {
    if let Some(refused) = response.refusal {
        return Err(refusal::refusal(refused));
    }
    let items = response.items.into_iter().filter_map(|item| delivered(topic, item)).collect();
    Ok(FetchedItems { items, left: response.left.as_ref().map(state) })
}

/// `None`: it names no delivery, or a topic that was not asked for. Its lease, if there is one, ends by
/// itself.
fn delivered(asked: &TopicName, item: peer::LeasedItem) -> Option<DeliveredItem> {
    // A node of an earlier release names no topic.
    let topic = if asked.prefix().is_none() { asked.topic.clone() } else { item.topic.into() };
    let is_asked = topic_covers(&asked.topic, &topic);
    let Some(delivery) = item.delivery.filter(|_| is_asked) else { return left_out(PeerFault::Item) };
    let receipt = receipt(delivery);
    let headers = item.headers.into_iter().map(|header| (header.name, header.value)).collect();
    Some(DeliveredItem {
        id: receipt.item,
        receipt: Some(receipt),
        topic,
        priority: item.priority,
        rank: item.rank,
        body: Body { payload: item.payload, metadata: item.metadata, headers },
        attempt: receipt.delivery,
        failures: item.failures,
        enqueued_at: Timestamp::from_micros(item.enqueued_at),
        lease_expires_at: Some(Timestamp::from_micros(item.lease_ends_at)),
        lease: Duration::from_micros(item.lease),
        expires_at: item.expires_at.map(Timestamp::from_micros),
        policy: if item.at_most_once { DeliveryPolicy::AtMostOnce } else { DeliveryPolicy::AtLeastOnce },
    })
}

#[cfg(test)]
mod tests {
    use forebay_types::{ItemId, Receipt, Seq, ShardId};

    use super::*;

    fn topic() -> TopicName {
        TopicName::new("ns", "t")
    }

    #[test]
    fn news_of_topics_arrive_as_they_were() {
        let wanted = [Some(0), Some(7), None];
        let sent = Vec::from(wanted.map(|wanted| Subscription {
            name: topic(),
            wanted,
            payer: wanted.map(|_| "acme".into()),
        }));
        assert_eq!(subscriptions(watch_request(sent.clone())), sent);
        let some =
            ReadyState { head: Some(HeadPosition { priority: -1, rank: i64::MIN }), ready: 3, round: 2 };
        for (state, offered) in [(some, 2), (ReadyState::default(), 0)] {
            let sent = TopicHead { name: topic(), state, offered };
            assert_eq!(heads(vec![head_message(sent.clone())]), [sent]);
        }
        let nameless = peer::TopicHead {
            topic: None,
            ..head_message(TopicHead { name: topic(), state: some, offered: 1 })
        };
        assert_eq!(heads(vec![nameless]), []);
    }

    #[test]
    fn a_fetch_arrives_as_it_was() {
        let before = Some(HeadPosition { priority: 5, rank: 9 });
        let (lease, consumer) = (Some(Duration::from_secs(3)), "c".to_owned());
        let payer = Some("acme".into());
        let sent =
            FetchCall { name: topic(), max_items: 3, max_bytes: 9, before, lease, consumer, link: 4, payer };
        assert_eq!(fetch_call(fetch_request(sent.clone())), Ok(sent.clone()));
        let other = FetchCall { before: None, lease: None, payer: None, ..sent };
        assert_eq!(fetch_call(fetch_request(other.clone())), Ok(other));
    }

    #[test]
    fn items_that_were_leased_arrive_as_they_were() {
        let item = ItemId { shard: ShardId(2), seq: Seq(9) };
        let sent = DeliveredItem {
            id: item,
            receipt: Some(Receipt { item, delivery: 3, nonce: 8 }),
            topic: "t".into(),
            priority: -4,
            rank: 77,
            body: Body {
                payload: "p".into(),
                metadata: "m".into(),
                headers: [("k".to_owned(), "v".to_owned())].into_iter().collect(),
            },
            attempt: 3,
            failures: 1,
            enqueued_at: Timestamp::from_micros(5),
            lease_expires_at: Some(Timestamp::from_micros(6)),
            lease: Duration::from_secs(5),
            expires_at: Some(Timestamp::from_micros(7)),
            policy: DeliveryPolicy::AtMostOnce,
        };
        let left = Some(ReadyState::default());
        let response = fetch_response(Ok(FetchedItems { items: vec![sent.clone()], left }));
        let got = fetched(&topic(), response).unwrap();
        assert_eq!((format!("{:?}", got.items), got.left), (format!("{:?}", vec![sent]), left));
        let refused = Refusal::new(forebay_types::Reason::Overloaded, "no");
        assert_eq!(
            fetched(&topic(), fetch_response(Err(refused))).unwrap_err().reason,
            forebay_types::Reason::Overloaded
        );
    }
}
