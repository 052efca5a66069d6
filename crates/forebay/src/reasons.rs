//! Meaning of each reason of an error, and advice. A test compares it with `docs/PROTOCOL.md`.

use forebay_client::Reason;

/// A reason.
#[derive(Debug)]
pub struct ReasonInfo {
    /// The reason.
    pub reason: Reason,
    /// The code of its errors.
    pub code: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
    /// Whether the call took effect nevertheless: `no` or `maybe`.
    pub happened: &'static str,
    /// Advice to the caller.
    pub advice: &'static str,
}

/// Every reason, in the order of the documentation.
pub const REASONS: &[ReasonInfo] = &[
    ReasonInfo {
        reason: Reason::InvalidField,
        code: "INVALID_ARGUMENT",
        meaning: "a field has an invalid value",
        happened: "no",
        advice: "correct the field that the error names",
    },
    ReasonInfo {
        reason: Reason::TooLarge,
        code: "INVALID_ARGUMENT",
        meaning: "something is over its limit",
        happened: "no",
        advice: "make it smaller, or raise its limit in [limits]",
    },
    ReasonInfo {
        reason: Reason::InvalidReceipt,
        code: "INVALID_ARGUMENT",
        meaning: "the string is not a receipt of this system",
        happened: "no",
        advice: "use a receipt as a dequeue returned it",
    },
    ReasonInfo {
        reason: Reason::LeaseLost,
        code: "FAILED_PRECONDITION",
        meaning: "the delivery is over",
        happened: "no",
        advice: "drop the result: the item is done, or somebody else has it; extend leases in time",
    },
    ReasonInfo {
        reason: Reason::TopicPaused,
        code: "FAILED_PRECONDITION",
        meaning: "the topic, or its namespace, is paused for new items; the message says why and until when",
        happened: "no",
        advice: "wait until the topic is resumed",
    },
    ReasonInfo {
        reason: Reason::ItemLeased,
        code: "FAILED_PRECONDITION",
        meaning: "the item is leased, and what waits alone can be updated",
        happened: "no",
        advice: "wait until its lease ends, or end it: see `forebay item get`",
    },
    ReasonInfo {
        reason: Reason::ItemDead,
        code: "FAILED_PRECONDITION",
        meaning: "the item is a dead letter, and what waits alone can be updated",
        happened: "no",
        advice: "redrive it, then update it",
    },
    ReasonInfo {
        reason: Reason::ItemUnreadable,
        code: "FAILED_PRECONDITION",
        meaning: "what is stored of the item can't be read, so it can't be updated",
        happened: "no",
        advice: "a later release may have written it; if not, cancel it and enqueue it again",
    },
    ReasonInfo {
        reason: Reason::ShardDraining,
        code: "FAILED_PRECONDITION",
        meaning: "the shard that the item names takes no new items, because it is drained",
        happened: "no",
        advice: "do not name the shard",
    },
    ReasonInfo {
        reason: Reason::OperationEnded,
        code: "FAILED_PRECONDITION",
        meaning: "the operation has ended, so nothing of it can be changed",
        happened: "no",
        advice: "start another one",
    },
    ReasonInfo {
        reason: Reason::NotEmpty,
        code: "FAILED_PRECONDITION",
        meaning: "the topic or the namespace has items, so it is not deleted",
        happened: "no",
        advice: "remove its items first, with `forebay topic purge` and `forebay dead-letter delete`",
    },
    ReasonInfo {
        reason: Reason::ShardInUse,
        code: "FAILED_PRECONDITION",
        meaning: "the shard is needed as it is: it takes new items, still has some, or is the last one",
        happened: "no",
        advice: "drain it first, and see in `forebay shard list` what is left in it",
    },
    ReasonInfo {
        reason: Reason::ExpectationFailed,
        code: "FAILED_PRECONDITION",
        meaning: "more items match than `expect_at_most`, or not all could be counted",
        happened: "no",
        advice: "look what matches with a dry run",
    },
    ReasonInfo {
        reason: Reason::LastAdmin,
        code: "FAILED_PRECONDITION",
        meaning: "it is the last token of the catalog that has the right `admin` in all namespaces",
        happened: "no",
        advice: "make another such token first",
    },
    ReasonInfo {
        reason: Reason::CatalogTokensOff,
        code: "FAILED_PRECONDITION",
        meaning: "the node accepts no tokens of its catalog",
        happened: "no",
        advice: "set `catalog_tokens = true` under [access]",
    },
    ReasonInfo {
        reason: Reason::WrongNamespace,
        code: "PERMISSION_DENIED",
        meaning: "the credentials have no rights in this namespace, or the receipt belongs to another one",
        happened: "no",
        advice: "use a namespace of the credentials (`forebay whoami`), or the one that the item came from",
    },
    ReasonInfo {
        reason: Reason::ScopeMissing,
        code: "PERMISSION_DENIED",
        meaning: "the credentials lack a right; `scope` in the ErrorInfo's metadata names it",
        happened: "no",
        advice: "use a token with that right, or ask for one; `forebay whoami` shows the rights",
    },
    ReasonInfo {
        reason: Reason::NotAllowed,
        code: "PERMISSION_DENIED",
        meaning: "the node does not accept this namespace",
        happened: "no",
        advice: "use another namespace, or let the node accept this one",
    },
    ReasonInfo {
        reason: Reason::NoCredentials,
        code: "UNAUTHENTICATED",
        meaning: "the call shows no credentials, and the node asks for them",
        happened: "no",
        advice: "show a token with --token-file or FOREBAY_TOKEN",
    },
    ReasonInfo {
        reason: Reason::BadCredentials,
        code: "UNAUTHENTICATED",
        meaning: "the credentials are not valid: unknown, wrong, ended or revoked",
        happened: "no",
        advice: "get a new token; the old one may have ended",
    },
    ReasonInfo {
        reason: Reason::QuotaExceeded,
        code: "RESOURCE_EXHAUSTED",
        meaning: "reserved for a tenant's quotas",
        happened: "no",
        advice: "remove items, or ask for a larger quota",
    },
    ReasonInfo {
        reason: Reason::RateLimited,
        code: "RESOURCE_EXHAUSTED",
        meaning: "more calls came over the connection, or for the namespace, than may in a second; the \
                  QuotaFailure names the limit",
        happened: "no",
        advice: "repeat after the delay that the error names",
    },
    ReasonInfo {
        reason: Reason::Overloaded,
        code: "RESOURCE_EXHAUSTED",
        meaning: "the node or the shard is at one of its load limits",
        happened: "no",
        advice: "repeat after the delay that the error names; if it goes on, see docs/ALERTS.md",
    },
    ReasonInfo {
        reason: Reason::TooManyLeased,
        code: "RESOURCE_EXHAUSTED",
        meaning: "the limit of leased items is reached",
        happened: "no",
        advice: "ack items, or wait for leases to end",
    },
    ReasonInfo {
        reason: Reason::TooManyTopics,
        code: "RESOURCE_EXHAUSTED",
        meaning: "the namespace, or the node, has reached its limit of topics",
        happened: "no",
        advice: "use fewer topics: one without items counts no more after an hour",
    },
    ReasonInfo {
        reason: Reason::TooManyTokens,
        code: "RESOURCE_EXHAUSTED",
        meaning: "the namespace has 1,000 tokens, or the cluster 10,000",
        happened: "no",
        advice: "revoke tokens: one that is revoked or has ended counts no more after 30 days",
    },
    ReasonInfo {
        reason: Reason::TooManyPolicies,
        code: "RESOURCE_EXHAUSTED",
        meaning: "the namespace has pauses, or settings, of 1,000 topics, those whose rights descend from \
                  one token of 2,000, or the cluster of 10,000",
        happened: "no",
        advice: "resume topics, or pause the whole namespace",
    },
    ReasonInfo {
        reason: Reason::DiskFull,
        code: "RESOURCE_EXHAUSTED",
        meaning: "the shard's disk is full; acks may still work",
        happened: "no",
        advice: "make room on the disk of the shard",
    },
    ReasonInfo {
        reason: Reason::ShardUnavailable,
        code: "UNAVAILABLE",
        meaning: "the shard does not answer",
        happened: "no",
        advice: "repeat; see `forebay shard list` for what is wrong with the shard",
    },
    ReasonInfo {
        reason: Reason::NotOwner,
        code: "UNAVAILABLE",
        meaning: "another node owns the shard, and this one could not pass the call on to it, or does not \
                  list the shard",
        happened: "no",
        advice: "repeat, or call another node; clients with all addresses do so by themselves",
    },
    ReasonInfo {
        reason: Reason::NodeDraining,
        code: "UNAVAILABLE",
        meaning: "the node is stopping: use another one",
        happened: "no",
        advice: "call another node",
    },
    ReasonInfo {
        reason: Reason::CatalogUnavailable,
        code: "UNAVAILABLE",
        meaning: "the catalog does not answer, so nothing can be changed in it or written down",
        happened: "maybe",
        advice: "repeat: it does no harm; see docs/ALERTS.md",
    },
    ReasonInfo {
        reason: Reason::OutcomeUnknown,
        code: "UNAVAILABLE",
        meaning: "the outcome of the commit is not known",
        happened: "maybe",
        advice: "repeat it with a request id or a dedupe key, so that nothing is stored twice",
    },
    ReasonInfo {
        reason: Reason::TopicNotFound,
        code: "NOT_FOUND",
        meaning: "all shards were asked, and none has it",
        happened: "no",
        advice: "check the name and the namespace: a topic that is empty may be forgotten",
    },
    ReasonInfo {
        reason: Reason::ItemNotFound,
        code: "NOT_FOUND",
        meaning: "all shards were asked, and none has it",
        happened: "no",
        advice: "check the id and the namespace: an item that is done is gone",
    },
    ReasonInfo {
        reason: Reason::OperationNotFound,
        code: "NOT_FOUND",
        meaning: "all shards were asked, and none has it",
        happened: "no",
        advice: "check the id and the namespace: of those that have ended some are kept, for 30 days",
    },
    ReasonInfo {
        reason: Reason::TokenNotFound,
        code: "NOT_FOUND",
        meaning: "the catalog has no such token in the namespace, or it is revoked",
        happened: "no",
        advice: "check the id and the namespace (`forebay token list`); tokens of a file are in the file",
    },
    ReasonInfo {
        reason: Reason::NamespaceNotFound,
        code: "NOT_FOUND",
        meaning: "the namespace has no topics, settings or pauses",
        happened: "no",
        advice: "check its name: a namespace comes into being with its first item",
    },
    ReasonInfo {
        reason: Reason::ShardNotFound,
        code: "NOT_FOUND",
        meaning: "the catalog has no shard of this number",
        happened: "no",
        advice: "see `forebay shard list`",
    },
    ReasonInfo {
        reason: Reason::NodeNotFound,
        code: "NOT_FOUND",
        meaning: "the catalog has no node of this name",
        happened: "no",
        advice: "see `forebay node list`",
    },
    ReasonInfo {
        reason: Reason::VersionMismatch,
        code: "ABORTED",
        meaning: "somebody else has changed the settings since their version was read",
        happened: "no",
        advice: "look at the settings as they are now, and decide anew",
    },
    ReasonInfo {
        reason: Reason::RequestIdReused,
        code: "ALREADY_EXISTS",
        meaning: "the request id was used for something else",
        happened: "no",
        advice: "use a new request id for a new request",
    },
    ReasonInfo {
        reason: Reason::DeadlineExceeded,
        code: "DEADLINE_EXCEEDED",
        meaning: "the deadline passed",
        happened: "maybe",
        advice: "repeat it as after OUTCOME_UNKNOWN, with more time",
    },
    ReasonInfo {
        reason: Reason::Unimplemented,
        code: "UNIMPLEMENTED",
        meaning: "not implemented in this version",
        happened: "no",
        advice: "use a newer server, or do without it",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The cells of a row of a table.
    fn cells(line: &str) -> Option<Vec<&str>> {
        Some(line.strip_prefix('|')?.trim_end().strip_suffix('|')?.split('|').map(str::trim).collect())
    }

    #[test]
    fn the_documentation_says_the_same() {
        let page = include_str!("../../../docs/PROTOCOL.md");
        let table = page.lines().skip_while(|line| !line.starts_with("| code | reason |")).skip(2);
        let (mut documented, mut code) = (Vec::new(), "");
        for row in table.map_while(cells) {
            let [in_code, reasons, meaning, happened] = row[..] else { panic!("{row:?}") };
            code = if in_code.is_empty() { code } else { in_code };
            let names = reasons.split('`').skip(1).step_by(2);
            documented.extend(names.map(|name| (name, code, meaning, happened)));
        }
        let known = REASONS.iter().map(|info| (info.reason.as_str(), info.code, info.meaning, info.happened));
        assert_eq!(documented, known.collect::<Vec<_>>());
    }

    #[test]
    fn every_reason_is_explained() {
        let missing =
            Reason::ALL.into_iter().find(|reason| !REASONS.iter().any(|info| info.reason == *reason));
        assert_eq!(missing, None);
    }
}
