//! Which calls are written down. That follows from the interface itself: a new call that does not say that it
//! changes nothing is one of them.

use std::collections::HashMap;

use forebay_proto::{FILE_DESCRIPTOR_SET, v1::ItemView};
use prost_reflect::{DescriptorError, DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor};
use prost_types::method_options::IdempotencyLevel;

/// The service whose calls are for operators. Calls of the queue are about items, and have no records.
const SERVICE: &str = "forebay.v1.AdminService";
/// The field of requests by which payloads are asked for.
const PAYLOAD_FIELD: &str = "max_payload_bytes";
/// The field of requests that says how much of an item is shown.
const VIEW_FIELD: &str = "view";
/// The field of requests by which nothing is done, and the answer says what would be.
const DRY_RUN_FIELD: &str = "dry_run";
/// The field of requests that names a server, with an account. To try one is written down: it may be a guess.
const URL_FIELD: &str = "url";

/// Why a call is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It changes something.
    Changes,
    /// It shows what items carry, to those who may see it.
    Shows,
}

/// A call that is written down.
#[derive(Debug)]
pub struct Method {
    /// Its name, as in `PauseTopic`.
    pub name: String,
    /// Why.
    pub kind: Kind,
    /// The type of its request.
    pub input: MessageDescriptor,
}

/// These calls, by path.
pub struct Methods(HashMap<String, Method>);

impl Methods {
    /// Audited calls of the interface.
    pub fn new() -> Result<Self, DescriptorError> {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET)?;
        let service = pool.services().filter(|service| service.full_name() == SERVICE);
        let methods = service.flat_map(|service| service.methods().collect::<Vec<_>>());
        Ok(Self(methods.filter_map(|method| audited(&method)).collect()))
    }

    /// The call with this path, if it is one of them.
    pub fn find(&self, path: &str) -> Option<&Method> {
        self.0.get(path)
    }
}

fn audited(method: &MethodDescriptor) -> Option<(String, Method)> {
    let options = method.method_descriptor_proto().options.as_ref();
    let reads = options.is_some_and(|it| it.idempotency_level() == IdempotencyLevel::NoSideEffects);
    let input = method.input();
    let kind = match reads {
        false => Kind::Changes,
        true if input.get_field_by_name(PAYLOAD_FIELD).is_some() => Kind::Shows,
        true => return None,
    };
    Some((format!("/{SERVICE}/{}", method.name()), Method { name: method.name().to_owned(), kind, input }))
}

/// Whether a request only asks what would be done.
pub fn only_asks(request: &DynamicMessage) -> bool {
    request.get_field_by_name(DRY_RUN_FIELD).and_then(|value| value.as_bool()) == Some(true)
}

/// Whether a request only asks what would be done, and nobody outside the cluster is asked for that.
pub fn is_dry_run(request: &DynamicMessage) -> bool {
    only_asks(request) && request.get_field_by_name(URL_FIELD).is_none()
}

/// Whether a request asks for what items carry.
pub fn asks_for_payloads(request: &DynamicMessage) -> bool {
    let bytes = request.get_field_by_name(PAYLOAD_FIELD).and_then(|value| value.as_u32());
    let view = request.get_field_by_name(VIEW_FIELD).and_then(|value| value.as_enum_number());
    bytes.is_some_and(|bytes| bytes > 0) || view == Some(ItemView::Full.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls that change nothing. Whoever adds one here says that it needs no record.
    const READS: &[&str] = &[
        "ListNodes",
        "ListShards",
        "ListTopics",
        "GetTopic",
        "ListConsumers",
        "GetHistory",
        "ExportSettings",
        "ListNamespaces",
        "GetNamespace",
        "ExplainTopic",
        "ExplainItem",
        "GroupDeadLetters",
        "GetOperation",
        "ListOperations",
        "ListAuditRecords",
        "ListTokens",
        "WhoAmI",
    ];

    #[test]
    fn only_what_asks_for_no_effect_is_a_dry_run() {
        let methods = Methods::new().unwrap();
        let of = |name: &str, is_dry| {
            let input = &methods.find(&format!("/{SERVICE}/{name}")).unwrap().input;
            let mut request = DynamicMessage::new(input.clone());
            request.set_field_by_name(DRY_RUN_FIELD, prost_reflect::Value::Bool(is_dry));
            is_dry_run(&request)
        };
        for name in ["StartOperation", "CancelItems", "PutTopic", "PauseTopic", "RemoveShard", "MoveShard"] {
            assert!(of(name, true) && !of(name, false), "{name}");
        }
        assert!(!of("AddShard", true), "it goes to a server that its caller names");
        let input = &methods.find("/forebay.v1.AdminService/CreateToken").unwrap().input;
        assert!(!is_dry_run(&DynamicMessage::new(input.clone())), "it has no such field");
    }

    #[test]
    fn every_call_that_changes_something_is_written_down() {
        let methods = Methods::new().unwrap();
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
        let mut seen = 0;
        for method in pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()) {
            let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
            let kind = methods.find(&path).map(|method| method.kind);
            let expected = match method.name() {
                _ if method.parent_service().full_name() != SERVICE => None,
                "ListItems" | "GetItem" => Some(Kind::Shows),
                name if READS.contains(&name) => None,
                _ => Some(Kind::Changes),
            };
            assert_eq!(kind, expected, "{path}");
            seen += 1;
        }
        assert!(seen > READS.len());
    }
}
