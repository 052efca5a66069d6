//! The names of a kind: one call at most.

use std::{collections::BTreeSet, time::Duration};

use forebay_client::{Client, ClientConfig, RetryPolicy, v1::ListTopicsRequest};
use forebay_types::{ALL_NAMESPACES, filter::quoted_prefix};

use super::words::Kind;
use crate::{contexts::Contexts, verbs::servers::Servers};

/// How long a call may take. The whole is bounded too.
const CALL_TIMEOUT: Duration = Duration::from_millis(300);

/// Names that may begin with a text. `None`: they can't be had.
pub async fn of(kind: Kind, servers: Option<Servers>, begin: &str) -> Option<Vec<String>> {
    if kind == Kind::Context {
        return Some(Contexts::load().ok()?.context.into_keys().collect());
    }
    let servers = servers?;
    let config = ClientConfig {
        connect_timeout: CALL_TIMEOUT,
        learn_nodes: false,
        ..servers.config().ok()?.call_timeout(CALL_TIMEOUT).retry(RetryPolicy::never())
    };
    let client = servers.client(config).ok()?;
    match kind {
        Kind::Topic => {
            Some(topics(&client, false, "topic", begin).await?.into_iter().map(|it| it.1).collect())
        }
        // Only namespaces that have topics.
        Kind::Namespace => {
            let topics = topics(&client, true, "namespace", begin).await?;
            let names: BTreeSet<String> = topics.into_iter().map(|it| it.0).collect();
            Some(names.into_iter().collect())
        }
        Kind::Node => Some(client.nodes().await.ok()?.into_iter().map(|node| node.name).collect()),
        Kind::Shard => Some(client.shards().await.ok()?.iter().map(|shard| shard.id.to_string()).collect()),
        Kind::Context => None,
    }
}

/// Namespaces and names of topics where a field begins so.
async fn topics(client: &Client, all: bool, field: &str, begin: &str) -> Option<Vec<(String, String)>> {
    let filter = match begin {
        "" => String::new(),
        begin => format!("{field} = {}", quoted_prefix(begin)),
    };
    let namespace = if all { ALL_NAMESPACES } else { client.namespace() }.to_owned();
    let request = ListTopicsRequest { namespace, filter, page_size: 1_000, ..Default::default() };
    let list = client.ask(request).await.ok()?;
    Some(list.topics.into_iter().map(|topic| (topic.namespace, topic.topic)).collect())
}
