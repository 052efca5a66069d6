//! The documentation quotes examples, reasons, metrics and log lines that exist.

use std::path::Path;

#[test]
fn the_start_shows_the_python_example_as_it_is() {
    let start = include_str!("../../../docs/START.md");
    let example = include_str!("../../../docs/examples/worker.py");
    assert!(
        start.contains(&format!("```python\n{example}```")),
        "docs/START.md and docs/examples/worker.py differ"
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
fn pages_for_operators_name_metrics_and_log_lines_that_exist() {
    let mut sources = String::new();
    let parts =
        ["edge", "config", "front", "peers", "operators", "web", "node", "membership", "engine", "store"];
    for part in parts {
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(part).join("src"), &mut sources);
    }
    let sources = without_arguments(&joined(&sources));
    let pages = [
        ("docs/OPERATE.md", include_str!("../../../docs/OPERATE.md")),
        ("docs/ALERTS.md", include_str!("../../../docs/ALERTS.md")),
    ];
    for (name, page) in pages {
        let (seen, missing) = quotes(page, &sources);
        assert!(missing.is_empty(), "{name} names what is not in the sources: {missing:#?}");
        assert!(seen > 20, "only {seen} names were found in {name}");
    }
}

/// How many metrics and log lines a page quotes, and which of them are not in the sources.
fn quotes<'a>(page: &'a str, sources: &str) -> (usize, Vec<&'a str>) {
    // A metric is written as `forebay_…`, a log line as `"…"`, with `…` for each argument. A line that begins
    // or ends with `…` is a part of a longer one.
    let (mut seen, mut missing) = (0, Vec::new());
    for quoted in page.split('`').skip(1).step_by(2) {
        let metric = quoted.split('{').next().filter(|name| name.starts_with("forebay_"));
        let line = quoted.strip_prefix('"').and_then(|line| line.strip_suffix('"'));
        for text in metric.filter(|name| !name.contains('=')).into_iter().chain(line) {
            let begin = if text.starts_with('…') { "" } else { "\"" };
            let end = if text.ends_with('…') { "" } else { "\"" };
            if !sources.contains(&format!("{begin}{}{end}", text.trim_matches('…'))) {
                missing.push(text);
            }
            seen += 1;
        }
    }
    (seen, missing)
}

/// The sources with strings in one line that were broken in two.
fn joined(sources: &str) -> String {
    let mut parts = sources.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |joined, part| joined + part.trim_start())
}

/// The sources with `…` in place of each `{argument}` of a format string.
fn without_arguments(sources: &str) -> String {
    let mut out = String::with_capacity(sources.len());
    let mut rest = sources;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        match after.split_once('}') {
            Some((argument, behind)) if !argument.contains(['\n', '"', '{']) => {
                out.push('…');
                rest = behind;
            }
            _ => {
                out.push('{');
                rest = after;
            }
        }
    }
    out + rest
}

#[test]
fn an_argument_of_a_log_line_is_an_ellipsis() {
    let broken = "\"cannot reach \\\n         shard {id}\"";
    assert_eq!(without_arguments(&joined(broken)), "\"cannot reach shard …\"");
    let source = r#"if x { tracing::warn!("cannot reach shard {id} ({server}); retrying") }"#;
    let found = without_arguments(source);
    assert!(found.contains(r#""cannot reach shard … (…); retrying""#), "{found}");
}

#[test]
fn the_pages_for_developers_name_files_and_functions_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    collect(&root, "rs", &mut files);
    let mut pages = Vec::new();
    collect(&root.join("crates"), "md", &mut pages);
    pages.retain(|(path, _)| path.ends_with("README.md"));
    let architecture = root.join("docs/ARCHITECTURE.md");
    let text = std::fs::read_to_string(&architecture).unwrap();
    pages.push((architecture, text));

    let (mut seen, mut missing) = (0, Vec::new());
    for (page, text) in &pages {
        for quoted in text.split('`').skip(1).step_by(2) {
            let Some((path, item)) = mention(quoted) else { continue };
            seen += 1;
            let found = files.iter().filter(|(file, _)| file.ends_with(path)).any(|(_, source)| {
                item.is_empty()
                    || source.contains(&format!("fn {item}"))
                    || source.contains(&format!(" {item} "))
            });
            if !found {
                missing.push(format!("{}: {quoted}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "pages name what is not in the sources: {missing:#?}");
    assert!(seen > 400, "only {seen} files were found in {} pages", pages.len());
}

/// The file and the function that a page names. A file is written as `folder/file.rs`, a function in it as
/// `folder/file.rs::function`.
fn mention(quoted: &str) -> Option<(&str, &str)> {
    let (path, item) = quoted.split_once("::").unwrap_or((quoted, ""));
    if !path.ends_with(".rs") || path.contains([' ', '{']) {
        return None;
    }
    Some((path, item.trim_end_matches("()").rsplit("::").next().unwrap_or_default()))
}

/// Every file below a folder with this extension, with its text.
fn collect(folder: &Path, extension: &str, into: &mut Vec<(std::path::PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && name != "target" && name != ".git" {
            collect(&path, extension, into);
        } else if path.extension().is_some_and(|found| found == extension) {
            let text = std::fs::read_to_string(&path).unwrap();
            into.push((path, text));
        }
    }
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
