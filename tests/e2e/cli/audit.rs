//! `forebay audit list`

use super::Server;

#[tokio::test]
async fn calls_are_listed_with_why_they_were_made() {
    let server = Server::start().await;
    server.run(&["topic", "pause", "mail", "--note", "a move"]).await.done();
    server.run(&["namespace", "resume", "--namespace", "shop"]).await.done();
    let table = server.run(&["audit", "list", "--since", "1h"]).await.done();
    assert!(
        table.lines().count() == 2 && table.contains("PauseTopic") && table.contains("a move"),
        "{table}"
    );
    let all = server.run(&["audit", "list", "--namespace", "-", "-o", "json"]).await.json();
    let records = all["records"].as_array().unwrap();
    assert_eq!(records.len(), 2);
    assert_eq!(
        (&records[0]["method"], &records[0]["outcome"]),
        (&"ResumeTopic".into(), &"AUDIT_OUTCOME_DONE".into())
    );
    assert_eq!(records[1]["principalKind"], "PRINCIPAL_KIND_ANYONE");
    let wide = ["audit", "list", "--namespace", "-", "--method", "ResumeTopic", "-o", "wide"];
    let wide = server.run(&wide).await.done();
    assert!(wide.lines().count() == 2 && wide.contains("SIDE_ENQUEUE"), "{wide}");
    let none = server.run(&["audit", "list", "--outcome", "failed", "-o", "name"]).await.done();
    assert_eq!(none, "");
    let one = server.run(&["audit", "list", "--namespace", "-", "--limit", "1", "-o", "name"]).await.done();
    assert_eq!(one.lines().count(), 1);
}
