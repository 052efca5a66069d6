//! The HTTP port, as a configuration says: its names, who may read its pages, and its calls.

use std::sync::Arc;

use forebay_config::Config;
use forebay_edge::{
    admission::Calls,
    audit::Auditor,
    listen::host_name,
    random::{NoRandomNumbers, random_bytes},
};
use forebay_proto::FILE_DESCRIPTOR_SET;
use forebay_store::Catalog;
use prost_reflect::DescriptorError;
use tokio::net::TcpListener;

use crate::{
    Connect, Cookies, FormKey, Gate, Hosts, HttpServer, Keeper, NodeInfo, Origins, Proxies, Sessions,
};

/// Why the HTTP port can't be served.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// No calls over HTTP.
    #[error("cannot set up calls over HTTP: {0}")]
    Connect(#[from] DescriptorError),
    /// No random numbers.
    #[error(transparent)]
    Random(#[from] NoRandomNumbers),
}

/// Serves the pages, and the calls as JSON, to those who may use the HTTP port.
pub fn serve_http(
    config: &Config,
    listener: TcpListener,
    info: Arc<NodeInfo>,
    audit: Arc<Auditor>,
    calls: Calls,
    catalog: Arc<dyn Catalog>,
) -> Result<HttpServer, HttpError> {
    let origins = Origins::new(&config.http_access.cors_origins);
    let connect = Connect::new(FILE_DESCRIPTOR_SET, calls, origins.clone())?;
    let proxies = Proxies::new(&config.http_access.trusted_proxies);
    let keeper = keeper(config, &info, audit, origins.clone(), catalog)?;
    let gate = Gate::new(hosts(config), origins, proxies, keeper);
    let (tls, header_timeout) = (info.certificates.http(), config.load.timeouts.handshake);
    Ok(crate::serve(listener, tls, info, connect, gate, header_timeout))
}

/// Decides who may read pages. Nodes that share a secret know each other's cookies and forms; the only one of
/// a cluster has its own, until it stops.
fn keeper(
    config: &Config,
    info: &NodeInfo,
    audit: Arc<Auditor>,
    origins: Origins,
    catalog: Arc<dyn Catalog>,
) -> Result<Keeper, NoRandomNumbers> {
    let own = random_bytes::<32>()?;
    let secret = config.peer_secrets.first().map_or(&own[..], |secret| secret.reveal().as_bytes());
    let cookies = Cookies::new(info.certificates.http().is_some(), info.http.port(), &[secret]);
    let sessions = Sessions::new(catalog, info.clock.clone());
    let forms = FormKey::new(&[secret]);
    Ok(Keeper::new(info.access.clone(), audit, sessions, cookies, forms, origins))
}

/// The names by which the HTTP port may be called.
fn hosts(config: &Config) -> Hosts {
    let host_name = host_name();
    let told = [&config.advertise, &config.advertise_clients].into_iter().flatten();
    let own = [&config.http, &host_name].into_iter().chain(told).map(String::as_str);
    Hosts::new(&config.http_access.hosts, own)
}
