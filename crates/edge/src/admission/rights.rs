//! Checks who makes a call, and whether it may: at its beginning, once its message is there, and while it
//! lasts.

use std::sync::{Arc, OnceLock};

use forebay_access::{Identity, Needs, of_call};
use forebay_types::{Reason, Refusal};
use http::{Extensions, Request};
use prost::Message;
use tonic::Status;

use super::connection::Caller;
use crate::{
    access::{Access, AuthenticatedCaller},
    rpc::{frame::first_message, status},
};

/// The field by which every request of a namespace names it.
#[derive(Clone, PartialEq, Eq, Message)]
struct OfNamespace {
    /// The name.
    #[prost(string, tag = "1")]
    namespace: String,
}

/// The caller of a call. The admission layer attached it.
pub fn caller<T>(request: &tonic::Request<T>) -> Result<Arc<Identity>, Status> {
    request.extensions().get().cloned().ok_or_else(bypassed)
}

/// Nothing is served that was not admitted.
pub fn bypassed() -> Status {
    status::of_call(&Refusal::new(Reason::Overloaded, "the call bypassed admission control"))
}

/// The rights of one call.
pub struct Rights {
    /// Decides.
    access: Arc<Access>,
    /// The caller. `None`: the message tells, and the handler decides.
    caller: Option<AuthenticatedCaller>,
    /// Rights that it needs.
    needs: Needs,
    /// Namespace that its message names, once that is known.
    namespace: OnceLock<String>,
}

impl Rights {
    /// Of a call of which nothing but the head is there. What the HTTP port has found is not looked for
    /// again.
    pub fn of<T>(access: &Arc<Access>, request: &Request<T>, caller: &Caller) -> Result<Self, Refusal> {
        let needs = of_call(request.uri().path());
        let caller = match request.extensions().get::<AuthenticatedCaller>() {
            Some(found) => Some(found.clone()),
            None => Some(caller.authenticate(access, request.headers(), "grpc")?),
        };
        Ok(Self { access: access.clone(), caller, needs, namespace: OnceLock::new() })
    }

    /// Where there is no access control.
    #[cfg(test)]
    pub fn of_anyone() -> Self {
        Self { access: Access::open(), caller: None, needs: Needs::Nothing, namespace: OnceLock::new() }
    }

    /// Tells the handler who makes the call, as far as its head says.
    pub fn tell(&self, extensions: &mut Extensions) {
        if let Some(caller) = &self.caller {
            extensions.insert(caller.identity.clone());
            extensions.insert(caller.clone());
        }
    }

    /// The identity of the caller, as far as the head of the call says.
    pub fn identity(&self) -> Option<&Arc<Identity>> {
        self.caller.as_ref().map(|caller| &caller.identity)
    }

    /// The root that pays for what the call takes of what all share. `None`: nobody is known.
    pub fn payer(&self) -> Option<Arc<str>> {
        self.caller.as_ref().and_then(AuthenticatedCaller::payer)
    }

    /// Whether they may end while the call lasts.
    pub fn may_end(&self) -> bool {
        self.access.is_on()
    }

    /// Decides what needs no message.
    pub fn check_head(&self) -> Result<(), Refusal> {
        match (self.needs, &self.caller) {
            (Needs::Everywhere(_), Some(caller)) => caller.permit(self.needs, ""),
            _ => Ok(()),
        }
    }

    /// The namespace that the message names, as far as that is known.
    pub fn namespace(&self) -> &str {
        self.namespace.get().map_or("", String::as_str)
    }

    /// Decides about the namespace that the message names. A message that can't be read is refused: it could
    /// name another one to whoever reads it better.
    pub fn check(&self, request: &[u8]) -> Result<(), Refusal> {
        if !self.access.is_on() || !self.needs.is_in_namespace() {
            return Ok(());
        }
        let name = namespace(request).ok_or_else(|| {
            Refusal::new(Reason::InvalidField, "cannot decode the request: it is no message of this call")
        })?;
        let name = self.namespace.get_or_init(|| name);
        // Nobody but a caller that is known has a right in a namespace.
        let missing = || Refusal::new(Reason::NoCredentials, "credentials are missing");
        self.caller.as_ref().ok_or_else(missing)?.permit(self.needs, name)
    }

    /// Decides once more, with the credentials and the time of now.
    pub fn check_again(&self) -> Result<(), Refusal> {
        let Some(caller) = &self.caller else { return Ok(()) };
        let caller = self.access.again(caller)?;
        match self.namespace.get() {
            Some(name) => caller.permit(self.needs, name),
            // The message is not there yet.
            None if self.needs.is_in_namespace() => Ok(()),
            None => caller.permit(self.needs, ""),
        }
    }
}

/// The namespace that a request of gRPC names: that of its first message, which alone is served.
fn namespace(request: &[u8]) -> Option<String> {
    OfNamespace::decode(first_message(request)?).ok().map(|message| message.namespace)
}

#[cfg(test)]
mod tests {
    use forebay_access::CALLS;
    use forebay_proto::{
        FILE_DESCRIPTOR_SET,
        v1::{EnqueueItem, EnqueueRequest},
    };
    use prost_reflect::{DescriptorPool, Kind};

    use super::*;

    fn framed(message: &[u8]) -> Vec<u8> {
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        [&[0][..], &length, message].concat()
    }

    #[test]
    fn the_namespace_is_that_which_the_handler_reads() {
        let items = vec![EnqueueItem { topic: "other".to_owned(), ..Default::default() }; 3];
        let request = EnqueueRequest { namespace: "ours".to_owned(), items, ..Default::default() };
        let one = request.encode_to_vec();
        let two = EnqueueRequest { namespace: "theirs".to_owned(), ..Default::default() }.encode_to_vec();
        // Of a field that is there twice, the last one counts.
        for message in [one.clone(), [one.clone(), two.clone()].concat(), [two.clone(), one.clone()].concat()]
        {
            let handler = EnqueueRequest::decode(&message[..]).unwrap().namespace;
            assert_eq!(namespace(&framed(&message)), Some(handler));
        }
        // A second message is not served.
        assert_eq!(namespace(&[framed(&one), framed(&two)].concat()).as_deref(), Some("ours"));
        assert_eq!(namespace(&framed(b"")).as_deref(), Some(""));
    }

    #[test]
    fn what_can_not_be_read_names_nothing() {
        let mut compressed = framed(b"");
        compressed[0] = 1;
        let not_text = framed(b"\x0a\x01\xff");
        let a_number = framed(b"\x08\x01");
        for request in [&b""[..], b"\0\0\0", b"\0\0\0\0\x05\x0a", &compressed, &not_text, &a_number] {
            assert_eq!(namespace(request), None, "{request:?}");
        }
    }

    #[test]
    fn every_call_has_a_row_that_fits_its_message() {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
        let mut paths = Vec::new();
        for method in pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()) {
            let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
            let row = CALLS.iter().find(|row| row.0 == path);
            let needs = row.unwrap_or_else(|| panic!("{path} has no row in crates/access/src/needs.rs")).1;
            let field = method.input().get_field_by_name("namespace");
            assert_eq!(field.is_some(), needs.is_in_namespace(), "{path}");
            if let Some(field) = field {
                assert_eq!((field.number(), field.kind()), (1, Kind::String), "{path}");
            }
            paths.push(path);
        }
        for (path, _) in CALLS.iter().filter(|row| row.0.starts_with("/forebay.")) {
            assert!(paths.iter().any(|known| known == path), "{path} is not served");
        }
    }
}
