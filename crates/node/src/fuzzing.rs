//! Targets of the fuzzer, for input from outside: page tokens, configurations, and requests as JSON.

use std::sync::{Arc, LazyLock};

use forebay_config::Config;
use forebay_edge::rpc::{List, PageTokens};
use forebay_types::{Clock, Monotonic, Timestamp};
pub use forebay_web::fuzz_json_bodies as json_bodies;

/// A clock that stands.
struct Standing;

impl Clock for Standing {
    fn wall(&self) -> Timestamp {
        Timestamp::from_micros(1_780_000_000_000_000)
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::default()
    }
}

static TOKENS: LazyLock<PageTokens> = LazyLock::new(|| PageTokens::new(&[b"secret"], Arc::new(Standing)));

/// Takes the bytes as a token, and as a position: a token is read in its own list alone, and not if it was
/// damaged.
///
/// # Panics
///
/// If that does not hold.
pub fn page_tokens(bytes: &[u8]) {
    let list = List { tokens: &TOKENS, name: "ListItems", namespace: "tenant", query: "priority = 1" };
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.is_empty()
    {
        match list.position(text) {
            // The fuzzer sees what is compared here, so it learns tokens. Each is that of its position.
            Ok(position) => assert_eq!(list.token(&position.unwrap_or_default()), text),
            Err(refusal) => assert_eq!(refusal.field.as_deref(), Some("page_token")),
        }
    }
    let token = list.token(bytes);
    assert_eq!(list.position(&token).expect("reads").as_deref(), Some(bytes));
    assert!(List { query: "priority = 2", ..list }.position(&token).is_err());
    let [at, with, ..] = bytes else { return };
    let mut damaged = token.clone().into_bytes();
    let at = usize::from(*at) % damaged.len();
    damaged[at] = with & 0x7f;
    let damaged = String::from_utf8(damaged).unwrap_or_default();
    if damaged != token && !damaged.is_empty() {
        assert!(list.position(&damaged).is_err(), "{damaged}");
    }
}

/// Takes the bytes as a configuration: a wrong one says what is wrong, line by line.
///
/// # Panics
///
/// If it does not.
pub fn configuration(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // A file that is named there is read, and some have no end.
    if text.contains("/dev") || text.contains("/proc") {
        return;
    }
    let variables = || std::iter::empty::<(String, String)>();
    match Config::parse(&text, variables(), Vec::new()) {
        Ok(_) => assert!(Config::parse(&text, variables(), Vec::new()).is_ok()),
        Err(error) => {
            assert!(!error.0.is_empty() && error.0.iter().all(|line| !line.trim().is_empty()), "{text}");
        }
    }
}
