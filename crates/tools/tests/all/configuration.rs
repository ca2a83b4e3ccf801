//! Existing configuration files, read by the program itself.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use crate::home::Home;
use std::process::Command;

/// What `--check-config` says of this file of `conf`, with these words behind it.
fn checked(file: &str, words: &[&str]) -> String {
    let path = format!("{}/tests/all/conf/{file}", env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_sardine"));
    let output = command.args(["--check-config", &path]).args(words).output().unwrap();
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{file}: {err}");
    out
}

#[test]
fn the_redis_conf_of_redis_7_2_loads_unchanged_and_without_a_warning() {
    let said = checked("redis-7.2.conf", &[]);
    assert!(!said.contains("WARNING: 'save") && said.ends_with("The configuration is good.\n"), "{said}");
}

#[test]
fn its_examples_load_and_what_has_no_effect_is_told() {
    // The certificates that it names are not there.
    let said = checked("redis-7.2-examples.conf", &["--tls-replication", "no", "--tls-cluster", "no"]);
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

#[test]
fn all_lines_that_are_wrong_are_told_at_once() {
    let home = Home::new("wrong");
    let [file, other] = ["wrong.conf", "other.conf"].map(|name| home.path.join(name));
    let lines = format!("nothing 1\nport 7000\nmaxclients many\ninclude {}\nsave \"1\n", other.display());
    std::fs::write(&file, lines).unwrap();
    std::fs::write(&other, "\nport x\nreplicaof a 1\n").unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_sardine")).arg("--check-config").arg(&file).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let at: Vec<&str> =
        told.split("at line ").skip(1).map(|fault| fault.split('\n').next().unwrap()).collect();
    assert_eq!((output.status.code(), &at[..]), (Some(1), &["1", "3", "2", "3", "5"][..]), "{told}");
}

#[test]
fn users_and_certificates_that_a_start_would_not_find_are_told() {
    for (words, why) in [
        (&["--aclfile", "/there/is/none"][..], "Aborting startup because of ACL errors: "),
        (&["--tls-port", "6380", "--tls-cert-file", "/there/is/none"], "tls"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sardine"));
        let output = command.args(["--check-config", "/dev/null"]).args(words).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && told.contains(why), "{words:?}: {told}");
    }
}

#[test]
fn commands_that_only_redis_has_may_be_renamed() {
    let home = Home::new("renamed");
    let file = home.path.join("hardened.conf");
    std::fs::write(
        &file,
        "rename-command SYNC \"\"\nrename-command CLUSTER hidden\nrename-command DEBUG \"\"\n",
    )
    .unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_sardine")).arg("--check-config").arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
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
