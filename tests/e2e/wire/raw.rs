//! A client that sends arbitrary bytes.

use bytes::{Buf as _, BufMut as _, Bytes};
use tonic::{
    Request, Response, Status,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    codegen::http::uri::PathAndQuery,
    transport::Channel,
};

/// Sends `message` as the request of a method, without encoding it.
pub async fn send(channel: Channel, method: &str, message: Bytes) -> Result<Response<Bytes>, Status> {
    send_to(channel, &format!("/forebay.v1.QueueService/{method}"), Request::new(message)).await
}

/// The same at any path, with metadata.
pub async fn send_to(
    channel: Channel,
    path: &str,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, Status> {
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    grpc.unary(request, path.parse::<PathAndQuery>().unwrap(), Raw).await
}

#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
