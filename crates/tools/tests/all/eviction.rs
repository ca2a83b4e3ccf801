//! `maxmemory` of a whole server, with so many keys that holes between them count.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use crate::home::Home;

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
