//! Files that pages load. Their addresses have a hash of their content. So browsers may keep them for ever,
//! and a page never gets the file of another release.

use std::sync::LazyLock;

use axum::{
    Extension,
    response::{IntoResponse as _, Response},
};
use http::{
    HeaderValue,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};
use sha2::{Digest as _, Sha256};

use super::fields::Fields;

/// How pages look. Inline styles are forbidden by the policy of each page.
pub(crate) static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("app.css", "text/css; charset=utf-8", include_str!("app.css")));
/// The script that makes open pages follow what happens. Pages can be read without it.
pub static SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("app.js", "text/javascript; charset=utf-8", include_str!("app.js")));
/// Without one, browsers ask for another address.
pub(crate) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon.svg", "image/svg+xml", include_str!("icon.svg")));

/// A file that pages load.
pub(crate) struct Asset {
    /// Of the file.
    name: &'static str,
    /// Its type.
    kind: &'static str,
    /// All of it.
    content: &'static str,
    /// The beginning of its SHA-256.
    hash: String,
}

impl Asset {
    fn new(name: &'static str, kind: &'static str, content: &'static str) -> Self {
        let hash = Sha256::digest(content).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Self { name, kind, content, hash }
    }

    /// Where a page finds it.
    pub fn link(&self) -> String {
        format!("assets/{}?v={}", self.name, self.hash)
    }

    /// The file. Under another hash, which a page of another release has, it is not kept.
    fn answer(&self, query: &Fields) -> Response {
        let kept =
            if query.get("v") == self.hash { "public, max-age=31536000, immutable" } else { "no-store" };
        let headers = [(CONTENT_TYPE, self.kind), (CACHE_CONTROL, kept)];
        (headers.map(|(name, value)| (name, HeaderValue::from_static(value))), self.content).into_response()
    }
}

/// Serves `/assets/app.css`.
pub async fn style(Extension(query): Extension<Fields>) -> Response {
    STYLE.answer(&query)
}

/// Serves `/assets/app.js`.
pub async fn script(Extension(query): Extension<Fields>) -> Response {
    SCRIPT.answer(&query)
}

/// Serves `/assets/icon.svg`.
pub async fn icon(Extension(query): Extension<Fields>) -> Response {
    ICON.answer(&query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_load_little() {
        assert!(STYLE.content.len() <= 12 << 10, "{}", STYLE.content.len());
        assert!(SCRIPT.content.len() <= 10 << 10, "{}", SCRIPT.content.len());
    }
}
