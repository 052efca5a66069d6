//! Rows of the table of tokens.

use std::collections::{BTreeMap, BTreeSet};

use forebay_types::Timestamp;
use serde::{Deserialize, Serialize};

use super::root_bounds::RootBounds;

/// A token, as it is kept. Of its secrets there are hashes alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRow {
    /// Names it: 12 letters and digits.
    pub id: String,
    /// All grants lie in it: a namespace, the beginning of names and `*`, or `*` for all. Up to 255 bytes.
    pub namespace: String,
    /// For people. Up to 200 bytes.
    pub name: String,
    /// SHA-256 of its newest secret.
    pub secret: [u8; 32],
    /// Which RotateToken gave it its newest secret. `None`, or if that secret has another: not known.
    pub rotation: Option<[u8; 32]>,
    /// SHA-256 of the secret before, which holds until `overlap_ends`.
    pub older_secret: Option<[u8; 32]>,
    /// Rights of its holder, with blanks between grants. Up to 4 KiB.
    pub grants: String,
    /// Name of its maker. Up to 255 bytes.
    pub made_by: String,
    /// The id of the token that made it. Empty: none did, or it is not known.
    pub made_by_id: String,
    /// From whom it descends, up to 255 bytes. Whoever adds it leaves it to the catalog. Empty: it is not
    /// known.
    pub root: String,
    /// When it was made.
    pub made_at: Timestamp,
    /// From when on it is of no use. `None`: never.
    pub ends: Option<Timestamp>,
    /// Until when the older secret holds.
    pub overlap_ends: Option<Timestamp>,
    /// Since when it is of no use. `None`: it is not revoked.
    pub revoked: Option<Timestamp>,
    /// The hour in which it was last used.
    pub last_used: Option<Timestamp>,
    /// Its grants contain the right `admin` in all namespaces.
    pub is_admin: bool,
}

/// How many tokens a catalog holds, revoked ones included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBounds {
    /// With one `namespace`.
    pub per_namespace: u64,
    /// By root.
    pub by_root: RootBounds,
}

impl TokenBounds {
    /// Bounds of a catalog. A row has 5 KiB at most, so that all of them have 50 MiB.
    pub const DEFAULT: Self = Self { per_namespace: 1_000, by_root: RootBounds::DEFAULT };
}

/// Maker of a token. A token that an operator makes is a root. Tokens that its holder makes descend from it,
/// and so do tokens that their holders make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenMaker {
    /// Somebody with `admin` in all namespaces.
    Operator,
    /// The holder of the token with this id.
    Token(String),
    /// Another holder of rights, by its name. Up to 255 bytes.
    Other(String),
}

impl TokenMaker {
    /// Whether all that there may be is this maker's to fill.
    pub fn is_operator(&self) -> bool {
        matches!(self, Self::Operator)
    }
}

/// A token that is to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// The token.
    pub row: TokenRow,
    /// Its maker.
    pub maker: TokenMaker,
    /// Only while no other token with all rights is of use at this time.
    pub if_no_admin_at: Option<Timestamp>,
    /// Tokens that ended or were revoked before are deleted.
    pub forget_before: Timestamp,
    /// Bounds of the table.
    pub bounds: TokenBounds,
}

/// The result of adding a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenAddOutcome {
    /// It is there, as of this version.
    Yes(u64),
    /// A token has the id.
    IdTaken,
    /// There is a token with the right `admin` in all namespaces.
    HasAdmin,
    /// The namespace has as many tokens as it may have.
    NamespaceFull,
    /// As many tokens descend from the root of the maker as may.
    RootFull,
    /// The catalog has as many tokens as it may have, or as this maker may fill.
    Full,
}

/// A change of one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenChange {
    /// It gets another secret, if its newest one is still this.
    Rotate {
        /// The newest secret so far.
        from: [u8; 32],
        /// The newest secret from now on.
        secret: [u8; 32],
        /// Which call does so. `None`: one without a request id.
        rotation: Option<[u8; 32]>,
        /// Until when the one so far holds too. `None`: it is of no use any more.
        overlap_ends: Option<Timestamp>,
    },
    /// It is of no use any more. The last one with all rights that is of use at this time can't be.
    Revoke {
        /// The time.
        at: Timestamp,
        /// And so are those that it made, those that these made, and so on.
        with_descendants: bool,
    },
}

/// The result of changing a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenChangeOutcome {
    /// It is changed, as of this version.
    Yes(u64),
    /// It is of no use any more.
    Revoked {
        /// As of this version.
        version: u64,
        /// Tokens that descend from it and were of use until now. They are revoked too if that was asked for.
        descendants: u32,
    },
    /// There is none.
    NoToken,
    /// It is revoked, or was rotated meanwhile.
    Stale,
    /// It is the last one with the right `admin` in all namespaces.
    LastAdmin,
}

/// The tokens that descend from one, by their ids: those that it made, those that these made, and so on.
/// `known`: each token with who made it and its root. Of one whose maker is not known the root counts.
pub fn descendants<'a>(known: &'a [(String, String, String)], of: &str) -> BTreeSet<&'a str> {
    let mut made: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (id, made_by, root) in known {
        let maker = if made_by.is_empty() { root } else { made_by };
        made.entry(maker).or_default().push(id);
    }
    let (mut found, mut next) = (BTreeSet::new(), vec![of]);
    while let Some(maker) = next.pop() {
        for id in made.get(maker).into_iter().flatten().filter(|id| **id != of) {
            if found.insert(*id) {
                next.push(id);
            }
        }
    }
    found
}

/// The tokens of a catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Their version.
    pub version: u64,
    /// All of them, by id, if the version is another than the reader's.
    pub rows: Option<Vec<TokenRow>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_token_made_and_what_that_made_descends_from_it() {
        let row = |id: &str, made_by: &str, root: &str| (id.to_owned(), made_by.to_owned(), root.to_owned());
        let known = [
            row("root", "", "root"),
            row("a", "root", "root"),
            row("b", "a", "root"),
            row("c", "b", "root"),
            // Made by a program that notes no maker.
            row("old", "", "root"),
            row("ops", "", "ops"),
            // An operator's token makes another one.
            row("another", "ops", "another"),
            row("of it", "another", "another"),
        ];
        let of = |id: &str| descendants(&known, id).into_iter().collect::<Vec<_>>();
        assert_eq!(of("root"), ["a", "b", "c", "old"]);
        assert_eq!(of("a"), ["b", "c"]);
        assert_eq!(of("ops"), ["another", "of it"]);
        assert!(of("c").is_empty() && of("nobody").is_empty());
        // Nothing makes such rows. They must not be walked for ever.
        assert_eq!(descendants(&[row("x", "y", ""), row("y", "x", "")], "x").len(), 1);
    }
}
