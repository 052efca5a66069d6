//! What the table of tokens contains.

use forebay_types::Timestamp;

/// A token, as it is kept. Of its secrets there are hashes alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// Names it: 12 letters and digits.
    pub id: String,
    /// All grants lie in it: a namespace, the beginning of names and `*`, or `*` for all. Up to 255 bytes.
    pub namespace: String,
    /// For people. Up to 200 bytes.
    pub name: String,
    /// SHA-256 of its newest secret.
    pub secret: [u8; 32],
    /// SHA-256 of the secret before, which holds until `overlap_ends`.
    pub older_secret: Option<[u8; 32]>,
    /// What its holder may do, with blanks between grants. Up to 4 KiB.
    pub grants: String,
    /// Who made it. Up to 255 bytes.
    pub made_by: String,
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
    /// That descend from one token, or from another holder of rights.
    pub per_root: u64,
    /// In all.
    pub in_all: u64,
    /// Of them, those that operators alone may add.
    pub for_operators: u64,
}

impl TokenBounds {
    /// What a catalog holds. A row has 5 KiB at most, so that all of them have 50 MiB.
    pub const DEFAULT: Self =
        Self { per_namespace: 1_000, per_root: 2_000, in_all: 10_000, for_operators: 1_000 };

    /// How many there may be in all for this maker to add one.
    pub fn in_all_for(self, maker: &TokenMaker) -> u64 {
        match maker {
            TokenMaker::Operator => self.in_all,
            TokenMaker::Token(_) | TokenMaker::Other(_) => self.in_all - self.for_operators,
        }
    }
}

/// Who makes a token. A token that an operator makes is a root. Those that its holder makes descend from it,
/// and so do those that their holders make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenMaker {
    /// Somebody with `admin` in all namespaces.
    Operator,
    /// The holder of the token with this id.
    Token(String),
    /// Another holder of rights, by its name. Up to 255 bytes.
    Other(String),
}

/// A token that is to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// The token.
    pub row: TokenRow,
    /// Who makes it.
    pub maker: TokenMaker,
    /// Only while no other token with all rights is of use at this time.
    pub if_no_admin_at: Option<Timestamp>,
    /// Tokens that ended or were revoked before are deleted.
    pub forget_before: Timestamp,
    /// What the table may hold.
    pub bounds: TokenBounds,
}

/// The result of adding a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenAdded {
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
        /// Until when the one so far holds too. `None`: it is of no use any more.
        overlap_ends: Option<Timestamp>,
    },
    /// It is of no use any more. The last one with all rights that is of use at this time can't be.
    Revoke(Timestamp),
}

/// The result of changing a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenChanged {
    /// It is changed, as of this version.
    Yes(u64),
    /// There is none.
    NoToken,
    /// It is revoked, or was rotated meanwhile.
    Stale,
    /// It is the last one with the right `admin` in all namespaces.
    LastAdmin,
}

/// The tokens of a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    /// Their version.
    pub version: u64,
    /// All of them, by id, if the version is another than the reader's.
    pub rows: Option<Vec<TokenRow>>,
}
