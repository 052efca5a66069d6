//! Operators' calls. Their messages are written and read here, so that this crate alone compiles that, and
//! callers pass bytes on.

use bytes::{Buf as _, BufMut as _, Bytes};
use prost::Message;
use tonic::{
    Request, Status,
    body::Body,
    client::{Grpc, GrpcService},
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    codegen::{Body as ResponseBody, StdError, http::uri::PathAndQuery},
};

/// The request of an operator's call. The call and its answer follow from it.
pub trait AdminCall: Message + Default + 'static {
    /// The answer.
    type Answer: Message + Default + 'static;
    /// Its path over HTTP.
    const PATH: &'static str;

    /// The request as it is sent.
    fn encoded(&self) -> Bytes;
    /// An answer as it came.
    fn decoded(answer: Bytes) -> Result<Self::Answer, Status>;
}

/// Reads a message.
pub(crate) fn read<M: Message + Default>(bytes: Bytes) -> Result<M, Status> {
    M::decode(bytes).map_err(|error| Status::internal(error.to_string()))
}

/// Makes a call whose request is encoded, and returns its answer as it came: `bytes_max` at most.
pub async fn call_encoded<S>(
    service: S,
    path: &'static str,
    request: Request<Bytes>,
    bytes_max: usize,
) -> Result<Bytes, Status>
where
    S: GrpcService<Body>,
    S::Error: Into<StdError>,
    S::ResponseBody: ResponseBody<Data = Bytes> + Send + 'static,
    <S::ResponseBody as ResponseBody>::Error: Into<StdError> + Send,
{
    let mut grpc = Grpc::new(service).max_decoding_message_size(bytes_max);
    let not_ready = |error: S::Error| Status::unknown(format!("Service was not ready: {}", error.into()));
    grpc.ready().await.map_err(not_ready)?;
    Ok(grpc.unary(request, PathAndQuery::from_static(path), EncodedCodec).await?.into_inner())
}

/// Messages that are encoded already.
#[derive(Debug, Clone, Copy)]
pub struct EncodedCodec;

impl Codec for EncodedCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for EncodedCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }
}

impl Decoder for EncodedCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
