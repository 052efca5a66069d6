//! beanstalkd's protocol: lines of text, some of which are followed by a body of stated length.

use std::net::SocketAddr;

use anyhow::{Context as _, bail, ensure};
use bytes::{Buf as _, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const READ_BYTES: usize = 64 << 10;
/// The longest line of a reply.
const LINE_BYTES_MAX: usize = 256;

/// The reply to one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// To `put`: the job is stored.
    Inserted,
    /// To `reserve`: number and body of a job.
    Reserved(u64, Bytes),
    /// To `reserve`: there was no job.
    TimedOut,
    /// To `delete`.
    Deleted,
    /// To `use`.
    Using,
    /// To `watch` and `ignore`.
    Watching,
    /// To `stats`.
    Data(Bytes),
    /// All other replies are errors.
    Other(String),
}

/// A connection. Many commands may be in flight; replies arrive in the order of the commands.
#[derive(Debug)]
pub struct Connection {
    /// The connection to the server.
    stream: TcpStream,
    /// Received bytes that are not parsed yet.
    buffer: BytesMut,
}

impl Connection {
    /// Connects to the server.
    pub async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await.context("beanstalkd does not answer")?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: BytesMut::new() })
    }

    /// Sends commands whose replies are read later. Send only a few: the server stops reading while its
    /// replies are not read.
    pub async fn send(&mut self, request: &[u8]) -> anyhow::Result<()> {
        Ok(self.stream.write_all(request).await?)
    }

    /// Reads the next reply. Cancel safe.
    pub async fn reply(&mut self) -> anyhow::Result<Reply> {
        loop {
            if let Some(reply) = parse(&mut self.buffer)? {
                return Ok(reply);
            }
            self.buffer.reserve(READ_BYTES);
            ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "beanstalkd closed the connection");
        }
    }

    /// Sends commands and reads their replies at the same time, so both may be long.
    pub async fn exchange(&mut self, request: &[u8], replies: usize) -> anyhow::Result<Vec<Reply>> {
        let Self { stream, buffer } = self;
        let (mut reader, mut writer) = stream.split();
        let write = async { anyhow::Ok(writer.write_all(request).await?) };
        let read = async {
            let mut list = Vec::with_capacity(replies);
            while list.len() < replies {
                match parse(buffer)? {
                    Some(reply) => list.push(reply),
                    None => {
                        buffer.reserve(READ_BYTES);
                        ensure!(reader.read_buf(buffer).await? > 0, "beanstalkd closed the connection");
                    }
                }
            }
            Ok(list)
        };
        Ok(tokio::try_join!(write, read)?.1)
    }
}

/// Removes the first reply from the buffer, if it is complete.
fn parse(buffer: &mut BytesMut) -> anyhow::Result<Option<Reply>> {
    let Some(end) = buffer.iter().take(LINE_BYTES_MAX).position(|byte| *byte == b'\n') else {
        ensure!(buffer.len() < LINE_BYTES_MAX, "a reply has no end of line");
        return Ok(None);
    };
    let line = std::str::from_utf8(&buffer[..end]).context("a reply is not UTF-8")?.trim_end();
    let words: Vec<&str> = line.split(' ').collect();
    let (id, length) = match words[..] {
        ["RESERVED", id, length] => (Some(id.parse::<u64>()?), length.parse::<usize>()?),
        ["OK", length] => (None, length.parse::<usize>()?),
        _ => {
            let reply = match words[0] {
                "INSERTED" => Reply::Inserted,
                "TIMED_OUT" => Reply::TimedOut,
                "DELETED" => Reply::Deleted,
                "USING" => Reply::Using,
                "WATCHING" => Reply::Watching,
                _ => Reply::Other(line.to_owned()),
            };
            buffer.advance(end + 1);
            return Ok(Some(reply));
        }
    };
    let start = end + 1;
    if buffer.len() < start + length + 2 {
        buffer.reserve(start + length + 2 - buffer.len());
        return Ok(None);
    }
    buffer.advance(start);
    let body = buffer.split_to(length).freeze();
    if !buffer.starts_with(b"\r\n") {
        bail!("a body is longer than stated");
    }
    buffer.advance(2);
    Ok(Some(match id {
        Some(id) => Reply::Reserved(id, body),
        None => Reply::Data(body),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_parsed_from_fragments() {
        let text = b"USING t1\r\nINSERTED 7\r\nRESERVED 7 4\r\na\r\nb\r\nTIMED_OUT\r\nDELETED\r\n\
            WATCHING 1\r\nOK 2\r\nhi\r\n";
        let expected = [
            Reply::Using,
            Reply::Inserted,
            Reply::Reserved(7, Bytes::from_static(b"a\r\nb")),
            Reply::TimedOut,
            Reply::Deleted,
            Reply::Watching,
            Reply::Data(Bytes::from_static(b"hi")),
        ];
        for step in [1, 2, 3, 7, text.len()] {
            let (mut buffer, mut replies) = (BytesMut::new(), Vec::new());
            for piece in text.chunks(step) {
                buffer.extend_from_slice(piece);
                while let Some(reply) = parse(&mut buffer).unwrap() {
                    replies.push(reply);
                }
            }
            assert_eq!(replies, expected, "in pieces of {step}");
            assert!(buffer.is_empty());
        }
    }

    #[test]
    fn errors_are_returned_and_malformed_replies_refused() {
        let read = |text: &[u8]| parse(&mut BytesMut::from(text));
        assert_eq!(read(b"OUT_OF_MEMORY\r\n").unwrap(), Some(Reply::Other("OUT_OF_MEMORY".into())));
        assert!(read(b"RESERVED x 4\r\nabcd\r\n").is_err());
        assert!(read(b"RESERVED 1 2\r\nabcd\r\n").is_err());
        assert!(read(&[b'x'; 300]).is_err());
    }
}
