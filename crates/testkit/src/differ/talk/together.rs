//! Requests of one connection that are sent together: those that follow each other in a talk, where the
//! connection speaks RESP3, in which a reply cannot be taken for what nobody has asked for. Their replies,
//! and what comes between them, must be the same in the same order.
use super::super::stream::Step;
use super::side::{Heard, WAITING, is_push};
use crate::resp_value::Value;

/// So many at most.
const COUNT_MAX: usize = 6;

/// How many of these steps, of which there are some, may be sent together: one, or the first few.
pub(super) fn count(steps: &[Step]) -> usize {
    let is_same = |step: &&Step| step.connection == steps[0].connection && may_be_among(step);
    let run = &steps[..steps.iter().take(COUNT_MAX).take_while(is_same).count()];
    // Behind one that waits nothing is answered.
    let waits = run.iter().position(|step| WAITING.contains(&&*step.name()));
    waits.map_or(run.len(), |at| at + 1).max(1)
}

/// Not those that change the protocol, answer an unknown number of times, may end the connection, or tell
/// their own client before they answer (docs/differences.md).
fn may_be_among(step: &Step) -> bool {
    let name = step.name();
    let is_alone = matches!(&*name, "hello" | "reset" | "flushall" | "flushdb" | "quit");
    let is_kill =
        name == "client" && step.request.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"kill"));
    !is_alone && !is_kill && (!name.ends_with("subscribe") || step.request.len() > 1)
}

/// How many of the steps have got all their answers by these values of their connection.
pub(super) fn answered(steps: &[Step], values: &[Value]) -> usize {
    let mut assigned = Assigned::to(steps);
    for value in values {
        assigned.next(value);
    }
    assigned.at + usize::from(assigned.is_complete())
}

/// What each step has caused: on its own connection its answers and what came behind them, before the next
/// step's. What others hear is taken for the last one's.
pub(super) fn apart(steps: &[Step], heard: Heard) -> Vec<Heard> {
    let own = steps[0].connection;
    let mut parts = vec![Heard::nothing(heard.values.len()); steps.len()];
    let mut assigned = Assigned::to(steps);
    let last = steps.len() - 1;
    for (at, values) in heard.values.into_iter().enumerate() {
        for value in values {
            let step = if at == own { assigned.next(&value) } else { last };
            parts[step].values[at].push(value);
        }
    }
    parts[last].waits = heard.waits;
    parts
}

/// Goes through what a connection gets.
struct Assigned<'s> {
    steps: &'s [Step],
    /// The step that is being answered, and how many answers it has.
    at: usize,
    answers: usize,
}

impl Assigned<'_> {
    fn to(steps: &[Step]) -> Assigned<'_> {
        Assigned { steps, at: 0, answers: 0 }
    }

    /// The step that the next value belongs to.
    fn next(&mut self, value: &Value) -> usize {
        if self.is_complete() && self.at + 1 < self.steps.len() && answers(&self.steps[self.at + 1], value) {
            (self.at, self.answers) = (self.at + 1, 0);
        }
        if answers(&self.steps[self.at], value) {
            // An error, or `QUEUED`, is the only answer.
            self.answers = if is_push(value) { self.answers + 1 } else { usize::MAX };
        }
        self.at
    }

    fn is_complete(&self) -> bool {
        let step = &self.steps[self.at];
        let wanted = if step.name().ends_with("subscribe") { step.request.len() - 1 } else { 1 };
        self.answers >= wanted
    }
}

/// Whether the value is an answer to the step: channels are confirmed by pushes, one each.
fn answers(step: &Step, value: &Value) -> bool {
    let name = step.name();
    let is_confirmation = |kind: &Value| kind.text().is_some_and(|kind| kind == name.as_bytes());
    match value {
        Value::Aggregate(b'>', parts) => {
            name.ends_with("subscribe") && parts.first().is_some_and(is_confirmation)
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(connection: usize, line: &str) -> Step {
        Step { connection, request: line.split(' ').map(|word| word.as_bytes().to_vec()).collect() }
    }

    fn push(words: &str) -> Value {
        let word = |word: &str| Value::Blob(b'$', word.as_bytes().to_vec());
        Value::Aggregate(b'>', words.split(' ').map(word).collect())
    }

    fn line(text: &str) -> Value {
        Value::Line(b'+', text.as_bytes().to_vec())
    }

    #[test]
    fn what_comes_behind_an_answer_belongs_to_it() {
        let steps = ["GET a", "SUBSCRIBE c d", "PUBLISH c 1", "BLPOP l 0"].map(|line| step(1, line));
        let (told, one, two) = (push("message c 1"), push("subscribe c 1"), push("subscribe d 2"));
        let own = [line("x"), one, told.clone(), two, line("OK"), told];
        assert_eq!(answered(&steps, &own[..4]), 2);
        assert_eq!(answered(&steps, &own), 3);
        let heard = Heard { values: vec![vec![line("other")], own.to_vec()], waits: true };
        let parts = apart(&steps, heard);
        assert_eq!(parts.iter().map(|part| part.values[1].len()).collect::<Vec<_>>(), [1, 3, 2, 0]);
        assert_eq!(parts.iter().map(|part| part.values[0].len()).collect::<Vec<_>>(), [0, 0, 0, 1]);
        assert!(parts[3].waits && !parts[2].waits);
    }

    #[test]
    fn what_waits_is_the_last_and_others_end_a_run() {
        let steps = |lines: &[(usize, &str)]| -> Vec<Step> {
            lines.iter().map(|(connection, line)| step(*connection, line)).collect()
        };
        assert_eq!(count(&steps(&[(1, "GET a"), (1, "BLPOP l 0"), (1, "GET a")])), 2);
        assert_eq!(count(&steps(&[(1, "GET a"), (2, "GET a")])), 1);
        assert_eq!(count(&steps(&[(1, "RESET"), (1, "GET a")])), 1);
        assert_eq!(count(&steps(&[(1, "GET a"); 9])), COUNT_MAX);
    }
}
