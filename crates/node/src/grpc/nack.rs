//! `Nack`: checks each member, has the engine return the items, answers each.

use forebay_edge::{
    admission::Call,
    rpc::{
        fields::{self, Path},
        members::Members,
        slices::make_each,
        status,
    },
};
use forebay_engine::{NackAction, NackOf};
use forebay_proto::v1::{Nack, NackRequest, NackResponse};
use forebay_types::{Limits, Refusal, cut_text};

use super::queue::Queue;

/// Serves the call.
pub async fn nack(queue: &Queue, call: &Call, request: NackRequest) -> Result<NackResponse, Refusal> {
    let limits = &queue.rules.limits;
    let namespace = queue.rules.namespace(&request.namespace)?;
    call.request().count_for(&namespace)?;
    fields::members("nacks", request.nacks.len(), limits.members)?;
    call.reserve_answers(request.nacks.len())?;
    let nacks = request.nacks.into_iter().enumerate();
    let checked = make_each(nacks, |(index, nack)| check(limits, &namespace, index, nack)).await;
    let (nacks, results) = checked.into_iter().collect::<Members<_>>().split();
    let answers = match nacks.is_empty() {
        true => Vec::new(),
        false => call.in_time(queue.front.nack(namespace, nacks)).await?,
    };
    let answers = results.merge("nacks", answers)?;
    Ok(NackResponse { results: make_each(answers, status::of_settled).await })
}

fn check(limits: &Limits, namespace: &str, index: usize, mut nack: Nack) -> Result<NackOf, Refusal> {
    let path = |field: &'static str| Path::of_member("nacks", index, field);
    let receipt = fields::receipt(namespace, path("receipt"), &nack.receipt)?;
    let delay = nack.delay.as_ref().map(|delay| fields::delay(limits, path("delay"), delay)).transpose()?;
    if let Some(metadata) = &nack.metadata {
        fields::bytes(path("metadata"), metadata.len(), limits.metadata_bytes)?;
    }
    cut_text(&mut nack.reason, limits.reason_bytes);
    let action = match (nack.dead_letter, nack.release) {
        (true, true) => {
            return Err(Refusal::field(path("release"), "must not be set together with dead_letter"));
        }
        (true, false) => NackAction::DeadLetter,
        (false, true) => NackAction::Release(delay.unwrap_or_default()),
        (false, false) => NackAction::Fail(delay),
    };
    Ok(NackOf { receipt, action, metadata: nack.metadata.map(Vec::from), reason: nack.reason })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_types::{ItemId, Reason, Receipt, Seq, ShardId};

    use super::*;

    fn good() -> Nack {
        let item = ItemId { shard: ShardId(1), seq: Seq(2) };
        let receipt = Receipt { item, delivery: 3, nonce: 4 }.encode("tenant");
        Nack { receipt, ..Default::default() }
    }

    fn checked(nack: Nack) -> Result<NackOf, Refusal> {
        check(&Limits::default(), "tenant", 2, nack)
    }

    #[track_caller]
    fn refused(nack: Nack, reason: Reason, field: &str) {
        let refusal = checked(nack).unwrap_err();
        assert_eq!((refusal.reason, refusal.field.as_deref()), (reason, Some(&*format!("nacks[2].{field}"))));
    }

    #[test]
    fn the_flags_choose_the_action() {
        let delay = Some(prost_types::Duration { seconds: 5, nanos: 0 });
        let five = Duration::from_secs(5);
        let action = |nack| checked(nack).unwrap().action;
        assert_eq!(action(good()), NackAction::Fail(None), "the topic's");
        let zero = Some(prost_types::Duration::default());
        assert_eq!(action(Nack { delay: zero, ..good() }), NackAction::Fail(Some(Duration::ZERO)));
        assert_eq!(action(Nack { delay, ..good() }), NackAction::Fail(Some(five)));
        assert_eq!(action(Nack { delay, release: true, ..good() }), NackAction::Release(five));
        assert_eq!(action(Nack { dead_letter: true, ..good() }), NackAction::DeadLetter);
    }

    #[test]
    fn empty_metadata_is_not_absent_metadata() {
        assert_eq!(checked(good()).unwrap().metadata, None);
        let empty = Nack { metadata: Some(Default::default()), ..good() };
        assert_eq!(checked(empty).unwrap().metadata, Some(vec![]));
    }

    #[test]
    fn a_reason_of_any_length_is_taken() {
        for (reason, kept) in [
            ("r".repeat(1_024), "r".repeat(1_024)),
            ("r".repeat(1_025), "r".repeat(1_021) + "…"),
            ("é".repeat(513), "é".repeat(510) + "…"),
        ] {
            assert_eq!(checked(Nack { reason, ..good() }).unwrap().reason, kept);
        }
    }

    #[test]
    fn each_wrong_value_is_named() {
        refused(Nack { receipt: "x".to_owned(), ..good() }, Reason::InvalidReceipt, "receipt");
        let delay = Some(prost_types::Duration { seconds: -1, nanos: 0 });
        refused(Nack { delay, ..good() }, Reason::InvalidField, "delay");
        refused(Nack { metadata: Some(vec![0; 4_097].into()), ..good() }, Reason::TooLarge, "metadata");
        refused(Nack { dead_letter: true, release: true, ..good() }, Reason::InvalidField, "release");
        let foreign = check(&Limits::default(), "other", 2, good()).unwrap_err();
        assert_eq!(foreign.reason, Reason::WrongNamespace);
    }
}
