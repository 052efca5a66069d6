//! Operations of roots that share a shard.

use forebay_store::{OperationId, OperationKind, OperationOrder, OperationSpec};

use super::{
    operations::{order, spec},
    *,
};

#[test]
fn a_root_with_many_namespaces_leaves_others_room_for_operations() {
    let mut shard = shard();
    let mut number = 0;
    let mut begins = |root: Option<u8>| {
        number += 1;
        let request = OperationSpec::request_of([7; 16], root.map(|root| [root; 16]));
        let mut id = [0; 16];
        id[..4].copy_from_slice(&u32::to_be_bytes(number));
        let namespace = format!("team-{number}");
        let spec = OperationSpec { id: OperationId(id), namespace, request, ..spec(1, OperationKind::Purge) };
        order(&mut shard, u64::from(number), OperationOrder::Begin(Box::new(spec))).map(drop)
    };
    let mut taken = |root, most: usize| (0..most).take_while(|_| begins(root).is_ok()).count();
    assert_eq!(taken(Some(1), 300), 160, "of one root");
    assert_eq!(taken(Some(2), 300), 32, "of those that have many");
    assert_eq!((taken(Some(3), 300), taken(Some(4), 300)), (4, 4), "roots with few have some left");
    assert_eq!(taken(None, 56), 56, "and operators all that is left");
    assert_eq!(taken(None, 1), 0);
}
