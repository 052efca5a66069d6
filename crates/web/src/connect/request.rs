//! From a request of HTTP to one of gRPC.

use std::sync::Arc;

use bytes::Bytes;
use forebay_edge::admission::{Caller, RequestBounds, RequestCharge};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method as Verb, Request, Version,
    header::{CONTENT_TYPE, TE},
    request::Parts,
};
use http_body_util::Full;
use tokio::time::Instant;
use tonic::body::Body;

use super::{
    deadline,
    failure::Failure,
    frame, gzip, json,
    media::{self, Codec},
    metadata,
    methods::Method,
    query::{self, Query},
};

/// The version of the protocol.
const VERSION: HeaderName = HeaderName::from_static("connect-protocol-version");
/// The only one there is.
const VERSION_ONE: &str = "1";
/// A small body may be this many times larger once it is unpacked.
const UNPACKED_RATIO: usize = 16;

/// The head of a request, as far as the translation needs it.
pub(crate) struct RequestHead {
    /// How the messages are written.
    pub codec: Codec,
    /// The request's is compressed.
    gzip: bool,
    /// The request's message, if the head has it.
    pub message: Option<Bytes>,
    /// When the answer must be there.
    pub deadline: Instant,
}

impl RequestHead {
    /// Reads the head of a request for a method.
    pub fn read(head: &Parts, method: &Method) -> Result<Self, Failure> {
        match (&head.method, method.reads) {
            (&Verb::POST, _) | (&Verb::GET, true) => {}
            (verb, true) => return Err(Failure::method(verb, "GET, POST")),
            (verb, false) => return Err(Failure::method(verb, "POST")),
        }
        let version = media::text(&head.headers, &VERSION)?.unwrap_or(VERSION_ONE);
        if version != VERSION_ONE {
            return Err(Failure::invalid(format!("Connect-Protocol-Version is {version:?}; it must be 1")));
        }
        let deadline = deadline::of_call(&head.headers)?;
        if head.method == Verb::GET {
            let Query { codec, gzip, message } = query::read(head.uri.query().unwrap_or_default())?;
            return Ok(Self { codec, gzip, message: Some(message), deadline });
        }
        query::refuse(head.uri.query().unwrap_or_default())?;
        let codec = Codec::of_body(&head.headers)?;
        Ok(Self { codec, gzip: media::is_gzip(&head.headers)?, message: None, deadline })
    }

    /// The size that a message of so many bytes may have once unpacked, for the choice where to translate it.
    pub fn weight(&self, bytes: usize) -> usize {
        if self.gzip { bytes * UNPACKED_RATIO } else { bytes }
    }

    /// The translation of a message into a frame of gRPC.
    pub(crate) fn translation(
        &self,
        message: Bytes,
        method: &Arc<Method>,
        bounds: RequestBounds,
        charge: &Arc<RequestCharge>,
    ) -> impl FnOnce() -> Result<Bytes, Failure> + Send + 'static {
        let (codec, gzip, deadline) = (self.codec, self.gzip, self.deadline);
        let (method, charge) = (method.clone(), charge.clone());
        move || {
            // An empty message is not compressed.
            let message = match gzip && !message.is_empty() {
                true => gzip::unpack(&message, bounds.bytes, |bytes| {
                    deadline::check(deadline)?;
                    charge.count(bytes)
                })?,
                false => message,
            };
            deadline::check(deadline)?;
            match codec {
                Codec::Proto => frame::framed(&message),
                Codec::Json => frame::encoded(&json::read(&method.input, &message, bounds.values)?),
            }
        }
    }

    /// The call of the router.
    pub fn call(&self, head: &HeaderMap, method: &Method, message: Bytes, caller: Caller) -> Request<Body> {
        let mut request = Request::new(Body::new(Full::new(message)));
        *request.method_mut() = Verb::POST;
        *request.uri_mut() = method.uri.clone();
        *request.version_mut() = Version::HTTP_2;
        *request.headers_mut() = metadata::of_request(head);
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        headers.insert("grpc-timeout", deadline::as_grpc(self.deadline));
        request.extensions_mut().insert(caller);
        request
    }
}
