//! What the documentation shows is what lies in the files that are run.

use std::path::Path;

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

#[test]
fn the_runbook_names_metrics_and_log_lines_that_exist() {
    let runbook = include_str!("../../../docs/RUNBOOK.md");
    let mut sources = String::new();
    for part in ["node", "engine", "store"] {
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(part).join("src"), &mut sources);
    }
    // A metric stands as `forebay_…`, a log line as `"…"`.
    let mut seen = 0;
    for quoted in runbook.split('`').skip(1).step_by(2) {
        let metric = quoted.split('{').next().filter(|name| name.starts_with("forebay_"));
        let line = quoted.strip_prefix('"').and_then(|line| line.strip_suffix('"'));
        for text in metric.filter(|name| !name.contains('=')).into_iter().chain(line) {
            assert!(
                sources.contains(&format!("\"{text}\"")),
                "docs/RUNBOOK.md names {text}, which is nowhere"
            );
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} names were looked at");
}

fn read(folder: &Path, into: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, into);
        } else {
            into.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}
