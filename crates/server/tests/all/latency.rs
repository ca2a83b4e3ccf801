//! What LATENCY and INFO latencystats tell of the calls before.
use crate::client::{Client, config, request, start};
use server::{Config, Tracking};

const HISTOGRAM_OF_SET: &str = "*2\r\n$3\r\nset\r\n*4\r\n$5\r\ncalls\r\n:100\r\n$14\r\nhistogram_usec\r\n*";

#[test]
fn every_call_is_in_the_histogram() {
    let server = start(config());
    let mut client = Client::connect(&server);
    (0..100).for_each(|_| client.check("SET k v", "+OK\r\n"));
    client.check("LATENCY HISTOGRAM nosuch SET get", HISTOGRAM_OF_SET);
}

#[test]
fn histograms_are_maps_in_resp3() {
    let server = start(config());
    let mut client = Client::connect(&server);
    (0..100).for_each(|_| client.check("SET k v", "+OK\r\n"));
    client.send(&[request(&["HELLO", "3"]), request(&["LATENCY", "HISTOGRAM", "set"])].concat());
    let mut got = String::new();
    while !got.contains("histogram_usec\r\n%") {
        got.push(char::from(client.read(1)[0]));
    }
    let expected = HISTOGRAM_OF_SET.replace("*2", "%1").replace("*4", "%2").replace('*', "%");
    assert!(got.ends_with(&expected), "{got}");
}

#[test]
fn a_container_stands_for_its_subcommands() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.check("LATENCY HISTOGRAM client", "*0\r\n");
    client.check("CLIENT NO-EVICT off", "+OK\r\n");
    client.check("LATENCY HISTOGRAM client|id CLIENT|nosuch", "*0\r\n");
    client.check("LATENCY HISTOGRAM Client", "*2\r\n$15\r\nclient|no-evict\r\n");
}

#[test]
fn nothing_is_kept_without_tracking_nor_over_a_reset() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.check("SET k v", "+OK\r\n");
    client.check("CONFIG RESETSTAT", "+OK\r\n");
    client.check("LATENCY HISTOGRAM set", "*0\r\n");
    let server = start(Config { latency_tracking: Tracking::Off, ..config() });
    let mut client = Client::connect(&server);
    client.check("SET k v", "+OK\r\n");
    client.check("LATENCY HISTOGRAM set", "*0\r\n");
    assert_eq!(client.ask("INFO latencystats"), "# Latencystats\r\n");
}

#[test]
fn info_shows_the_percentiles_that_are_asked_for() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.check("SET k v", "+OK\r\n");
    let shown = client.info("latency_percentiles_usec_set");
    let names: Vec<_> = shown.split(',').map(|cell| cell.split('=').next().unwrap()).collect();
    assert_eq!(names, ["p50", "p99", "p99.9"]);
    client.check("CONFIG SET latency-tracking-info-percentiles 99.99", "+OK\r\n");
    assert!(client.info("latency_percentiles_usec_set").starts_with("p99.99="));
}

#[test]
fn latency_has_the_peers_refusals() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.check("LATENCY", "-ERR wrong number of arguments for 'latency' command\r\n");
    client.check("LATENCY foo", "-ERR unknown subcommand 'foo'. Try LATENCY HELP.\r\n");
    client.check("LATENCY HELP x", "-ERR wrong number of arguments for 'latency|help' command\r\n");
    assert!(client.raw("LATENCY HELP").contains("HISTOGRAM [COMMAND ...]"));
    client.check("LATENCY HISTORY", "-ERR wrong number of arguments for 'latency|history' command\r\n");
    client.check("LATENCY GRAPH command", "-ERR No samples available for event 'command'\r\n");
}

#[test]
fn what_takes_longer_than_the_threshold_is_sampled_and_forgotten_on_demand() {
    let server = start(Config { latency_monitor_ms: 5, ..config() });
    let mut client = Client::connect(&server);
    client.check("PING", "+PONG\r\n");
    client.check("LATENCY HISTORY command", "*0\r\n");
    client.check("DEBUG SLEEP 0.006", "+OK\r\n");
    let latest = client.raw("LATENCY LATEST");
    assert!(latest.starts_with("*1\r\n*4\r\n$7\r\ncommand\r\n:"), "{latest}");
    assert!(client.raw("LATENCY HISTORY command").starts_with("*1\r\n*2\r\n:"));
    assert!(client.ask("LATENCY GRAPH command").contains("command - high "));
    assert!(client.ask("LATENCY DOCTOR").contains("1. command: 1 latency spikes"));
    client.check("LATENCY RESET nosuch", ":0\r\n");
    client.check("LATENCY RESET nosuch command", ":1\r\n");
    client.check("LATENCY LATEST", "*0\r\n");
    client.check("DEBUG SLEEP 0.006", "+OK\r\n");
    client.check("LATENCY RESET", ":1\r\n");
    client.check("CONFIG SET latency-monitor-threshold 0", "+OK\r\n");
    client.check("DEBUG SLEEP 0.006", "+OK\r\n");
    client.check("LATENCY LATEST", "*0\r\n");
}
