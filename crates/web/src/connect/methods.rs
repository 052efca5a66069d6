//! The methods that can be called, and the messages that they take and give.

use std::sync::Arc;

use http::Uri;
use prost_reflect::{DescriptorError, DescriptorPool, MessageDescriptor, MethodDescriptor};
use prost_types::{FileDescriptorSet, method_options::IdempotencyLevel};
use rustc_hash::FxHashMap;

/// The file with the types of error details, in whichever folder.
const ERROR_DETAILS: &str = "error_details.proto";

/// A method with one request and one response.
#[derive(Debug)]
pub struct Method {
    /// Its path: `/forebay.v1.QueueService/Ack`.
    pub uri: Uri,
    /// The type of the request.
    pub input: MessageDescriptor,
    /// The type of the response.
    pub output: MessageDescriptor,
    /// It changes nothing, so that GET may call it.
    pub reads: bool,
}

/// The methods of all public services, by path.
pub struct Methods(FxHashMap<String, Arc<Method>>);

impl Methods {
    /// The methods of a pool. Those that stream are left out.
    pub fn new(pool: &DescriptorPool) -> Self {
        let methods = pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
        let unary = methods.filter(|method| !method.is_client_streaming() && !method.is_server_streaming());
        let named = unary.filter_map(|method| {
            let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
            // The names of protobuf are valid in a URL.
            let uri = path.parse().ok()?;
            let (input, output, reads) = (method.input(), method.output(), reads(&method));
            Some((path, Arc::new(Method { uri, input, output, reads })))
        });
        Self(named.collect())
    }

    /// The method at a path, in exactly this spelling.
    pub fn find(&self, path: &str) -> Option<&Arc<Method>> {
        self.0.get(path)
    }
}

fn reads(method: &MethodDescriptor) -> bool {
    let options = method.method_descriptor_proto().options.as_ref();
    options.is_some_and(|options| options.idempotency_level() == IdempotencyLevel::NoSideEffects)
}

/// The types of the public services, and of the details of errors.
pub fn pool(services: &[u8]) -> Result<DescriptorPool, DescriptorError> {
    let mut pool = DescriptorPool::decode(services)?;
    // The set also has `google.rpc.Status`, which the services bring along.
    let known: FileDescriptorSet =
        prost::Message::decode(tonic_types::pb::FILE_DESCRIPTOR_SET).unwrap_or_default();
    pool.add_file_descriptor_protos(
        known.file.into_iter().filter(|file| file.name().ends_with(ERROR_DETAILS)),
    )?;
    Ok(pool)
}

#[cfg(test)]
mod tests {
    use forebay_proto::FILE_DESCRIPTOR_SET;
    use prost::Message as _;
    use prost_types::{FileDescriptorProto, MethodDescriptorProto, ServiceDescriptorProto};

    use super::*;

    #[test]
    fn every_public_method_is_found_by_its_exact_path() {
        let methods = Methods::new(&pool(FILE_DESCRIPTOR_SET).unwrap());
        let enqueue = methods.find("/forebay.v1.QueueService/Enqueue").unwrap();
        assert_eq!(enqueue.input.full_name(), "forebay.v1.EnqueueRequest");
        assert_eq!(enqueue.output.full_name(), "forebay.v1.EnqueueResponse");
        assert!(!enqueue.reads);
        assert!(methods.find("/forebay.v1.QueueService/GetActiveTopics").unwrap().reads);
        assert!(methods.find("/forebay.v1.AdminService/ListNodes").unwrap().reads);
        for path in ["/forebay.v1.QueueService/enqueue", "/forebay.v1.QueueService/Enqueue/", "", "/"] {
            assert!(methods.find(path).is_none(), "{path}");
        }
        let peers = methods.0.keys().filter(|path| !path.starts_with("/forebay.v1."));
        assert_eq!(peers.count(), 0, "what nodes ask each other is not public");
    }

    #[test]
    fn the_pool_knows_the_details_of_errors() {
        let pool = pool(FILE_DESCRIPTOR_SET).unwrap();
        for name in ["ErrorInfo", "RetryInfo", "BadRequest", "QuotaFailure", "Status"] {
            assert!(pool.get_message_by_name(&format!("google.rpc.{name}")).is_some(), "{name}");
        }
    }

    #[test]
    fn a_method_that_streams_is_left_out() {
        let method = |name: &str, client: bool, server: bool| MethodDescriptorProto {
            name: Some(name.to_owned()),
            input_type: Some(".t.M".to_owned()),
            output_type: Some(".t.M".to_owned()),
            client_streaming: Some(client),
            server_streaming: Some(server),
            options: None,
        };
        let service = ServiceDescriptorProto {
            name: Some("S".to_owned()),
            method: vec![method("One", false, false), method("Up", true, false), method("Down", false, true)],
            options: None,
        };
        let file = FileDescriptorProto {
            name: Some("t.proto".to_owned()),
            package: Some("t".to_owned()),
            message_type: vec![prost_types::DescriptorProto {
                name: Some("M".to_owned()),
                ..Default::default()
            }],
            service: vec![service],
            ..Default::default()
        };
        let set = FileDescriptorSet { file: vec![file] }.encode_to_vec();
        let methods = Methods::new(&DescriptorPool::decode(&set[..]).unwrap());
        assert!(methods.find("/t.S/One").is_some());
        assert!(methods.find("/t.S/Up").is_none() && methods.find("/t.S/Down").is_none());
    }
}
