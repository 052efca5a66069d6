//! How long a refusal takes does not tell why.
//!
//! Each kind of refusal is timed many times, in turns with the others, and the medians are compared: what
//! else the machine does reaches all of them alike. That the comparison finds something is shown with a
//! check that returns early.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use forebay_access::{AuthFailure, Credential, RANDOM_BYTES, Record, SECRET_BYTES, Table, Token, TokenId};
use forebay_types::Timestamp;

const NOW: Timestamp = Timestamp::from_micros(1_000_000);
/// How often each kind is timed.
const ROUNDS: usize = 300;
/// Calls that are timed as one.
const CALLS: u32 = 10;
/// The slowest kind may take so much longer than the fastest.
const SPREAD_MAX: f64 = 1.25;
/// A machine that does much else has so many tries.
const TRIES: u32 = 10;

fn token(seed: u8) -> Token {
    Token::of_random(&[seed; RANDOM_BYTES])
}

fn record(token: &Token) -> Record {
    Record {
        id: token.id().clone(),
        name: "n".to_owned(),
        hashes: vec![token.hash()],
        grants: vec!["*:all".parse().unwrap()],
        ends: None,
        overlap_ends: None,
        revoked: false,
        root: String::new(),
    }
}

#[expect(clippy::disallowed_methods, reason = "what is measured is shorter than a microsecond")]
fn now() -> Instant {
    Instant::now()
}

/// By how much the medians of the slowest and the fastest text differ.
fn spread(texts: &[String], check: impl Fn(&str)) -> f64 {
    let mut times: Vec<Vec<Duration>> = vec![Vec::with_capacity(ROUNDS); texts.len()];
    for round in 0..ROUNDS {
        for turn in 0..texts.len() {
            // Each is the first in as many rounds.
            let kind = (round + turn) % texts.len();
            let began = now();
            for _ in 0..CALLS {
                check(std::hint::black_box(&texts[kind]));
            }
            times[kind].push(began.elapsed());
        }
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        times[times.len() / 2].as_secs_f64()
    };
    let medians: Vec<f64> = times.iter_mut().map(median).collect();
    let [slowest, fastest] = [f64::max, f64::min].map(|of| medians.iter().copied().reduce(of).unwrap());
    slowest / fastest
}

#[test]
fn unknown_wrong_ended_and_revoked_take_the_same_time() {
    let [good, ended, revoked, unknown] = [1, 2, 3, 4].map(token);
    let wrong = Token::with_secret(good.id().clone(), &[9; SECRET_BYTES]);
    // Some more, as a node has.
    let others = (10..200).map(|seed| record(&token(seed)));
    let records = [
        record(&good),
        Record { ends: Some(NOW), ..record(&ended) },
        Record { revoked: true, ..record(&revoked) },
    ];
    let records: Vec<Record> = records.into_iter().chain(others).collect();
    let known: HashSet<TokenId> = records.iter().map(|record| record.id.clone()).collect();
    let table = Table::new(records, []);
    let whole = |text: &str| {
        let credential = Credential::of_token(text).expect("a token");
        table.authenticate(&credential, NOW).map(drop)
    };
    let texts = [unknown, wrong, ended, revoked].map(|token| token.reveal());
    let expected = [AuthFailure::Unknown, AuthFailure::Wrong, AuthFailure::Ended, AuthFailure::Revoked];
    for (text, failed) in texts.iter().zip(expected) {
        assert_eq!(whole(text), Err(failed));
    }

    let same = (0..TRIES).any(|_| spread(&texts, |text| _ = whole(text)) < SPREAD_MAX);
    assert!(same, "the kinds of refusals differ");

    let early = |text: &str| {
        let token = Token::parse(text).expect("a token");
        if known.contains(token.id()) {
            let _ = std::hint::black_box(whole(text));
        }
    };
    let found = (0..TRIES).all(|_| spread(&texts, early) > SPREAD_MAX);
    assert!(found, "a check that returns early is not found");
}
