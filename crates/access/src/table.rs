//! All credentials that a node accepts.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use forebay_types::Timestamp;
use subtle::Choice;

use crate::{
    credential::Credential,
    grant::Grant,
    identity::{Identity, Kind},
    secret_hash::SecretHash,
    token::TokenId,
};

/// A token, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Names it.
    pub id: TokenId,
    /// For people.
    pub name: String,
    /// Of its secrets: one, or two while one replaces the other. The newest is the last one.
    pub hashes: Vec<SecretHash>,
    /// Rights of its holder.
    pub grants: Vec<Grant>,
    /// From when on it is of no use. `None`: never.
    pub ends: Option<Timestamp>,
    /// From when on only its newest secret is of use. `None`: all of them are as long as it is.
    pub overlap_ends: Option<Timestamp>,
    /// It is of no use any more.
    pub revoked: bool,
    /// From whom its rights descend. Empty: it is a root itself.
    pub root: String,
}

/// Why a credential is not accepted. Callers learn only that it is not; this is for operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthFailure {
    /// No token has this id, or no certificate this name.
    Unknown,
    /// The token has another secret.
    Wrong,
    /// The token or the certificate has ended.
    Ended,
    /// The token was revoked.
    Revoked,
}

impl AuthFailure {
    /// In the words of the metric.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Wrong => "wrong",
            Self::Ended => "ended",
            Self::Revoked => "revoked",
        }
    }
}

/// A token with what its holder is.
#[derive(Debug)]
struct Entry {
    /// As it is kept.
    record: Record,
    /// Its holder.
    identity: Arc<Identity>,
    /// The same, by a secret that is replaced: those rights end with the overlap.
    replaced: Arc<Identity>,
    /// Hours from the Unix epoch to its last use, as far as this table has seen it.
    used: AtomicI64,
}

impl Entry {
    /// Whose a secret is, and when it ends. Two are compared in any case, so that the time tells nothing.
    fn holder(&self, hash: &SecretHash) -> Option<&Arc<Identity>> {
        let same = |known: &SecretHash| known.matches(hash);
        let (newest, older) = self.record.hashes.split_last()?;
        let none = older.is_empty().then(|| same(&SecretHash::NONE) & Choice::from(0));
        let older = older.iter().map(same).chain(none).fold(Choice::from(0), |any, one| any | one);
        let newest = same(newest);
        match (bool::from(newest), bool::from(older)) {
            (true, _) => Some(&self.identity),
            (false, true) => Some(&self.replaced),
            (false, false) => None,
        }
    }
}

/// All credentials that a node accepts.
#[derive(Debug, Default)]
pub struct Table {
    /// Tokens.
    tokens: HashMap<TokenId, Entry>,
    /// Holders of certificates, by the name in them.
    certificates: HashMap<String, Arc<Identity>>,
}

impl Table {
    /// With these tokens and certificates. The ids and the names are unique.
    pub fn new(
        tokens: impl IntoIterator<Item = Record>,
        certificates: impl IntoIterator<Item = (String, Vec<Grant>)>,
    ) -> Self {
        let entry = |record: Record| {
            let identity = Identity {
                kind: Kind::Token,
                id: record.id.to_string(),
                name: record.name.clone(),
                grants: record.grants.clone(),
                ends: record.ends,
                root: record.root.clone(),
            };
            let ends = [record.ends, record.overlap_ends].into_iter().flatten().min();
            let replaced = Arc::new(Identity { ends, ..identity.clone() });
            let (identity, used) = (Arc::new(identity), AtomicI64::new(i64::MIN));
            (record.id.clone(), Entry { record, identity, replaced, used })
        };
        let holder = |(san, grants): (String, Vec<Grant>)| {
            let (id, (name, root)) = (san.clone(), Default::default());
            (san, Arc::new(Identity { kind: Kind::Certificate, id, name, grants, ends: None, root }))
        };
        Self {
            tokens: tokens.into_iter().map(entry).collect(),
            certificates: certificates.into_iter().map(holder).collect(),
        }
    }

    /// Whose a credential is. For tokens that are unknown, wrong, ended and revoked the same is done.
    pub fn authenticate(
        &self,
        credential: &Credential,
        now: Timestamp,
    ) -> Result<Arc<Identity>, AuthFailure> {
        match credential {
            Credential::Certificate { name, ends } => {
                let holder = self.certificates.get(name).ok_or(AuthFailure::Unknown)?;
                match *ends <= now {
                    true => Err(AuthFailure::Ended),
                    false => Ok(Arc::new(Identity { ends: Some(*ends), ..Identity::clone(holder) })),
                }
            }
            Credential::Token { id, hash } => {
                let Some(entry) = self.tokens.get(id) else {
                    // As much work as for one that is known.
                    let (newest, older) = (SecretHash::NONE.matches(hash), SecretHash::NONE.matches(hash));
                    let _ = bool::from(newest | older);
                    return Err(AuthFailure::Unknown);
                };
                let holder = entry.holder(hash).ok_or(AuthFailure::Wrong)?;
                match (entry.record.revoked, holder.ends) {
                    (true, _) => Err(AuthFailure::Revoked),
                    (_, Some(ends)) if ends <= now => Err(AuthFailure::Ended),
                    _ => Ok(holder.clone()),
                }
            }
        }
    }

    /// Notes that a token is used. Returns whether that is the first time in this hour.
    pub fn is_first_use(&self, id: &TokenId, now: Timestamp) -> bool {
        let hour = now.as_micros().div_euclid(3_600_000_000);
        self.tokens.get(id).is_some_and(|entry| entry.used.fetch_max(hour, Ordering::Relaxed) < hour)
    }

    /// The hash of a token's newest secret. `None`: the token is unknown, or of no use any more.
    pub fn hash(&self, id: &TokenId, now: Timestamp) -> Option<SecretHash> {
        let Record { hashes, ends, revoked, .. } = &self.tokens.get(id)?.record;
        let valid = !revoked && ends.is_none_or(|ends| ends > now);
        hashes.last().copied().filter(|_| valid)
    }

    /// When the first of the tokens ends that are of use in a namespace, by that, as grants write it. Tokens
    /// without an end have no part in it.
    pub fn ends(&self, now: Timestamp) -> BTreeMap<String, Timestamp> {
        let mut first: BTreeMap<String, Timestamp> = BTreeMap::new();
        for Record { grants, ends, revoked, .. } in self.tokens.values().map(|entry| &entry.record) {
            let Some(ends) = ends.filter(|ends| !revoked && *ends > now) else { continue };
            for grant in grants {
                let known = first.entry(grant.namespaces.to_string()).or_insert(ends);
                *known = ends.min(*known);
            }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::{RANDOM_BYTES, Token};

    const NOW: Timestamp = Timestamp::from_micros(1_000_000);

    fn token(seed: u8) -> Token {
        Token::of_random(&[seed; RANDOM_BYTES])
    }

    fn record(token: &Token) -> Record {
        let grants = vec!["a:produce".parse().unwrap()];
        let (id, hashes) = (token.id().clone(), vec![token.hash()]);
        let (name, ends, overlap_ends) = ("n".to_owned(), None, None);
        Record { id, name, hashes, grants, ends, overlap_ends, revoked: false, root: String::new() }
    }

    fn shown(token: &Token) -> Credential {
        Credential::of_token(&token.reveal()).unwrap()
    }

    #[test]
    fn the_first_end_of_each_namespace_is_known() {
        let end = |seconds: i64| Some(Timestamp::from_micros(seconds * 1_000_000));
        let record = |seed: u8, grants: &[&str], ends| {
            let grants = grants.iter().map(|grant| grant.parse().unwrap()).collect();
            Record { grants, ends, ..record(&token(seed)) }
        };
        let records = [
            record(1, &["a:produce", "team-*:all"], end(30)),
            record(2, &["a:consume"], end(20)),
            record(3, &["a:all", "*:observe"], None),
            record(4, &["a:all"], end(1)),
            Record { revoked: true, ..record(5, &["a:all"], end(10)) },
        ];
        let ends: Vec<_> = Table::new(records, []).ends(NOW).into_iter().collect();
        assert_eq!(ends, [("a".to_owned(), end(20).unwrap()), ("team-*".to_owned(), end(30).unwrap())]);
    }

    #[test]
    fn a_token_is_accepted_while_it_is_of_use() {
        let (good, other, ending, revoked) = (token(1), token(2), token(3), token(4));
        let table = Table::new(
            [
                record(&good),
                Record { ends: Some(NOW), ..record(&ending) },
                Record { revoked: true, ..record(&revoked) },
            ],
            [],
        );
        let ask = |token: &Token, now| table.authenticate(&shown(token), now);
        let identity = ask(&good, NOW).unwrap();
        assert_eq!((identity.kind, &*identity.name, &*identity.id), (Kind::Token, "n", good.id().as_str()));
        assert_eq!(ask(&other, NOW), Err(AuthFailure::Unknown));
        assert_eq!(ask(&ending, NOW), Err(AuthFailure::Ended));
        assert!(ask(&ending, Timestamp::from_micros(999_999)).is_ok());
        assert_eq!(ask(&revoked, NOW), Err(AuthFailure::Revoked));
        let wrong = Credential::Token { id: good.id().clone(), hash: other.hash() };
        assert_eq!(table.authenticate(&wrong, NOW), Err(AuthFailure::Wrong));
        assert!(table.hash(good.id(), NOW).is_some());
        assert_eq!((table.hash(ending.id(), NOW), table.hash(revoked.id(), NOW)), (None, None));
    }

    #[test]
    fn the_first_use_of_an_hour_is_told_once() {
        let (one, other) = (token(1), token(2));
        let table = Table::new([record(&one)], []);
        let hours = [5, 5, 6, 5, 6, 7].map(|hour| Timestamp::from_micros(hour * 3_600_000_000 + 1));
        let first: Vec<bool> = hours.iter().map(|now| table.is_first_use(one.id(), *now)).collect();
        assert_eq!(first, [true, false, true, false, false, true]);
        assert!(!table.is_first_use(other.id(), NOW), "it is not known");
    }

    #[test]
    fn the_dummy_of_an_unknown_token_opens_nothing() {
        let none = Credential::Token { id: token(1).id().clone(), hash: SecretHash::NONE };
        assert_eq!(Table::default().authenticate(&none, NOW), Err(AuthFailure::Unknown));
    }

    #[test]
    fn the_same_is_done_for_every_token_that_is_refused() {
        let (good, other, old) = (token(1), token(2), token(5));
        let (ending, revoked) = (token(3), token(4));
        let table = Table::new(
            [
                record(&good),
                Record { ends: Some(NOW), ..record(&ending) },
                Record { revoked: true, ..record(&revoked) },
                Record { hashes: vec![old.hash(), other.hash()], overlap_ends: Some(NOW), ..record(&old) },
            ],
            [],
        );
        let work = |credential: &Credential| {
            let before = SecretHash::comparisons();
            let failed = table.authenticate(credential, NOW).unwrap_err();
            (failed, SecretHash::comparisons() - before)
        };
        let of = |token: &Token, hash| Credential::Token { id: token.id().clone(), hash };
        for (credential, failed) in [
            (shown(&other), AuthFailure::Unknown),
            (of(&good, other.hash()), AuthFailure::Wrong),
            (of(&old, good.hash()), AuthFailure::Wrong),
            (shown(&old), AuthFailure::Ended),
            (shown(&ending), AuthFailure::Ended),
            (of(&ending, other.hash()), AuthFailure::Wrong),
            (shown(&revoked), AuthFailure::Revoked),
        ] {
            assert_eq!(work(&credential), (failed, 2));
        }
    }

    #[test]
    fn two_secrets_are_of_use_while_one_replaces_the_other() {
        let (old, new) = (token(1), token(2));
        let table = Table::new([Record { hashes: vec![old.hash(), new.hash()], ..record(&old) }], []);
        for hash in [old.hash(), new.hash()] {
            assert!(table.authenticate(&Credential::Token { id: old.id().clone(), hash }, NOW).is_ok());
        }
        assert_eq!(table.hash(old.id(), NOW), Some(new.hash()));
    }

    #[test]
    fn a_certificate_is_known_by_its_exact_name() {
        let grants = vec!["a:consume".parse().unwrap()];
        let table = Table::new([], [("spiffe://prod/worker".to_owned(), grants)]);
        let ask = |name: &str| {
            let ends = Timestamp::from_micros(2_000_000);
            table.authenticate(&Credential::Certificate { name: name.to_owned(), ends }, NOW)
        };
        assert_eq!(ask("spiffe://prod/worker").unwrap().kind, Kind::Certificate);
        for name in ["spiffe://prod/Worker", "spiffe://prod/worker/", ""] {
            assert_eq!(ask(name), Err(AuthFailure::Unknown));
        }
    }

    #[test]
    fn the_rights_of_a_certificate_end_with_it() {
        let table = Table::new([], [("worker".to_owned(), vec!["a:consume".parse().unwrap()])]);
        let ask =
            |ends| table.authenticate(&Credential::Certificate { name: "worker".to_owned(), ends }, NOW);
        let later = Timestamp::from_micros(NOW.as_micros() + 1);
        assert_eq!(ask(later).unwrap().ends, Some(later));
        assert_eq!(ask(NOW), Err(AuthFailure::Ended));
    }
}
