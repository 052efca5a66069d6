//! The model's rows and a store's do the same. The fake store stands for all of them: the contract suite
//! holds it, SQLite, MariaDB and MySQL to one meaning.

use forebay_model::ownership::rows::{Rows, Tenure};
use forebay_store::{Batch, Claim, Observation, Outcome, Renewal, Shard as _, ShardConnections};
use forebay_testkit::{
    FakeShards,
    fake::{Dice, FakeShard, Process},
};
use forebay_types::Incarnation;

/// Number of the last looks and owners that are kept.
const KEPT: usize = 4;

struct Both {
    shard: FakeShard,
    rows: Rows,
    /// Observations of candidates.
    looks: Vec<Observation>,
    /// Owners of now and before.
    owners: Vec<(Tenure, ShardConnections)>,
    /// How many take-overs were tried.
    incarnations: u8,
}

impl Both {
    async fn look(&mut self) {
        let seen = self.shard.observe().await.unwrap();
        assert_eq!(seen, self.rows.seen);
        self.looks.push(seen);
        if self.looks.len() > KEPT {
            self.looks.remove(0);
        }
    }

    async fn take_over(&mut self, look: usize) {
        let Some(seen) = self.looks.get(look) else { return };
        self.incarnations = self.incarnations.wrapping_add(1);
        let incarnation = Incarnation([self.incarnations; 16]);
        let lease = std::time::Duration::from_secs(self.incarnations.into());
        let claim = Claim { incarnation, address: format!("{}:1", self.incarnations), lease };
        let taken = self.shard.take_over(&claim, seen).await.unwrap();
        let fence = self.rows.take_over(&claim, seen);
        assert_eq!(taken.as_ref().map(|taken| taken.fence), fence);
        if let Some(taken) = taken {
            let Tenure { epoch, .. } = self.rows.tenure();
            self.owners.push((Tenure { epoch, incarnation }, taken));
        }
        if self.owners.len() > KEPT {
            self.owners.remove(0);
        }
    }

    async fn renew(&mut self, owner: usize) {
        let Some((tenure, owned)) = self.owners.get_mut(owner) else { return };
        let renewed = owned.heartbeat.renew().await.unwrap();
        assert_eq!(renewed != Renewal::Lost, self.rows.renew(*tenure));
    }

    async fn release(&mut self, owner: usize, successor: &str) {
        let Some((tenure, owned)) = self.owners.get_mut(owner) else { return };
        owned.writer.release(successor).await.unwrap();
        self.rows.release(*tenure, successor);
    }

    /// Commits a batch: the next one, or another one.
    async fn commit(&mut self, owner: usize, ahead: u64) {
        let number = self.rows.seen.batch + ahead;
        let Some((tenure, owned)) = self.owners.get_mut(owner) else { return };
        let before = self.rows.fence();
        let committed = owned.writer.commit(&Batch { number, ..Batch::default() }).await.is_ok();
        assert_eq!(committed, self.rows.commit(*tenure, number, 0), "{number} of {tenure:?} on {before:?}");
        let outcome = owned.writer.resolve(number).await.unwrap();
        assert_eq!(outcome, Outcome::of(&self.rows.fence(), tenure.epoch, tenure.incarnation, number));
    }
}

#[tokio::test(start_paused = true)]
async fn the_rows_of_the_model_change_as_those_of_a_store() {
    let mut dice = Dice::new(7);
    let shards = FakeShards::new(1).await;
    let shard = FakeShard::new(shards.dbs[0].clone(), Process::new(1));
    let rows = Rows::new(false, false);
    let mut both = Both { shard, rows, looks: Vec::new(), owners: Vec::new(), incarnations: 0 };
    for _ in 0..4_000 {
        let which = dice.below(KEPT as u64) as usize;
        match dice.below(6) {
            0 | 1 => both.look().await,
            2 => both.take_over(which).await,
            3 => both.renew(which).await,
            4 => both.commit(which, dice.below(3)).await,
            _ => both.release(which, ["", "b:1"][which % 2]).await,
        }
    }
    assert!(both.rows.seen.epoch > 50 && both.rows.seen.batch > 50, "{:?}", both.rows.seen);
}
