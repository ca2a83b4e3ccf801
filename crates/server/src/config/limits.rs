//! `client-output-buffer-limit`: how much may wait for a client that does not read, by client class. A client over the
//! hard limit is closed at once, one over the soft limit after so many seconds.
use super::rewrite::with_unit;
use super::setting::{Words, memory};

/// One class's limits; 0 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OutputLimit {
    pub hard_bytes: u64,
    pub soft_bytes: u64,
    pub soft_s: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    pub normal: OutputLimit,
    pub replica: OutputLimit,
    pub pubsub: OutputLimit,
}

impl Default for OutputLimits {
    fn default() -> OutputLimits {
        OutputLimits {
            normal: OutputLimit::default(),
            replica: OutputLimit { hard_bytes: 256 << 20, soft_bytes: 64 << 20, soft_s: 60 },
            pubsub: OutputLimit { hard_bytes: 32 << 20, soft_bytes: 8 << 20, soft_s: 60 },
        }
    }
}

impl OutputLimits {
    /// `normal 0 0 0 slave ...`, as CONFIG GET shows it.
    pub(super) fn render(&self) -> String {
        let one =
            |class: &str, l: &OutputLimit| format!("{class} {} {} {}", l.hard_bytes, l.soft_bytes, l.soft_s);
        let all = [one("normal", &self.normal), one("slave", &self.replica), one("pubsub", &self.pubsub)];
        all.join(" ")
    }

    /// `replica 256mb 64mb 60` and so on, as CONFIG REWRITE writes them.
    pub(super) fn lines(&self) -> Vec<Vec<u8>> {
        let one = |class: &str, l: &OutputLimit| {
            let (hard, soft) = (with_unit(l.hard_bytes), with_unit(l.soft_bytes));
            [class.as_bytes(), &hard, &soft, l.soft_s.to_string().as_bytes()].join(&b' ')
        };
        vec![one("normal", &self.normal), one("replica", &self.replica), one("pubsub", &self.pubsub)]
    }

    /// Takes groups of four words; classes that are not named stay as they are.
    pub(super) fn update(&mut self, words: Words<'_>) -> Result<(), String> {
        if !words.len().is_multiple_of(4) {
            return Err("Wrong number of arguments in buffer limit configuration.".into());
        }
        let mut next = *self;
        for group in words.chunks_exact(4) {
            let class = next
                .class_mut(group[0])
                .ok_or("Invalid client class specified in buffer limit configuration.")?;
            *class = limit(&group[1..])
                .ok_or("Error in hard, soft or soft_seconds setting in buffer limit configuration.")?;
        }
        *self = next;
        Ok(())
    }

    fn class_mut(&mut self, name: &[u8]) -> Option<&mut OutputLimit> {
        match name.to_ascii_lowercase().as_slice() {
            b"normal" => Some(&mut self.normal),
            b"slave" | b"replica" => Some(&mut self.replica),
            b"pubsub" => Some(&mut self.pubsub),
            _ => None,
        }
    }
}

fn limit(words: Words<'_>) -> Option<OutputLimit> {
    let seconds = std::str::from_utf8(words[2]).ok()?.parse().ok()?;
    Some(OutputLimit { hard_bytes: memory(words[0])?, soft_bytes: memory(words[1])?, soft_s: seconds })
}
