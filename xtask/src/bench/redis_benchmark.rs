//! redis-benchmark as the load: one run, and what it reports. Its own work is on another processor where the
//! server has one to itself.
use super::server::Server;
use std::process::Command;

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Load<'l> {
    pub(crate) test: &'l str,
    /// Requests in flight on each connection.
    pub(crate) depth: u32,
    pub(crate) requests: u64,
    /// How many keys there are to draw from.
    pub(crate) keyspace: &'l str,
    pub(crate) threads: usize,
}

/// The tests that redis-benchmark has, beside those of LRANGE.
const TESTS: [&str; 16] = [
    "ping",
    "ping_inline",
    "ping_mbulk",
    "set",
    "get",
    "incr",
    "lpush",
    "rpush",
    "lpop",
    "rpop",
    "sadd",
    "hset",
    "spop",
    "zadd",
    "zpopmin",
    "mset",
];

/// Whether there is a test of this name: one of redis-benchmark's, or `lrange_N`.
pub(super) fn knows(name: &str) -> bool {
    TESTS.contains(&name) || range(name).is_some()
}

/// Of how many elements a test of LRANGE is.
fn range(test: &str) -> Option<u32> {
    test.strip_prefix("lrange_")?.parse().ok().filter(|count| *count > 0)
}

/// What redis-benchmark says of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Report {
    pub(crate) rate: f64,
    /// Milliseconds.
    pub(crate) p50: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Load<'_> {
    pub(crate) fn run(&self, server: &Server) -> Result<Report, String> {
        let words = self.words(server.port);
        let output = Command::new(&words[0])
            .args(&words[1..])
            .output()
            .map_err(|e| format!("bench: {}: {e}", words[0]))?;
        let text = String::from_utf8_lossy(&output.stdout);
        parse(&text).ok_or_else(|| format!("bench: redis-benchmark said: {text}"))
    }

    fn words(&self, port: u16) -> Vec<String> {
        let numbers = [port.to_string(), self.requests.to_string(), self.depth.to_string()];
        let [port, requests, depth] = numbers.each_ref().map(String::as_str);
        let load = ["redis-benchmark", "-p", port, "-n", requests, "-P", depth];
        let shape = ["-c", "50", "-d", "64", "-r", self.keyspace, "--csv"];
        let threads = self.threads.to_string();
        let (pin, more): (&[&str], &[&str]) = match self.threads {
            1 => (&["taskset", "-c", "1"], &[]),
            _ => (&[], &["--threads", &threads]),
        };
        let words = [pin, &load, &shape, more].concat().into_iter().map(String::from);
        words.chain(self.what()).collect()
    }

    /// LRANGE is spelled out: its own test would fill the list first, at the cost of the server that is
    /// measured.
    fn what(&self) -> Vec<String> {
        match range(self.test) {
            Some(count) => ["LRANGE", "mylist", "0", &(count - 1).to_string()].map(String::from).to_vec(),
            None => ["-t", self.test].map(String::from).to_vec(),
        }
    }
}

/// The figures in the first row below the names of the columns.
fn parse(text: &str) -> Option<Report> {
    let row = text.lines().find(|line| line.starts_with('"') && !line.starts_with("\"test\""))?;
    let numbers: Vec<f64> = row.rsplit("\",\"").filter_map(|n| n.trim_matches('"').parse().ok()).collect();
    // From the right, because the name may hold commas: max, p99, p95, p50, least, mean, rate.
    match numbers[..] {
        [max, p99, p95, p50, _, _, rate] => Some(Report { rate, p50, p95, p99, max }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\
        \"p99_latency_ms\",\"max_latency_ms\"\n\
        \"LRANGE mylist 0 99\",\"5000.50\",\"0.1\",\"0.2\",\"0.3\",\"0.4\",\"0.5\",\"0.6\"\n";

    #[test]
    fn a_row_is_read_by_its_columns() {
        let report = parse(TEXT).unwrap();
        assert_eq!(report, Report { rate: 5000.5, p50: 0.3, p95: 0.4, p99: 0.5, max: 0.6 });
    }

    #[test]
    fn lrange_fills_no_list_while_it_is_measured() {
        let load = Load { test: "lrange_100", depth: 1, requests: 10, keyspace: "9", threads: 2 };
        assert!(load.words(7).join(" ").ends_with("--csv --threads 2 LRANGE mylist 0 99"));
        let load = Load { test: "set", ..load };
        assert!(load.words(7).join(" ").ends_with("--threads 2 -t set"));
    }

    #[test]
    fn a_report_without_rows_is_none() {
        assert_eq!(parse(""), None);
        assert_eq!(parse("\"SET\",\"x\"\n"), None);
    }
}
