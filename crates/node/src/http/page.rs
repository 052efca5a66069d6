//! The dashboard: node, shards and topics, rendered on the server.

use std::fmt::{self, Display, Write as _};

use axum::{Extension, response::Html};
use forebay_engine::{BreakerPhase, ShardState, ShardStatus, Status, TopicStatus};
use forebay_membership::{ClusterState, Presence, ShardHome};
use forebay_types::NodeName;

use super::{
    condition::Condition,
    guard::Visitor,
    html::{self, Escaped},
    info::{NodeStatus, State},
};

/// The page is loaded again after so many seconds.
const REFRESH: u32 = 2;

/// Serves `/`.
pub async fn page(state: State, Extension(visitor): Extension<Visitor>) -> Html<String> {
    let mut page = String::with_capacity(16 << 10);
    // Writing to a string never fails.
    let _ = write(&mut page, &visitor.session_line(), &state.status().await);
    Html(page)
}

/// `session`: who has logged in, as HTML.
fn write(page: &mut String, session: &str, node: &NodeStatus) -> fmt::Result {
    let class = match node.state {
        Condition::Serving => "good",
        Condition::Degraded(_) => "bad",
        Condition::StandingBy => "none",
    };
    html::head(page, "Forebay", Some(REFRESH));
    page.push_str(session);
    writeln!(page, "<h1>Forebay <span class=\"{class}\">{}</span></h1>", Escaped(&node.state.to_string()))?;
    writeln!(
        page,
        "<p class=\"facts\">node {} · gRPC {} · HTTP {} · version {} · up {}</p>",
        Escaped(&node.address),
        node.grpc,
        node.http,
        Escaped(node.version),
        Uptime(node.uptime_seconds),
    )?;
    for sentence in &node.exposed {
        writeln!(page, "<p class=\"bad\">Insecure: {}</p>", Escaped(sentence))?;
    }
    match &node.engine {
        Some(engine) => {
            writeln!(
                page,
                "<p class=\"facts\">{} calls in progress · {} long polls · {} waiting to be stored \
                 · {} topics</p>",
                node.calls,
                engine.polls,
                Bytes(engine.admitted_bytes),
                engine.topic_count
            )?;
            if let Some(cluster) = &node.cluster {
                nodes(page, cluster)?;
            }
            shards(page, &engine.shards, node.cluster.as_deref())?;
            sweeps(page, &engine.shards)?;
            topics(page, engine)?;
        }
        None => page.push_str("<p class=\"bad\">The engine has stopped.</p>"),
    }
    page.push_str("</body></html>\n");
    Ok(())
}

fn nodes(page: &mut String, cluster: &ClusterState) -> fmt::Result {
    page.push_str(
        "<h2>Nodes</h2><div class=\"scroll\"><table><tr><th class=\"l\">node<th class=\"l\">state<th>shards\
         <th class=\"l\">clients<th class=\"l\">HTTP<th class=\"l\">release</tr>\n",
    );
    for node in &cluster.nodes {
        let state = match node.presence() {
            Presence::Silent => Presence::Silent.as_str(),
            _ if !node.reached => "does not answer this node",
            presence => presence.as_str(),
        };
        let own = if node.name == cluster.own { " (this one)" } else { "" };
        writeln!(
            page,
            "<tr><td class=\"l\">{}{own}<td class=\"l {}\">{state}<td>{}<td class=\"l\">{}<td class=\"l\">{}\
             <td class=\"l\">{}</tr>",
            Escaped(&node.name),
            class(node.live && node.reached),
            node.shards,
            Escaped(&node.clients_address),
            Escaped(&node.http_address),
            Escaped(&node.release),
        )?;
    }
    page.push_str("</table></div>\n");
    Ok(())
}

fn shards(page: &mut String, shards: &[ShardStatus], cluster: Option<&ClusterState>) -> fmt::Result {
    page.push_str(
        "<h2>Shards</h2><div class=\"scroll\"><table><tr><th>shard<th class=\"l\">server<th class=\"l\">state\
         <th class=\"l\">breaker\
         <th>epoch<th>batch<th>ready<th>leased<th>scheduled<th>dead<th>topics<th>index<th>last commit\
         <th class=\"l\">settings<th class=\"l\">last error</tr>\n",
    );
    for shard in shards {
        writeln!(
            page,
            "<tr><td>{}<td class=\"l\">{}<td class=\"l {}\">{}<td class=\"l {}\">{}<td>{}<td>{}<td>{}<td>{}\
             <td>{}<td>{}<td>{}\
             <td>{}<td>{:.1} ms<td class=\"l wrap {}\">{}<td class=\"l wrap\">{}</tr>",
            shard.id,
            Escaped(&shard.server),
            class(shard.state == ShardState::Owned && shard.silent_since_micros.is_none()),
            Escaped(&ownership(shard, cluster)),
            class(shard.breaker == BreakerPhase::Closed && shard.silent_since_micros.is_none()),
            shard.breaker.as_str(),
            shard.epoch,
            shard.batch,
            shard.ready,
            shard.leased,
            shard.scheduled,
            shard.dead,
            shard.topics,
            Bytes(shard.index_bytes),
            shard.commit_micros as f64 / 1e3,
            class(shard.concerns.is_empty()),
            Escaped(&shard.concerns.join("; ")),
            Escaped(&shard.last_error),
        )?;
    }
    page.push_str("</table></div>\n");
    Ok(())
}

/// The state of a shard, and whom it waits for. In a cluster: who owns it, and where it moves.
fn ownership(shard: &ShardStatus, cluster: Option<&ClusterState>) -> String {
    let home = cluster.and_then(|cluster| cluster.shards.iter().find(|home| home.id.0 == shard.id));
    if let Some(ShardHome { owner, home, .. }) = home
        && (shard.state == ShardState::Waiting || owner != home)
    {
        let name = |name: &Option<NodeName>| name.as_ref().map_or("nobody".to_owned(), ToString::to_string);
        return match owner == home {
            true => format!("owned by {}", name(owner)),
            false => format!("owned by {}, moves to {}", name(owner), name(home)),
        };
    }
    match (shard.state, shard.silent_since_micros) {
        (ShardState::Owned, None) if shard.draining => "owned, is drained".to_owned(),
        (ShardState::Waiting, _) => format!("waiting for {}", shard.owner),
        (ShardState::Owned, Some(_)) => "owned, does not answer".to_owned(),
        (state, _) => state.as_str().to_owned(),
    }
}

fn sweeps(page: &mut String, shards: &[ShardStatus]) -> fmt::Result {
    page.push_str(
        "<h2>Sweeps</h2><div class=\"scroll\"><table><tr><th>shard<th class=\"l\">sweep<th>rows moved\
         <th>checkpoint (µs)</tr>\n",
    );
    for shard in shards {
        for sweep in &shard.sweeps {
            let checkpoint = match sweep.checkpoint_micros {
                i64::MIN => "–".to_owned(),
                micros => micros.to_string(),
            };
            writeln!(
                page,
                "<tr><td>{}<td class=\"l\">{}<td>{}<td>{checkpoint}</tr>",
                shard.id,
                Escaped(&sweep.name),
                sweep.moved
            )?;
        }
    }
    page.push_str("</table></div>\n");
    Ok(())
}

fn topics(page: &mut String, engine: &Status) -> fmt::Result {
    page.push_str("<h2>Topics</h2>");
    if engine.topics.is_empty() {
        page.push_str("<p class=\"none\">No topics yet. A topic is created by its first item.</p>");
        return Ok(());
    }
    page.push_str(
        "<div class=\"scroll\"><table><tr><th class=\"l\">namespace<th class=\"l\">topic<th>ready<th>leased\
         <th>scheduled<th>dead<th>waiting consumers</tr>\n",
    );
    for TopicStatus { namespace, topic, ready, leased, scheduled, dead, waiting } in &engine.topics {
        writeln!(
            page,
            "<tr><td class=\"l\">{}<td class=\"l\">{}<td>{ready}<td>{leased}<td>{scheduled}<td>{dead}\
             <td>{waiting}</tr>",
            Escaped(namespace),
            Escaped(topic),
        )?;
    }
    page.push_str("</table></div>\n");
    if engine.topic_count > engine.topics.len() {
        writeln!(page, "<p class=\"none\">… and {} more.</p>", engine.topic_count - engine.topics.len())?;
    }
    Ok(())
}

const fn class(good: bool) -> &'static str {
    if good { "good" } else { "bad" }
}

/// A number of bytes with a unit.
struct Bytes(usize);

impl Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0..1_024 => write!(f, "{} B", self.0),
            1_024..1_048_576 => write!(f, "{:.1} KiB", bytes / 1_024.0),
            _ => write!(f, "{:.1} MiB", bytes / 1_048_576.0),
        }
    }
}

/// A number of seconds as days and `hh:mm:ss`.
struct Uptime(u64);

impl Display for Uptime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, hours, minutes, seconds) =
            (self.0 / 86_400, self.0 / 3_600 % 24, self.0 / 60 % 60, self.0 % 60);
        if days > 0 {
            write!(f, "{days} d ")?
        }
        write!(f, "{hours:02}:{minutes:02}:{seconds:02}")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn node(engine: Option<Status>) -> NodeStatus {
        NodeStatus {
            version: "1",
            address: "<a>:1".to_owned(),
            grpc: ([127, 0, 0, 1], 1).into(),
            http: ([127, 0, 0, 1], 2).into(),
            state: Condition::Degraded(vec!["<b>".to_owned()]),
            exposed: vec!["<c>".to_owned()],
            serving: true,
            started_micros: 0,
            uptime_seconds: 90_061,
            calls: 3,
            request_bytes: 0,
            engine: engine.map(Arc::new),
            cluster: None,
        }
    }

    #[test]
    fn text_of_tenants_and_servers_is_escaped() {
        let evil = "<script>alert('x')</script>";
        let engine = Status {
            shards: vec![ShardStatus { last_error: evil.to_owned(), ..Default::default() }],
            topics: vec![TopicStatus {
                namespace: evil.to_owned(),
                topic: evil.to_owned(),
                ..Default::default()
            }],
            topic_count: 5,
            ..Default::default()
        };
        let mut page = String::new();
        write(&mut page, "", &node(Some(engine))).unwrap();
        assert!(
            !page.contains("<script")
                && !page.contains("<a>")
                && !page.contains("<b>")
                && !page.contains("<c>"),
            "{page}"
        );
        assert!(page.contains("Insecure: &lt;c&gt;"), "{page}");
        assert_eq!(page.matches("&lt;script&gt;alert(&#39;x&#39;)").count(), 3);
        assert!(page.contains("… and 4 more") && page.contains("up 1 d 01:01:01"), "{page}");
    }

    #[test]
    fn a_stopped_engine_is_shown() {
        let mut page = String::new();
        write(&mut page, "", &node(None)).unwrap();
        assert!(page.contains("The engine has stopped"));
    }
}
