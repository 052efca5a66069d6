//! A plain client of HTTP/1.1, which sends what it is told to, and nothing else.

use std::collections::HashMap;

use serde_json::Value;
use tokio::net::TcpStream;

use crate::node::exchange;

/// A request.
pub struct Request {
    /// `POST` and the like.
    pub method: &'static str,
    /// With the query.
    pub target: String,
    /// Beside `Host`, `Content-Length` and `Connection`.
    pub headers: Vec<(String, String)>,
    /// Whole.
    pub body: Vec<u8>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Its number.
    pub status: u16,
    /// By names in small letters.
    pub headers: HashMap<String, String>,
    /// Each `Set-Cookie`.
    pub cookies: Vec<String>,
    /// Whole.
    pub body: Vec<u8>,
}

impl Request {
    /// A call of the queue with a message as JSON.
    pub fn call(method: &str, message: &Value) -> Self {
        Self::post(method, "application/json", message.to_string())
    }

    /// A call of the queue with a body of a type.
    pub fn post(method: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let target = match method.starts_with('/') {
            true => method.to_owned(),
            false => format!("/forebay.v1.QueueService/{method}"),
        };
        let request = Self { method: "POST", target, headers: Vec::new(), body: body.into() };
        request.with("Content-Type", content_type)
    }

    /// A GET.
    pub fn get(target: &str) -> Self {
        Self { method: "GET", target: target.to_owned(), headers: Vec::new(), body: Vec::new() }
    }

    /// With one more header.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With another method.
    pub fn by(self, method: &'static str) -> Self {
        Self { method, ..self }
    }

    /// Its bytes.
    pub fn encoded(&self, host: &str) -> Vec<u8> {
        let named = self.headers.iter().any(|(name, _)| name == "Host");
        let host = if named { String::new() } else { format!("Host: {host}\r\n") };
        let mut head = format!("{} {} HTTP/1.1\r\n{host}Connection: close\r\n", self.method, self.target);
        if self.method != "GET" {
            head.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        [head.as_bytes(), b"\r\n", &self.body].concat()
    }

    /// Sends it to an address and reads the answer.
    pub async fn send(&self, address: &str) -> Answer {
        let stream = TcpStream::connect(address).await.unwrap();
        Answer::parse(exchange(stream, &self.encoded(address)).await)
    }
}

impl Answer {
    /// Reads an answer that ends with its connection.
    pub async fn read(stream: TcpStream) -> Self {
        Self::parse(exchange(stream, b"").await)
    }

    /// From all of its bytes.
    pub fn parse(mut bytes: Vec<u8>) -> Self {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
        let body = bytes.split_off(end + 4);
        let head = String::from_utf8(bytes).unwrap();
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status");
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
        let headers: Vec<_> = headers.collect();
        let cookies = headers.iter().filter(|(name, _)| name == "set-cookie").map(|(_, value)| value.clone());
        let cookies = cookies.collect();
        Self { status: status.parse().unwrap(), headers: headers.into_iter().collect(), cookies, body }
    }

    /// A header, or nothing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The message of a call that worked.
    #[track_caller]
    pub fn message(&self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        assert_eq!(self.header("content-type"), "application/json");
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The document of a call that failed with this status and code. What holds for every failure is checked.
    #[track_caller]
    pub fn failure(&self, status: u16, code: &str) -> Value {
        let body = String::from_utf8_lossy(&self.body).into_owned();
        assert_eq!(self.status, status, "{body}");
        assert_eq!(self.header("content-type"), "application/json");
        let document: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(document["code"], code, "{body}");
        assert!(!document["message"].as_str().unwrap().is_empty(), "{body}");
        assert_eq!(document["details"][0]["type"], "google.rpc.ErrorInfo", "{body}");
        document
    }
}
