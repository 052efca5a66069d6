//! A client that controls each frame of HTTP/2: how much it reads, and how much of a request it sends.

use bytes::{BufMut as _, Bytes, BytesMut};
use h2::{
    RecvStream, SendStream,
    client::{self, ResponseFuture, SendRequest},
};
use http::{HeaderMap, Request, Response};
use prost::Message;
use tokio::{net::TcpStream, sync::watch, task::JoinHandle};
use tonic::Status;

const GRPC: (&str, &str) = ("content-type", "application/grpc");
/// The head of a call: a method, headers, and the status of HTTP that answers it.
type Head = (&'static str, &'static [(&'static str, &'static str)], u16);
/// But for the last one a web page could send them, or nobody who speaks gRPC does.
pub const HEADS: [Head; 6] = [
    ("POST", &[("content-type", "text/plain")], 415),
    ("POST", &[GRPC, ("origin", "https://evil.example")], 403),
    ("POST", &[GRPC, ("sec-fetch-site", "cross-site")], 403),
    ("GET", &[GRPC], 405),
    ("PUT", &[GRPC], 405),
    ("POST", &[GRPC], 200),
];

/// One connection. It ends when this value is dropped.
pub struct Connection {
    /// Opens streams.
    sender: SendRequest<Bytes>,
    /// How much of each answer the server may send.
    window: watch::Sender<u32>,
    /// Moves the frames. Ends when the server closes the connection.
    driver: JoinHandle<()>,
}

impl Connection {
    /// Connects. The server may send `window` bytes of each answer.
    pub async fn open(address: &str, window: u32) -> Self {
        Self::try_open(address, window).await.expect("a connection")
    }

    /// The same; `None` if the server closes the connection.
    pub async fn try_open(address: &str, window: u32) -> Option<Self> {
        let stream = TcpStream::connect(address).await.ok()?;
        let mut builder = client::Builder::new();
        builder.initial_window_size(window).initial_connection_window_size((1 << 31) - 1);
        let (sender, mut connection) = builder.handshake(stream).await.ok()?;
        let (window, mut windows) = watch::channel(window);
        let driver = tokio::spawn(async move {
            loop {
                tokio::select! {
                    // An error means the same as the end: the server has closed the connection.
                    _ = &mut connection => return,
                    Ok(()) = windows.changed() => {
                        let size = *windows.borrow_and_update();
                        connection.set_initial_window_size(size).unwrap();
                    }
                }
            }
        });
        Some(Self { sender, window, driver })
    }

    /// Sends the headers of a call.
    pub async fn begin(&mut self, method: &str) -> (ResponseFuture, SendStream<Bytes>) {
        self.try_begin(method).await.expect("a stream")
    }

    /// The same; `None` if the server has closed the connection.
    pub async fn try_begin(&mut self, method: &str) -> Option<(ResponseFuture, SendStream<Bytes>)> {
        let request = Request::post(format!("http://forebay/forebay.v1.QueueService/{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .unwrap();
        let mut sender = self.sender.clone().ready().await.ok()?;
        sender.send_request(request, false).ok()
    }

    /// Makes a call and waits for the headers of its answer.
    pub async fn call(&mut self, method: &str, message: &impl Message) -> Response<RecvStream> {
        let (answer, mut body) = self.begin(method).await;
        body.send_data(framed(message), true).unwrap();
        answer.await.expect("an answer")
    }

    /// The same with an encoded message; `None` if the server has closed the connection.
    pub async fn try_call(&mut self, method: &str, message: Bytes) -> Option<Response<RecvStream>> {
        let (answer, mut body) = self.try_begin(method).await?;
        body.send_data(message, true).ok()?;
        answer.await.ok()
    }

    /// Sends a request with these headers, and waits for those of its answer.
    pub async fn ask(
        &mut self,
        method: &str,
        call: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Response<RecvStream> {
        let mut request = Request::builder().method(method).uri(format!("http://forebay/forebay.v1.{call}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut sender = self.sender.clone().ready().await.expect("a connection");
        let (answer, mut stream) = sender.send_request(request.body(()).unwrap(), false).unwrap();
        // A caller that is refused by its head alone may hear that first.
        let _ = stream.send_data(body, true);
        answer.await.expect("an answer")
    }

    /// From now on the server may send `window` bytes of each answer, also of those that wait.
    pub fn read_on(&self, window: u32) {
        self.window.send(window).unwrap();
    }

    /// Waits until the server has closed the connection.
    pub async fn closed(&mut self) {
        (&mut self.driver).await.unwrap();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A message as a gRPC body.
pub fn framed(message: &impl Message) -> Bytes {
    let mut body = BytesMut::with_capacity(5 + message.encoded_len());
    body.put_u8(0);
    body.put_u32(u32::try_from(message.encoded_len()).unwrap());
    message.encode(&mut body).unwrap();
    body.freeze()
}

/// The status of an answer that consists of headers alone: a refusal. `None` if an answer follows.
pub fn refusal(headers: &HeaderMap) -> Option<Status> {
    headers.get("grpc-status")?;
    Status::from_header_map(headers)
}

/// Reads an answer to its end. Returns how many bytes it had.
pub async fn read(mut answer: Response<RecvStream>) -> usize {
    let mut bytes = 0;
    while let Some(data) = answer.body_mut().data().await {
        let data = data.unwrap();
        bytes += data.len();
        answer.body_mut().flow_control().release_capacity(data.len()).unwrap();
    }
    bytes
}
