//! Callers that ask for a trigger's figures, and whether they may have them. KEDA sends no header of its own,
//! so a token may be in the metadata; and the namespace is there, beside that of Kubernetes.

use std::collections::HashMap;

use forebay_access::{Needs, Scope};
use forebay_edge::{
    access::Authenticated,
    admission::{Call, Caller},
};
use forebay_proto::externalscaler::ScaledObjectRef;
use forebay_types::{Reason, Refusal};
use http::Extensions;
use tonic::Request;

use super::{
    context::Scaler,
    metadata::{NAMESPACE, TOKENS, Trigger},
};

/// Right that every question needs.
const NEEDS: Needs = Needs::InNamespace(Scope::Observe);

impl Scaler {
    /// Finds who asks, and for what. Faults of a trigger are told to those alone who may ask for it.
    pub fn admit<T>(
        &self,
        request: &Request<T>,
        scaled: &ScaledObjectRef,
    ) -> Result<(Authenticated, Trigger), Refusal> {
        let metadata = &scaled.scaler_metadata;
        let asker = self.asker(request.extensions(), metadata)?;
        asker.permit(NEEDS, metadata.get(NAMESPACE).map_or("", String::as_str))?;
        let trigger = Trigger::read(&self.admin.rules, metadata)?;
        // A stream has no such call: its connection bounds it.
        if let Some(call) = request.extensions().get::<Call>() {
            call.request().count_for(&trigger.namespace)?;
        }
        Ok((asker, trigger))
    }

    /// Whether it still may.
    pub fn admit_again(&self, asker: &Authenticated, trigger: &Trigger) -> Result<(), Refusal> {
        self.access.again(asker)?.permit(NEEDS, &trigger.namespace)
    }

    /// The token of the header counts, then that of the metadata, then the certificate of the connection.
    fn asker(
        &self,
        extensions: &Extensions,
        metadata: &HashMap<String, String>,
    ) -> Result<Authenticated, Refusal> {
        if let Some(found) = extensions.get::<Authenticated>() {
            return Ok(found.clone());
        }
        let Some(caller) = extensions.get::<Caller>() else {
            return Err(Refusal::new(Reason::Overloaded, "the call bypassed admission control"));
        };
        let token = TOKENS.iter().find_map(|key| metadata.get(*key));
        self.access.of_message(token.map(String::as_str), caller, "grpc")
    }
}
