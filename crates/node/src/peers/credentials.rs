//! What a call between nodes carries to show that the caller belongs to the cluster.

use forebay_types::ClusterId;
use subtle::ConstantTimeEq as _;
use tonic::{
    Request, Status,
    metadata::{MetadataMap, MetadataValue},
    service::Interceptor,
};

use crate::config::Secret;

/// The cluster's id, in hexadecimal digits.
const CLUSTER: &str = "forebay-cluster";
/// The cluster's secret.
const SECRET: &str = "authorization";
/// The version of the protocol between nodes.
const PROTOCOL: &str = "forebay-peer-protocol";

/// The version that this program speaks. Neighbouring releases understand each other: a change that the last
/// release could not understand waits until no node of it is left.
const PROTOCOL_VERSION: u32 = 1;
/// The oldest version that this program understands.
const PROTOCOL_OLDEST: u32 = 1;

/// What every call between nodes carries.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The cluster of both nodes.
    cluster: String,
    /// Known to its nodes alone.
    secret: Secret,
}

impl Credentials {
    /// For the nodes of a cluster.
    pub fn new(cluster: ClusterId, secret: Secret) -> Self {
        Self { cluster: cluster.to_string(), secret }
    }

    /// Adds them to a call.
    fn add(&self, metadata: &mut MetadataMap) -> Result<(), Status> {
        let text = |text: String| {
            MetadataValue::try_from(text).map_err(|_| Status::internal("a credential is not valid text"))
        };
        metadata.insert(CLUSTER, text(self.cluster.clone())?);
        let mut secret = text(format!("Bearer {}", self.secret.reveal()))?;
        secret.set_sensitive(true);
        metadata.insert(SECRET, secret);
        metadata.insert(PROTOCOL, MetadataValue::from(PROTOCOL_VERSION));
        Ok(())
    }

    /// Whether a call carries them.
    fn check(&self, metadata: &MetadataMap) -> Result<(), Status> {
        let text = |key: &str| metadata.get(key).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let secret = text(SECRET).strip_prefix("Bearer ").unwrap_or_default();
        // The secret first: who does not know it learns nothing else, nor by the duration how much of it is
        // right.
        if !bool::from(secret.as_bytes().ct_eq(self.secret.reveal().as_bytes())) {
            return Err(Status::unauthenticated(
                "the secret of the cluster is wrong (node.peer_secret_file)",
            ));
        }
        if text(CLUSTER) != self.cluster {
            let cluster = &self.cluster;
            return Err(Status::failed_precondition(format!("this is a node of cluster {cluster}")));
        }
        match text(PROTOCOL).parse::<u32>() {
            Ok(version) if version >= PROTOCOL_OLDEST => Ok(()),
            _ => Err(Status::failed_precondition(format!(
                "this node understands the peer protocol from version {PROTOCOL_OLDEST} on: upgrade by one \
                 release at a time"
            ))),
        }
    }
}

/// Adds credentials to the calls of a client.
#[derive(Debug, Clone)]
pub struct AddCredentials(pub Credentials);

impl Interceptor for AddCredentials {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        self.0.add(request.metadata_mut())?;
        Ok(request)
    }
}

/// Checks the credentials of the calls to a server.
#[derive(Debug, Clone)]
pub struct CheckCredentials(pub Credentials);

impl Interceptor for CheckCredentials {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        self.0.check(request.metadata())?;
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    #[test]
    fn only_calls_of_the_cluster_pass() {
        let of = |cluster: u8, secret: &str| Credentials::new(ClusterId([cluster; 16]), Secret::new(secret));
        let ours = of(1, "right");
        let check = |caller: Credentials, change: fn(&mut MetadataMap)| {
            let mut metadata = MetadataMap::new();
            caller.add(&mut metadata).unwrap();
            change(&mut metadata);
            ours.check(&metadata).map_err(|status| status.code())
        };
        assert_eq!(check(of(1, "right"), |_| {}), Ok(()));
        assert_eq!(check(of(1, "wrong"), |_| {}), Err(Code::Unauthenticated));
        assert_eq!(check(of(1, "righ"), |_| {}), Err(Code::Unauthenticated));
        assert_eq!(check(of(2, "right"), |_| {}), Err(Code::FailedPrecondition));
        assert_eq!(check(of(1, "right"), |it| drop(it.remove(SECRET))), Err(Code::Unauthenticated));
        assert_eq!(check(of(1, "right"), |it| drop(it.remove(PROTOCOL))), Err(Code::FailedPrecondition));
        let newer = |metadata: &mut MetadataMap| {
            metadata.insert(PROTOCOL, MetadataValue::from(PROTOCOL_VERSION + 1));
        };
        assert_eq!(check(of(1, "right"), newer), Ok(()), "the next release speaks what this one understands");
    }
}
