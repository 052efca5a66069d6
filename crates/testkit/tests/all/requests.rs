//! A call with a request id is the first one though the answer to its COMMIT was lost.

use forebay_store::{Catalog as _, MySqlCatalog, MySqlOptions, NewRequest, RequestFound};
use forebay_testkit::{
    proxy::{Proxy, Spring},
    servers::{Kind, shared},
};
use forebay_types::{ClusterId, Timestamp};

fn request(id: u8) -> NewRequest {
    NewRequest {
        id: [id; 32],
        digest: [1; 32],
        begun_at: Timestamp::from_micros(1_000),
        over_before: Timestamp::from_micros(970),
        forget_before: Timestamp::from_micros(900),
    }
}

async fn a_lost_answer_is_no_other_call(kind: Kind) {
    let url = shared(kind).await.fresh_url().await;
    let way = Proxy::of_url(&url).await;
    // A proxy does not see statements in what is encrypted.
    let through = format!("{}?ssl-mode=DISABLED", way.through(&url));
    let open = |url: &str| MySqlCatalog::new(url, &MySqlOptions::default()).unwrap();
    let (catalog, other) = (open(&through), open(&url));
    catalog.migrate(ClusterId([1; 16])).await.unwrap();
    // On a connection that is used already: on a new one a loss is told.
    assert_eq!(catalog.begin_request(&request(1)).await.unwrap(), RequestFound::First);
    way.trap(b"COMMIT", Spring::ResetAfter, 1);
    assert_eq!(catalog.begin_request(&request(2)).await.unwrap(), RequestFound::First);
    assert_eq!(way.sprung(), 1, "the answer was not lost");
    for catalog in [&catalog, &other] {
        assert_eq!(catalog.begin_request(&request(2)).await.unwrap(), RequestFound::UnderWay);
    }
}

#[tokio::test]
async fn a_lost_answer_of_mariadb_is_no_other_call() {
    a_lost_answer_is_no_other_call(Kind::MariaDb).await;
}

#[tokio::test]
async fn a_lost_answer_of_mysql_is_no_other_call() {
    a_lost_answer_is_no_other_call(Kind::MySql).await;
}
