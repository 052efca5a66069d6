//! Calls of operators: a request is sent as it is, and its answer is returned as it came.

use std::time::Duration;

use bytes::Bytes;
use forebay_proto::AdminCall;
use futures_util::future::BoxFuture;
use tonic::Code;

use crate::{client::Client, endpoints::Learner, error::Error};

impl Client {
    /// Asks one server after the other until one answers. A request that makes something is
    /// safe to repeat if its `request_id` is set; [`request_id`](Self::request_id) makes one.
    pub async fn ask<Q: AdminCall>(&self, request: Q) -> Result<Q::Answer, Error> {
        let answer = self.ask_encoded(Q::PATH, request.encoded()).await?;
        Q::decoded(answer).map_err(|status| Error::of_call(&status))
    }

    /// The same for all calls. Boxed, so that this crate compiles it, and not each of its users.
    fn ask_encoded(&self, path: &'static str, request: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        Box::pin(async move {
            let mut attempts = self.attempts_by(self.listing.clone(), Duration::ZERO);
            loop {
                let endpoint = attempts.target()?.endpoint;
                let asked = endpoint.ask_encoded(path, request.clone(), self.config.attempt_timeout).await;
                let error = match asked {
                    Ok(answer) => {
                        self.learner.iter().for_each(Learner::on_success);
                        return Ok(answer);
                    }
                    Err(error) => error,
                };
                if error.code() == Code::Unimplemented || !attempts.wait_for_retry(&[&error]).await {
                    return Err(attempts.final_error(error));
                }
            }
        })
    }

    /// Names a request, so that it takes effect once however often it is sent.
    pub fn request_id(&self) -> String {
        self.rng.request_id()
    }
}
