//! A call as its handler sees it.

use std::sync::{Arc, OnceLock};

use forebay_access::Identity;
use forebay_edge::{
    admission::{Call, caller},
    audit::AuditNote,
    rpc::status,
};
use forebay_types::Refusal;
use tonic::{Request, Response, Status};

/// A call that a handler serves.
pub struct Ctx {
    /// Its deadline, and what it holds of the node.
    pub call: Call,
    /// Its caller, as the head of the request says.
    pub caller: Arc<Identity>,
    /// Facts for its audit record. Not set: the request says all.
    note: OnceLock<AuditNote>,
}

impl Ctx {
    /// Of a request. The admission layer attached its call and its caller.
    pub fn of<T>(request: &Request<T>) -> Result<Self, Status> {
        Ok(Self { call: Call::of(request)?, caller: caller(request)?, note: OnceLock::new() })
    }

    /// Adds facts to its audit record, once. They count if the call is served.
    pub fn note(&self, note: AuditNote) {
        // No handler has two notes.
        let _ = self.note.set(note);
    }

    /// The answer, with the note of the handler.
    pub fn answer<T>(self, outcome: Result<T, Refusal>) -> Result<Response<T>, Status> {
        let mut response = Response::new(outcome.map_err(|refusal| status::of_call(&refusal))?);
        if let Some(note) = self.note.into_inner() {
            response.extensions_mut().insert(note);
        }
        Ok(response)
    }
}
