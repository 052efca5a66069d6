//! From an answer of gRPC to one of HTTP.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use forebay_edge::admission::AnswerCharge;
use http::{
    HeaderMap, HeaderValue, Response,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use http_body_util::BodyExt as _;
use tonic::{Code, Status};

use super::{failure::Failure, frame, gzip, json, media::Codec, metadata, methods::Method};

/// Only a larger answer is compressed.
const PLAIN_BYTES_MAX: usize = 1 << 10;

/// A message of the router, with what came beside it.
pub(crate) struct RouterResponse {
    /// The message, encoded. It carries its own charge.
    pub message: Bytes,
    /// The headers of the answer.
    headers: HeaderMap,
}

impl RouterResponse {
    /// Receives the answer. The router has made all of it.
    pub async fn receive(response: Response<tonic::body::Body>) -> Result<Self, Failure> {
        let (head, body) = response.into_parts();
        // A refusal without a message has its status there.
        fail(&head.headers)?;
        let body = body.collect().await?;
        let trailers = body.trailers().cloned().unwrap_or_default();
        fail(&trailers)?;
        let message = frame::unframed(body.to_bytes())?;
        Ok(Self { message, headers: metadata::of_answer(&head.headers, &trailers) })
    }

    /// The translation of the message.
    pub(crate) fn translation(
        &self,
        codec: Codec,
        method: &Arc<Method>,
        accepts_gzip: bool,
    ) -> impl FnOnce() -> Result<EncodedMessage, Failure> + Send + 'static {
        let (method, message) = (method.clone(), self.message.clone());
        move || {
            let message = match codec {
                Codec::Proto => message,
                Codec::Json => {
                    let written = json::write(&method.output, message);
                    written
                        .map_err(|error| Failure::internal(format!("cannot write the answer: {error}")))?
                        .into()
                }
            };
            if !accepts_gzip || message.len() <= PLAIN_BYTES_MAX {
                return Ok(EncodedMessage { message, gzip: false });
            }
            let packed = gzip::pack(&message).map_err(|error| Failure::internal(error.to_string()))?;
            Ok(EncodedMessage { message: packed.into(), gzip: true })
        }
    }

    /// The answer, which counts as `charge` until it is read.
    pub fn answer(self, written: EncodedMessage, codec: Codec, charge: AnswerCharge) -> Response<Body> {
        let mut answer = Response::new(Body::from(charge.carried_by(written.message)));
        *answer.headers_mut() = self.headers;
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(codec.content_type()));
        if written.gzip {
            answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        answer
    }
}

/// A translated message.
pub(crate) struct EncodedMessage {
    /// As it is sent.
    message: Bytes,
    /// It is compressed.
    gzip: bool,
}

/// Fails if a status is there that is not OK.
fn fail(headers: &HeaderMap) -> Result<(), Failure> {
    match Status::from_header_map(headers) {
        Some(status) if status.code() != Code::Ok => Err(status.into()),
        _ => Ok(()),
    }
}
