//! Page tokens that are not of the list that is asked for.

use forebay_proto::v1::{
    ExportSettingsRequest, ItemState, ListAuditRecordsRequest, ListConsumersRequest, ListItemsRequest,
    ListNamespacesRequest, ListOperationsRequest, ListShardsRequest, ListTopicsRequest,
    admin_service_client::AdminServiceClient,
};

use super::{NAMESPACE, RefusalDetails, Wire};

#[tokio::test]
async fn each_list_names_the_field_of_a_page_token_that_is_not_its_own() {
    let wire = Wire::start().await;
    let mut client = AdminServiceClient::new(wire.node.channel());
    macro_rules! refuses {
        ($($list:ident($request:ident { $($field:ident: $value:expr),* });)*) => {$(
            let request = $request { page_token: "x".into(), $($field: $value,)* ..Default::default() };
            RefusalDetails::call(client.$list(request).await).invalid("page_token");
        )*};
    }
    refuses! {
        list_shards(ListShardsRequest {});
        list_namespaces(ListNamespacesRequest {});
        list_topics(ListTopicsRequest { namespace: NAMESPACE.into() });
        list_consumers(ListConsumersRequest { namespace: NAMESPACE.into() });
        list_operations(ListOperationsRequest { namespace: NAMESPACE.into() });
        list_audit_records(ListAuditRecordsRequest { namespace: NAMESPACE.into() });
        export_settings(ExportSettingsRequest { namespace: NAMESPACE.into() });
        list_items(ListItemsRequest {
            namespace: NAMESPACE.into(),
            topic: "t".into(),
            state: ItemState::Ready.into()
        });
    }
}
