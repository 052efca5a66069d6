//! A disk that is really full: a node on SQLite, on a file system of a few megabytes.

use std::{
    fs::{self, File},
    io::Write as _,
    path::PathBuf,
    time::Duration,
};

use forebay_proto::v1::{
    DequeueRequest, DequeuedItem, EnqueueItem, queue_service_client::QueueServiceClient,
};
use tokio::time::{Instant, sleep, timeout};

use super::{LEASE, RefusalDetails, Wire, asked, item, span};
use crate::node::Node;

/// Size of the file system.
const DISK_MIB: u64 = 40;
/// Bytes of it that something else takes.
const FILLER_BYTES: usize = 32 << 20;
/// The payload of an item.
const PAYLOAD_BYTES: usize = 100_000;

/// A node with one shard on a small disk, beside a file that takes a part of it.
struct SmallDisk {
    wire: Wire,
    /// The file.
    filler: PathBuf,
}

impl SmallDisk {
    async fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("forebay-wire-").tempdir().unwrap();
        let (disk, log) = (folder.path().join("disk"), folder.path().join("log"));
        fs::create_dir(&disk).unwrap();
        let data = disk.join("data").display().to_string();
        let arguments = ["dev", "--data-dir", &data, "--shards", "1", "--grpc", "127.0.0.1:0"];
        let arguments: Vec<String> =
            arguments.into_iter().chain(["--http", "127.0.0.1:0"]).map(Into::into).collect();
        let node = Node::start_on_small_disk(&arguments, &log, &disk, DISK_MIB).await;
        let filler = node.path_of(&disk.join("filler"));
        fs::write(&filler, vec![1; FILLER_BYTES]).unwrap();
        let client = QueueServiceClient::new(node.channel());
        Self { wire: Wire { node, client, folder }, filler }
    }

    /// Something else takes the last bytes of the disk.
    fn fill(&self) {
        let mut file = File::options().append(true).open(&self.filler).unwrap();
        while file.write_all(&[1; 512]).is_ok() {}
    }

    /// Dequeues an item. Returns the reason if that is refused.
    async fn take(&self) -> Result<DequeuedItem, String> {
        let request = DequeueRequest { lease_duration: Some(span(LEASE)), ..asked("t", 1) };
        match self.wire.client().dequeue(request).await {
            Ok(answer) => Ok(answer.into_inner().items.pop().expect("an item")),
            Err(status) => Err(RefusalDetails::call(Err::<(), _>(status)).reason),
        }
    }

    /// Enqueues an item. Returns the reason if it is refused.
    async fn put(&self) -> Result<(), String> {
        let payload = vec![7; PAYLOAD_BYTES];
        let item = EnqueueItem { payload: payload.into(), ..item("t") };
        match self.wire.enqueue(vec![item]).await {
            Ok(results) => results[0]
                .error
                .as_ref()
                .map_or(Ok(()), |_| Err(RefusalDetails::member(&results[0].error).reason)),
            refused => Err(RefusalDetails::call(refused).reason),
        }
    }
}

#[tokio::test]
async fn a_full_disk_is_said_and_loses_nothing() {
    let disk = SmallDisk::start().await;
    let mut stored = 0;
    while disk.put().await.is_ok() {
        stored += 1;
        assert!(stored < 1_000, "the disk is never full");
    }
    assert!(stored > 10, "{stored} items fit");
    disk.fill();
    // Rows that are smaller than an item may fit for a while.
    let mut held = Vec::new();
    let small = timeout(Duration::from_secs(20), async {
        while let Ok(item) = disk.take().await {
            held.push(item);
        }
    });
    small.await.expect("leases take room too");
    // Whatever is tried now, its refusal says why. The owner renews its claim in vain.
    let until = Instant::now() + Duration::from_secs(4);
    while Instant::now() < until {
        assert_eq!(disk.put().await, Err("DISK_FULL".to_owned()));
        assert_eq!(disk.take().await.err(), Some("DISK_FULL".to_owned()));
        sleep(Duration::from_millis(20)).await;
    }
    fs::remove_file(&disk.filler).unwrap();
    let healed = timeout(Duration::from_secs(5), async {
        while disk.put().await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
    });
    healed.await.expect("items are taken again soon after there is room");
    while held.len() <= stored {
        held.push(disk.wire.take_one("t").await);
    }
    for item in held {
        assert_eq!(item.payload.len(), PAYLOAD_BYTES);
        assert_eq!(disk.wire.ack(&item.receipt).await, None);
    }
    assert!(disk.wire.is_empty("t").await, "nothing that was refused is there");
}
