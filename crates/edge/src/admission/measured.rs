//! Labels of a call in metrics: its service, its method, its protocol, its code, and how long it took.

use forebay_access::CALLS;
use http::{Request, Response};
use tokio::time::Instant;
use tonic::{Code, body::Body};

use crate::rpc::refused::OTHER;

/// The service of the queue.
pub const QUEUE: &str = "forebay.v1.QueueService";
const ADMIN: &str = "forebay.v1.AdminService";
/// Whose calls are measured.
pub const SERVICES: [&str; 2] = [QUEUE, ADMIN];
/// The methods of the queue. Operators call the others, rarely, and the audit log names them: they are one.
pub const METHODS: [&str; 6] = ["Enqueue", "Dequeue", "Ack", "Nack", "ExtendLease", "GetActiveTopics"];
/// How calls come.
pub const PROTOCOLS: [&str; 3] = [Protocol::Grpc.name(), Protocol::Connect.name(), Protocol::Page.name()];

/// How a call came. Without one among its extensions it came to the gRPC port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// gRPC.
    Grpc,
    /// Connect.
    Connect,
    /// A page makes it for its reader.
    Page,
}

impl Protocol {
    const fn name(self) -> &'static str {
        match self {
            Self::Grpc => "grpc",
            Self::Connect => "connect",
            Self::Page => "page",
        }
    }
}

/// A call that is limited and measured.
#[derive(Debug, Clone, Copy)]
pub struct MeteredCall {
    /// Service that it calls.
    service: &'static str,
    /// Method of the service.
    method: &'static str,
    /// The same, where refusals are counted: operators' calls too by their names.
    pub called: &'static str,
    /// How it came.
    protocol: Protocol,
    /// When.
    began: Instant,
}

impl MeteredCall {
    /// Of a request. `None`: calls of this path are neither limited nor measured.
    pub fn of<T>(request: &Request<T>) -> Option<Self> {
        let path = request.uri().path();
        let (service, method) = named(path)?;
        let protocol = request.extensions().get().copied().unwrap_or(Protocol::Grpc);
        Some(Self { service, method, called: called(path), protocol, began: Instant::now() })
    }

    /// It was answered.
    pub fn record(self, response: &Response<Body>) {
        let Self { service, method, protocol, began, .. } = self;
        let code = response.headers().get("grpc-status").and_then(|code| code.to_str().ok());
        let code = code.and_then(|code| code.parse().ok()).map_or(Code::Ok, Code::from_i32);
        let (protocol, code) = (protocol.name(), format!("{code:?}"));
        metrics::counter!(
            "forebay_calls_total",
            "service" => service, "method" => method, "protocol" => protocol, "code" => code
        )
        .increment(1);
        metrics::histogram!("forebay_call_seconds", "method" => method).record(began.elapsed());
    }
}

/// The method of a path, if there is such a call. So callers make up no names.
fn called(path: &str) -> &'static str {
    let known = CALLS.iter().find(|row| row.0 == path);
    known.and_then(|row| row.0.rsplit('/').next()).filter(|name| !name.is_empty()).unwrap_or(OTHER)
}

/// The service and the method of a path.
fn named(path: &str) -> Option<(&'static str, &'static str)> {
    let (service, call) = path.strip_prefix('/')?.split_once('/')?;
    let service = SERVICES.into_iter().find(|known| *known == service)?;
    let method = METHODS.into_iter().find(|known| *known == call).filter(|_| service == QUEUE);
    Some((service, method.unwrap_or(OTHER)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_a_service_and_a_method_of_those_that_are_known() {
        for (path, expected) in [
            ("/forebay.v1.QueueService/Ack", Some((QUEUE, "Ack"))),
            ("/forebay.v1.QueueService/MadeUp", Some((QUEUE, OTHER))),
            ("/forebay.v1.AdminService/Ack", Some((ADMIN, OTHER))),
            ("/grpc.health.v1.Health/Check", None),
            ("/forebay.v1.QueueService", None),
        ] {
            assert_eq!(named(path), expected, "{path}");
        }
    }

    #[test]
    fn refusals_are_counted_by_the_names_of_calls_that_there_are() {
        for (path, expected) in [
            ("/forebay.v1.QueueService/Ack", "Ack"),
            ("/forebay.v1.AdminService/DrainNode", "DrainNode"),
            ("/forebay.v1.AdminService/MadeUp", OTHER),
            ("/grpc.health.v1.Health/", OTHER),
            ("/grpc.health.v1.Health/Check", OTHER),
            ("", OTHER),
        ] {
            assert_eq!(called(path), expected, "{path}");
        }
    }
}
