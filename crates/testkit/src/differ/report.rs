//! A difference as text: a transcript with the peer's answers, ready for tests/transcripts, and ours as a
//! comment below.
use super::play::{Answer, Difference};
use super::stream::{CONNECTIONS, Step};
use crate::resp_value::Value;
use std::fmt;

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&transcript(&self.steps, &self.answers))?;
        write_answer(f, "# peer:    ", &self.theirs)?;
        write_answer(f, "# Sardine: ", &self.ours)
    }
}

/// Steps as a transcript, each with its answer as far as there are answers.
pub(super) fn transcript(steps: &[Step], answers: &[Value]) -> String {
    let (mut text, mut connection) = (String::new(), 0);
    for (at, step) in steps.iter().enumerate() {
        if step.connection != connection {
            connection = step.connection;
            text.push_str(&format!("conn {}\n", CONNECTIONS[connection]));
        }
        let words: Vec<String> = step.request.iter().map(|word| quote(word)).collect();
        text.push_str(&format!("> {}\n", words.join(" ")));
        for line in answers.get(at).map(Value::lines).unwrap_or_default() {
            text.push_str(&format!("{line}\n"));
        }
    }
    text
}

fn write_answer(f: &mut fmt::Formatter<'_>, head: &str, answer: &Answer) -> fmt::Result {
    let lines =
        answer.as_ref().map_or_else(|error| vec![format!("no answer: {error}")], |value| value.lines());
    for (at, line) in lines.iter().enumerate() {
        writeln!(f, "{}{line}", if at == 0 { head } else { "#          " })?;
    }
    Ok(())
}

/// A word as a request line of a transcript has it.
pub(super) fn quote(word: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    if !word.is_empty() && word.iter().all(is_plain) {
        return String::from_utf8_lossy(word).into_owned();
    }
    let mut text = String::from("\"");
    for byte in word {
        match byte {
            b'"' | b'\\' => text.extend(['\\', *byte as char]),
            b' ' => text.push(' '),
            byte if byte.is_ascii_graphic() => text.push(*byte as char),
            byte => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Transcript;

    #[test]
    fn a_difference_is_told_as_a_transcript_that_can_be_replayed() {
        let step = |connection, line: &[&[u8]]| Step {
            connection,
            request: line.iter().map(|word| word.to_vec()).collect(),
        };
        let difference = Difference {
            steps: vec![step(0, &[b"SET", b"", b"a \"\xff\\"]), step(1, &[b"STRLEN", b"k"])],
            theirs: Ok(Value::Line(b':', b"1".to_vec())),
            ours: Err("closed".to_owned()),
            answers: vec![Value::Line(b'+', b"OK".to_vec()), Value::Line(b':', b"1".to_vec())],
            subject: "strlen".to_owned(),
        };
        let told = difference.to_string();
        assert_eq!(
            told,
            "> SET \"\" \"a \\\"\\xff\\\\\"\n+OK\nconn B\n> STRLEN k\n:1\n# peer:    :1\n# Sardine: no answer: closed\n"
        );
        assert_eq!(Transcript::parse(&told).unwrap().to_string(), told);
    }
}
