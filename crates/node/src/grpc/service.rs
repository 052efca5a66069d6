//! The generated service trait: unpacks each request, calls its verb, and packs the answer.

use forebay_proto::v1::{self, queue_service_server::QueueService};
use forebay_types::Refusal;
use prost::Message as _;
use tonic::{Request, Response, Status};

use super::{
    ack, active_topics,
    admission::{Call, ResponseBytes},
    dequeue, enqueue, extend_lease, nack,
    queue::Queue,
    status,
};

#[tonic::async_trait]
impl QueueService for Queue {
    async fn enqueue(&self, request: Request<v1::EnqueueRequest>) -> Answer<v1::EnqueueResponse> {
        answer(enqueue::enqueue(self, request.into_inner()).await)
    }

    async fn dequeue(&self, request: Request<v1::DequeueRequest>) -> Answer<v1::DequeueResponse> {
        let call = Call::of(&request)?;
        let mut answer = answer(dequeue::dequeue(self, &call, request.into_inner()).await)?;
        let bytes = ResponseBytes(answer.get_ref().encoded_len());
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
