//! Credentials by which a call between nodes shows that the caller belongs to the cluster.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use forebay_config::Secret;
use forebay_edge::connections::{Place, Stage};
use forebay_types::ClusterId;
use subtle::{Choice, ConstantTimeEq as _};
use tokio::time::Instant;
use tonic::{
    Code, Request, Status,
    metadata::{MetadataMap, MetadataValue},
    service::Interceptor,
};

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

/// The answer to a node that has another secret.
const WRONG_SECRET: &str = "the secret of the cluster is wrong (node.peer_secret_file)";
/// A caller with a wrong secret is logged so often: anybody may be one.
const WRONG_SECRET_LOGGED_EVERY: Duration = Duration::from_secs(600);

/// Credentials that every call between nodes carries.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The cluster of both nodes.
    cluster: String,
    /// Known to its nodes alone. The first is shown to others, and each of them is taken.
    secrets: Vec<Secret>,
}

impl Credentials {
    /// For the nodes of a cluster. The first secret is shown to others, and each of them is taken.
    pub fn new(cluster: ClusterId, secrets: Vec<Secret>) -> Self {
        Self { cluster: cluster.to_string(), secrets }
    }

    /// Adds them to a call.
    fn add(&self, metadata: &mut MetadataMap) -> Result<(), Status> {
        let text = |text: String| {
            MetadataValue::try_from(text).map_err(|_| Status::internal("a credential is not valid text"))
        };
        metadata.insert(CLUSTER, text(self.cluster.clone())?);
        let mut secret = text(format!("Bearer {}", self.secrets.first().map_or("", Secret::reveal)))?;
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
        let is_one = |is_one: Choice, own: &Secret| is_one | secret.as_bytes().ct_eq(own.reveal().as_bytes());
        if !bool::from(self.secrets.iter().fold(Choice::from(0), is_one)) {
            return Err(Status::unauthenticated(WRONG_SECRET));
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
pub(crate) struct AddCredentials(pub Credentials);

impl Interceptor for AddCredentials {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        self.0.add(request.metadata_mut())?;
        Ok(request)
    }
}

/// Checks the credentials of the calls to a server. The connection of one that has them keeps its place.
#[derive(Debug, Clone)]
pub(crate) struct CheckCredentials {
    /// The cluster's.
    credentials: Credentials,
    /// When a wrong secret was logged last.
    logged: Arc<Mutex<Option<Instant>>>,
}

impl CheckCredentials {
    /// Checks for these.
    pub fn new(credentials: Credentials) -> Self {
        Self { credentials, logged: Arc::default() }
    }

    /// The other side logs that it is refused, and by whom.
    fn log_wrong_secret(&self) {
        let logged = &mut *self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.is_none_or(|at| at.elapsed() >= WRONG_SECRET_LOGGED_EVERY) {
            *logged = Some(Instant::now());
            tracing::warn!(
                "a caller at the port for other nodes has a wrong secret of the cluster \
                 (node.peer_secret_file); if it is a node, its log names this one"
            );
        }
    }
}

impl Interceptor for CheckCredentials {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let place = request.extensions().get::<Arc<Place>>().cloned();
        let reach = |stage| place.iter().for_each(|place| place.reach(stage));
        reach(Stage::Called);
        let checked = self.credentials.check(request.metadata());
        match &checked {
            Ok(()) => reach(Stage::Accepted),
            Err(status) if status.code() == Code::Unauthenticated => self.log_wrong_secret(),
            Err(_) => {}
        }
        checked.map(|()| request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_of_the_cluster_pass() {
        let of = |cluster: u8, secret: &str| {
            Credentials::new(ClusterId([cluster; 16]), secret.lines().map(Secret::new).collect())
        };
        let ours = of(1, "right\nolder");
        let check = |caller: Credentials, change: fn(&mut MetadataMap)| {
            let mut metadata = MetadataMap::new();
            caller.add(&mut metadata).unwrap();
            change(&mut metadata);
            ours.check(&metadata).map_err(|status| status.code())
        };
        assert_eq!(check(of(1, "right"), |_| {}), Ok(()));
        assert_eq!(check(of(1, "older\nright"), |_| {}), Ok(()), "while the secret is changed");
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
