//! Rights of the holders of certificates.

use forebay_client::{
    Client, ClientConfig, Code, NewItem, Reason, TlsConfig,
    v1::{PrincipalKind, WhoAmIRequest},
};

use super::TlsFolder;
use crate::kept_tokens::{file, record, token};

/// Returns the answer to an enqueue.
async fn told(config: ClientConfig) -> Result<(), (Code, Option<Reason>)> {
    let client = Client::connect(config).unwrap();
    let answered = client.enqueue(vec![NewItem::new("t", "x")]).await;
    answered.map(drop).map_err(|error| (error.code(), error.reason()))
}

#[tokio::test]
async fn a_certificate_gives_the_rights_of_its_name_and_a_token_decides_over_it() {
    let keys = "client_ca_file = \"FOLDER/ca.crt\"\nclient_auth = \"optional\"\n\
                [access]\ntokens_file = \"FOLDER/tokens.toml\"\n\
                [[access.certificate]]\nsan = \"spiffe://prod/worker\"\ngrants = [\"own:produce\"]\n";
    let prepared = TlsFolder::new(|authority| authority.issue(&["127.0.0.1"]), keys).await;
    let token = token(7);
    std::fs::write(prepared.path("tokens.toml"), file(&[record(&token, &["other:produce"])])).unwrap();
    let issue = |names: &[&str]| prepared.authority.issue(names);
    let worker = issue(&["a.example", "spiffe://prod/worker"]);
    let stranger = issue(&["spiffe://prod/worker/2"]);
    let authorities = TlsConfig::default().ca_certificate(prepared.authority.pem());
    let secured = prepared.start(authorities).await;
    let config = |namespace: &str| secured.config().namespace(namespace);

    let worker = |namespace: &str| config(namespace).client_certificate(&*worker.cert, &*worker.key);
    assert_eq!(told(worker("own")).await, Ok(()));
    let foreign = Err((Code::PermissionDenied, Some(Reason::WrongNamespace)));
    assert_eq!(told(worker("other")).await, foreign);
    let caller = Client::connect(worker("own")).unwrap().ask(WhoAmIRequest {}).await.unwrap();
    assert_eq!((caller.kind(), &*caller.id), (PrincipalKind::Certificate, "spiffe://prod/worker"));

    // With both, the token decides, for better and worse.
    let both = |namespace: &str| worker(namespace).token(token.reveal());
    assert_eq!(told(both("other")).await, Ok(()));
    assert_eq!(told(both("own")).await, foreign);
    let bad = Err((Code::Unauthenticated, Some(Reason::BadCredentials)));
    assert_eq!(told(worker("own").token("fby1_nonsense")).await, bad);

    // The end of the certificate is that of the rights. Its row is read again on SIGHUP.
    let client = Client::connect(worker("own")).unwrap();
    assert!(client.ask(WhoAmIRequest {}).await.unwrap().ends_at.is_some());
    let path = secured.path("forebay.toml");
    let before = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, before.replace("san = \"spiffe://prod/worker\"", "san = \"another\"")).unwrap();
    secured.node.hang_up();
    let began = tokio::time::Instant::now();
    loop {
        match client.ask(WhoAmIRequest {}).await {
            Err(error) if error.reason() == Some(Reason::BadCredentials) => break,
            _ => assert!(began.elapsed() < super::TIMEOUT, "the row is gone"),
        }
    }
    std::fs::write(&path, before).unwrap();
    secured.node.hang_up();
    while told(worker("own")).await.is_err() {
        assert!(began.elapsed() < 2 * super::TIMEOUT, "the row is there again");
    }

    let stranger = config("own").client_certificate(&*stranger.cert, &*stranger.key);
    assert_eq!(told(stranger).await, bad, "a name without a row");
    assert_eq!(told(config("own")).await, Err((Code::Unauthenticated, Some(Reason::NoCredentials))));
}
