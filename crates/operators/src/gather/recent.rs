//! How many items of some topics were ready in the last minutes, as all nodes remember it.

use forebay_peers::history::RECENT_STEPS;
use forebay_proto::peer;
use forebay_types::Namespace;

use super::{Gather, history::add_up};

impl Gather {
    /// A line for each of the topics, in their order, of the last steps before one. A line is empty where no
    /// node has a history of the topic. `None`: a node did not answer, so that lines would be too low.
    pub async fn recent(
        &self,
        caller: &Namespace,
        topics: Vec<peer::TopicName>,
        until: u64,
    ) -> Option<Vec<Vec<f64>>> {
        let (count, from) = (topics.len(), until.saturating_sub(RECENT_STEPS));
        let request = &peer::ListRecentRequest { topics, from, until };
        let nodes = self.others().len();
        let mut answers = self
            .ask_others(|links, address| async move { links.list_recent(&address, caller, request).await })
            .await;
        if answers.len() < nodes {
            return None;
        }
        answers.push(self.history.recent(request.clone()));
        Some(merge(count, from, &answers))
    }
}

/// Adds lines up. Each begins with the first step that somebody has seen.
fn merge(topics: usize, from: u64, answers: &[peer::ListRecentResponse]) -> Vec<Vec<f64>> {
    let mut lines = vec![Vec::new(); topics];
    for part in answers.iter().flat_map(|answer| &answer.topics) {
        let offset = part.from.checked_sub(from).and_then(|offset| usize::try_from(offset).ok());
        let (Some(line), Some(offset)) = (lines.get_mut(part.topic as usize), offset) else { continue };
        line.resize(RECENT_STEPS as usize, f64::NAN);
        add_up(line, offset, &part.points, false);
    }
    for line in &mut lines {
        let seen = line.iter().position(|point| !point.is_nan());
        line.drain(..seen.unwrap_or(line.len()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(parts: &[(u32, u64, &[f64])]) -> peer::ListRecentResponse {
        let part = |(topic, from, points): &(u32, u64, &[f64])| peer::Recent {
            topic: *topic,
            from: *from,
            points: points.to_vec(),
        };
        peer::ListRecentResponse { topics: parts.iter().map(part).collect() }
    }

    #[test]
    fn lines_of_nodes_are_added_up_step_by_step() {
        let end = 100 + RECENT_STEPS;
        let answers = [
            answer(&[(0, end - 3, &[1.0, 2.0, 3.0]), (2, end - 1, &[7.0])]),
            answer(&[(0, end - 2, &[10.0, f64::NAN])]),
            // One that has other topics, or answers for another time.
            answer(&[(3, end - 1, &[9.0]), (1, 7, &[9.0]), (1, end + 5, &[9.0])]),
        ];
        let lines = merge(3, 100, &answers);
        assert_eq!(lines, [vec![1.0, 12.0, 3.0], Vec::new(), vec![7.0]]);
    }

    #[test]
    fn a_gap_stays_a_gap() {
        let end = 100 + RECENT_STEPS;
        let lines = merge(1, 100, &[answer(&[(0, end - 3, &[4.0, f64::NAN, 5.0])])]);
        assert_eq!((lines[0].len(), lines[0][0], lines[0][2]), (3, 4.0, 5.0));
        assert!(lines[0][1].is_nan());
    }
}
