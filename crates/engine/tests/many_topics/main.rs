//! A node with very many topics, over a store that does nothing: what they cost, and that nobody waits for
//! them.

mod active;
mod status;
mod store;
mod take_over;
