//! A target of the fuzzer: what other nodes send on the stream of topics, and where items are leased.

use forebay_proto::peer::{LeaseItemsRequest, LeaseItemsResponse, WatchTopicsRequest, WatchTopicsResponse};
use forebay_types::{TopicName, topic_covers};
use prost::Message;

use crate::wire;

/// Takes the first byte as the kind of a message, and the rest as the message: what is read of it arrives
/// again as it is, and items are of topics that were asked for.
///
/// # Panics
///
/// If that does not hold.
pub fn peer_messages(bytes: &[u8]) {
    let Some((kind, message)) = bytes.split_first() else { return };
    match kind % 4 {
        0 => read(message, |request: WatchTopicsRequest| {
            let subscriptions = wire::subscriptions(request);
            assert_eq!(wire::subscriptions(wire::watch_request(subscriptions.clone())), subscriptions);
        }),
        1 => read(message, |response: WatchTopicsResponse| {
            let heads = wire::heads(response.topics);
            assert_eq!(wire::heads(heads.iter().cloned().map(wire::head_message).collect()), heads);
        }),
        2 => read(message, |request: LeaseItemsRequest| {
            if let Ok(call) = wire::fetch_call(request) {
                assert_eq!(wire::fetch_call(wire::fetch_request(call.clone())), Ok(call));
            }
        }),
        _ => read(message, |response: LeaseItemsResponse| {
            ["mail", "calls/*"].into_iter().for_each(|topic| answered(topic, response.clone()));
        }),
    }
}

fn read<M: Message + Default>(message: &[u8], check: impl FnOnce(M)) {
    if let Ok(message) = M::decode(message) {
        check(message);
    }
}

/// An answer to a fetch of a topic, or a prefix.
fn answered(topic: &str, response: LeaseItemsResponse) {
    let asked = TopicName::new("tenant", topic);
    let Ok(fetched) = wire::fetched(&asked, response) else { return };
    assert!(fetched.items.iter().all(|item| item.receipt.is_some() && topic_covers(topic, &item.topic)));
    let again = wire::fetched(&asked, wire::fetch_response(Ok(fetched.clone())));
    assert_eq!(format!("{:?}", again.expect("is no refusal")), format!("{fetched:?}"));
}
