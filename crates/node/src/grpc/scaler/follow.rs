//! StreamIsActive: tells at once whether there is something to do, then each change, and once in a while the
//! same again. It ends with the first look that fails, and KEDA comes back.

use std::{pin::Pin, time::Duration};

use forebay_edge::{access::Authenticated, admission::overloaded, rpc::status};
use forebay_engine::{Charge, paid_at_once_by, paid_by};
use forebay_proto::externalscaler::{IsActiveResponse, ScaledObjectRef};
use forebay_types::Refusal;
use futures_util::{Stream, stream};
use tokio::time::{Instant, sleep};
use tonic::{Request, Status};

use super::{
    context::Scaler,
    figures::{Wanted, look},
    metadata::Trigger,
};

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// An answer that has not changed is told again after this time.
const REPEAT_EVERY: Duration = Duration::from_secs(30);

/// Answers that a stream tells.
pub type Told = Pin<Box<dyn Stream<Item = Result<IsActiveResponse, Status>> + Send>>;

/// A stream that is open.
struct Following {
    /// Looks.
    scaler: Scaler,
    /// Reader of the stream.
    asker: Authenticated,
    /// For what.
    trigger: Trigger,
    /// Answer that was told last, and when.
    told: Option<(bool, Instant)>,
    /// Its place among the node's streams.
    _place: Charge,
}

/// Begins a stream.
pub fn follow(scaler: &Scaler, request: &Request<ScaledObjectRef>) -> Result<Told, Refusal> {
    let (asker, trigger) = scaler.admit(request, request.get_ref())?;
    let place =
        paid_at_once_by(asker.payer(), || scaler.streams.take(&trigger.namespace, 1)).map_err(|_| {
            overloaded("streams to KEDA", "too many streams are open for this namespace, or on this node")
        })?;
    let begun = Following { scaler: scaler.clone(), asker, trigger, told: None, _place: place };
    Ok(Box::pin(stream::unfold(Some(begun), async |following| {
        let mut following = following?;
        match following.next().await {
            Ok(result) => Some((Ok(IsActiveResponse { result }), Some(following))),
            Err(refusal) => Some((Err(status::of_call(&refusal)), None)),
        }
    })))
}

impl Following {
    /// Waits for something to tell.
    async fn next(&mut self) -> Result<bool, Refusal> {
        loop {
            if self.told.is_some() {
                sleep(LOOK_EVERY).await;
            }
            // The rights are looked at last: what they no longer allow is not told.
            let look = look(&self.scaler.admin, &self.trigger, Wanted::Activity);
            let found = paid_by(self.asker.payer(), look).await;
            self.scaler.admit_again(&self.asker, &self.trigger)?;
            let is_active = found?.is_active(&self.trigger);
            let is_news =
                self.told.is_none_or(|(told, at)| told != is_active || at.elapsed() >= REPEAT_EVERY);
            if is_news {
                self.told = Some((is_active, Instant::now()));
                return Ok(is_active);
            }
        }
    }
}
