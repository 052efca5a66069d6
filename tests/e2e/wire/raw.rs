//! A client that sends arbitrary bytes.

use bytes::Bytes;
use forebay_proto::EncodedCodec;
use tonic::{Request, Response, Status, client::Grpc, codegen::http::uri::PathAndQuery, transport::Channel};

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
    grpc.unary(request, path.parse::<PathAndQuery>().unwrap(), EncodedCodec).await
}
