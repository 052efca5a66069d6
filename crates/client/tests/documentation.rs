//! What the documentation shows is what lies in the files that are run.

#[test]
fn the_readme_shows_the_python_example_as_it_is() {
    let readme = include_str!("../../../README.md");
    let example = include_str!("../../../docs/examples/worker.py");
    assert!(
        readme.contains(&format!("```python\n{example}```")),
        "README.md and docs/examples/worker.py differ"
    );
}

#[test]
fn the_protocol_names_every_reason() {
    let protocol = include_str!("../../../docs/PROTOCOL.md");
    for reason in forebay_types::Reason::ALL {
        assert!(protocol.contains(reason.as_str()), "docs/PROTOCOL.md leaves out {}", reason.as_str());
    }
}
