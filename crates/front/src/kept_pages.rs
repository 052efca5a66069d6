//! Pages of active topics of the last moments. Each costs two questions to every node, and consumers without
//! work ask for the same one again and again.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use forebay_engine::{ActiveTopics, ActiveTopicsCall, Charge, TenantBudget};
use forebay_types::Refusal;
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use tokio::time::Instant;

/// A page is given again for so long from when it was asked for.
const KEPT_FOR: Duration = Duration::from_millis(200);
/// Bytes of pages that are kept, in all; a tenant may have a quarter.
const KEPT_BYTES_MAX: usize = 32 << 20;
/// About the bytes of a page, and of each topic of it.
const PAGE_BYTES: (usize, usize) = (1 << 10, 300);

/// The answer, or the way to it.
pub(crate) type Page = Shared<BoxFuture<'static, Result<ActiveTopics, Refusal>>>;

/// A page, for a moment.
struct KeptPage {
    /// When it was asked for.
    since: Instant,
    /// The page.
    page: Page,
    /// Its bytes.
    _charge: Charge,
}

/// Pages of the last moments.
pub(crate) struct KeptPages {
    /// The pages.
    pages: Mutex<Pages>,
    /// Their bytes.
    bytes: Arc<TenantBudget>,
}

/// Pages by the calls that asked for them.
#[derive(Default)]
struct Pages {
    /// The pages.
    by_call: HashMap<ActiveTopicsCall, KeptPage>,
    /// When they were asked for, the oldest first.
    asked: VecDeque<(Instant, ActiveTopicsCall)>,
}

impl Pages {
    /// Lets go of those that are too old.
    fn let_go(&mut self, now: Instant) {
        while let Some((since, call)) = self.asked.pop_front_if(|(since, _)| now - *since >= KEPT_FOR) {
            if self.by_call.get(&call).is_some_and(|kept| kept.since == since) {
                self.by_call.remove(&call);
            }
        }
    }

    fn get(&self, call: &ActiveTopicsCall) -> Option<Page> {
        let kept = self.by_call.get(call)?;
        let refused = kept.page.peek().is_some_and(Result::is_err);
        (!refused).then(|| kept.page.clone())
    }

    fn insert(&mut self, call: ActiveTopicsCall, kept: KeptPage) {
        self.asked.push_back((kept.since, call.clone()));
        self.by_call.insert(call, kept);
    }
}

impl Default for KeptPages {
    fn default() -> Self {
        Self { pages: Mutex::default(), bytes: TenantBudget::new(KEPT_BYTES_MAX) }
    }
}

impl KeptPages {
    /// The page of a call, or the way to it, if it was asked for a moment ago. One that was refused is asked
    /// for again.
    pub fn kept(&self, call: &ActiveTopicsCall) -> Option<Page> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.let_go(Instant::now());
        pages.get(call)
    }

    /// The page that `ask` gets. Others wait for it, too, and have it for a while, if there is room to keep
    /// it.
    pub async fn keep(
        &self,
        call: ActiveTopicsCall,
        ask: impl Future<Output = Result<ActiveTopics, Refusal>> + Send + 'static,
    ) -> Result<ActiveTopics, Refusal> {
        let (page, topic) = PAGE_BYTES;
        let Ok(charge) = self.bytes.take(&call.namespace, page + call.limit * topic) else {
            return ask.await;
        };
        let page = {
            let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
            // Somebody may have asked meanwhile.
            pages.get(&call).unwrap_or_else(|| {
                let page = ask.boxed().shared();
                let kept = KeptPage { since: Instant::now(), page: page.clone(), _charge: charge };
                pages.insert(call, kept);
                page
            })
        };
        page.await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use forebay_types::Reason;

    use super::*;

    fn call(namespace: &str, limit: usize) -> ActiveTopicsCall {
        ActiveTopicsCall { namespace: namespace.into(), limit, ..ActiveTopicsCall::default() }
    }

    async fn get(
        kept: &KeptPages,
        call: ActiveTopicsCall,
        ask: impl Future<Output = Result<ActiveTopics, Refusal>> + Send + 'static,
    ) -> Result<ActiveTopics, Refusal> {
        match kept.kept(&call) {
            Some(page) => page.await,
            None => kept.keep(call, ask).await,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_asked_for_once_in_a_while() {
        let (kept, asked) = (KeptPages::default(), Arc::new(AtomicUsize::new(0)));
        let ask = || {
            let asked = asked.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                asked.fetch_add(1, Relaxed);
                Ok(ActiveTopics::default())
            }
        };
        let (first, second) =
            tokio::join!(get(&kept, call("ns", 9), ask()), get(&kept, call("ns", 9), ask()));
        assert!(first.is_ok() && second.is_ok());
        get(&kept, call("ns", 9), ask()).await.unwrap();
        assert_eq!(asked.load(Relaxed), 1);
        get(&kept, call("ns", 8), ask()).await.unwrap();
        get(&kept, call("other", 9), ask()).await.unwrap();
        assert_eq!(asked.load(Relaxed), 3, "another call, another tenant");
        tokio::time::advance(KEPT_FOR).await;
        get(&kept, call("ns", 9), ask()).await.unwrap();
        assert_eq!(asked.load(Relaxed), 4);
        assert_eq!(kept.pages.lock().unwrap().by_call.len(), 1, "the others are let go of");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_for_those_who_waited_for_it() {
        let kept = KeptPages::default();
        let refused = async { Err(Refusal::new(Reason::Overloaded, "full")) };
        assert!(get(&kept, call("ns", 9), refused).await.is_err());
        assert!(get(&kept, call("ns", 9), async { Ok(ActiveTopics::default()) }).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_without_room_gets_its_page_all_the_same() {
        let kept = KeptPages::default();
        for limit in 1_000..1_100 {
            let page = async { Ok(ActiveTopics::default()) };
            get(&kept, call("ns", limit), page).await.unwrap();
        }
        let pages = kept.pages.lock().unwrap().by_call.len();
        assert!((10..50).contains(&pages), "{pages} pages are kept");
    }
}
