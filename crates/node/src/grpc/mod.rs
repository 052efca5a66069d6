//! gRPC in front of the engine: one file a call, checks in [`fields`], refusals in [`status`].

mod ack;
mod active_topics;
mod call;
mod connection;
mod dequeue;
mod enqueue;
mod extend_lease;
mod fields;
mod gate;
mod members;
mod metered;
mod nack;
mod server;
mod status;
mod token;
mod unsent;

pub use gate::{Load, LoadLimits};
pub use server::{ReflectionError, Serving, serve};

use std::{collections::BTreeSet, sync::Arc};

use forebay_engine::{Engine, Settled};
use forebay_proto::v1::{self, SettleResult, queue_service_server::QueueService};
use forebay_types::{Clock, Limits, Namespace, Reason, Refusal};
use tonic::{Request, Response, Status};

use call::Call;
use prost::Message as _;
use unsent::AnswerBytes;

/// What every call is checked against.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Sizes and numbers.
    pub limits: Limits,
    /// The only namespaces there are; `None`: a namespace comes into being with its first item.
    pub namespaces: Option<BTreeSet<String>>,
}

impl Rules {
    fn namespace(&self, text: &str) -> Result<Namespace, Refusal> {
        let namespace = fields::namespace(&self.limits, text)?;
        match &self.namespaces {
            Some(known) if !known.contains(text) => {
                let refusal = Refusal::new(Reason::NotAllowed, "there is no such namespace");
                Err(Refusal { field: Some("namespace".to_owned()), ..refusal })
            }
            _ => Ok(namespace),
        }
    }
}

/// The service. Cheap to clone.
#[derive(Clone)]
pub struct Queue {
    /// Does the work.
    pub engine: Engine,
    /// Checked before the engine is asked.
    pub rules: Arc<Rules>,
    /// Tells whether an item would expire before it may be delivered.
    pub clock: Arc<dyn Clock>,
}

#[tonic::async_trait]
impl QueueService for Queue {
    async fn enqueue(&self, request: Request<v1::EnqueueRequest>) -> Answer<v1::EnqueueResponse> {
        answer(enqueue::enqueue(self, request.into_inner()).await)
    }

    async fn dequeue(&self, request: Request<v1::DequeueRequest>) -> Answer<v1::DequeueResponse> {
        let call = Call::of(&request)?;
        let mut answer = answer(dequeue::dequeue(self, &call, request.into_inner()).await)?;
        let bytes = AnswerBytes(answer.get_ref().encoded_len());
        answer.extensions_mut().insert(bytes);
        Ok(answer)
    }

    async fn ack(&self, request: Request<v1::AckRequest>) -> Answer<v1::AckResponse> {
        answer(ack::ack(self, request.into_inner()).await)
    }

    async fn nack(&self, request: Request<v1::NackRequest>) -> Answer<v1::NackResponse> {
        answer(nack::nack(self, request.into_inner()).await)
    }

    async fn extend_lease(
        &self,
        request: Request<v1::ExtendLeaseRequest>,
    ) -> Answer<v1::ExtendLeaseResponse> {
        answer(extend_lease::extend_lease(self, request.into_inner()).await)
    }

    async fn get_active_topics(
        &self,
        request: Request<v1::GetActiveTopicsRequest>,
    ) -> Answer<v1::GetActiveTopicsResponse> {
        answer(active_topics::active_topics(self, request.into_inner()).await)
    }
}

type Answer<T> = Result<Response<T>, Status>;

fn answer<T>(outcome: Result<T, Refusal>) -> Answer<T> {
    outcome.map(Response::new).map_err(|refusal| status::of_call(&refusal))
}

/// The engine answers as many members as it was given; should it ever not, nothing is known of any of them.
fn answered<T>(answers: Option<T>) -> Result<T, Refusal> {
    answers.ok_or_else(|| Refusal::new(Reason::OutcomeUnknown, "the node lost track of the call's members"))
}

fn settle_result(settled: Settled) -> SettleResult {
    SettleResult { error: settled.err().map(|refusal| status::of_member(&refusal)) }
}
