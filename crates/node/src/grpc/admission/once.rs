//! Has a call made, unless it was made before under its request id.

use forebay_access::Identity;
use http::Response;
use tonic::body::Body;

use crate::{
    audit::{AuditNote, AuditedCall},
    grpc::status,
    repeats::{Attempt, Begun, Repeats},
};

/// Has a call made, or answers it as the first time. `request`: as gRPC frames it.
pub async fn make<E, F>(
    repeats: &Repeats,
    audited: &AuditedCall,
    (request, caller): (&[u8], &Identity),
    serve: impl FnOnce() -> F,
) -> Result<Response<Body>, E>
where
    F: Future<Output = Result<Response<Body>, E>>,
{
    let attempt = Attempt {
        method: audited.method(),
        request_id: audited.request_id(),
        namespace: audited.namespace(),
        request,
        caller,
    };
    match repeats.begin(attempt).await {
        Ok(Begun::Unnamed) => serve().await,
        Ok(Begun::First(named)) => {
            let (response, kept) = named.end(serve().await?).await;
            audited.charge(kept);
            Ok(response)
        }
        Ok(Begun::Answered(mut response)) => {
            response.extensions_mut().insert(AuditNote { repeated: true, ..AuditNote::default() });
            Ok(response)
        }
        Err(refusal) => Ok(status::of_call(&refusal).into_http()),
    }
}
