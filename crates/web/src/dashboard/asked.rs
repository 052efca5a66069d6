//! A request for a page, and the visitor who sends it.

use std::{sync::Arc, time::Duration};

use axum::extract::FromRequestParts;
use forebay_access::{EVENTS, Identity, Scope};
use forebay_edge::{
    admission::{Caller, Calls},
    rpc::ALL_NAMESPACES,
};
use forebay_proto::{AdminCall, call_encoded, v1::queue_service_client::QueueServiceClient};
use forebay_types::Timestamp;
use http::request::Parts;
use tonic::Status;

use super::{
    calls::{OnBehalf, QueueCalls},
    shared::SharedLists,
    trouble::Trouble,
};
use crate::{fields::Fields, guard::Visitor, info::NodeInfo};

/// A page that takes longer is given up.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest answer that a page reads.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// A request for a page, with everything that answers it.
#[derive(Clone)]
pub(crate) struct PageRequest {
    /// State of the node, as pages show it.
    pub info: Arc<NodeInfo>,
    /// The visitor who asks.
    pub visitor: Visitor,
    /// The fields of its address, or of a form.
    pub fields: Fields,
    /// Lists that all readers of the node share.
    pub shared: Arc<SharedLists>,
    /// The router of the gRPC port.
    calls: Calls,
    /// The connection.
    caller: Option<Caller>,
    /// An open page is looked at again.
    is_followed: bool,
}

impl PageRequest {
    /// The namespace of the page; `-` stands for all of them, and so does none.
    pub fn namespace(&self) -> &str {
        match self.fields.get("ns") {
            "" => ALL_NAMESPACES,
            namespace => namespace,
        }
    }

    /// Whether the page is about all namespaces.
    pub(crate) fn is_about_all(&self) -> bool {
        self.namespace() == ALL_NAMESPACES
    }

    /// Makes an operator's call, for whoever asks.
    pub async fn ask<Q: AdminCall>(&self, request: Q) -> Result<Q::Answer, Status> {
        let behalf = self.on_behalf().map_err(|trouble| Status::unavailable(trouble.message))?;
        let request = self.request(request.encoded());
        Q::decoded(Box::pin(call_encoded(behalf, Q::PATH, request, ANSWER_BYTES_MAX)).await?)
    }

    /// Calls of the queue, for whoever asks.
    pub fn queue(&self) -> Result<QueueCalls, Trouble> {
        Ok(QueueServiceClient::new(self.on_behalf()?))
    }

    fn on_behalf(&self) -> Result<OnBehalf, Trouble> {
        // Every connection of the server has one.
        let caller = self.caller.clone().ok_or_else(Trouble::stopping)?;
        Ok(OnBehalf::new(self.calls.clone(), caller, self.visitor.who.clone()))
    }

    /// A request of a call, with the time that it may take.
    pub fn request<T>(&self, message: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        request.set_timeout(CALL_TIMEOUT);
        request
    }

    /// Whether whoever asks has a scope in a namespace. In all of them: `-`.
    pub fn may(&self, scope: Scope, namespace: &str) -> bool {
        let namespace = if namespace == ALL_NAMESPACES { "" } else { namespace };
        self.visitor.who.as_ref().is_some_and(|who| who.identity.may(scope, namespace))
    }

    /// Whether an open page is looked at again, of which only what changes is of use. What is written down,
    /// or does not change, is left out then.
    pub(crate) fn is_followed(&self) -> bool {
        self.is_followed
    }

    /// The same with the rights that whoever asks has by now. `None`: the credential is of no use any more.
    pub fn again(mut self) -> Option<Self> {
        if let Some(who) = &self.visitor.who {
            self.visitor.who = Some(self.info.access.again(who).ok()?);
        }
        Some(self)
    }

    /// Whose pages it opens, as far as that is known.
    pub fn whose(&self) -> Option<&Identity> {
        let who = self.visitor.who.as_ref().filter(|_| self.info.access.is_on());
        who.map(|who| &*who.identity)
    }

    /// The time of the node.
    pub fn now(&self) -> Timestamp {
        self.info.clock.wall()
    }
}

impl FromRequestParts<Arc<NodeInfo>> for PageRequest {
    type Rejection = Trouble;

    async fn from_request_parts(head: &mut Parts, info: &Arc<NodeInfo>) -> Result<Self, Trouble> {
        let extensions = &head.extensions;
        // The keeper and the server have put them there.
        let (Some(visitor), Some(calls), Some(shared)) =
            (extensions.get::<Visitor>(), extensions.get::<Calls>(), extensions.get::<Arc<SharedLists>>())
        else {
            return Err(Trouble::stopping());
        };
        Ok(Self {
            info: info.clone(),
            visitor: visitor.clone(),
            fields: extensions.get::<Fields>().cloned().unwrap_or_default(),
            shared: shared.clone(),
            calls: calls.clone(),
            caller: extensions.get::<Caller>().cloned(),
            is_followed: head.uri.path() == EVENTS,
        })
    }
}
