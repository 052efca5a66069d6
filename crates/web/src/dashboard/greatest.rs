//! The topics of all namespaces with the greatest figures, for the first page and for the list of topics in
//! each of its orders: all of them come from one walk.

use std::sync::Arc;

use forebay_edge::rpc::ALL_NAMESPACES;
use forebay_operators::calls::first_in_order;
use forebay_proto::v1::{ListTopicsRequest, ListTopicsResponse, Topic};
use tonic::Status;

use super::asked::PageRequest;

/// Topics by each figure. With their lines they take most of the 60 KiB that a page may have.
pub(crate) const BY_EACH: u32 = 50;
/// All figures by which topics are put in order.
const ORDER: &str = "-oldest,-dead,-ready,-leased,-scheduled";

/// Reads them for somebody who may see the whole cluster, or takes what others have read just now.
pub async fn read(asked: &PageRequest) -> Result<Arc<ListTopicsResponse>, Status> {
    let walk = {
        let asked = asked.clone();
        move || async move {
            let request = ListTopicsRequest {
                namespace: ALL_NAMESPACES.to_owned(),
                order_by: ORDER.to_owned(),
                page_size: BY_EACH,
                recent: true,
                ..ListTopicsRequest::default()
            };
            let _walk = asked.shared.walk.lock().await;
            asked.ask(request).await
        }
    };
    asked.shared.greatest.get(walk).await
}

/// Topics that are among the first of one of these orders, each once.
pub fn by(greatest: &ListTopicsResponse, order_by: &str) -> Vec<Topic> {
    first_in_order(&greatest.topics, order_by, BY_EACH as usize)
}
