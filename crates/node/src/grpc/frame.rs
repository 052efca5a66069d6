//! Messages in the frames of gRPC: a flag, the length, and the message.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header::CONTENT_TYPE};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use tonic::body::Body;

/// Bytes before a message.
const PREFIX_BYTES: usize = 5;
/// The trailer, or of an error the header, that says how a call ended.
const STATUS: &str = "grpc-status";

/// How many bytes the first message of a request has, with those before it. `None`: there is no message.
pub fn framed_bytes(framed: &[u8]) -> Option<usize> {
    let [_, length @ ..] = framed.first_chunk::<PREFIX_BYTES>()?;
    usize::try_from(u32::from_be_bytes(*length)).ok()?.checked_add(PREFIX_BYTES)
}

/// The first message of a request, which alone is served, or of an answer. `None`: it is compressed, or cut.
pub fn first_message(framed: &[u8]) -> Option<&[u8]> {
    let (prefix, rest) = framed.split_at_checked(PREFIX_BYTES)?;
    let [0, length @ ..] = prefix else { return None };
    let length = usize::try_from(u32::from_be_bytes(length.try_into().ok()?)).ok()?;
    rest.get(..length)
}

/// Reads the message of an answer, and puts the answer together again. `None`: it is an error.
pub async fn read_answer(response: Response<Body>) -> (Response<Body>, Option<Bytes>) {
    let (head, body) = response.into_parts();
    // An error is in the headers alone.
    if body.is_end_stream() {
        return (Response::from_parts(head, body), None);
    }
    // Our answers are one message, which is ready.
    let collected = match body.collect().await {
        Ok(collected) => collected,
        Err(status) => return (status.into_http(), None),
    };
    let trailers = collected.trailers().cloned().unwrap_or_default();
    let data = collected.to_bytes();
    let message = first_message(&data).map(|message| data.slice_ref(message));
    (Response::from_parts(head, with_trailers(data, trailers)), message)
}

/// The answer that has this message.
pub fn answer_of(message: &[u8]) -> Response<Body> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let framed = [&[0][..], &length.to_be_bytes(), message].concat();
    let mut trailers = HeaderMap::new();
    trailers.insert(STATUS, HeaderValue::from_static("0"));
    let mut response = Response::new(with_trailers(framed.into(), trailers));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

fn with_trailers(framed: Bytes, trailers: HeaderMap) -> Body {
    Body::new(Full::new(framed).with_trailers(std::future::ready(Some(Ok(trailers)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_is_read_and_is_as_before() {
        for message in [&b"message"[..], b""] {
            let (answer, read) = read_answer(answer_of(message)).await;
            assert_eq!(read.as_deref(), Some(message));
            let again = answer.into_body().collect().await.unwrap();
            assert_eq!(again.trailers().unwrap()[STATUS], "0");
            assert_eq!(first_message(&again.to_bytes()), Some(message));
        }
        let refused: Response<Body> = tonic::Status::not_found("no").into_http();
        let (refused, read) = read_answer(refused).await;
        assert_eq!((read, &refused.headers()[STATUS]), (None, &HeaderValue::from_static("5")));
    }

    #[test]
    fn what_is_no_whole_message_is_none() {
        for wrong in [&b""[..], b"\0\0\0\0", b"\x01\0\0\0\x01x", b"\0\0\0\0\x02x"] {
            assert_eq!(first_message(wrong), None, "{wrong:?}");
        }
        assert_eq!(first_message(b"\0\0\0\0\x01xy"), Some(&b"x"[..]));
    }
}
