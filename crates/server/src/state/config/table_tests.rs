//! The table of settings as a whole: names, defaults, and that the value that is set is the value shown.
use super::setting::{Kind, Setting};
use super::table::TOPICS;
use super::values::Config;
use crate::state::config::setting::{all, find, settings};
use std::collections::BTreeSet;
use store::Fill;

#[test]
fn names_are_used_once() {
    let mut all: Vec<_> = all().flat_map(Setting::names).collect();
    all.sort_unstable();
    let count = all.len();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn every_setting_has_a_topic_and_says_what_it_does_and_when_to_change_it() {
    for topic in TOPICS {
        assert!(!topic.rows.is_empty() && topic.about.ends_with('.'), "{}", topic.title);
        for setting in topic.rows {
            assert!(!matches!(setting.kind, Kind::Accepted { .. }), "{} does nothing", setting.name);
            for sentence in [setting.doc, setting.when] {
                assert!(sentence.len() > 10 && sentence.ends_with('.'), "{}: {sentence:?}", setting.name);
            }
        }
    }
    let titles: BTreeSet<_> = TOPICS.iter().map(|topic| topic.title).collect();
    assert_eq!(titles.len(), TOPICS.len());
}

#[test]
fn every_setting_of_redis_is_there_with_its_default() {
    let facts = include_str!("redis-8.0.2.txt").lines().filter(|line| !line.starts_with('#'));
    for (name, value) in facts.map(|line| line.split_once('\t').unwrap()) {
        // Those that differ are in docs/differences.md.
        let expected = match name {
            "activedefrag" => "yes",
            "active-defrag-ignore-bytes" => "10485760",
            _ => value,
        };
        let shown = Config::default().value(name).unwrap_or_else(|| panic!("there is no {name}"));
        assert_eq!(String::from_utf8_lossy(&shown), expected, "{name}");
    }
}

#[test]
fn every_default_is_a_value_that_the_setting_takes() {
    for setting in all() {
        let shown = setting.render(&Config::default());
        let mut config = Config::default();
        setting.set_from_one(&mut config, &shown).unwrap_or_else(|e| panic!("{}: {e}", setting.name));
        assert_eq!(setting.render(&config), shown, "{}", setting.name);
    }
}

/// Two values that differ, where the setting takes two.
fn samples(setting: &Setting) -> Vec<String> {
    match (&setting.kind, setting.name) {
        (_, "oom-score-adj") => vec!["yes".into(), "absolute".into()],
        (_, "oom-score-adj-values") => vec!["-2000 0 2000".into()],
        (_, "hz") => vec!["1".into(), "500".into()],
        (_, "shards") => vec!["1".into(), "65536".into()],
        (_, "latency-tracking-info-percentiles") => {
            vec!["0 50 99.9 99.123457 100".into(), String::new()]
        }
        (_, "dir") => vec![std::env::current_dir().unwrap().display().to_string()],
        (_, "client-output-buffer-limit") => {
            vec!["normal 1 2 3 slave 4 5 6 pubsub 7 8 9".into()]
        }
        (_, "notify-keyspace-events") => vec!["AKE".into(), "g$lnKm".into(), String::new()],
        (Kind::Bool { .. }, _) => vec!["yes".into(), "no".into()],
        (Kind::Int { min, max, .. }, _) => vec![min.to_string(), max.to_string()],
        (Kind::Mode { .. }, _) => vec!["700".into(), "0".into()],
        (Kind::Memory { min, max, .. }, _) => vec![min.to_string(), max.to_string()],
        (Kind::MemoryOrPercent { .. }, _) => vec!["1024".into(), "100%".into()],
        (Kind::Word { words, .. }, _) => words.iter().map(ToString::to_string).collect(),
        (_, "appenddirname" | "appendfilename") => vec!["a name".into()],
        (Kind::Text { .. }, _) => vec!["a text".into(), String::new()],
        (_, "shutdown-on-sigint" | "shutdown-on-sigterm") => vec!["save now".into(), "default".into()],
        (Kind::Lines { .. }, _) => vec!["900 1 60 10".into(), String::new()],
        (Kind::List { .. }, _) => vec!["127.0.0.1 ::1".into(), String::new()],
        (Kind::Accepted { .. }, _) => vec![],
    }
}

#[test]
fn what_is_set_is_what_is_shown() {
    for setting in settings() {
        for sample in samples(setting) {
            let mut config = Config::default();
            setting
                .set_from_one(&mut config, sample.as_bytes())
                .unwrap_or_else(|e| panic!("{}: {e}", setting.name));
            assert_eq!(String::from_utf8_lossy(&setting.render(&config)), sample, "{}", setting.name);
        }
    }
}

#[test]
fn any_value_is_taken_or_refused_with_a_reason() {
    let pieces: &[&str] =
        &["-1", "0", "1", "9999999999999999999", "kb", " ", "yes", "\"", "normal", "x", "%", "777"];
    let mut random = base::random::Random::new(11);
    let settings: Vec<_> = all().collect();
    for _ in 0..40_000 {
        let setting = settings[random.below(settings.len() as u64) as usize];
        if setting.name == "dir" {
            continue;
        }
        let value: String =
            (0..random.below(6)).map(|_| pieces[random.below(pieces.len() as u64) as usize]).collect();
        if let Err(why) = setting.set_from_one(&mut Config::default(), value.as_bytes()) {
            assert!(!why.is_empty(), "{} {value:?}", setting.name);
        }
    }
}

#[test]
fn percentiles_lie_between_0_and_100() {
    let setting = find(b"latency-tracking-info-percentiles").unwrap();
    for (text, why) in [
        ("50 abc", "Invalid latency-tracking-info-percentiles parameters"),
        ("nan", "Invalid latency-tracking-info-percentiles parameters"),
        ("-1", "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"),
        ("50 101", "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"),
        ("inf", "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"),
    ] {
        let refused = setting.set_from_one(&mut Config::default(), text.as_bytes());
        assert_eq!(refused.unwrap_err(), why, "{text}");
    }
    let mut config = Config::default();
    setting.set_from_one(&mut config, b"0x10 1e1 .5 +99.9").unwrap();
    assert_eq!(config.latency_percentiles, [16.0, 10.0, 0.5, 99.9]);
}

#[test]
fn sizes_below_zero_name_kilobytes_and_older_spellings_work() {
    let mut config = Config::default();
    let setting = find(b"LIST-MAX-ziplist-size").unwrap();
    for (text, fill) in [
        ("-1", Fill::Bytes(4096)),
        ("-5", Fill::Bytes(65536)),
        ("-77", Fill::Bytes(65536)),
        ("0", Fill::Entries(1)),
        ("128", Fill::Entries(128)),
    ] {
        setting.set_from_one(&mut config, text.as_bytes()).unwrap();
        assert_eq!(config.store.list.fill, fill, "{text}");
    }
}

#[test]
fn what_is_not_true_yet_is_refused() {
    let replicaof = find(b"replicaof").unwrap();
    let why = replicaof.set_from_one(&mut Config::default(), b"localhost 6379").unwrap_err();
    assert!(why.starts_with("not supported: "), "{why}");
}
