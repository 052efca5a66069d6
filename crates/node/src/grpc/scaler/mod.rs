//! Questions of KEDA to an external scaler: whether there is something to do, and how much for each replica.
//!
//! `metadata.rs` reads the trigger, `rights.rs` finds who asks and whether it may, `figures.rs` looks at the
//! topics, `due.rs` at what will be ready soon, and `follow.rs` is the stream.

mod context;
mod due;
mod figures;
mod follow;
mod metadata;
mod rights;

use forebay_engine::paid_by;
use forebay_proto::externalscaler::{
    GetMetricSpecResponse, GetMetricsRequest, GetMetricsResponse, IsActiveResponse, MetricSpec, MetricValue,
    ScaledObjectRef, external_scaler_server::ExternalScaler,
};
use forebay_types::Refusal;
use tonic::{Request, Response, Status};

pub use self::context::Scaler;
use self::{
    figures::{Figures, Wanted, look},
    metadata::{Metric, Trigger},
};
use forebay_edge::rpc::status;

/// The figures of a trigger, for whoever may have them also when they are there.
async fn figures<T>(
    scaler: &Scaler,
    request: &Request<T>,
    scaled: &ScaledObjectRef,
    wanted: Wanted,
) -> Result<(Trigger, Figures), Refusal> {
    let (asker, trigger) = scaler.admit(request, scaled)?;
    let figures = paid_by(asker.payer(), look(&scaler.admin, &trigger, wanted)).await?;
    scaler.admit_again(&asker, &trigger)?;
    Ok((trigger, figures))
}

#[tonic::async_trait]
impl ExternalScaler for Scaler {
    type StreamIsActiveStream = follow::Told;

    async fn is_active(
        &self,
        request: Request<ScaledObjectRef>,
    ) -> Result<Response<IsActiveResponse>, Status> {
        let found = figures(self, &request, request.get_ref(), Wanted::Activity).await;
        answer(found.map(|(trigger, figures)| IsActiveResponse { result: figures.is_active(&trigger) }))
    }

    async fn stream_is_active(
        &self,
        request: Request<ScaledObjectRef>,
    ) -> Result<Response<Self::StreamIsActiveStream>, Status> {
        answer(follow::follow(self, &request))
    }

    async fn get_metric_spec(
        &self,
        request: Request<ScaledObjectRef>,
    ) -> Result<Response<GetMetricSpecResponse>, Status> {
        let spec = |metric: &Metric, trigger: &Trigger| {
            let target = trigger.target(*metric);
            MetricSpec {
                metric_name: metric.name().to_owned(),
                target_size: rounded_up(target),
                target_size_float: target,
            }
        };
        let admitted = self.admit(&request, request.get_ref());
        answer(admitted.map(|(_, trigger)| GetMetricSpecResponse {
            metric_specs: trigger.metrics.iter().map(|metric| spec(metric, &trigger)).collect(),
        }))
    }

    async fn get_metrics(
        &self,
        request: Request<GetMetricsRequest>,
    ) -> Result<Response<GetMetricsResponse>, Status> {
        let (nothing, named) = (ScaledObjectRef::default(), request.get_ref());
        let scaled = named.scaled_object_ref.as_ref().unwrap_or(&nothing);
        let found = figures(self, &request, scaled, Wanted::Values).await;
        let value = found.and_then(|(trigger, figures)| {
            let metric = trigger.metric(&named.metric_name)?;
            let value = figures.value(metric);
            Ok(MetricValue {
                metric_name: metric.name().to_owned(),
                metric_value: rounded_up(value),
                metric_value_float: value,
            })
        });
        answer(value.map(|value| GetMetricsResponse { metric_values: vec![value] }))
    }
}

/// For those who know whole numbers alone.
fn rounded_up(value: f64) -> i64 {
    // A value that is too large becomes the largest.
    value.ceil() as i64
}

fn answer<T>(outcome: Result<T, Refusal>) -> Result<Response<T>, Status> {
    outcome.map(Response::new).map_err(|refusal| status::of_call(&refusal))
}
