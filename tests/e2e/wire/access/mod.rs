//! Rights of callers: every call, page and form, with every kind of credential.

mod browsers;
mod grid;
mod login_log;
mod pages;
mod request_ids;
mod rights_end;
mod rotation;
mod strangers;
mod table;
mod token_ends;

use std::fs;

use forebay_access::Token;
use forebay_proto::v1::{EnqueueRequest, GetActiveTopicsRequest};
use forebay_testkit::program;
use prost::Message as _;
use serde_json::Value;
use tempfile::TempDir;
use tonic::{Code, Request as Grpc, Status, transport::Channel};
use tonic_types::StatusExt as _;

use super::{http1::Request, raw};
use crate::{
    kept_tokens::{file, record, token},
    node::Node,
};

/// The namespace of the tenant in question.
pub const OWN: &str = "own";

/// A node that asks for credentials, and its file of tokens.
pub struct GuardedNode {
    /// The node.
    pub node: Node,
    /// The file, the configuration and the log.
    pub folder: TempDir,
}

impl GuardedNode {
    /// With this file of tokens.
    pub async fn start(tokens: &str) -> Self {
        Self::start_with(tokens, "").await
    }

    /// With this file of tokens, and more of a configuration.
    async fn start_with(tokens: &str, more: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("forebay-access-").tempdir().unwrap();
        let at = |file: &str| folder.path().join(file).display().to_string();
        fs::write(at("tokens.toml"), tokens).unwrap();
        let text = format!(
            "[node]\ngrpc = \"127.0.0.1:0\"\nhttp = \"127.0.0.1:0\"\ndrain_ms = 0\n\
             {more}[access]\ntokens_file = \"{}\"\n[[shard]]\nid = 1\nurl = \"sqlite://{}\"\n",
            at("tokens.toml"),
            at("1.db"),
        );
        let config = at("forebay.toml");
        fs::write(&config, text).unwrap();
        Node::run(&["migrate".into(), "--config".into(), config.clone()]).await;
        let node =
            Node::start(&["serve".into(), "--config".into(), config], &folder.path().join("log")).await;
        Self { node, folder }
    }

    /// Puts another file of tokens in the place of the one before.
    pub fn replace_tokens(&self, text: &str) {
        let (new, path) = (self.folder.path().join("new"), self.folder.path().join("tokens.toml"));
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
    }

    /// Makes a call over gRPC: with the namespace, if it has one.
    async fn grpc(&self, channel: Channel, path: &str, namespace: &str, shown: &[&str]) -> Outcome {
        let message = GetActiveTopicsRequest { namespace: namespace.to_owned(), ..Default::default() };
        let mut request = Grpc::new(message.encode_to_vec().into());
        for text in shown {
            request.metadata_mut().append("authorization", text.parse().unwrap());
        }
        Outcome::of(&raw::send_to(channel, path, request).await.err())
    }

    /// The same as JSON.
    async fn json(&self, path: &str, message: &Value, shown: &[&str]) -> Outcome {
        let mut request = Request::call(path, message);
        for text in shown {
            request = request.with("Authorization", text);
        }
        let answer = request.send(&self.node.http).await;
        let document: Value = serde_json::from_slice(&answer.body).unwrap();
        let info = &document["details"][0]["debug"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if answer.status == 401 {
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
        match answer.status {
            401 | 403 => Outcome::Refused {
                authenticated: answer.status == 403,
                reason: text(&info["reason"]),
                scope: text(&info["metadata"]["scope"]),
                message: text(&document["message"]),
            },
            _ => Outcome::Passed,
        }
    }
}

/// Outcome of a request, as far as rights go.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    /// It was let through, whatever came then.
    Passed,
    /// It was not.
    Refused {
        /// It is known who asks.
        authenticated: bool,
        /// The reason.
        reason: String,
        /// The right that is missing.
        scope: String,
        /// The text that people read.
        message: String,
    },
}

impl Outcome {
    fn of(failed: &Option<Status>) -> Self {
        let Some(status) = failed else { return Self::Passed };
        let authenticated = match status.code() {
            Code::Unauthenticated => false,
            Code::PermissionDenied => true,
            _ => return Self::Passed,
        };
        let info = status.get_details_error_info().expect("every refusal has a reason");
        let scope = info.metadata.get("scope").cloned().unwrap_or_default();
        Self::Refused { authenticated, reason: info.reason, scope, message: status.message().to_owned() }
    }

    /// Reason and right, or nothing.
    fn short(&self) -> String {
        match self {
            Self::Passed => String::new(),
            Self::Refused { reason, scope, .. } => format!("{reason} {scope}").trim().to_owned(),
        }
    }
}

pub fn bearer(token: &Token) -> String {
    format!("Bearer {}", token.reveal())
}

#[tokio::test]
async fn the_command_line_makes_a_token_that_nodes_accept_and_hides_it() {
    let guarded = GuardedNode::start("").await;
    let tokens = guarded.folder.path().join("tokens.toml");
    let run = async |arguments: &[&str], shown: &str| {
        let mut command = std::process::Command::new(program());
        command.args(arguments).env("FOREBAY_ADDR", &guarded.node.grpc).env("FOREBAY_TOKEN", shown);
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let (out, err) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        (output.status.code(), out, err)
    };
    let file = tokens.display().to_string();
    let grant = format!("{OWN}:produce");
    let create = ["token", "create", "--name", "n", "--grant", &grant, "--tokens-file", &file];
    let (code, made, _) = run(&create, "").await;
    assert_eq!(code, Some(0));
    let made = made.trim();
    let kept = fs::read_to_string(&tokens).unwrap();
    let secret = &made[made.rfind('_').unwrap() + 1..];
    assert!(Token::parse(made).is_some() && !kept.contains(&secret[..20]), "{kept}");

    // The node looks at the file every second.
    let begun = tokio::time::Instant::now();
    loop {
        let (code, out, err) = run(&["whoami"], made).await;
        if code == Some(0) {
            assert!(out.contains("own:produce"), "{out}");
            break;
        }
        assert!(code == Some(4) && err.contains("BAD_CREDENTIALS"), "{code:?} {err}");
        assert!(begun.elapsed().as_secs() < 20, "the token is never accepted: {err}");
    }
    let enqueue = |namespace: &'static str| ["enqueue", "--namespace", namespace, "--topic", "t", "x"];
    assert_eq!(run(&enqueue(OWN), made).await.0, Some(0));
    let (code, _, err) = run(&enqueue("other"), made).await;
    assert!(code == Some(4) && err.contains("WRONG_NAMESPACE"), "{err}");
    let (code, _, err) = run(&enqueue(OWN), "").await;
    assert!(code == Some(4) && err.contains("NO_CREDENTIALS") && err.contains("--token-file"), "{err}");
    let log = fs::read_to_string(guarded.folder.path().join("log")).unwrap();
    assert!(!log.contains(secret), "the log has the secret");
    // Typed without its checksum it is no token.
    let request = EnqueueRequest { namespace: OWN.to_owned(), ..Default::default() };
    let mut request = Grpc::new(request.encode_to_vec().into());
    request
        .metadata_mut()
        .insert("authorization", format!("Bearer {}", &made[..made.len() - 6]).parse().unwrap());
    let path = "/forebay.v1.QueueService/Enqueue";
    let refused = raw::send_to(guarded.node.channel(), path, request).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
}
