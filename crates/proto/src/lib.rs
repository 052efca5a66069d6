//! The gRPC interface of Forebay, generated from `proto/`.
#![doc = include_str!("../README.md")]

mod admin_call;
pub mod codes;
mod settings;
pub mod time;
pub mod trace_context;

#[expect(missing_docs, reason = "generated; the comments of the protobuf file are what there is")]
#[allow(clippy::all, reason = "generated")]
mod generated {
    include!("generated/forebay.v1.rs");
}

#[expect(missing_docs, reason = "generated; the comments of the protobuf file are what there is")]
#[allow(clippy::all, reason = "generated")]
mod generated_peer {
    include!("generated/forebay.peer.v1.rs");
}

/// The package `forebay.v1`.
pub mod v1 {
    pub use crate::generated::*;
}

/// The package `forebay.peer.v1`: what nodes ask each other. It is not for clients.
pub mod peer {
    pub use crate::generated_peer::*;
}

/// The compiled protobuf files, imports included, for gRPC reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/descriptors.bin");

/// The header of an enqueue's answer that says which shard the next call for the topic may name.
pub const NEXT_SHARD_HEADER: &str = "forebay-shard";

/// The header of an answer that names a node: of a dequeue's, the one that most of its items came from; of an
/// enqueue's, the owner of the shard that the next call may name.
pub const NODE_HEADER: &str = "forebay-node";

/// The full name of the service, as health checks ask for it.
pub const SERVICE: &str = "forebay.v1.QueueService";

pub use admin_call::{AdminCall, EncodedCodec, call_encoded};
pub use tonic_types::Status;

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    #[test]
    fn the_descriptors_name_the_services_and_their_imports() {
        let set = prost_types::FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
        let names: Vec<_> = set.file.iter().map(|file| file.name()).collect();
        assert!(names.contains(&"forebay/v1/queue.proto"), "{names:?}");
        assert!(names.contains(&"forebay/v1/admin.proto"), "{names:?}");
        assert!(names.contains(&"google/rpc/status.proto"), "{names:?}");
        let queue = set.file.iter().find(|file| file.name() == "forebay/v1/queue.proto").unwrap();
        let service = queue.service.first().unwrap();
        assert_eq!(format!("{}.{}", queue.package(), service.name()), SERVICE);
        assert_eq!(service.method.len(), 6);
        let admin = set.file.iter().find(|file| file.name() == "forebay/v1/admin.proto").unwrap();
        assert_eq!(admin.service.first().unwrap().name(), "AdminService");
    }

    #[test]
    fn only_reads_have_no_side_effects() {
        use prost_types::method_options::IdempotencyLevel::NoSideEffects;
        let set = prost_types::FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
        for method in set.file.iter().flat_map(|file| &file.service).flat_map(|service| &service.method) {
            let level = method.options.clone().unwrap_or_default().idempotency_level();
            let reads = ["List", "Get", "Group", "Explain", "Export", "WhoAmI"]
                .iter()
                .any(|verb| method.name().starts_with(verb));
            assert_eq!(level == NoSideEffects, reads, "{}", method.name());
            // The style of buf: one request and one response message for each call.
            let own = |kind| format!(".forebay.v1.{}{kind}", method.name());
            assert_eq!((method.input_type(), method.output_type()), (&*own("Request"), &*own("Response")));
        }
    }
}
