//! Answers that do not come at once. What has decoded a request, and the layers through which it came, keep
//! some two kilobytes until the handler returns. So a long poll returns, and leaves the rest of its work.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use http_body_util::{BodyExt as _, Full};
use prost::Message;
use tonic::{Response, Status, body::Body, metadata::GRPC_CONTENT_TYPE};

use crate::rpc::frame;

/// The rest of a call's work.
type Work = Pin<Box<dyn Future<Output = http::Response<Body>> + Send>>;

/// An answer that is still to come, among the extensions of a response that nobody gets.
#[derive(Clone)]
pub struct DeferredAnswer(Arc<Mutex<Option<Work>>>);

impl DeferredAnswer {
    /// The response of a handler that leaves the rest of its work. Admission answers with what comes of that.
    pub fn response<M: Message + Default + 'static>(
        work: impl Future<Output = Result<Response<M>, Status>> + Send + 'static,
    ) -> Response<M> {
        let work: Work = Box::pin(async { work.await.and_then(encoded).unwrap_or_else(Status::into_http) });
        let mut response = Response::new(M::default());
        response.extensions_mut().insert(Self(Arc::new(Mutex::new(Some(work)))));
        response
    }

    /// Takes the work that a handler has left.
    pub(super) fn take(response: &mut http::Response<Body>) -> Option<Work> {
        let Self(work) = response.extensions_mut().remove()?;
        work.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// An answer as it goes to the client.
fn encoded<M: Message>(answer: Response<M>) -> Result<http::Response<Body>, Status> {
    let (metadata, message, extensions) = answer.into_parts();
    let frame = frame::encoded(&message).ok_or_else(|| Status::out_of_range("over 4 GiB"))?;
    let trailers = HeaderMap::from_iter([(Status::GRPC_STATUS, HeaderValue::from_static("0"))]);
    let body = Full::new(frame).with_trailers(async { Some(Ok(trailers)) });
    let mut response = http::Response::new(Body::new(body));
    *response.headers_mut() = metadata.into_headers();
    response.headers_mut().insert(CONTENT_TYPE, GRPC_CONTENT_TYPE);
    *response.extensions_mut() = extensions;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use prost_types::Duration;

    use super::*;

    fn work(response: Response<Duration>) -> Option<Work> {
        let mut found = http::Response::new(Body::empty());
        *found.extensions_mut() = response.into_parts().2;
        let work = DeferredAnswer::take(&mut found);
        assert!(DeferredAnswer::take(&mut found).is_none(), "it is taken once");
        work
    }

    #[tokio::test]
    async fn an_answer_that_comes_later_is_one_message_with_its_metadata_and_the_status() {
        let mut later = Response::new(Duration { seconds: 7, nanos: 0 });
        later.metadata_mut().insert("forebay-node", "node1".parse().unwrap());
        let answer = work(DeferredAnswer::response(async { Ok(later) })).unwrap().await;
        let headers = answer.headers();
        assert_eq!(
            (headers["content-type"].as_bytes(), &headers["forebay-node"]),
            (&b"application/grpc"[..], &HeaderValue::from_static("node1"))
        );
        let body = answer.into_body().collect().await.unwrap();
        assert_eq!(body.trailers().unwrap()["grpc-status"], "0");
        assert_eq!(body.to_bytes()[..], *b"\0\0\0\0\x02\x08\x07");
    }

    #[tokio::test]
    async fn a_refusal_that_comes_later_is_that_of_the_call() {
        let refused = async { Err(Status::aborted("not now")) };
        let answer = work(DeferredAnswer::response(refused)).unwrap().await;
        assert_eq!(Status::from_header_map(answer.headers()).unwrap().message(), "not now");
        assert!(work(Response::new(Duration::default())).is_none(), "nothing is left to do");
    }
}
