//! Health and reflection, on the same port.

use futures_util::{StreamExt as _, stream};
use tonic::Code;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use super::Wire;

#[tokio::test]
async fn health_knows_the_node_and_the_service() {
    let wire = Wire::start().await;
    let mut client = HealthClient::new(wire.node.channel());
    for service in ["", forebay_proto::SERVICE] {
        let answer = client.check(HealthCheckRequest { service: service.into() }).await.unwrap();
        assert_eq!(answer.into_inner().status(), ServingStatus::Serving, "{service}");
    }
    let unknown = client.check(HealthCheckRequest { service: "no.Service".into() }).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
}

/// The two versions differ only in their package.
macro_rules! reflection {
    ($name:ident, $version:ident) => {
        #[tokio::test]
        async fn $name() {
            use tonic_reflection::pb::$version::{
                ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
                server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
            };
            let wire = Wire::start().await;
            let mut client = ServerReflectionClient::new(wire.node.channel());
            let ask =
                |message| ServerReflectionRequest { host: String::new(), message_request: Some(message) };
            let questions = [
                ask(MessageRequest::ListServices(String::new())),
                ask(MessageRequest::FileContainingSymbol(forebay_proto::SERVICE.into())),
                ask(MessageRequest::FileByFilename("google/rpc/status.proto".into())),
            ];
            let answers = client.server_reflection_info(stream::iter(questions)).await.unwrap().into_inner();
            let answers: Vec<_> =
                answers.map(|answer| answer.unwrap().message_response.unwrap()).collect().await;
            let MessageResponse::ListServicesResponse(services) = &answers[0] else { panic!("{answers:?}") };
            let services: Vec<_> = services.service.iter().map(|service| service.name.as_str()).collect();
            for service in [forebay_proto::SERVICE, "grpc.health.v1.Health"] {
                assert!(services.contains(&service), "{services:?}");
            }
            for answer in &answers[1..] {
                let MessageResponse::FileDescriptorResponse(files) = answer else { panic!("{answer:?}") };
                assert!(!files.file_descriptor_proto.is_empty());
            }
        }
    };
}

reflection!(reflection_describes_the_service, v1);
reflection!(reflection_describes_the_service_to_older_tools, v1alpha);
