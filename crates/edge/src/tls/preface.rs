//! The preface of HTTP/2. It is read before anything is set up for a connection, so that whoever says
//! nothing, or speaks something else, costs nothing; and whoever speaks HTTP/1 is told.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};

use super::stream::Stream;

/// The first bytes of each client.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How long a client may take to read that this is another port.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Reads it. `false`: something else came, and the connection is closed.
pub async fn read(stream: &mut Stream, port: &'static str) -> bool {
    let (mut first, mut filled) = ([0; PREFACE.len()], 0);
    while filled < first.len() {
        match stream.read(&mut first[filled..]).await {
            Ok(read @ 1..) => filled += read,
            _ => return false,
        }
        if first[..filled] != PREFACE[..filled] {
            if is_http1(&first[..filled]) {
                // A client that does not read it is disconnected all the same.
                let _ = timeout(ANSWER_TIMEOUT, answer(stream, port)).await;
            }
            return false;
        }
    }
    stream.put_back(PREFACE);
    true
}

/// Whether a request begins so: a method, as far as it has come.
fn is_http1(first: &[u8]) -> bool {
    let method = first.split(|byte| *byte == b' ').next().unwrap_or_default();
    !method.is_empty() && method.iter().all(u8::is_ascii_uppercase)
}

/// Says which port this is, in HTTP/1. What is still to come of the request is read: else the client finds
/// the connection broken before it reads why.
async fn answer(stream: &mut Stream, port: &'static str) {
    let text = match port {
        "peer" => "This port is for other nodes of the cluster alone.\n",
        _ => {
            "This is the gRPC port, which speaks HTTP/2. Calls as JSON, pages, probes and metrics are at the \
             HTTP port (by default 7421).\n"
        }
    };
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    );
    if stream.write_all(answer.as_bytes()).await.is_ok() && stream.shutdown().await.is_ok() {
        let mut rest = [0; 1_024];
        while matches!(stream.read(&mut rest).await, Ok(1..)) {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// Sends this. Returns what the client is told, and what the server then has.
    async fn told(sent: &[u8]) -> (String, Option<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        client.write_all(sent).await.unwrap();
        client.shutdown().await.unwrap();
        let mut stream = Stream::plain(stream);
        let mut rest = Vec::new();
        let begun = read(&mut stream, "grpc").await;
        let has = match begun {
            true => {
                stream.read_to_end(&mut rest).await.unwrap();
                Some(rest)
            }
            false => None,
        };
        drop(stream);
        let mut told = String::new();
        client.read_to_string(&mut told).await.unwrap();
        (told, has)
    }

    #[tokio::test]
    async fn a_client_of_http_1_is_told_which_port_this_is() {
        for request in ["POST /forebay.v1.QueueService/Enqueue HTTP/1.1\r\n\r\n{}", "GET / HTTP/1.1\r\n"] {
            let (told, has) = told(request.as_bytes()).await;
            assert!(told.starts_with("HTTP/1.1 505 ") && told.contains("This is the gRPC port"), "{told}");
            assert_eq!(has, None);
        }
        for other in [&b"\x16\x03\x01\x02\x00"[..], b"", b"ssh-2.0", b"PRI * HTTP/2.0\r\n\r\nSM"] {
            assert_eq!(told(other).await, (String::new(), None), "{other:?}");
        }
    }

    #[tokio::test]
    async fn what_has_begun_is_read_from_its_beginning() {
        let sent = [PREFACE, b"\0\0\0\x04\0\0\0\0\0"].concat();
        assert_eq!(told(&sent).await, (String::new(), Some(sent)));
    }
}
