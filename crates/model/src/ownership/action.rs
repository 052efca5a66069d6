//! Actions that can happen next, and the states that come of them.

use forebay_engine::claim::DeniedTenure;

use super::{
    candidate::DelayedPart,
    operation::Step,
    scenario::Scenario,
    sent::Kind,
    state::{CallerAnswer, Role, State},
};

/// One thing that happens. The numbers are those of nodes, or of operations under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Time passes.
    Tick,
    /// A node looks at the shard.
    Look(usize, DelayedPart),
    /// A node renews its claim.
    Renew(usize, bool),
    /// A node sends a batch.
    Commit(usize, bool),
    /// A node asks for the outcome of a batch.
    Resolve(usize),
    /// A node has loaded the shard.
    Loaded(usize),
    /// A node hears who is to own the shard.
    TakeUpDuty(usize),
    /// A node's task is told to release the shard.
    OrderRelease(usize),
    /// A node's task releases the shard.
    Release(usize, bool),
    /// An operation takes effect.
    Apply(usize),
    /// An operation's answer comes.
    Answer(usize, bool),
    /// An operation's answer will not come.
    GiveUp(usize),
    /// A process stands still.
    Pause(usize),
    /// It goes on.
    Resume(usize),
    /// A process dies.
    Kill(usize),
    /// Another one starts in its place.
    Restart(usize),
    /// The server becomes slow.
    Slow,
    /// The server is fast again.
    Fast,
    /// The shard is assigned to a node.
    Assign(usize),
    /// The server forgets the last take-over.
    Forget,
    /// Nothing goes wrong any more. The shard is this node's, if it is for one at a time.
    End(usize),
}

/// Lists what can happen.
pub(super) fn list(scenario: &Scenario, state: &State, actions: &mut Vec<Action>) {
    if state.over {
        return;
    }
    for node in (0..state.nodes.len()).filter(|node| state.runs(*node)) {
        of_node(scenario, state, node, actions);
    }
    for index in 0..state.operations.len() {
        of_operation(state, index, actions);
    }
    faults(state, actions);
    if scenario.diligent && actions.iter().any(|action| matches!(action, Action::Renew(..))) {
        return;
    }
    if state.now < scenario.faults_until {
        return actions.push(Action::Tick);
    }
    let homes = if scenario.assigned { state.nodes.len() } else { 1 };
    // A node that stays dead gets no shard.
    actions.extend((0..homes).filter(|home| state.nodes[*home].alive).map(Action::End));
    assert!(!actions.is_empty(), "no way ends before its end: {state:#?}");
}

/// Adds the actions of a node.
fn of_node(scenario: &Scenario, state: &State, node: usize, actions: &mut Vec<Action>) {
    let State { nodes, operations, left, told, home, .. } = state;
    let has =
        |what: fn(&Kind) -> bool| operations.iter().any(|it| it.node == node && !it.orphan && what(&it.kind));
    let at = &nodes[node];
    let may_delay = left.delays > 0;
    let mut both = |action: fn(usize, bool) -> Action| {
        actions.push(action(node, false));
        if may_delay {
            actions.push(action(node, true));
        }
    };
    if at.claim(true).is_some() && !at.renewed && !has(|kind| matches!(kind, Kind::Renew(_))) {
        both(Action::Renew);
    }
    if let Some(owner) = at.owner() {
        let ordered = owner.hand_over.as_ref().is_some_and(|hand_over| hand_over.ordered);
        if owner.flight.is_none() && !ordered && told.len() < usize::from(scenario.calls) {
            both(Action::Commit);
        }
        if state.can_release(scenario, node) {
            both(Action::Release);
        }
        if owner.flight.is_some() && !has(|kind| matches!(kind, Kind::Batch(..))) {
            actions.push(Action::Resolve(node));
        }
        if state.is_release_due(node) {
            actions.push(Action::OrderRelease(node));
        }
    }
    match at.role {
        Role::Looks if !at.looked => {
            actions.push(Action::Look(node, DelayedPart::Nothing));
            if may_delay {
                actions.push(Action::Look(node, DelayedPart::Question));
                actions.push(Action::Look(node, DelayedPart::TakeOver));
            }
        }
        Role::Loads { left: 0, .. } => actions.push(Action::Loaded(node)),
        _ => {}
    }
    if at.home != *home {
        actions.push(Action::TakeUpDuty(node));
    }
}

/// Adds the possible ends of an operation.
fn of_operation(state: &State, index: usize, actions: &mut Vec<Action>) {
    let operation = &state.operations[index];
    if state.can_apply(operation) {
        actions.push(Action::Apply(index));
    }
    if operation.orphan || !state.runs(operation.node) {
        return;
    }
    let is_question = matches!(operation.kind, Kind::Ask(..));
    if operation.effect.is_some() {
        actions.push(Action::Answer(index, false));
        if is_question && state.left.delays > 0 {
            actions.push(Action::Answer(index, true));
        }
    }
    if state.left.breaks > 0 {
        actions.push(Action::GiveUp(index));
    }
}

/// Adds the faults, and their ends.
fn faults(state: &State, actions: &mut Vec<Action>) {
    let State { nodes, left, slow, home, before, .. } = state;
    for (index, node) in nodes.iter().enumerate() {
        match (node.alive, node.paused) {
            (true, false) => {
                actions.extend((left.pauses > 0).then_some(Action::Pause(index)));
                actions.extend((left.kills > 0).then_some(Action::Kill(index)));
            }
            (true, true) => actions.push(Action::Resume(index)),
            (false, _) => actions.push(Action::Restart(index)),
        }
        actions.extend((left.moves > 0 && index != *home).then_some(Action::Assign(index)));
    }
    if *slow {
        actions.push(Action::Fast);
    } else if left.slows > 0 {
        actions.push(Action::Slow);
    }
    actions.extend((left.forgets > 0 && before.is_some()).then_some(Action::Forget));
}

/// Returns the state after an action. `None`: another action brings the same.
pub(super) fn done(scenario: &Scenario, last: &State, action: Action) -> Option<State> {
    let mut step = Step { scenario, state: last.clone() };
    match action {
        Action::Look(node, delayed) => {
            step.look(node, delayed);
            if delayed != DelayedPart::Nothing && step.state.left.delays == last.left.delays {
                return None;
            }
        }
        Action::Renew(node, delayed) => step.renew(node, delayed),
        Action::Commit(node, delayed) => step.commit(node, delayed),
        Action::Resolve(node) => step.resolve(node),
        Action::Loaded(node) => step.loaded(node),
        Action::TakeUpDuty(node) => step.take_up_duty(node),
        Action::OrderRelease(node) => step.order_release(node),
        Action::Release(node, delayed) => step.release(node, delayed),
        Action::Apply(index) => step.apply_late(index),
        Action::Answer(index, delayed) => {
            let operation = step.state.operations.remove(index);
            step.answer(operation, delayed);
            if delayed && step.state.left.delays == last.left.delays {
                return None;
            }
        }
        Action::GiveUp(index) => {
            step.state.left.breaks -= 1;
            step.give_up(index);
        }
        Action::Tick => step.tick(),
        Action::End(home) => step.end(home),
        fault => step.fault(fault),
    }
    (step.state != *last).then_some(step.state)
}

impl Step<'_> {
    /// An operation that was sent earlier takes effect. Where only the server was slow, the answer comes
    /// with it.
    fn apply_late(&mut self, index: usize) {
        let operation = self.state.operations.remove(index);
        let operation = self.take_effect(operation);
        if self.state.slow && self.state.runs(operation.node) {
            self.answer(operation, false);
        } else if !operation.orphan {
            self.state.operations.push(operation);
        }
    }

    /// Time passes. Questions of the tick before are over.
    pub fn tick(&mut self) {
        self.state.now += 1;
        for node in &mut self.state.nodes {
            (node.looked, node.renewed) = (false, false);
            if let Role::Loads { left, .. } = &mut node.role {
                *left = left.saturating_sub(1);
            }
        }
        let is_late = |step: &Self, index: usize| {
            let it = &step.state.operations[index];
            let is_question = matches!(it.kind, Kind::Ask(..));
            is_question && !it.orphan && it.sent + 1 < step.state.now && step.state.runs(it.node)
        };
        while let Some(late) = (0..self.state.operations.len()).find(|index| is_late(self, *index)) {
            self.give_up(late);
        }
    }

    fn fault(&mut self, fault: Action) {
        let State { nodes, left, slow, home, .. } = &mut self.state;
        match fault {
            Action::Pause(node) => (nodes[node].paused, left.pauses) = (true, left.pauses - 1),
            Action::Resume(node) => nodes[node].paused = false,
            Action::Kill(node) => {
                left.kills -= 1;
                self.kill(node);
            }
            Action::Restart(node) => (nodes[node].alive, nodes[node].home) = (true, *home),
            Action::Slow => (*slow, left.slows) = (true, left.slows - 1),
            Action::Fast => self.be_fast(),
            Action::Assign(to) => (*home, left.moves) = (to, left.moves - 1),
            Action::Forget => {
                left.forgets -= 1;
                self.forget();
            }
            _ => {}
        }
    }

    /// A process dies. What it has sent may take effect.
    fn kill(&mut self, node: usize) {
        if let Some(owner) = self.state.nodes[node].owner_mut()
            && let Some(flight) = owner.flight.take()
        {
            self.state.told[flight.call] = CallerAnswer::Unknown;
        }
        self.leave_behind(node, Role::Looks);
        self.look_anew(node);
        let dead = &mut self.state.nodes[node];
        (dead.alive, dead.served_last, dead.slow_look) = (false, None, None);
        dead.denied = DeniedTenure::default();
        // The next process of that name never was an owner.
        self.state.denied.retain(|(of, _)| *of != node);
    }

    /// The server is fast again, and does what waits.
    pub fn be_fast(&mut self) {
        self.state.slow = false;
        while let Some(index) = (0..self.state.operations.len()).find(|index| {
            let it = &self.state.operations[*index];
            !it.orphan && !matches!(it.kind, Kind::Ask(..)) && self.state.runs(it.node)
        }) {
            let mut operation = self.state.operations.remove(index);
            if operation.effect.is_none() {
                operation = self.take_effect(operation);
            }
            self.answer(operation, false);
        }
    }

    /// All connections to the server end, and it has forgotten the last take-over.
    fn forget(&mut self) {
        while let Some(index) = self.state.operations.iter().position(|it| !it.orphan) {
            self.give_up(index);
        }
        self.state.operations.clear();
        if let Some(before) = self.state.before.take() {
            self.state.rows = before;
        }
    }
}
