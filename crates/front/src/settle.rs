//! Ack, nack and lease extension: each member goes to the shard that its receipt names.

use forebay_engine::{Avoid, Engine, ExtendOf, NackOf, Notice, Settlement};
use forebay_types::{Namespace, Receipt, Refusal, ShardId, Timestamp};

use crate::{
    links::{Answers, Links},
    route::Verb,
};

/// A call without its members: the engine and the other nodes have a function of the same name for it.
macro_rules! settling {
    ($(#[$doc:meta])* $verb:ident: $function:ident($member:ty) -> $answer:ty) => {
        $(#[$doc])*
        pub(crate) struct $verb<'a> {
            /// This node's engine.
            pub engine: &'a Engine,
            /// The other nodes.
            pub links: &'a dyn Links,
            /// The tenant.
            pub namespace: Namespace,
        }

        impl Verb for $verb<'_> {
            type Member = $member;
            type Answer = $answer;

            async fn here(
                &self,
                members: Vec<$member>,
                _avoid: Avoid,
                notice: Notice,
            ) -> Result<Vec<Result<$answer, Refusal>>, Refusal> {
                self.engine.$function(self.namespace.clone(), members, Some(notice)).await
            }

            async fn there(&self, owner: &str, _shard: ShardId, members: Vec<$member>) -> Answers<$answer> {
                self.links.$function(owner, self.namespace.clone(), members).await
            }
        }
    };
}

settling! {
    /// An ack call, without its members.
    Ack: ack(Receipt) -> Settlement
}
settling! {
    /// A nack call, without its members.
    Nack: nack(NackOf) -> Settlement
}
settling! {
    /// A call that extends leases, without its members.
    ExtendLease: extend_lease(ExtendOf) -> Timestamp
}
