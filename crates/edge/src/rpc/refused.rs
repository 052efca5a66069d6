//! Counts refusals, by the namespace and the method of the call that this task serves. In a task without one
//! they count as those of others.
//!
//! A call may have a thousand members that are refused. So it counts for itself, and is counted at its end:
//! one look-up a reason. Its namespace is named once the caller's rights in it are known, and has series of
//! its own if it has those of the engine: so no refused call brings a name in.

use std::cell::{OnceCell, RefCell};

use forebay_engine::{OwnMetrics, ReportedNamespaces};
use forebay_types::{Namespace, Reason};
use metrics::Label;

/// The method of what is no call, or of no service.
pub const OTHER: &str = "other";

tokio::task_local! {
    /// Not set: the task serves no call.
    static CALL: OfCall;
}

/// Refusals in a call. Counted when the call is over, also if nobody waits for it any more.
struct OfCall {
    /// Method that is called.
    method: &'static str,
    /// The namespaces that have series of their own.
    reported: ReportedNamespaces,
    /// Namespace in which the caller has rights. Empty: none is known yet.
    namespace: OnceCell<Namespace>,
    /// How often for which reason.
    counts: RefCell<Vec<(Reason, u64)>>,
}

impl Drop for OfCall {
    fn drop(&mut self) {
        let counts = std::mem::take(self.counts.get_mut());
        if counts.is_empty() {
            return;
        }
        let namespace = self.namespace.get().filter(|name| self.reported.has(name)).cloned();
        let namespace = namespace.unwrap_or_else(|| OwnMetrics::OTHERS.into());
        for (reason, count) in counts {
            report(namespace.clone(), self.method, reason, count);
        }
    }
}

/// Serves a call of this method.
pub fn serve<T>(
    method: &'static str,
    reported: ReportedNamespaces,
    call: impl Future<Output = T>,
) -> impl Future<Output = T> {
    let of_call = OfCall { method, reported, namespace: OnceCell::new(), counts: RefCell::default() };
    CALL.scope(of_call, call)
}

/// The call that this task serves is about a namespace in which its caller may make it.
pub fn name(namespace: &Namespace) {
    // Nobody asks for the namespace of what is no call. The first name stays.
    let _ = CALL.try_with(|call| call.namespace.set(namespace.clone()));
}

/// Something is refused.
pub fn count(reason: Reason) {
    let counted = CALL.try_with(|call| {
        let mut counts = call.counts.borrow_mut();
        match counts.iter_mut().find(|(of, _)| *of == reason) {
            Some((_, count)) => *count += 1,
            None => counts.push((reason, 1)),
        }
    });
    if counted.is_err() {
        report(OwnMetrics::OTHERS.into(), OTHER, reason, 1);
    }
}

fn report(namespace: Namespace, method: &'static str, reason: Reason, count: u64) {
    let labels = [
        Label::new("namespace", namespace),
        Label::from_static_parts("method", method),
        Label::from_static_parts("reason", reason.as_str()),
    ];
    metrics::counter!("forebay_refusals_total", labels.to_vec()).increment(count);
}

#[cfg(test)]
mod tests {
    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    /// The samples of refusals after this call of `Ack`.
    fn counted(call: impl FnOnce()) -> Vec<String> {
        let recorder = PrometheusBuilder::new().build_recorder();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let reported = ReportedNamespaces::from_iter(["shop".into()]);
        metrics::with_local_recorder(&recorder, || {
            runtime.block_on(serve("Ack", reported, async { call() }));
        });
        let page = recorder.handle().render();
        let mut samples: Vec<String> =
            page.lines().filter(|line| line.starts_with("forebay")).map(str::to_owned).collect();
        samples.sort_unstable();
        samples
    }

    fn sample(namespace: &str, reason: &str, count: u64) -> String {
        let labels = format!("namespace=\"{namespace}\",method=\"Ack\",reason=\"{reason}\"");
        format!("forebay_refusals_total{{{labels}}} {count}")
    }

    #[test]
    fn a_call_counts_by_its_namespace_and_reason() {
        let found = counted(|| {
            name(&"shop".into());
            [Reason::LeaseLost, Reason::Overloaded, Reason::LeaseLost].into_iter().for_each(count);
        });
        assert_eq!(found, [sample("shop", "LEASE_LOST", 2), sample("shop", "OVERLOADED", 1)]);
    }

    #[test]
    fn a_name_that_is_made_up_or_in_which_nobody_has_rights_gets_no_series() {
        let made_up = counted(|| {
            name(&"made-up".into());
            count(Reason::LeaseLost);
        });
        assert_eq!(made_up, [sample("(others)", "LEASE_LOST", 1)]);
        assert_eq!(counted(|| count(Reason::WrongNamespace)), [sample("(others)", "WRONG_NAMESPACE", 1)]);
    }

    #[test]
    fn what_is_no_call_counts_too() {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || count(Reason::Overloaded));
        let sample = "{namespace=\"(others)\",method=\"other\",reason=\"OVERLOADED\"} 1\n";
        assert!(recorder.handle().render().contains(sample));
    }
}
