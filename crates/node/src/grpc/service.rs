//! The generated service trait: unpacks each request, calls its verb, and packs the answer.

use forebay_edge::{
    admission::{Call, DeferredAnswer},
    rpc::status,
    traces::Origin,
};
use forebay_proto::v1::{self, queue_service_server::QueueService};
use forebay_types::Refusal;
use tonic::{Request, Response, Status};

use super::{ack, active_topics, dequeue, enqueue, extend_lease, from, nack, queue::Queue};

#[tonic::async_trait]
impl QueueService for Queue {
    async fn enqueue(&self, request: Request<v1::EnqueueRequest>) -> Answer<v1::EnqueueResponse> {
        let call = Call::of(&request)?;
        let origin = Origin::of_call(request.metadata());
        let answer = enqueue::enqueue(self, &call, origin, request.into_inner()).await;
        answer.map_err(refused)
    }

    async fn dequeue(&self, request: Request<v1::DequeueRequest>) -> Answer<v1::DequeueResponse> {
        let (call, from) = (Call::of(&request)?, from::of(&request));
        let begun = dequeue::begin(self, call, from, request.into_inner()).map_err(refused)?;
        let may_wait = begun.may_wait();
        let answer = async move { begun.answer().await.map_err(refused) };
        if may_wait { Ok(DeferredAnswer::response(answer)) } else { answer.await }
    }

    async fn ack(&self, request: Request<v1::AckRequest>) -> Answer<v1::AckResponse> {
        let call = Call::of(&request)?;
        answer(ack::ack(self, &call, request.into_inner()).await)
    }

    async fn nack(&self, request: Request<v1::NackRequest>) -> Answer<v1::NackResponse> {
        let call = Call::of(&request)?;
        answer(nack::nack(self, &call, request.into_inner()).await)
    }

    async fn extend_lease(
        &self,
        request: Request<v1::ExtendLeaseRequest>,
    ) -> Answer<v1::ExtendLeaseResponse> {
        let call = Call::of(&request)?;
        answer(extend_lease::extend_lease(self, &call, request.into_inner()).await)
    }

    async fn get_active_topics(
        &self,
        request: Request<v1::GetActiveTopicsRequest>,
    ) -> Answer<v1::GetActiveTopicsResponse> {
        let call = Call::of(&request)?;
        answer(active_topics::active_topics(self, &call, request.into_inner()).await)
    }
}

type Answer<T> = Result<Response<T>, Status>;

fn answer<T>(outcome: Result<T, Refusal>) -> Answer<T> {
    outcome.map(Response::new).map_err(refused)
}

fn refused(refusal: Refusal) -> Status {
    status::of_call(&refusal)
}
