//! Acks, nacks and lease extensions between nodes.

use std::time::Duration;

use forebay_engine::{ExtendOf, ExtensionResult, NackAction, NackOf, Settlement, SettlementResult};
use forebay_proto::peer::{self, nack::Action};
use forebay_types::{ItemId, Namespace, Receipt, Seq, ShardId, Timestamp};

use super::{MalformedMessage, micros, refusal};

pub(super) fn delivery(receipt: Receipt) -> peer::Delivery {
    let Receipt { item: ItemId { shard, seq }, delivery, nonce } = receipt;
    peer::Delivery { shard: shard.0, seq: seq.0, delivery, nonce }
}

pub(super) fn receipt(delivery: peer::Delivery) -> Receipt {
    let peer::Delivery { shard, seq, delivery, nonce } = delivery;
    Receipt { item: ItemId { shard: ShardId(shard), seq: Seq(seq) }, delivery, nonce }
}

/// The request for acks of deliveries of another node.
pub fn ack_request(namespace: &Namespace, acks: Vec<Receipt>) -> peer::AckRequest {
    peer::AckRequest {
        namespace: namespace.as_ref().to_owned(),
        acks: acks.into_iter().map(delivery).collect(),
    }
}

/// The acks that another node has passed on.
pub fn acks(request: peer::AckRequest) -> (Namespace, Vec<Receipt>) {
    (request.namespace.into(), request.acks.into_iter().map(receipt).collect())
}

/// The request for nacks of deliveries of another node.
pub fn nack_request(namespace: &Namespace, nacks: Vec<NackOf>) -> peer::NackRequest {
    let nack = |NackOf { receipt, action, metadata, reason }| peer::Nack {
        delay_is_default: action == NackAction::Fail(None),
        delivery: Some(delivery(receipt)),
        action: Some(match action {
            NackAction::Fail(delay) => Action::Fail(micros(delay.unwrap_or_default())),
            NackAction::Release(delay) => Action::Release(micros(delay)),
            NackAction::DeadLetter => Action::DeadLetter(peer::DeadLetter {}),
        }),
        metadata: metadata.map(Into::into),
        reason,
    };
    peer::NackRequest {
        namespace: namespace.as_ref().to_owned(),
        nacks: nacks.into_iter().map(nack).collect(),
    }
}

/// The nacks that another node has passed on.
pub fn nacks(request: peer::NackRequest) -> Result<(Namespace, Vec<NackOf>), MalformedMessage> {
    let nack = |nack: peer::Nack| {
        let action = match nack.action.ok_or(MalformedMessage("action"))? {
            Action::Fail(_) if nack.delay_is_default => NackAction::Fail(None),
            Action::Fail(delay) => NackAction::Fail(Some(Duration::from_micros(delay))),
            Action::Release(delay) => NackAction::Release(Duration::from_micros(delay)),
            Action::DeadLetter(peer::DeadLetter {}) => NackAction::DeadLetter,
        };
        Ok(NackOf {
            receipt: receipt(nack.delivery.ok_or(MalformedMessage("delivery"))?),
            action,
            metadata: nack.metadata.map(Into::into),
            reason: nack.reason,
        })
    };
    let nacks = request.nacks.into_iter().map(nack).collect::<Result<_, _>>()?;
    Ok((request.namespace.into(), nacks))
}

/// The answer to another node.
pub fn settle_response(answers: Vec<SettlementResult>) -> peer::SettleResponse {
    let result = |answer: SettlementResult| peer::SettleResult {
        delay_cut: answer.as_ref().is_ok_and(|done| done.delay_cut),
        refusal: answer.err().map(refusal::message),
    };
    peer::SettleResponse { results: answers.into_iter().map(result).collect() }
}

/// The answers of another node.
pub fn settled(response: peer::SettleResponse) -> Vec<SettlementResult> {
    let answer = |result: peer::SettleResult| match result.refusal {
        None => Ok(Settlement { delay_cut: result.delay_cut }),
        Some(refused) => Err(refusal::refusal(refused)),
    };
    response.results.into_iter().map(answer).collect()
}

/// The request for longer leases of deliveries of another node.
pub fn extend_request(namespace: &Namespace, extensions: Vec<ExtendOf>) -> peer::ExtendLeaseRequest {
    let extension = |ExtendOf { receipt, lease }| peer::Extension {
        delivery: Some(delivery(receipt)),
        lease: lease.map(micros),
    };
    peer::ExtendLeaseRequest {
        namespace: namespace.as_ref().to_owned(),
        extensions: extensions.into_iter().map(extension).collect(),
    }
}

/// The extensions that another node has passed on.
pub fn extensions(request: peer::ExtendLeaseRequest) -> Result<(Namespace, Vec<ExtendOf>), MalformedMessage> {
    let extension = |extension: peer::Extension| {
        Ok(ExtendOf {
            receipt: receipt(extension.delivery.ok_or(MalformedMessage("delivery"))?),
            lease: extension.lease.map(Duration::from_micros),
        })
    };
    let extensions = request.extensions.into_iter().map(extension).collect::<Result<_, _>>()?;
    Ok((request.namespace.into(), extensions))
}

/// The answer to another node.
pub fn extend_response(answers: Vec<ExtensionResult>) -> peer::ExtendLeaseResponse {
    let result = |answer: ExtensionResult| match answer {
        Ok(end) => peer::ExtendResult { ends_at: end.as_micros(), refusal: None },
        Err(refused) => peer::ExtendResult { ends_at: 0, refusal: Some(refusal::message(refused)) },
    };
    peer::ExtendLeaseResponse { results: answers.into_iter().map(result).collect() }
}

/// The answers of another node.
pub fn extended(response: peer::ExtendLeaseResponse) -> Vec<ExtensionResult> {
    let answer = |result: peer::ExtendResult| match result.refusal {
        None => Ok(Timestamp::from_micros(result.ends_at)),
        Some(refused) => Err(refusal::refusal(refused)),
    };
    response.results.into_iter().map(answer).collect()
}

#[cfg(test)]
mod tests {
    use forebay_types::{Fate, Reason, Refusal};

    use super::*;

    fn receipts() -> Vec<Receipt> {
        let item = ItemId { shard: ShardId(7), seq: Seq(1 << 40) };
        vec![Receipt { item, delivery: 3, nonce: u64::MAX }, Receipt { item, delivery: 1, nonce: 0 }]
    }

    #[test]
    fn acks_and_their_answers_arrive_as_they_were() {
        let namespace: Namespace = "ns".into();
        assert_eq!(acks(ack_request(&namespace, receipts())), (namespace, receipts()));
        let cut = Settlement { delay_cut: true };
        let answers = vec![Ok(Settlement::default()), Err(Refusal::lease_lost(Fate::Gone)), Ok(cut)];
        assert_eq!(settled(settle_response(answers.clone())), answers);
    }

    #[test]
    fn nacks_arrive_as_they_were() {
        let second = Duration::from_secs(1);
        let actions = [
            NackAction::Fail(Some(second)),
            NackAction::Fail(None),
            NackAction::Release(second * 2),
            NackAction::DeadLetter,
        ];
        let nack = |action| NackOf {
            receipt: receipts()[0],
            action,
            metadata: Some(vec![1]),
            reason: "why".to_owned(),
        };
        let mut all: Vec<NackOf> = actions.map(nack).into();
        all[1].metadata = None;
        let (_, arrived) = nacks(nack_request(&"ns".into(), all.clone())).unwrap();
        assert_eq!(format!("{arrived:?}"), format!("{all:?}"));
        let empty = peer::NackRequest { nacks: vec![peer::Nack::default()], ..Default::default() };
        assert_eq!(nacks(empty).unwrap_err(), MalformedMessage("action"));
    }

    #[test]
    fn extensions_and_their_answers_arrive_as_they_were() {
        let lease = |(receipt, lease)| ExtendOf { receipt, lease };
        let all: Vec<ExtendOf> =
            receipts().into_iter().zip([None, Some(Duration::from_millis(5))]).map(lease).collect();
        let (_, arrived) = extensions(extend_request(&"ns".into(), all.clone())).unwrap();
        assert_eq!(format!("{arrived:?}"), format!("{all:?}"));
        let answers = vec![Ok(Timestamp::from_micros(9)), Err(Refusal::new(Reason::NotOwner, "no"))];
        assert_eq!(extended(extend_response(answers.clone())), answers);
    }
}
