//! End-to-end tests of Forebay; see `e2e/`.
