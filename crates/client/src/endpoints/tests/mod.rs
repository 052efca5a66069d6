//! Several servers, against scripted ones: where calls go, and which nodes are learnt.

mod learnt;
mod retried;
mod spread;
