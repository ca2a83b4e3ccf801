//! `maxmemory` of a whole server, with so many keys that holes between them count, and what else takes memory
//! until it is given back.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use crate::home::Home;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const OK: &str = "+OK\r\n";

fn set(home: &Home, prefix: &str) {
    let value = "v".repeat(100);
    let lines: String = (0..4000).map(|n| format!("SET {prefix}{n} {value} EX 10000\r\n")).collect();
    assert!(home.told(&lines).starts_with(OK));
}

/// They lie among others that stay, and each that goes leaves a hole.
#[test]
fn keys_with_a_deadline_do_not_all_go_for_the_holes_that_they_leave() {
    let mut home = Home::new("holes");
    home.start(&["--save", "", "--maxmemory-policy", "volatile-lru"]);
    home.told("DEBUG POPULATE 200000 p 100");
    set(&home, "old");
    let limit = home.number("used_memory") - home.number("mem_not_counted_for_evict");
    assert_eq!(home.told(&format!("CONFIG SET maxmemory {limit}")), format!("{OK}{OK}"));
    set(&home, "new");
    let keys = home.told("DBSIZE");
    let left = keys[1..].lines().next().unwrap().parse::<u64>().unwrap() - 200_000;
    assert!((2000..=4500).contains(&left), "{left} of 8000 are left: about as many should go as came");
}

/// Other workers are in the middle of making room when the limit ends, or the policy: they have to be done
/// with that before whoever has changed it is answered. Otherwise every tenth round loses some keys.
#[test]
fn no_key_goes_by_settings_that_are_not_in_force_any_more() {
    let value = "v".repeat(300);
    let kept: Vec<String> = (0..400).map(|n| format!("kept{n}")).collect();
    let sets: String = kept.iter().map(|key| format!("\r\nSET {key} 1")).collect();
    let mut home = Home::new("settings-end");
    home.start(&["--save", "", "--maxmemory-policy", "allkeys-random", "--maxmemory", "8mb"]);
    let home = &home;
    let is_over = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        for filler in 0..3 {
            let value = &value;
            scope.spawn(move || {
                for round in 0.. {
                    let key = |n| format!("SET filler{filler}:{round}:{n} {value}\r\n");
                    home.told(&(0..1000).map(key).collect::<String>());
                    if is_over.load(Relaxed) {
                        break;
                    }
                }
            });
        }
        let rounds: Vec<String> = (0..60)
            .map(|round| {
                let (ended, begun) = match round % 3 {
                    0 => ("maxmemory 0", "maxmemory 8mb"),
                    1 => (
                        "maxmemory-policy noeviction maxmemory 1gb",
                        "maxmemory-policy allkeys-random maxmemory 8mb",
                    ),
                    _ => (
                        "maxmemory-policy volatile-lru maxmemory 1gb",
                        "maxmemory-policy allkeys-random maxmemory 8mb",
                    ),
                };
                home.told(&format!("CONFIG SET {ended}{sets}"));
                let left = home.told(&format!("EXISTS {}", kept.join(" ")));
                home.told(&format!("CONFIG SET {begun}\r\nDEL {}", kept.join(" ")));
                left
            })
            .collect();
        is_over.store(true, Relaxed);
        let lost: Vec<&String> = rounds.iter().filter(|left| **left != format!(":400\r\n{OK}")).collect();
        assert!(lost.is_empty(), "{lost:?}");
    });
}

/// Neither by what it was called with, nor by what its commands have answered or were given.
#[test]
fn a_script_that_has_ended_holds_no_memory_whoever_has_run_it() {
    let mut home = Home::new("large-words");
    home.start(&["--save", ""]);
    let before = home.number("used_memory");
    let large = "x".repeat(20_000_000);
    let script = "EVAL \"redis.pcall('ECHO', redis.call('GET', KEYS[1])) return 1\" 1 e";
    for _ in 0..3 {
        let called =
            home.told(&format!("*4\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n0\r\n$20000000\r\n{large}"));
        assert_eq!(called, format!(":1\r\n{OK}"));
        assert_eq!(
            home.told(&format!("SETRANGE e 19999999 x\r\n{script}\r\nDEL e")),
            format!(":20000000\r\n:1\r\n:1\r\n{OK}")
        );
        home.wait_for("memory", |home| (home.number("used_memory") < before + 5_000_000).then_some(()));
    }
}
