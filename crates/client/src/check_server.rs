//! Whether gRPC servers are at the addresses: asked once, without retries.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    address::Address,
    client::Client,
    error::Error,
    tls::{self, Tls},
};

/// First bytes of an HTTP/2 client: the preface, and settings that change nothing.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// A server of HTTP/1 may close the connection at HTTP/2's preface without a word. To this it answers.
const HTTP1: &[u8] = b"HEAD /healthz HTTP/1.1\r\nHost: forebay\r\nConnection: close\r\n\r\n";
/// The type of a SETTINGS frame, which an HTTP/2 server sends first.
const SETTINGS: u8 = 4;
/// The type of an alert of TLS, and the first byte of its version.
const ALERT: [u8; 2] = [21, 3];
/// A server that is silent for so long may be busy, which is left to the call.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

impl Client {
    /// Connects once to each server, and fails if none of them is there: nobody listens, or something other
    /// than gRPC. That is for programs that are not to wait for a server: a call is retried until its
    /// timeout. Calls go first to servers that are there. A channel of the caller's own is not checked.
    pub async fn check_server(&self) -> Result<(), Error> {
        let began = Instant::now();
        let mut checks = JoinSet::new();
        for (place, endpoint) in self.endpoints.all_given().iter().cloned().enumerate() {
            // Only a channel of the caller's own has no address.
            let Some(address) = endpoint.checked_address() else { return Ok(()) };
            let at = CheckedServer {
                address,
                tls: self.tls.clone(),
                deadline: began + self.config.connect_timeout,
            };
            checks.spawn(async move { (place, endpoint, check(&at).await) });
        }
        let mut failed = Vec::new();
        while let Some(Ok((place, endpoint, result))) = checks.join_next().await {
            match result {
                Ok(()) => return Ok(()),
                Err(error) => {
                    endpoint.failed(began, &self.rng);
                    failed.push((place, error));
                }
            }
        }
        failed.sort_by_key(|(place, _)| *place);
        // One that is there but is no server of ours is the better news.
        let worst = failed.iter().find(|(_, error)| !error.is_disconnected()).or(failed.first());
        match worst {
            Some((_, error)) => Err(error.clone().with_others(failed.iter().map(|(_, error)| error))),
            None => Ok(()),
        }
    }
}

/// Server that is checked.
struct CheckedServer {
    /// Where.
    address: Address,
    /// Secures connections.
    tls: Option<Tls>,
    /// Until when a connection must be open.
    deadline: Instant,
}

async fn check(at: &CheckedServer) -> Result<(), Error> {
    let address = &at.address;
    match first_answer(at, HTTP2).await? {
        Answer::Http1 => return Err(not_grpc(address, "HTTP/1")),
        Answer::Unknown => return Err(not_grpc(address, "something else")),
        Answer::Tls => return Err(wants_tls(address)),
        Answer::Http2 | Answer::Nothing => return Ok(()),
        Answer::Closed => {}
    }
    match first_answer(at, HTTP1).await? {
        Answer::Http1 => Err(not_grpc(address, "HTTP/1")),
        Answer::Tls => Err(wants_tls(address)),
        _ => Err(Error::unreachable(address.host_port(), "the connection was closed at once")),
    }
}

/// How a server answers what it is sent first.
enum Answer {
    /// With a frame of HTTP/2.
    Http2,
    /// With a line of HTTP/1.
    Http1,
    /// With an alert of TLS.
    Tls,
    /// With something else.
    Unknown,
    /// By closing the connection.
    Closed,
    /// Not in time.
    Nothing,
}

/// Opens a connection, and secures it if it is to be.
async fn open(at: &CheckedServer) -> Result<Box<dyn Bytes>, Error> {
    let address = &at.address;
    let unreachable = |why: &str| Error::unreachable(address.host_port(), why);
    let stream = match timeout_at(at.deadline, TcpStream::connect(address.host_port())).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Err(unreachable("nobody listens there"));
        }
        Ok(Err(error)) => return Err(unreachable(&error.to_string())),
        Err(_) => return Err(unreachable("no answer")),
    };
    let Some(tls) = at.tls.as_ref().filter(|_| address.has_tls()) else { return Ok(Box::new(stream)) };
    match timeout_at(at.deadline, tls.connect(stream, address.host(), "h2")).await {
        Ok(Ok(stream)) => Ok(Box::new(stream)),
        Ok(Err(error)) => Err(of_tls(address, &error).unwrap_or_else(|| unreachable(&error.to_string()))),
        Err(_) => Err(unreachable("no answer to the beginning of TLS")),
    }
}

/// The bytes of a connection.
trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

async fn first_answer(at: &CheckedServer, request: &[u8]) -> Result<Answer, Error> {
    let mut stream = open(at).await?;
    let mut start = [0; 5];
    let exchange = async {
        // A server that closes the connection while this is sent may have said before why.
        let _ = stream.write_all(request).await;
        stream.read_exact(&mut start).await
    };
    Ok(match timeout(ANSWER_TIMEOUT, exchange).await {
        Err(_) => Answer::Nothing,
        // A server refuses a client's certificate after the client has taken the handshake for done.
        Ok(Err(error)) => match of_tls(&at.address, &error) {
            Some(error) => return Err(error),
            None => Answer::Closed,
        },
        Ok(Ok(_)) if start == *b"HTTP/" => Answer::Http1,
        Ok(Ok(_)) if start[..2] == ALERT => Answer::Tls,
        // Three bytes of length, then the frame's type.
        Ok(Ok(_)) if start[3] == SETTINGS => Answer::Http2,
        Ok(Ok(_)) => Answer::Unknown,
    })
}

/// Explains an error that is about TLS; `None` if it is not.
fn of_tls(address: &Address, error: &io::Error) -> Option<Error> {
    let message = tls::explain(address.host_port(), error)?;
    Some(Error::local(tonic::Code::Unavailable, message))
}

fn wants_tls(address: &Address) -> Error {
    let at = address.host_port();
    Error::local(tonic::Code::Unavailable, format!("{at} speaks TLS; use https://{at}"))
}

fn not_grpc(address: &Address, what: &str) -> Error {
    let at = address.host_port();
    Error::local(
        tonic::Code::Unavailable,
        format!("{at} answers with {what}, not with gRPC; is it the HTTP port? (gRPC is at 7420 by default)"),
    )
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;
    use crate::config::ClientConfig;

    /// Checks a server that answers every connection with these bytes and closes it.
    async fn checked(answer: &'static [u8]) -> Result<(), Error> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.write_all(answer).await.unwrap();
            }
        });
        Client::connect(ClientConfig::new(address.to_string())).unwrap().check_server().await
    }

    #[tokio::test]
    async fn only_http_2_is_a_server() {
        checked(b"\0\0\x06\x04\0\0\0\0\0").await.unwrap();
        let http1 = checked(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap_err();
        assert!(http1.message().contains("HTTP port") && !http1.is_transient(), "{http1}");
        let ssh = checked(b"SSH-2.0-OpenSSH\r\n").await.unwrap_err();
        assert!(ssh.message().contains("not with gRPC"), "{ssh}");
        let closed = checked(b"").await.unwrap_err();
        assert!(closed.message().contains("closed") && closed.is_transient(), "{closed}");
    }

    #[tokio::test]
    async fn nobody_at_an_address_is_reported_at_once() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let client = Client::connect(ClientConfig::new(format!("127.0.0.1:{port}"))).unwrap();
        let error = timeout(Duration::from_secs(1), client.check_server()).await.unwrap().unwrap_err();
        assert_eq!(error.message(), format!("cannot reach 127.0.0.1:{port}: nobody listens there"));
        assert!(error.is_transient() && !error.maybe_done());
    }

    #[tokio::test]
    async fn one_server_of_several_is_enough_and_none_is_one_error() {
        let port = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let nobody = [port(), port()].map(|port| format!("127.0.0.1:{port}"));
        let config = ClientConfig::new(&nobody[0]).endpoint(&nobody[1]);
        let error = Client::connect(config.clone()).unwrap().check_server().await.unwrap_err();
        let text = format!(
            "cannot reach {}: nobody listens there; cannot reach {}: nobody listens there",
            nobody[0], nobody[1]
        );
        assert!(error.message() == text && error.is_disconnected(), "{error}");

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = config.endpoint(listener.local_addr().unwrap().to_string());
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"\0\0\x06\x04\0\0\0\0\0").await.unwrap();
            stream
        };
        let client = Client::connect(config).unwrap();
        let (checked, _stream) = tokio::join!(client.check_server(), serve);
        checked.unwrap();
    }
}
