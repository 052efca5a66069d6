//! Secrets in files.

use super::values::Secret;

/// The text of a file that holds a secret.
pub fn secret_file(key: &str, path: String, errors: &mut Vec<String>) -> Option<Secret> {
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(Secret::new(text.trim_end_matches(['\r', '\n']))),
        Err(error) => {
            errors.push(format!("{key}: cannot read {path}: {error}"));
            None
        }
    }
}
