//! The assignment in every order of events.

use forebay_model::{Mistake, assignment::Scenario, explore};

fn scenario() -> Scenario {
    Scenario { nodes: 2, joiners: 1, shards: 4, deaths: 1, pins: 1, ticks: 1, mistake: None }
}

#[test]
fn changes_of_the_assignment_are_never_lost_and_come_to_an_even_end() {
    let checked = explore(scenario(), 1);
    println!("{} states, depth {}", checked.states, checked.depth);
    assert!(checked.findings.is_empty(), "{:#?}", checked.findings);
}

#[test]
fn an_assignment_that_is_written_whatever_its_version_is_is_found() {
    let checked = explore(Scenario { mistake: Some(Mistake::AssignedBlindly), ..scenario() }, 1);
    for f in &checked.findings {
        println!("{}\n{}", f.property, f.trace);
    }
    let properties: Vec<_> = checked.findings.iter().map(|finding| finding.property).collect();
    assert!(properties.contains(&"no change of the assignment is lost"), "{properties:?}");
}
