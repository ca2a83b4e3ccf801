//! A difference between two talks as text: a transcript of what was said and heard at the peer, ready for
//! tests/transcripts but for numbers of connections, and what Sardine said at last as a comment below.
use super::super::report::quote;
use super::super::stream::Step;
use super::side::Heard;
use crate::resp_value::Value;
use std::fmt;
use std::io;

/// The first thing heard that differs.
#[derive(Clone, Debug)]
pub struct TalkDifference {
    /// What led to it, the last step included.
    pub(super) steps: Vec<Step>,
    /// What the peer sent after each step.
    pub(super) heard: Vec<Heard>,
    /// What Sardine sent after the last step on each connection, or why nothing came.
    pub(super) ours: Result<Vec<Vec<Value>>, String>,
    /// The command that differs: differences of one are told once.
    pub subject: String,
}

impl TalkDifference {
    pub(super) fn silence(error: &io::Error) -> TalkDifference {
        let subject = "no answer".to_owned();
        TalkDifference { steps: Vec::new(), heard: Vec::new(), ours: Err(error.to_string()), subject }
    }
}

fn name(connection: usize) -> char {
    (b'A' + connection as u8) as char
}

impl fmt::Display for TalkDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut current = 0;
        for (step, heard) in self.steps.iter().zip(&self.heard) {
            change(f, &mut current, step.connection)?;
            if heard.waits {
                f.write_str("waits\n")?;
            }
            let words: Vec<String> = step.request.iter().map(|word| quote(word)).collect();
            writeln!(f, "> {}", words.join(" "))?;
            let mut own = heard.values[step.connection].iter();
            own.next().into_iter().try_for_each(|value| write_value(f, value))?;
            own.try_for_each(|value| write_unasked(f, value))?;
            for (at, values) in heard.values.iter().enumerate().filter(|(at, _)| *at != step.connection) {
                if !values.is_empty() {
                    change(f, &mut current, at)?;
                    values.iter().try_for_each(|value| write_unasked(f, value))?;
                }
            }
        }
        writeln!(f, "# Sardine after the last request ({}):", self.subject)?;
        match &self.ours {
            Err(error) => writeln!(f, "# {error}"),
            Ok(heard) => {
                for (at, values) in heard.iter().enumerate() {
                    let lines: Vec<String> = values.iter().map(|value| value.lines().join(" ")).collect();
                    writeln!(f, "# {}: {}", name(at), lines.join(" | "))?;
                }
                Ok(())
            }
        }
    }
}

fn change(f: &mut fmt::Formatter<'_>, current: &mut usize, to: usize) -> fmt::Result {
    if *current != to {
        *current = to;
        writeln!(f, "conn {}", name(to))?;
    }
    Ok(())
}

fn write_value(f: &mut fmt::Formatter<'_>, value: &Value) -> fmt::Result {
    value.lines().iter().try_for_each(|line| writeln!(f, "{line}"))
}

fn write_unasked(f: &mut fmt::Formatter<'_>, value: &Value) -> fmt::Result {
    f.write_str("gets\n")?;
    write_value(f, value)
}
