//! The files in `deploy/` and `docker-compose.yml` fit the program and each other.

mod alerts;
mod compose;
mod dashboard;
mod expressions;
mod files;
mod kubernetes;
mod manifests;
mod systemd;
