//! What the settings of snapshots say: when they are written by themselves, where to, and how; what signals
//! mean. Their rows are in `persistence_rows`.
use base::text::parse_as_c;
use std::path::PathBuf;

const INT_MAX: i64 = i32::MAX as i64;

/// What the settings of snapshots say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshots {
    /// `save`: None is the default.
    pub points: Option<Vec<SavePoint>>,
    /// `dbfilename`, in the working directory.
    pub file_name: PathBuf,
    /// `rdb-version`: the version of the format that is written.
    pub version: u16,
    /// `rdbchecksum`
    pub has_checksum: bool,
    /// `rdb-save-incremental-fsync`
    pub syncs: bool,
    /// `stop-writes-on-bgsave-error`
    pub stops_writes: bool,
    /// `rdb-key-save-delay`: microseconds after each key, or keys for each microsecond where it is negative.
    pub save_delay: i32,
    /// `key-load-delay`, likewise.
    pub load_delay: i32,
    /// `shutdown-on-sigint` and `shutdown-on-sigterm`
    pub on_interrupt: OnSignal,
    pub on_terminate: OnSignal,
}

/// A snapshot is written when there were so many changes and it is so long since the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavePoint {
    pub seconds: i64,
    pub changes: u64,
}

/// How a signal ends the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnSignal {
    /// None: if there are save points.
    pub saves: Option<bool>,
    pub is_now: bool,
    /// It ends even if it cannot save.
    pub is_forced: bool,
}

/// Redis's save points.
const POINTS: [SavePoint; 3] = [
    SavePoint { seconds: 3600, changes: 1 },
    SavePoint { seconds: 300, changes: 100 },
    SavePoint { seconds: 60, changes: 10_000 },
];

impl Default for Snapshots {
    fn default() -> Snapshots {
        Snapshots {
            points: None,
            file_name: PathBuf::from("dump.rdb"),
            version: disk::rdb::VERSION_WRITTEN,
            has_checksum: true,
            syncs: true,
            stops_writes: true,
            save_delay: 0,
            load_delay: 0,
            on_interrupt: OnSignal::default(),
            on_terminate: OnSignal::default(),
        }
    }
}

impl Snapshots {
    /// None are written by themselves.
    pub fn never() -> Snapshots {
        Snapshots { points: Some(Vec::new()), ..Snapshots::default() }
    }

    /// When they are written by themselves.
    pub(crate) fn points(&self) -> &[SavePoint] {
        self.points.as_deref().unwrap_or(&POINTS)
    }
}

pub(super) fn render_points(points: &[SavePoint]) -> Vec<u8> {
    let texts: Vec<String> = points.iter().map(|p| format!("{} {}", p.seconds, p.changes)).collect();
    texts.join(" ").into()
}

/// The points that these words mean; the empty word alone means none.
pub(super) fn points_of(words: &[&[u8]]) -> Result<Vec<SavePoint>, String> {
    if let [b""] | [] = words {
        return Ok(Vec::new());
    }
    let number = |word: &[u8], min| parse_as_c(word).filter(|n| (min..=INT_MAX).contains(n));
    let point = |pair: &[&[u8]]| {
        let [seconds, changes] = pair else { return None };
        Some(SavePoint { seconds: number(seconds, 1)?, changes: number(changes, 0)? as u64 })
    };
    let points: Option<Vec<SavePoint>> = words.chunks(2).map(point).collect();
    points.ok_or_else(|| "Invalid save parameters".into())
}

const SIGNAL_WORDS: &[&str] = &["default", "save", "nosave", "now", "force"];

fn not_a_signal_word() -> String {
    format!("argument(s) must be one of the following: {}", SIGNAL_WORDS.join(", "))
}

/// What words of SHUTDOWN mean together.
pub(super) fn on_signal_of(words: &[&[u8]]) -> Result<OnSignal, String> {
    let mut on_signal = OnSignal::default();
    let mut has = [false; 5];
    for given in words {
        let found = SIGNAL_WORDS.iter().position(|word| word.as_bytes().eq_ignore_ascii_case(given));
        has[found.ok_or_else(not_a_signal_word)?] = true;
    }
    if words.is_empty() {
        return Err(not_a_signal_word());
    }
    let [_, saves, skips, is_now, is_forced] = has;
    if saves && skips {
        return Err("shutdown options SAVE and NOSAVE can't be used simultaneously".into());
    }
    on_signal.saves = (saves || skips).then_some(saves);
    Ok(OnSignal { is_now, is_forced, ..on_signal })
}

pub(super) fn render_on_signal(on_signal: OnSignal) -> Vec<u8> {
    let has = [
        false,
        on_signal.saves == Some(true),
        on_signal.saves == Some(false),
        on_signal.is_now,
        on_signal.is_forced,
    ];
    let shown: Vec<&str> =
        SIGNAL_WORDS.iter().zip(has).filter(|(_, has)| *has).map(|(word, _)| *word).collect();
    if shown.is_empty() { "default".into() } else { shown.join(" ").into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&[u8]> {
        text.split(' ').map(str::as_bytes).collect()
    }

    #[test]
    fn save_points_are_pairs_of_a_time_and_a_number() {
        assert_eq!(
            points_of(&words("900 1 60 0")).unwrap(),
            [SavePoint { seconds: 900, changes: 1 }, SavePoint { seconds: 60, changes: 0 }]
        );
        assert_eq!(points_of(&words("")).unwrap(), []);
        for bad in ["900", "900 1 60", "0 1", "-1 1", "1 -1", "x 1", "900  1"] {
            assert_eq!(points_of(&words(bad)), Err("Invalid save parameters".into()), "{bad}");
        }
    }

    #[test]
    fn the_words_for_a_signal_may_not_contradict() {
        for (text, shown) in
            [("default", "default"), ("force now", "now force"), ("SAVE", "save"), ("nosave", "nosave")]
        {
            assert_eq!(render_on_signal(on_signal_of(&words(text)).unwrap()), shown.as_bytes());
        }
        assert!(on_signal_of(&words("save nosave")).is_err());
        assert!(on_signal_of(&words("later")).is_err());
    }
}
