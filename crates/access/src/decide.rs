//! Whether somebody may do what a request asks for. Nothing is looked up: a namespace that does not exist is
//! refused like any other foreign one.

use forebay_types::ALL_NAMESPACES;

use crate::{identity::Identity, needs::Needs, scope::Scope};

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    /// No rights in this namespace.
    WrongNamespace,
    /// Some rights in this namespace, but not this one.
    ScopeMissing(Scope),
    /// Not this right in all namespaces.
    ScopeMissingEverywhere(Scope),
}

/// Decides. `namespace`: what the request names; empty if it names none.
pub fn decide(identity: &Identity, needs: Needs, namespace: &str) -> Result<(), Denial> {
    match needs {
        Needs::Nothing | Needs::Credential => Ok(()),
        Needs::Everywhere(scope) if identity.may_everywhere(scope) => Ok(()),
        Needs::Everywhere(scope) => Err(Denial::ScopeMissingEverywhere(scope)),
        Needs::InNamespaces(scope) if namespace == ALL_NAMESPACES => {
            decide(identity, Needs::Everywhere(scope), "")
        }
        Needs::InNamespaces(scope) => decide(identity, Needs::InNamespace(scope), namespace),
        Needs::InNamespace(scope) if identity.may(scope, namespace) => Ok(()),
        Needs::InNamespace(scope) => {
            match identity.grants.iter().any(|grant| grant.namespaces.has(namespace)) {
                true => Err(Denial::ScopeMissing(scope)),
                false => Err(Denial::WrongNamespace),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Kind;

    fn holder(grants: &[&str]) -> Identity {
        let grants = grants.iter().map(|grant| grant.parse().unwrap()).collect();
        Identity { kind: Kind::Token, grants, ..Identity::anyone() }
    }

    #[test]
    fn rights_hold_where_they_were_granted() {
        let (produce, observe) = (Scope::Produce, Scope::Observe);
        let tenant = holder(&["a:produce", "team-*:produce,observe"]);
        for (namespace, needs, expected) in [
            ("a", Needs::InNamespace(produce), Ok(())),
            ("a", Needs::InNamespace(observe), Err(Denial::ScopeMissing(observe))),
            ("team-x", Needs::InNamespace(observe), Ok(())),
            ("b", Needs::InNamespace(produce), Err(Denial::WrongNamespace)),
            ("", Needs::InNamespace(produce), Err(Denial::WrongNamespace)),
            ("-", Needs::InNamespace(produce), Err(Denial::WrongNamespace)),
            ("", Needs::Everywhere(observe), Err(Denial::ScopeMissingEverywhere(observe))),
            ("a", Needs::Everywhere(produce), Err(Denial::ScopeMissingEverywhere(produce))),
            ("", Needs::Credential, Ok(())),
            ("", Needs::Nothing, Ok(())),
        ] {
            assert_eq!(decide(&tenant, needs, namespace), expected, "{namespace:?} {needs:?}");
        }
        let operator = holder(&["*:observe"]);
        assert_eq!(decide(&operator, Needs::Everywhere(observe), ""), Ok(()));
        assert_eq!(decide(&operator, Needs::InNamespace(observe), "-"), Ok(()));
        let missing = Err(Denial::ScopeMissing(produce));
        assert_eq!(decide(&operator, Needs::InNamespace(produce), "a"), missing);
        for scope in Scope::ALL {
            assert_eq!(decide(&Identity::anyone(), Needs::Everywhere(scope), ""), Ok(()));
        }
        assert_eq!(decide(&holder(&[]), Needs::InNamespace(produce), "a"), Err(Denial::WrongNamespace));
    }

    #[test]
    fn all_namespaces_take_a_right_in_all_of_them() {
        let needs = Needs::InNamespaces(Scope::Observe);
        let refused = Err(Denial::ScopeMissingEverywhere(Scope::Observe));
        assert_eq!(decide(&holder(&["*:observe"]), needs, "-"), Ok(()));
        assert_eq!(decide(&holder(&["-*:observe", "team-*:observe"]), needs, "-"), refused);
        assert_eq!(decide(&holder(&["team-*:observe"]), needs, "team-a"), Ok(()));
        assert_eq!(decide(&holder(&["team-*:observe"]), needs, "a"), Err(Denial::WrongNamespace));
    }
}
