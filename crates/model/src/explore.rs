//! Visits all states of a model, and tells what it found on the way.

use std::{fmt::Debug, hash::Hash};

use stateright::{Checker, HasDiscoveries, Model};

/// A broken property.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Its name.
    pub property: &'static str,
    /// The actions that lead to it, one a line, and the state at their end.
    pub trace: String,
}

/// Result of a check.
#[derive(Debug, Clone)]
pub struct CheckResult {
    /// How many different states were visited.
    pub states: usize,
    /// The most actions in a row.
    pub depth: usize,
    /// The first broken property of each name. After the first one, the check ends soon.
    pub findings: Vec<Finding>,
}

/// Visits the states of a model until all were visited, or a property is broken.
pub fn explore<M>(model: M, threads: usize) -> CheckResult
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let checker = model.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.spawn_bfs().join();
    let discoveries = checker.discoveries().into_iter();
    let findings = discoveries.map(|(property, path)| {
        let last = format!("{:?}", path.last_state());
        let actions: Vec<String> = path.into_actions().iter().map(|action| format!("{action:?}")).collect();
        Finding { property, trace: format!("{}\n{last}", actions.join("\n")) }
    });
    CheckResult {
        findings: findings.collect(),
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
    }
}
