//! Subjects of commits fit into one line of `git log`.

use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, Output},
};

use super::finding::Finding;

const COLUMNS: usize = 72;

/// The last commit from before the rule.
const SINCE: &str = "9f5b134";

/// Findings, or why nothing could be looked at.
#[derive(Debug)]
pub enum Subjects {
    /// The history was read.
    Read(Vec<Finding>),
    /// The history is not there.
    NotThere(String),
}

/// No commit since the rule was made has a subject of more than 72 characters. Where the history does not
/// reach back that far, as in a shallow clone, only the last commit is looked at.
pub fn check(root: &Path) -> Subjects {
    check_since(root, SINCE)
}

fn check_since(root: &Path, since: &str) -> Subjects {
    // Else git would find the history of a folder above.
    if !root.join(".git").exists() {
        return Subjects::NotThere("there is no .git".to_owned());
    }
    let known = git(root, ["cat-file", "-e", &format!("{since}^{{commit}}")]).is_ok();
    let range = if known { format!("{since}..HEAD") } else { "-1".to_owned() };
    match git(root, ["log", "--format=%h %s", &range]) {
        Ok(log) => Subjects::Read(log.lines().filter_map(finding).collect()),
        Err(why) => Subjects::NotThere(why),
    }
}

fn finding(line: &str) -> Option<Finding> {
    let (commit, subject) = line.split_once(' ')?;
    let columns = subject.chars().count();
    (columns > COLUMNS).then(|| Finding {
        path: format!("commit {commit}"),
        line: None,
        rule: "subjects",
        wrong: format!("the subject has {columns} characters"),
        remedy: format!("say it in {COLUMNS}, and the rest in the body"),
    })
}

/// Returns the output of a git command, or its complaint if it fails.
fn git(root: &Path, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<String, String> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output();
    let Output { status, stdout, stderr } = output.map_err(|error| format!("git can't be run: {error}"))?;
    if !status.success() {
        return Err(String::from_utf8_lossy(&stderr).trim().to_owned());
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A history with these subjects, and its first commit.
    fn history(subjects: &[&str]) -> (TempDir, String) {
        let folder = TempDir::new().unwrap();
        git(folder.path(), ["init", "--quiet"]).unwrap();
        for subject in subjects {
            let who = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"];
            let commit = ["commit", "--quiet", "--allow-empty", "--message", subject];
            git(folder.path(), who.into_iter().chain(commit)).unwrap();
        }
        let first = git(folder.path(), ["rev-list", "--max-parents=0", "HEAD"]).unwrap();
        (folder, first.trim().to_owned())
    }

    fn found(folder: &TempDir, since: &str) -> usize {
        match check_since(folder.path(), since) {
            Subjects::Read(findings) => findings.len(),
            Subjects::NotThere(why) => panic!("{why}"),
        }
    }

    #[test]
    fn a_subject_of_73_characters_is_found_if_it_came_after_the_rule() {
        let long = "ü".repeat(73);
        let (folder, first) = history(&[&long, &long, "Short"]);
        assert_eq!(found(&folder, &first), 1);
    }

    #[test]
    fn where_the_rule_began_elsewhere_only_the_last_commit_counts() {
        let long = "ü".repeat(73);
        let nowhere = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(found(&history(&[&long, "Short"]).0, nowhere), 0);
        assert_eq!(found(&history(&["Short", &long]).0, nowhere), 1);
    }

    #[test]
    fn a_subject_of_72_characters_passes() {
        let (folder, first) = history(&["First", &"ü".repeat(72)]);
        assert_eq!(found(&folder, &first), 0);
    }

    #[test]
    fn without_a_history_it_says_so() {
        let folder = TempDir::new().unwrap();
        assert!(matches!(check(folder.path()), Subjects::NotThere(why) if why.contains(".git")));
    }
}
