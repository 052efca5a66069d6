//! Ownership of a shard in every order of events, without a mistake and with each of those that are planted.
//!
//! `FOREBAY_MODEL_DEPTH=n` lets faults happen for n more ticks, and one more delay for every two of them
//! (`cargo xtask model --depth n`).

use forebay_engine::planted::Bug;
use forebay_model::{
    Mistake, explore,
    ownership::{Faults, Scenario},
};

/// How much deeper than usual to look.
fn depth() -> u8 {
    let depth = std::env::var("FOREBAY_MODEL_DEPTH").unwrap_or_else(|_| "0".to_owned());
    depth.parse().unwrap_or_else(|_| panic!("FOREBAY_MODEL_DEPTH={depth} is no small number"))
}

const NONE: Faults = Faults { delays: 0, breaks: 0, pauses: 0, kills: 0, moves: 0, slows: 0, forgets: 0 };

/// Two nodes, each of which may own the shard. Something is late, an answer is lost, a process stands still.
fn standby() -> Scenario {
    let faults = Faults { delays: 1, breaks: 1, pauses: 1, ..NONE };
    Scenario { faults, ..Scenario::nodes(2) }
}

/// An operation or a question is late.
fn delay() -> Scenario {
    Scenario { faults: Faults { delays: 1, ..NONE }, ..Scenario::nodes(2) }
}

/// The same, and a process stands still.
fn pause() -> Scenario {
    let faults = Faults { delays: 1, pauses: 1, ..NONE };
    Scenario { calls: 0, faults, ..Scenario::nodes(2) }
}

/// Something is late, and a process dies.
fn kill() -> Scenario {
    let faults = Faults { delays: 1, kills: 1, ..NONE };
    Scenario { faults, faults_until: 4, ..Scenario::nodes(2) }
}

/// Three nodes want the shard.
fn three() -> Scenario {
    Scenario { calls: 0, faults: Faults { delays: 1, ..NONE }, ..Scenario::nodes(3) }
}

/// The shard is handed over.
fn hand_over() -> Scenario {
    let faults = Faults { delays: 1, moves: 1, ..NONE };
    Scenario { assigned: true, faults, faults_until: 3, ..Scenario::nodes(2) }
}

/// The same, and a process dies.
fn dead_successor() -> Scenario {
    let faults = Faults { moves: 1, kills: 1, ..NONE };
    Scenario { assigned: true, calls: 0, faults, ..Scenario::nodes(2) }
}

/// The candidate's lease is shorter than the owner's.
fn two_leases() -> Scenario {
    let faults = Faults { delays: 1, breaks: 1, ..NONE };
    Scenario { leases: vec![3, 2], faults, ..Scenario::nodes(2) }
}

/// The server is slow for a while, and the owner does all that it can.
fn slow_server() -> Scenario {
    let faults = Faults { slows: 1, ..NONE };
    Scenario { diligent: true, faults_until: 7, faults, ..Scenario::nodes(2) }
}

/// The same, and what candidates try there happens to be fast.
fn slow_renewals() -> Scenario {
    Scenario { fast_probes: true, ..slow_server() }
}

/// The server forgets a take-over.
fn forgetful_server() -> Scenario {
    let faults = Faults { forgets: 1, ..NONE };
    Scenario { owned: false, calls: 2, faults_until: 3, faults, ..Scenario::nodes(2) }
}

/// A load takes longer than a shard lease.
fn long_load() -> Scenario {
    Scenario { owned: false, load: 4, calls: 0, faults_until: 2, ..Scenario::nodes(2) }
}

/// There is time for a question about one tenure to be answered in the next one but one.
fn late_question() -> Scenario {
    let faults = Faults { delays: 2, ..NONE };
    Scenario { assigned: true, calls: 0, faults_until: 9, faults, ..Scenario::nodes(2) }
}

fn holds(scenario: Scenario) {
    let deeper = depth();
    let mut scenario = Scenario { faults_until: scenario.faults_until + deeper, ..scenario };
    scenario.faults.delays += deeper / 2;
    let checked = explore(scenario, 1);
    println!("{} states, {} actions at most", checked.states, checked.depth);
    for finding in &checked.findings {
        println!("{}:\n{}", finding.property, finding.trace);
    }
    assert!(checked.findings.is_empty() && checked.states > 100);
}

/// The mistake breaks one of these properties.
fn found(mistake: Mistake, scenario: Scenario, properties: &[&str]) {
    let checked = explore(scenario.with(mistake), 1);
    for finding in &checked.findings {
        println!("{}, {} states:\n{}", finding.property, checked.states, finding.trace);
    }
    let expected = checked.findings.iter().any(|finding| properties.contains(&finding.property));
    assert!(expected, "{mistake:?} was not found in {} states", checked.states);
}

macro_rules! hold {
    ($($test:ident: $scenario:expr;)+) => {
        $(
            #[test]
            fn $test() {
                holds($scenario);
            }
        )+
    };
}

hold! {
    a_standby_takes_over: standby();
    a_dead_owner_is_replaced: kill();
    one_of_three_owns_it: three();
    a_shard_is_handed_over: hand_over();
    a_successor_that_dies_is_replaced: dead_successor();
    leases_may_differ: two_leases();
    a_slow_server_moves_nothing: slow_server();
    an_unsure_owner_keeps_its_shard: slow_renewals();
    a_forgetful_server_mixes_no_batches: forgetful_server();
    a_long_load_ends: long_load();
    a_late_question_does_no_harm: late_question();
}

const TRUST: &[&str] = &["an owner that trusts its claim owns the shard"];
const NO: &[&str] = &["who said no serves nobody"];
const SLOW: &[&str] = &["a slow server moves no shard"];
const SERVED: &[&str] = &["the shard is served at the end"];

macro_rules! find {
    ($($test:ident: $mistake:expr, in $scenario:expr, breaks $properties:expr;)+) => {
        $(
            #[test]
            fn $test() {
                found($mistake, $scenario, $properties);
            }
        )+
    };
}

find! {
    trust_from_the_end_of_a_renewal: Mistake::TrustFromRenewalsEnd, in pause(), breaks TRUST;
    batches_that_are_no_sign_of_life: Mistake::Planted(Bug::BatchesIgnored), in standby(), breaks TRUST;
    a_claim_that_compares_the_epoch_alone: Mistake::ClaimIgnoresSignsOfLife, in standby(), breaks TRUST;
    no_without_stepping_down: Mistake::Planted(Bug::DeniesAndStays), in delay(), breaks NO;
    a_denied_tenure_that_is_served: Mistake::Planted(Bug::DeniedAndServed), in delay(), breaks NO;
    a_shorter_lease_at_the_candidate: Mistake::Planted(Bug::CandidatesLease), in two_leases(), breaks TRUST;
    no_probe: Mistake::Planted(Bug::NoProbe), in slow_server(), breaks SLOW;
    an_unsure_owner_that_steps_down: Mistake::Planted(Bug::UnsureStepsDown), in slow_renewals(), breaks SLOW;
    a_fence_without_the_incarnation: Mistake::NoIncarnation, in forgetful_server(),
        breaks &["every batch is its owner's"];
    no_renewal_while_loading: Mistake::NoRenewalWhileLoading, in long_load(), breaks SERVED;
    a_release_before_the_outcome_is_known: Mistake::ReleaseBeforeOutcome, in hand_over(),
        breaks &["a batch of which nothing happened is never stored"];
    answers_after_a_release: Mistake::Planted(Bug::TrustedAfterRelease), in hand_over(), breaks TRUST;
    a_successor_that_never_comes: Mistake::Planted(Bug::SuccessorForEver), in dead_successor(), breaks SERVED;
}
