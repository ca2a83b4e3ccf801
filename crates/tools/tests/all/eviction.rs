//! `maxmemory` of a whole server, with so many keys that holes between them count.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use crate::home::Home;

const OK: &str = "+OK\r\n";

/// A number of INFO.
fn number(home: &Home, name: &str) -> u64 {
    let told = home.told("INFO");
    let found = told.lines().find_map(|line| line.split_once(name)?.1.split([',', '\r']).next());
    found.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no {name}: {told}"))
}

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
    let limit = number(&home, "used_memory:") - number(&home, "mem_not_counted_for_evict:");
    assert_eq!(home.told(&format!("CONFIG SET maxmemory {limit}")), format!("{OK}{OK}"));
    set(&home, "new");
    let left = number(&home, "expires=");
    assert!((2000..=4500).contains(&left), "{left} of 8000 are left: about as many should go as came");
}
