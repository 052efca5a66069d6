//! Needs of each call and each page. A path that has no row here is refused without a valid credential, and a
//! test fails for each call of `forebay.v1` without one.

use crate::scope::Scope;

/// Needs of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: it tells nothing.
    Nothing,
    /// Any valid credential.
    Credential,
    /// A scope in the namespace that the request names.
    InNamespace(Scope),
    /// The same, and `-` as the namespace stands for all of them.
    InNamespaces(Scope),
    /// A scope in all namespaces.
    Everywhere(Scope),
}

impl Needs {
    /// Whether it depends on the namespace that the request names.
    pub const fn is_in_namespace(self) -> bool {
        matches!(self, Self::InNamespace(_) | Self::InNamespaces(_))
    }
}

/// The calls, by path. A path that ends in `/` stands for all that begin so.
pub const CALLS: &[(&str, Needs)] = &[
    ("/forebay.v1.QueueService/Enqueue", Needs::InNamespace(Scope::Produce)),
    ("/forebay.v1.QueueService/Dequeue", Needs::InNamespace(Scope::Consume)),
    ("/forebay.v1.QueueService/Ack", Needs::InNamespace(Scope::Consume)),
    ("/forebay.v1.QueueService/Nack", Needs::InNamespace(Scope::Consume)),
    ("/forebay.v1.QueueService/ExtendLease", Needs::InNamespace(Scope::Consume)),
    ("/forebay.v1.QueueService/GetActiveTopics", Needs::InNamespace(Scope::Observe)),
    // Every client finds the nodes by it. Without `observe` everywhere it learns only how to reach them.
    ("/forebay.v1.AdminService/ListNodes", Needs::Credential),
    ("/forebay.v1.AdminService/ListShards", Needs::Everywhere(Scope::Observe)),
    ("/forebay.v1.AdminService/AddShard", Needs::Everywhere(Scope::Admin)),
    ("/forebay.v1.AdminService/DrainShard", Needs::Everywhere(Scope::Admin)),
    ("/forebay.v1.AdminService/RemoveShard", Needs::Everywhere(Scope::Admin)),
    ("/forebay.v1.AdminService/MoveShard", Needs::Everywhere(Scope::Admin)),
    ("/forebay.v1.AdminService/DrainNode", Needs::Everywhere(Scope::Admin)),
    ("/forebay.v1.AdminService/WhoAmI", Needs::Credential),
    ("/forebay.v1.AdminService/ListTopics", Needs::InNamespaces(Scope::Observe)),
    ("/forebay.v1.AdminService/GetTopic", Needs::InNamespace(Scope::Observe)),
    ("/forebay.v1.AdminService/ListConsumers", Needs::InNamespaces(Scope::Observe)),
    ("/forebay.v1.AdminService/GetHistory", Needs::InNamespaces(Scope::Observe)),
    ("/forebay.v1.AdminService/PutTopic", Needs::InNamespace(Scope::Admin)),
    ("/forebay.v1.AdminService/DeleteTopic", Needs::InNamespace(Scope::Admin)),
    // Its pages walk through the topics of all tenants.
    ("/forebay.v1.AdminService/ListNamespaces", Needs::Everywhere(Scope::Observe)),
    ("/forebay.v1.AdminService/GetNamespace", Needs::InNamespace(Scope::Observe)),
    ("/forebay.v1.AdminService/PutNamespace", Needs::InNamespace(Scope::Admin)),
    ("/forebay.v1.AdminService/DeleteNamespace", Needs::InNamespace(Scope::Admin)),
    // The namespace may be `-`, of all of them: that is for whoever has the right in all.
    ("/forebay.v1.AdminService/ExportSettings", Needs::InNamespaces(Scope::Admin)),
    ("/forebay.v1.AdminService/ApplySettings", Needs::InNamespaces(Scope::Admin)),
    ("/forebay.v1.AdminService/PauseTopic", Needs::InNamespace(Scope::Operate)),
    ("/forebay.v1.AdminService/ResumeTopic", Needs::InNamespace(Scope::Operate)),
    // Payloads, headers and metadata of items are shown only to callers that have `inspect`.
    ("/forebay.v1.AdminService/ListItems", Needs::InNamespace(Scope::Observe)),
    ("/forebay.v1.AdminService/GetItem", Needs::InNamespace(Scope::Observe)),
    ("/forebay.v1.AdminService/CancelItems", Needs::InNamespace(Scope::Operate)),
    ("/forebay.v1.AdminService/UpdateItem", Needs::InNamespace(Scope::Operate)),
    ("/forebay.v1.AdminService/ExplainTopic", Needs::InNamespace(Scope::Observe)),
    // Of what an item carries it tells the reason of its last nack alone, as GetItem does.
    ("/forebay.v1.AdminService/ExplainItem", Needs::InNamespace(Scope::Observe)),
    ("/forebay.v1.AdminService/GroupDeadLetters", Needs::InNamespace(Scope::Observe)),
    ("/forebay.v1.AdminService/StartOperation", Needs::InNamespace(Scope::Operate)),
    ("/forebay.v1.AdminService/GetOperation", Needs::InNamespace(Scope::Operate)),
    ("/forebay.v1.AdminService/ListOperations", Needs::InNamespace(Scope::Operate)),
    ("/forebay.v1.AdminService/CancelOperation", Needs::InNamespace(Scope::Operate)),
    ("/forebay.v1.AdminService/SetOperationRate", Needs::InNamespace(Scope::Operate)),
    // The namespace may be the beginning of names and a *: whoever has the right in all of them.
    ("/forebay.v1.AdminService/ListAuditRecords", Needs::InNamespaces(Scope::Admin)),
    // Which rights a token may have is decided beside this: nobody gives away what it does not have.
    ("/forebay.v1.AdminService/CreateToken", Needs::InNamespaces(Scope::Admin)),
    ("/forebay.v1.AdminService/ListTokens", Needs::InNamespaces(Scope::Admin)),
    ("/forebay.v1.AdminService/RotateToken", Needs::InNamespaces(Scope::Admin)),
    ("/forebay.v1.AdminService/RevokeToken", Needs::InNamespaces(Scope::Admin)),
    ("/grpc.health.v1.Health/", Needs::Nothing),
    ("/grpc.reflection.v1.ServerReflection/", Needs::Credential),
    ("/grpc.reflection.v1alpha.ServerReflection/", Needs::Credential),
];

/// Reader of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// People, in a browser. Without a credential they are led to the login, and refusals are pages too.
    Person,
    /// A program, and whatever a page loads. Refusals are those of calls.
    Program,
}

/// Path of the events that follow an open page.
pub const EVENTS: &str = "/events";
/// The name of the first page, where pages are named.
pub const FIRST_PAGE: &str = "overview";

/// The pages of the HTTP port that are read, by path. The port has no other ones. Those of people lie
/// on one level. What is needed in a namespace is needed in the one of the field `ns` of the query.
pub const PAGES: &[(&str, Needs, Reader)] = &[
    // Whoever may not see the whole cluster is led to its own namespaces.
    ("/", Needs::Credential, Reader::Person),
    ("/topics", Needs::InNamespaces(Scope::Observe), Reader::Person),
    ("/topic", Needs::InNamespace(Scope::Observe), Reader::Person),
    ("/namespace", Needs::InNamespace(Scope::Observe), Reader::Person),
    ("/item", Needs::InNamespace(Scope::Observe), Reader::Person),
    ("/dead-letters", Needs::InNamespace(Scope::Observe), Reader::Person),
    ("/operations", Needs::InNamespace(Scope::Operate), Reader::Person),
    ("/operation", Needs::InNamespace(Scope::Operate), Reader::Person),
    ("/confirm", Needs::InNamespace(Scope::Operate), Reader::Person),
    ("/consumers", Needs::InNamespaces(Scope::Observe), Reader::Person),
    ("/shards", Needs::Everywhere(Scope::Observe), Reader::Person),
    ("/nodes", Needs::Everywhere(Scope::Observe), Reader::Person),
    ("/access", Needs::InNamespaces(Scope::Admin), Reader::Person),
    ("/audit", Needs::InNamespaces(Scope::Admin), Reader::Person),
    ("/search", Needs::InNamespaces(Scope::Observe), Reader::Person),
    // And what the page needs that it follows: `of_events`.
    (EVENTS, Needs::Credential, Reader::Program),
    ("/status.json", Needs::Everywhere(Scope::Observe), Reader::Program),
    ("/metrics", Needs::Everywhere(Scope::Metrics), Reader::Program),
    ("/healthz", Needs::Nothing, Reader::Program),
    ("/readyz", Needs::Nothing, Reader::Program),
    ("/login", Needs::Nothing, Reader::Person),
    ("/assets/app.css", Needs::Nothing, Reader::Program),
    ("/assets/app.js", Needs::Nothing, Reader::Program),
    ("/assets/icon.svg", Needs::Nothing, Reader::Program),
];

/// The forms that pages send, by path: what changes something. The port takes no other ones. What is needed
/// in a namespace is needed in the one of the form's field `ns`.
pub const FORMS: &[(&str, Needs)] = &[
    ("/login", Needs::Nothing),
    ("/logout", Needs::Nothing),
    ("/pause", Needs::InNamespace(Scope::Operate)),
    ("/resume", Needs::InNamespace(Scope::Operate)),
    ("/operate", Needs::InNamespace(Scope::Operate)),
    ("/stop-operation", Needs::InNamespace(Scope::Operate)),
    ("/set-rate", Needs::InNamespace(Scope::Operate)),
    ("/enqueue", Needs::InNamespace(Scope::Produce)),
    ("/cancel-item", Needs::InNamespace(Scope::Operate)),
    ("/update-item", Needs::InNamespace(Scope::Operate)),
    ("/release-leases", Needs::InNamespace(Scope::Operate)),
    ("/put-topic", Needs::InNamespace(Scope::Admin)),
    ("/put-namespace", Needs::InNamespace(Scope::Admin)),
    ("/move-shard", Needs::Everywhere(Scope::Admin)),
    ("/drain-shard", Needs::Everywhere(Scope::Admin)),
    ("/drain-node", Needs::Everywhere(Scope::Admin)),
    ("/create-token", Needs::InNamespaces(Scope::Admin)),
    ("/rotate-token", Needs::InNamespaces(Scope::Admin)),
    ("/revoke-token", Needs::InNamespaces(Scope::Admin)),
];

/// Returns the needs of a call.
pub fn of_call(path: &str) -> Needs {
    let is =
        |row: &&(&str, Needs)| if row.0.ends_with('/') { path.starts_with(row.0) } else { path == row.0 };
    CALLS.iter().find(is).map_or(Needs::Credential, |(_, needs)| *needs)
}

/// Returns the needs of a page, and its reader.
pub fn of_page(path: &str) -> (Needs, Reader) {
    let unknown = (Needs::Credential, Reader::Program);
    PAGES.iter().find(|row| row.0 == path).map_or(unknown, |(_, needs, reader)| (*needs, *reader))
}

/// Returns the needs of following the page of this name: those of the page itself. A name that is no page of
/// people needs a credential, and is not there.
pub fn of_events(name: &str) -> Needs {
    let path = if name == FIRST_PAGE { "" } else { name };
    let page = PAGES.iter().find(|row| row.0.strip_prefix('/') == Some(path) && row.2 == Reader::Person);
    page.map_or(Needs::Credential, |row| if row.1 == Needs::Nothing { Needs::Credential } else { row.1 })
}

/// Returns the needs of a form. `None`: there is no such form.
pub fn of_form(path: &str) -> Option<Needs> {
    FORMS.iter().find(|row| row.0 == path).map(|(_, needs)| *needs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_names_each_call_with_its_right() {
        let text = include_str!("../../../docs/SECURITY.md");
        let row = |right: &str| {
            let begins = format!("| {right} |");
            text.lines().find(|line| line.starts_with(&begins)).expect(right)
        };
        for (path, needs) in CALLS.iter().filter(|(path, _)| path.starts_with("/forebay.")) {
            let call = path.rsplit('/').next().unwrap();
            let right = match needs {
                Needs::Nothing => "none".to_owned(),
                Needs::Credential => "any".to_owned(),
                Needs::InNamespace(scope) | Needs::InNamespaces(scope) | Needs::Everywhere(scope) => {
                    format!("`{}`", scope.as_str())
                }
            };
            let mut names = row(&right).split(|c: char| !c.is_ascii_alphanumeric());
            assert!(names.any(|name| name == call), "{call} is missing in the row of {right}");
        }
    }

    #[test]
    fn what_is_not_listed_needs_a_credential() {
        for path in ["", "/", "/forebay.v1.QueueService/enqueue", "/forebay.internal.v1.X/Y", "/x"] {
            assert_eq!(of_call(path), Needs::Credential, "{path}");
        }
        for path in ["/logout", "//", "/healthz/", "/x"] {
            assert_eq!(of_page(path), (Needs::Credential, Reader::Program), "{path}");
        }
        for path in ["/", "/login/", "/x"] {
            assert_eq!(of_form(path), None, "{path}");
        }
        assert_eq!(of_call("/grpc.health.v1.Health/Watch"), Needs::Nothing);
        assert_eq!(of_call("/forebay.v1.QueueService/Ack"), Needs::InNamespace(Scope::Consume));
        assert_eq!(of_page("/metrics"), (Needs::Everywhere(Scope::Metrics), Reader::Program));
        assert_eq!(of_form("/logout"), Some(Needs::Nothing));
    }

    #[test]
    fn to_follow_a_page_needs_what_the_page_needs() {
        for (path, needs, reader) in PAGES {
            let name = path.trim_start_matches('/');
            let name = if name.is_empty() { FIRST_PAGE } else { name };
            let expected = match (needs, reader) {
                // Nobody follows a page without a credential.
                (Needs::Nothing, _) | (_, Reader::Program) => Needs::Credential,
                (needs, Reader::Person) => *needs,
            };
            assert_eq!(of_events(name), expected, "{path}");
        }
        assert_eq!(of_events("nodes"), Needs::Everywhere(Scope::Observe));
        assert_eq!(of_events("topic"), Needs::InNamespace(Scope::Observe));
        for name in ["", "/nodes", "nothing", "metrics", "events"] {
            assert_eq!(of_events(name), Needs::Credential, "{name:?}");
        }
    }

    #[test]
    fn only_what_tells_nothing_is_public() {
        let public = |rows: &[(&'static str, Needs)]| -> Vec<&str> {
            rows.iter().filter(|row| row.1 == Needs::Nothing).map(|row| row.0).collect()
        };
        assert_eq!(public(CALLS), ["/grpc.health.v1.Health/"]);
        let pages = PAGES.iter().filter(|row| row.1 == Needs::Nothing).map(|row| row.0);
        assert_eq!(
            pages.collect::<Vec<_>>(),
            ["/healthz", "/readyz", "/login", "/assets/app.css", "/assets/app.js", "/assets/icon.svg"]
        );
        // A login needs none, and a logout none that is still valid.
        assert_eq!(public(FORMS), ["/login", "/logout"]);
    }

    #[test]
    fn pages_of_people_lie_on_one_level() {
        let pages = PAGES.iter().filter(|row| row.2 == Reader::Person).map(|row| row.0);
        for path in pages.chain(FORMS.iter().map(|row| row.0)) {
            let name = path.strip_prefix('/').expect("a path");
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{path}");
        }
    }
}
