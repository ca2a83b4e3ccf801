//! `client-output-buffer-limit`: how much may wait for a client that does not read, by client class. A client
//! over the hard limit is closed at once, one over the soft limit after so many seconds. And
//! `maxmemory-clients`, how much all of them may take together.
use super::rewrite::with_unit;
use super::setting::{Words, memory, until_nul};

/// `maxmemory-clients` counts as this many bytes where less is set, as in Redis: every client would be closed
/// at its first request, and nobody could set more.
const CLIENTS_BYTES_MIN: u64 = 128 << 10;

const TOO_MUCH: &str = "percentage argument must be less or equal to 100";

/// Bytes, or a part of `maxmemory`. 0 bytes, and a part where there is no `maxmemory`, mean no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryShare {
    Bytes(u64),
    /// A share in percent, never 0.
    Percent(u32),
}

impl MemoryShare {
    /// In bytes, where `maxmemory` is `whole`.
    fn bytes(self, whole: u64) -> u64 {
        match self {
            MemoryShare::Bytes(bytes) => bytes,
            MemoryShare::Percent(percent) => (u128::from(whole) * u128::from(percent) / 100) as u64,
        }
    }

    /// As the limit for all clients, where so much is set as `maxmemory`; 0 is no limit.
    pub(crate) fn limit_for_clients(self, maxmemory: u64) -> u64 {
        match self {
            MemoryShare::Bytes(0) => 0,
            MemoryShare::Percent(_) if maxmemory == 0 => 0,
            share => share.bytes(maxmemory).max(CLIENTS_BYTES_MIN),
        }
    }

    pub(super) fn render(self) -> String {
        match self {
            MemoryShare::Bytes(bytes) => bytes.to_string(),
            MemoryShare::Percent(percent) => format!("{percent}%"),
        }
    }

    pub(super) fn parse(value: &[u8]) -> Result<MemoryShare, String> {
        let wrong = || "argument must be a memory or percent value".to_string();
        let percent = value.strip_suffix(b"%").and_then(base::text::parse_i64).filter(|n| *n >= 0);
        let Some(percent) = percent else {
            // Redis takes for a part what its signed number is below zero for.
            return match memory(until_nul(value)).ok_or_else(wrong)? {
                bytes if i64::try_from(bytes).is_ok() => Ok(MemoryShare::Bytes(bytes)),
                _ => Err(TOO_MUCH.into()),
            };
        };
        match percent {
            0 => Ok(MemoryShare::Bytes(0)),
            percent @ 1..=100 => Ok(MemoryShare::Percent(percent as u32)),
            _ => Err(TOO_MUCH.into()),
        }
    }
}

/// The limits of one class of clients; 0 is no limit. A client over the hard limit is closed at once, one
/// over the soft limit after `soft_s` seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OutputLimit {
    pub hard_bytes: u64,
    pub soft_bytes: u64,
    pub soft_s: u32,
}

/// The limits of all classes. There are no replicas yet.
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
    let seconds = base::text::parse_as_c(words[2]).and_then(|seconds| u32::try_from(seconds).ok())?;
    Some(OutputLimit { hard_bytes: memory(words[0])?, soft_bytes: memory(words[1])?, soft_s: seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_bytes_or_a_part_of_the_whole() {
        for (text, shown, bytes) in
            [("5%", "5%", 50), ("100%", "100%", 1000), ("0%", "0", 0), ("1kb", "1024", 1024)]
        {
            let share = MemoryShare::parse(text.as_bytes()).unwrap();
            assert_eq!((share.render().as_str(), share.bytes(1000)), (shown, bytes));
        }
        let limit = |text: &str, whole| MemoryShare::parse(text.as_bytes()).unwrap().limit_for_clients(whole);
        assert_eq!([limit("0", 1 << 30), limit("5%", 0)], [0, 0], "none");
        assert_eq!([limit("1", 0), limit("1%", 50), limit("1mb", 0)], [128 << 10, 128 << 10, 1 << 20]);
        let refused = |text: &str| MemoryShare::parse(text.as_bytes()).unwrap_err();
        assert_eq!(refused("101%"), "percentage argument must be less or equal to 100");
        for text in ["5x", "-1", "5.5%", "%"] {
            assert_eq!(refused(text), "argument must be a memory or percent value", "{text}");
        }
    }
}
