//! Operations, tokens and secrets that calls make follow from their callers and request ids. So a repeated
//! call finds what the first one made.

use forebay_access::{Identity, Kind};
use forebay_types::{Reason, Refusal};
use sha2::{Digest as _, Sha256};

/// Names a call. Ids of different callers have nothing to do with each other.
pub fn id_of(caller: &Identity, request_id: &str) -> [u8; 32] {
    let kind: &[u8] = match caller.kind {
        Kind::Anyone => b"anyone",
        Kind::Token => b"token",
        Kind::Certificate => b"certificate",
    };
    hash(&[kind, caller.id.as_bytes(), request_id.as_bytes()])
}

/// Names the operation that a call begins. Another caller of the namespace may use the same id for another
/// one.
pub fn operation_of(caller: &Identity, namespace: &str, request_id: &str) -> [u8; 16] {
    short(hash(&[namespace.as_bytes(), &id_of(caller, request_id)]))
}

/// Says which call gave a token its secret: it follows from both. Of any other secret it is another one.
/// `None`: the call has no id.
pub fn rotation_of(caller: &Identity, request_id: &str, secret_hash: &[u8; 32]) -> Option<[u8; 32]> {
    (!request_id.is_empty()).then(|| hash(&[b"rotation", secret_hash, &id_of(caller, request_id)]))
}

/// Digest of what such a call asks for.
pub fn digest_of(request: &[u8]) -> [u8; 16] {
    short(hash(&[request]))
}

/// The first half: nobody finds two texts that have it alike.
fn short(hash: [u8; 32]) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&hash[..16]);
    half
}

/// The refusal of an id that was used before.
pub fn reused(why: &str) -> Refusal {
    Refusal { field: Some("request_id".into()), ..Refusal::new(Reason::RequestIdReused, why) }
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(id: &str) -> Identity {
        Identity { kind: Kind::Token, id: id.to_owned(), ..Identity::anyone() }
    }

    #[test]
    fn callers_have_ids_of_their_own() {
        let ids = [
            id_of(&Identity::anyone(), "1"),
            id_of(&holder("1"), "1"),
            id_of(&holder("2"), "1"),
            id_of(&holder("1"), "2"),
            id_of(&Identity { kind: Kind::Certificate, ..holder("1") }, "1"),
            id_of(&holder("11"), ""),
            id_of(&holder(""), "11"),
        ];
        let mut different = ids.to_vec();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), ids.len());
    }

    #[test]
    fn operations_of_two_callers_have_nothing_to_do_with_each_other() {
        let ids = [
            operation_of(&holder("1"), "shop", "r"),
            operation_of(&holder("2"), "shop", "r"),
            operation_of(&holder("1"), "bank", "r"),
            operation_of(&holder("1"), "shop", "s"),
        ];
        assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), ids.len());
        assert_eq!(operation_of(&holder("1"), "shop", "r"), ids[0], "a repeated call finds its operation");
    }

    #[test]
    fn a_rotation_is_known_by_its_caller_its_id_and_its_secret() {
        let (one, two) = ([1; 32], [2; 32]);
        let rotation = rotation_of(&holder("1"), "r", &one);
        assert!(rotation.is_some());
        assert_eq!(rotation_of(&holder("1"), "r", &one), rotation);
        for other in [
            rotation_of(&holder("1"), "r", &two),
            rotation_of(&holder("1"), "s", &one),
            rotation_of(&holder("2"), "r", &one),
            rotation_of(&holder("1"), "", &one),
        ] {
            assert_ne!(other, rotation);
        }
    }
}
