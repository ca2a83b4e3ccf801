//! Existing configuration files, read by the program itself.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use std::process::Command;

/// What `--check-config` says of this file of `conf`.
fn checked(file: &str) -> String {
    let path = format!("{}/tests/all/conf/{file}", env!("CARGO_MANIFEST_DIR"));
    let output =
        Command::new(env!("CARGO_BIN_EXE_sardine")).args(["--check-config", &path]).output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{file}: {err}");
    out
}

#[test]
fn the_redis_conf_of_redis_7_2_loads_unchanged_and_without_a_warning() {
    let said = checked("redis-7.2.conf");
    assert!(!said.contains("WARNING: 'save") && said.ends_with("The configuration is good.\n"), "{said}");
}

#[test]
fn its_examples_load_and_what_has_no_effect_is_told() {
    let said = checked("redis-7.2-examples.conf");
    assert!(said.contains("\nThere is no cluster mode yet.\n  cluster-allow-"), "{said}");
}

#[test]
fn a_configuration_that_is_wrong_is_told_with_its_line() {
    let output = Command::new(env!("CARGO_BIN_EXE_sardine"))
        .args(["--check-config", "/dev/null", "--port", "x"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("at line 2\n>>> 'port \"x\"'\n"));
}
