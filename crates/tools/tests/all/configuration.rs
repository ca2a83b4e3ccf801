//! Existing configuration files, read by the program itself.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use crate::home::Home;
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

/// The folder of the server, as a name that may be gone.
fn folder_of(home: &Home) -> String {
    std::fs::read_link(format!("/proc/{}/cwd", home.child_id())).unwrap().display().to_string()
}

#[test]
fn a_change_that_fails_leads_back_to_the_folder_of_before_also_where_that_was_removed() {
    let mut home = Home::new("back");
    home.start(&["--save", "", "--enable-protected-configs", "local"]);
    let [gone, new] = ["gone", "new"].map(|name| home.path.join(name));
    [&gone, &new].into_iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
    let taken = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let fails = |home: &Home| home.told(&format!("CONFIG SET dir {} port {port}", new.display()));
    let told = "-ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port. \
                Check server logs.\r\n+OK\r\n";
    assert_eq!(home.told(&format!("CONFIG SET dir {}", gone.display())), "+OK\r\n+OK\r\n");
    let before = folder_of(&home);
    assert_eq!(fails(&home), told);
    assert_eq!(folder_of(&home), before);
    std::fs::remove_dir(&gone).unwrap();
    assert_eq!(fails(&home), told);
    assert_eq!(folder_of(&home), format!("{before} (deleted)"));
    assert!(home.told("CONFIG GET dir").contains("gone\r\n"));
}
