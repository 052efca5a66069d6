//! Ports that no browser has a reason to speak to: what a web page sends there is refused, and whatever is no
//! call. A browser shows its reader's certificate to whatever address a page of anybody names.

use std::{
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::future::Either;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CONTENT_TYPE, ORIGIN},
};
use tonic::body::Body;
use tower::{Layer, Service};

use crate::connections::Episodes;

/// How the types of messages of gRPC begin.
const TYPE: &str = "application/grpc";
/// How the headers begin in which browsers say where a request comes from. Pages can't leave them out.
const FETCH: &str = "sec-fetch-";

/// Refuses what web pages send to a port of gRPC, and what is no call.
#[derive(Clone)]
pub struct NoBrowsers {
    /// The port, as metrics name it.
    port: &'static str,
    /// Refused requests.
    refused: Arc<Episodes>,
}

impl NoBrowsers {
    /// For a port.
    pub fn at(port: &'static str) -> Self {
        Self { port, refused: Arc::default() }
    }

    /// Why a request is refused, if it is.
    fn refuses(&self, method: &Method, headers: &HeaderMap) -> Option<StatusCode> {
        let is_of_page =
            headers.contains_key(ORIGIN) || headers.keys().any(|name| name.as_str().starts_with(FETCH));
        if is_of_page {
            if self.refused.begins() {
                let port = self.port;
                tracing::warn!("a web page has sent a request to the {port} port; such requests are refused");
            }
            return Some(StatusCode::FORBIDDEN);
        }
        if *method != Method::POST {
            return Some(StatusCode::METHOD_NOT_ALLOWED);
        }
        (!is_grpc(headers)).then_some(StatusCode::UNSUPPORTED_MEDIA_TYPE)
    }
}

/// Whether a request has messages of gRPC. That of browsers (`application/grpc-web`) is another protocol.
fn is_grpc(headers: &HeaderMap) -> bool {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let Some((kind, rest)) = given.split_at_checked(TYPE.len()) else { return false };
    kind.eq_ignore_ascii_case(TYPE) && (rest.is_empty() || rest.starts_with(['+', ';', ' ']))
}

impl<S> Layer<S> for NoBrowsers {
    type Service = CallsAlone<S>;

    fn layer(&self, inner: S) -> CallsAlone<S> {
        CallsAlone { inner, rule: self.clone() }
    }
}

/// A service that gets calls alone.
#[derive(Clone)]
pub struct CallsAlone<S> {
    /// The service.
    inner: S,
    /// Decides.
    rule: NoBrowsers,
}

impl<S> Service<Request<Body>> for CallsAlone<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Either<Ready<Result<Response<Body>, S::Error>>, S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match self.rule.refuses(request.method(), request.headers()) {
            Some(status) => Either::Left(ready(Ok(refusal(status)))),
            None => Either::Right(self.inner.call(request)),
        }
    }
}

/// An answer of HTTP, as the protocol asks where there is no call to answer.
fn refusal(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    }
    response
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn calls_pass_and_nothing_else_does() {
        let inner = tower::service_fn(async |_: Request<Body>| {
            Ok::<_, std::convert::Infallible>(Response::new(Body::empty()))
        });
        let service = NoBrowsers::at("grpc").layer(inner);
        let grpc = ("content-type", "application/grpc");
        for (method, headers, status) in [
            ("POST", vec![grpc], 200),
            ("POST", vec![("content-type", "application/grpc+proto")], 200),
            ("POST", vec![("content-type", "Application/gRPC; charset=utf-8")], 200),
            ("POST", vec![], 415),
            ("POST", vec![("content-type", "text/plain")], 415),
            ("POST", vec![("content-type", "application/grpc-web+proto")], 415),
            ("POST", vec![("content-type", "application/json")], 415),
            ("GET", vec![grpc], 405),
            ("PUT", vec![grpc], 405),
            ("OPTIONS", vec![grpc], 405),
            ("OPTIONS", vec![("origin", "https://evil.example")], 403),
            ("POST", vec![grpc, ("origin", "https://evil.example")], 403),
            ("POST", vec![grpc, ("origin", "null")], 403),
            ("POST", vec![grpc, ("sec-fetch-site", "cross-site")], 403),
            ("POST", vec![grpc, ("sec-fetch-site", "none")], 403),
            ("POST", vec![grpc, ("sec-fetch-mode", "no-cors")], 403),
            ("POST", vec![("content-type", "text/plain"), ("sec-fetch-dest", "empty")], 403),
        ] {
            let mut request = Request::builder().method(method);
            for (name, value) in &headers {
                request = request.header(*name, *value);
            }
            let response = service.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
            assert_eq!(response.status().as_u16(), status, "{method} {headers:?}");
        }
    }
}
