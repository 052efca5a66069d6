//! Several scripted servers, reached in memory, so that paused time works. They can be cut off and come back.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex},
};

use forebay_proto::v1::{
    self, admin_service_server::AdminService, admin_service_server::AdminServiceServer,
    queue_service_server::QueueServiceServer,
};
use hyper_util::rt::TokioIo;
use tokio::{io::DuplexStream, sync::mpsc, task::AbortHandle};
use tonic::{
    Request, Response, Status,
    transport::{Channel, Endpoint},
};

use super::Fake;
use crate::{client::Client, config::ClientConfig, endpoints::Dialer, error::Error};

/// Addresses, and who listens there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Network(Arc<Mutex<HashMap<String, Host>>>);

/// One address.
#[derive(Debug)]
struct Host {
    /// Takes new connections.
    accept: mpsc::UnboundedSender<DuplexStream>,
    /// Connections are refused.
    cut: bool,
    /// The connections so far.
    connections: Vec<AbortHandle>,
}

impl Network {
    /// A server at `address`.
    pub(crate) fn fake(&self, address: &str) -> Arc<Fake> {
        let fake = Arc::new(Fake::default());
        let (accept, connections) = mpsc::unbounded_channel::<DuplexStream>();
        let incoming = futures_util::stream::unfold(connections, |mut connections| async move {
            connections.recv().await.map(|stream| (Ok::<_, io::Error>(stream), connections))
        });
        let queue = QueueServiceServer::from_arc(fake.clone()).max_decoding_message_size(8 << 20);
        let admin = AdminServiceServer::from_arc(fake.clone());
        let server = tonic::transport::Server::builder().add_service(queue).add_service(admin);
        tokio::spawn(server.serve_with_incoming(incoming));
        let host = Host { accept, cut: false, connections: Vec::new() };
        self.0.lock().unwrap().insert(address.to_owned(), host);
        fake
    }

    /// Breaks all connections to `address` and refuses new ones, or no longer does.
    pub(crate) fn cut(&self, address: &str, cut: bool) {
        let mut hosts = self.0.lock().unwrap();
        let host = hosts.get_mut(address).unwrap();
        host.cut = cut;
        host.connections.drain(..).for_each(|connection| connection.abort());
    }

    /// A client of these servers.
    pub(crate) fn client(&self, addresses: &[&str]) -> Client {
        self.configured(config(addresses))
    }

    /// A client with more wishes.
    pub(crate) fn configured(&self, config: ClientConfig) -> Client {
        let network = self.clone();
        let dialer = Dialer::with(move |address| Ok::<_, Error>(network.channel(address.host_port())));
        let config = ClientConfig { seed: config.seed.or(Some(7)), ..config.namespace("tenant") };
        Client::dialled(dialer, config).unwrap()
    }

    /// A connection to one of them.
    pub(crate) fn channel(&self, address: &str) -> Channel {
        let (network, address) = (self.clone(), address.to_owned());
        let connector = tower::service_fn(move |_| {
            let stream = network.connect(&address);
            async move { stream.map(TokioIo::new) }
        });
        Endpoint::from_static("http://fake").connect_with_connector_lazy(connector)
    }

    /// These servers are the nodes of a cluster. Each is named after its address.
    pub(crate) fn cluster(&self, fakes: &[(&str, &Arc<Fake>)]) {
        self.cluster_with(fakes, &[]);
    }

    /// The same, where some hand out the items of all shards.
    pub(crate) fn cluster_with(&self, fakes: &[(&str, &Arc<Fake>)], deliver_all: &[&str]) {
        let node = |address: &str| v1::Node {
            delivers_all: deliver_all.contains(&address),
            ..node(address, address)
        };
        let nodes: Vec<_> = fakes.iter().map(|(address, _)| node(address)).collect();
        for (address, fake) in fakes {
            let own = |node: &v1::Node| v1::Node { self_: node.name == *address, ..node.clone() };
            *fake.cluster.lock().unwrap() = Some(nodes.iter().map(own).collect());
        }
    }

    fn connect(&self, address: &str) -> io::Result<DuplexStream> {
        let mut hosts = self.0.lock().unwrap();
        let host = hosts.get_mut(address).filter(|host| !host.cut);
        let host = host.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionRefused))?;
        let (ours, mut near) = tokio::io::duplex(1 << 20);
        let (mut far, theirs) = tokio::io::duplex(1 << 20);
        host.accept.send(theirs).map_err(io::Error::other)?;
        let wire = tokio::spawn(async move { tokio::io::copy_bidirectional(&mut near, &mut far).await });
        host.connections.push(wire.abort_handle());
        Ok(ours)
    }
}

/// For clients of these servers.
pub(crate) fn config(addresses: &[&str]) -> ClientConfig {
    ClientConfig::new(addresses[0]).endpoints(addresses[1..].iter().copied())
}

impl Fake {
    /// Starts a server and a client for it alone.
    pub(crate) async fn start() -> (Arc<Self>, Client) {
        let network = Network::default();
        (network.fake("fake:1"), network.client(&["fake:1"]))
    }
}

/// A node that clients may call.
pub(crate) fn node(name: &str, address: &str) -> v1::Node {
    v1::Node {
        name: name.to_owned(),
        clients_address: address.to_owned(),
        state: v1::NodeState::Live.into(),
        ..Default::default()
    }
}

macro_rules! unimplemented_calls {
    ($($name:ident: $request:ident -> $response:ident),*) => {
        #[tonic::async_trait]
        impl AdminService for Fake {
            async fn list_nodes(
                &self,
                request: Request<v1::ListNodesRequest>,
            ) -> Result<Response<v1::ListNodesResponse>, Status> {
                let usual = || match self.cluster.lock().unwrap().clone() {
                    Some(nodes) => Ok(v1::ListNodesResponse { nodes, ..Default::default() }),
                    None => Err(Status::unimplemented("scripted")),
                };
                let answer = self.nodes.take(request).await;
                answer.unwrap_or_else(usual).map(Response::new)
            }

            $(async fn $name(&self, _: Request<v1::$request>) -> Result<Response<v1::$response>, Status> {
                Err(Status::unimplemented("scripted"))
            })*
        }
    };
}

unimplemented_calls!(
    list_consumers: ListConsumersRequest -> ListConsumersResponse,
    get_history: GetHistoryRequest -> GetHistoryResponse,
    list_shards: ListShardsRequest -> ListShardsResponse,
    list_audit_records: ListAuditRecordsRequest -> ListAuditRecordsResponse,
    create_token: CreateTokenRequest -> CreateTokenResponse,
    list_tokens: ListTokensRequest -> ListTokensResponse,
    rotate_token: RotateTokenRequest -> RotateTokenResponse,
    revoke_token: RevokeTokenRequest -> RevokeTokenResponse,
    add_shard: AddShardRequest -> AddShardResponse,
    drain_shard: DrainShardRequest -> DrainShardResponse,
    remove_shard: RemoveShardRequest -> RemoveShardResponse,
    move_shard: MoveShardRequest -> MoveShardResponse,
    drain_node: DrainNodeRequest -> DrainNodeResponse,
    who_am_i: WhoAmIRequest -> WhoAmIResponse,
    list_topics: ListTopicsRequest -> ListTopicsResponse,
    get_topic: GetTopicRequest -> GetTopicResponse,
    put_topic: PutTopicRequest -> PutTopicResponse,
    delete_topic: DeleteTopicRequest -> DeleteTopicResponse,
    list_namespaces: ListNamespacesRequest -> ListNamespacesResponse,
    get_namespace: GetNamespaceRequest -> GetNamespaceResponse,
    put_namespace: PutNamespaceRequest -> PutNamespaceResponse,
    export_settings: ExportSettingsRequest -> ExportSettingsResponse,
    apply_settings: ApplySettingsRequest -> ApplySettingsResponse,
    delete_namespace: DeleteNamespaceRequest -> DeleteNamespaceResponse,
    pause_topic: PauseTopicRequest -> PauseTopicResponse,
    resume_topic: ResumeTopicRequest -> ResumeTopicResponse,
    list_items: ListItemsRequest -> ListItemsResponse,
    get_item: GetItemRequest -> GetItemResponse,
    group_dead_letters: GroupDeadLettersRequest -> GroupDeadLettersResponse,
    start_operation: StartOperationRequest -> StartOperationResponse,
    explain_topic: ExplainTopicRequest -> ExplainTopicResponse,
    explain_item: ExplainItemRequest -> ExplainItemResponse,
    cancel_items: CancelItemsRequest -> CancelItemsResponse,
    update_item: UpdateItemRequest -> UpdateItemResponse,
    get_operation: GetOperationRequest -> GetOperationResponse,
    list_operations: ListOperationsRequest -> ListOperationsResponse,
    cancel_operation: CancelOperationRequest -> CancelOperationResponse,
    set_operation_rate: SetOperationRateRequest -> SetOperationRateResponse
);
