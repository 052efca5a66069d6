//! The tasks of a simulated process end with it, and stand still with it.

use std::time::Duration;

use forebay_engine::{TaskName, Tasks as _};
use forebay_testkit::sim::{ProcessTasks, Still};
use forebay_types::ShardId;
use tokio::sync::{mpsc, oneshot};

#[tokio::test]
async fn all_tasks_end_at_once_wherever_they_wait() {
    let tasks = ProcessTasks::default();
    let ends: Vec<_> = (0..100)
        .map(|_| {
            let (sender, end) = oneshot::channel::<()>();
            let waits = async move {
                std::future::pending::<()>().await;
                drop(sender);
            };
            tasks.start(TaskName::Read, Box::pin(waits));
            end
        })
        .collect();
    tokio::task::yield_now().await;
    tasks.end();
    for mut end in ends {
        assert_eq!(end.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }
}

#[tokio::test(start_paused = true)]
async fn what_stands_still_goes_on_where_it_was() {
    let tasks = ProcessTasks::default();
    let (sender, mut ticks) = mpsc::unbounded_channel();
    for shard in [1, 2] {
        let sender = sender.clone();
        let ticks = async move {
            for tick in 0..3 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let _ = sender.send((shard, tick));
            }
        };
        tasks.start(TaskName::Shard(ShardId(shard)), Box::pin(ticks));
    }
    drop(sender);
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    tasks.stand_still(Still::Task(TaskName::Shard(ShardId(1))));
    tokio::time::sleep(Duration::from_secs(1)).await;
    tasks.stand_still(Still::Process);
    tokio::time::sleep(Duration::from_secs(5)).await;
    tasks.go_on();
    let mut seen = Vec::new();
    while let Some(tick) = ticks.recv().await {
        seen.push(tick);
    }
    assert_eq!(seen, [(1, 0), (2, 0), (2, 1), (1, 1), (2, 2), (1, 2)]);
}
