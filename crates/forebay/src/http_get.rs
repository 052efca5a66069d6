//! Reads a page of a node's HTTP port.

use std::{io, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{Request, StatusCode, client::conn::http1, header::HOST};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::timeout};

use crate::failure::{Failure, Status};

/// How long connecting may take, and then the answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A page is smaller, whatever the node holds.
const PAGE_BYTES_MAX: usize = 16 << 20;

/// The content of a page. `address` is `host:port`.
pub async fn get(address: &str, path: &str) -> Result<Bytes, Failure> {
    let unreachable = |why: String| {
        let line = format!("cannot reach the HTTP port {address}: {why}; name another with --http");
        Failure::new(line).with(Status::Unavailable)
    };
    let stream = match timeout(TIMEOUT, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Err(unreachable("nobody listens there".to_owned()));
        }
        Ok(Err(error)) => return Err(unreachable(error.to_string())),
        Err(_) => return Err(unreachable("no answer".to_owned())),
    };
    match timeout(TIMEOUT, exchange(stream, address, path)).await {
        Ok(Ok((StatusCode::OK, body))) => Ok(body),
        Ok(Ok((status, _))) => Err(Failure::new(format!("{address}{path} answers {status}"))),
        Ok(Err(error)) => Err(unreachable(format!("{error}; is it the gRPC port?"))),
        Err(_) => Err(unreachable("no answer".to_owned())),
    }
}

async fn exchange(stream: TcpStream, address: &str, path: &str) -> anyhow::Result<(StatusCode, Bytes)> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let request = Request::get(path).header(HOST, address).body(Empty::<Bytes>::new())?;
    let (head, body) = sender.send_request(request).await?.into_parts();
    let body = Limited::new(body, PAGE_BYTES_MAX).collect().await.map_err(anyhow::Error::from_boxed)?;
    connection.abort();
    Ok((head.status, body.to_bytes()))
}
