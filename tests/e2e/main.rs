//! One binary for every end-to-end test.
