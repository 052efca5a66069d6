//! Records of calls, and tokens, of a fake catalog.

use std::{cmp::Reverse, collections::BTreeMap};

use forebay_store::{
    AuditEnd, AuditId, AuditOutcome, AuditQuery, AuditRecord, NewSession, NewToken, SessionRow,
    TokenAddOutcome, TokenChange, TokenChangeOutcome, TokenMaker, TokenRow, Tokens, descendants,
};
use forebay_types::Timestamp;

/// Rows that have no part in the assignment.
#[derive(Debug, Clone, Default)]
pub(super) struct Records {
    /// Calls.
    pub audit: BTreeMap<AuditId, AuditRecord>,
    /// Tokens, by id.
    pub tokens: BTreeMap<String, TokenRow>,
    /// Changes of them so far. The version is one higher.
    pub token_changes: u64,
    /// Sessions of browsers, by id.
    pub sessions: BTreeMap<[u8; 32], SessionRow>,
}

fn is_of_use(row: &TokenRow, now: Timestamp) -> bool {
    row.revoked.is_none() && row.ends.is_none_or(|ends| ends > now)
}

impl Records {
    /// See [`Catalog::end_audit`](forebay_store::Catalog::end_audit).
    pub fn end_audit(&mut self, id: AuditId, end: AuditEnd) -> bool {
        let known = self.audit.get_mut(&id).filter(|record| record.outcome == AuditOutcome::Intended);
        let Some(record) = known else { return false };
        let AuditEnd { outcome, failure, target, operation_id, shortened } = end;
        (record.outcome, record.failure, record.operation_id) = (outcome, failure, operation_id);
        if let Some((reason, summary)) = shortened {
            (record.reason, record.summary) = (reason, summary);
        }
        if !target.is_empty() {
            record.target = target;
        }
        true
    }

    /// See [`Catalog::audit`](forebay_store::Catalog::audit).
    pub fn read_audit(&self, query: &AuditQuery) -> Vec<AuditRecord> {
        let AuditQuery { namespace, from, before, limit } = query;
        let is_asked_for = |record: &&AuditRecord| {
            let of_namespace = namespace.as_ref().is_none_or(|name| record.namespace == *name);
            of_namespace && record.id >= *from && record.id < *before
        };
        self.audit.values().rev().filter(is_asked_for).take(*limit as usize).cloned().collect()
    }

    /// See [`Catalog::sweep_audit`](forebay_store::Catalog::sweep_audit).
    pub fn sweep_audit(&mut self, before: Timestamp, most: u32) -> u64 {
        let old = self.audit.keys().take_while(|id| **id < AuditId::first_of(before));
        let old: Vec<AuditId> = old.take(most as usize).copied().collect();
        old.iter().for_each(|id| drop(self.audit.remove(id)));
        old.len() as u64
    }

    /// See [`Catalog::tokens`](forebay_store::Catalog::tokens).
    pub fn read_tokens(&self, known: u64) -> Tokens {
        let version = self.token_changes + 1;
        let rows = (version != known).then(|| self.tokens.values().cloned().collect());
        Tokens { version, rows }
    }

    fn has_admin(&self, but: &[&str], now: Timestamp) -> bool {
        let others = self.tokens.values().filter(|row| !but.contains(&row.id.as_str()));
        others.filter(|row| row.is_admin).any(|row| is_of_use(row, now))
    }

    /// See [`Catalog::add_token`](forebay_store::Catalog::add_token).
    pub fn add_token(&mut self, token: NewToken) -> TokenAddOutcome {
        let NewToken { row, maker, if_no_admin_at, forget_before, bounds } = token;
        let root = match &maker {
            TokenMaker::Operator => row.id.clone(),
            TokenMaker::Other(name) => name.clone(),
            TokenMaker::Token(id) => self.tokens.get(id).map_or(id, |row| &row.root).clone(),
        };
        let is_old = |time: Option<Timestamp>| time.is_some_and(|time| time < forget_before);
        let mut tokens = self.tokens.clone();
        let is_forgotten = |row: &TokenRow| is_old(row.ends) || is_old(row.revoked) && row.ends.is_some();
        tokens.retain(|_, row| !is_forgotten(row));
        let of_namespace = tokens.values().filter(|known| known.namespace == row.namespace).count() as u64;
        let of_root = tokens.values().filter(|known| known.root == root).count() as u64;
        match () {
            () if tokens.contains_key(&row.id) => return TokenAddOutcome::IdTaken,
            () if if_no_admin_at.is_some_and(|now| self.has_admin(&[&row.id], now)) => {
                return TokenAddOutcome::HasAdmin;
            }
            () if of_namespace >= bounds.per_namespace => return TokenAddOutcome::NamespaceFull,
            () if of_root >= bounds.by_root.per_root => return TokenAddOutcome::RootFull,
            () if tokens.len() as u64 >= bounds.by_root.in_all_for(maker.is_operator(), of_root) => {
                return TokenAddOutcome::Full;
            }
            () => {}
        }
        tokens.insert(row.id.clone(), TokenRow { root, ..row });
        (self.tokens, self.token_changes) = (tokens, self.token_changes + 1);
        TokenAddOutcome::Yes(self.token_changes + 1)
    }

    /// See [`Catalog::change_token`](forebay_store::Catalog::change_token).
    pub fn change_token(&mut self, id: &str, change: &TokenChange) -> TokenChangeOutcome {
        let Some(mut row) = self.tokens.get(id).cloned() else { return TokenChangeOutcome::NoToken };
        match change {
            TokenChange::Rotate { from, .. } if row.revoked.is_some() || row.secret != *from => {
                return TokenChangeOutcome::Stale;
            }
            TokenChange::Rotate { from, secret, rotation, overlap_ends } => {
                row.secret = *secret;
                row.rotation = *rotation;
                row.older_secret = overlap_ends.map(|_| *from);
                row.overlap_ends = *overlap_ends;
            }
            TokenChange::Revoke { at, with_descendants } => return self.revoke(id, *at, *with_descendants),
        }
        self.tokens.insert(id.to_owned(), row);
        self.token_changes += 1;
        TokenChangeOutcome::Yes(self.token_changes + 1)
    }

    fn revoke(&mut self, id: &str, at: Timestamp, with_descendants: bool) -> TokenChangeOutcome {
        let known: Vec<_> =
            self.tokens.values().map(|it| (it.id.clone(), it.made_by_id.clone(), it.root.clone())).collect();
        let is_live = |id: &str| self.tokens.get(id).is_some_and(|row| is_of_use(row, at));
        let mut ids: Vec<&str> = descendants(&known, id).into_iter().filter(|id| is_live(id)).collect();
        let descendants = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        if !with_descendants {
            ids.clear();
        }
        if self.tokens.get(id).is_some_and(|row| row.revoked.is_none()) {
            ids.push(id);
        }
        let ends_admins = ids.iter().any(|id| self.tokens[*id].is_admin && is_of_use(&self.tokens[*id], at));
        if ends_admins && !self.has_admin(&ids, at) {
            return TokenChangeOutcome::LastAdmin;
        }
        if !ids.is_empty() {
            self.token_changes += 1;
        }
        for id in ids {
            self.tokens.entry(id.to_owned()).and_modify(|row| row.revoked = Some(at));
        }
        TokenChangeOutcome::Revoked { version: self.token_changes + 1, descendants }
    }

    /// See [`Catalog::note_token_use`](forebay_store::Catalog::note_token_use).
    pub fn note_token_use(&mut self, id: &str, hour: Timestamp) {
        if let Some(row) = self.tokens.get_mut(id) {
            row.last_used = row.last_used.max(Some(hour));
        }
    }

    /// The session of a token that was used the longest ago, but this one.
    fn oldest_session(&self, token: &str, but: &[u8; 32]) -> Option<[u8; 32]> {
        let of_token = self.sessions.values().filter(|row| row.token_id == token && row.id != *but);
        of_token.min_by_key(|row| (row.used_at, row.id)).map(|row| row.id)
    }

    fn sessions_of(&self, token: &str) -> usize {
        self.sessions.values().filter(|row| row.token_id == token).count()
    }

    /// See [`Catalog::add_session`](forebay_store::Catalog::add_session).
    pub fn add_session(&mut self, session: NewSession) {
        let NewSession { row, replaces, made_before, used_before, bounds } = session;
        self.sessions.retain(|_, known| known.used_at >= used_before && known.made_at >= made_before);
        replaces.map(|id| self.sessions.remove(&id));
        self.sessions.remove(&row.id);
        while self.sessions_of(&row.token_id) >= bounds.per_token as usize
            && let Some(oldest) = self.oldest_session(&row.token_id, &row.id)
        {
            self.sessions.remove(&oldest);
        }
        while self.sessions.len() >= bounds.in_all as usize {
            let by_count = |row: &&SessionRow| (self.sessions_of(&row.token_id), Reverse(row.used_at));
            let Some(most) = self.sessions.values().max_by_key(by_count) else { break };
            let oldest = self.oldest_session(&most.token_id, &row.id);
            oldest.map(|id| self.sessions.remove(&id));
        }
        self.sessions.insert(row.id, row);
    }

    /// See [`Catalog::note_session_use`](forebay_store::Catalog::note_session_use).
    pub fn note_session_use(&mut self, id: &[u8; 32], now: Timestamp) {
        if let Some(row) = self.sessions.get_mut(id) {
            row.used_at = row.used_at.max(now);
        }
    }
}
