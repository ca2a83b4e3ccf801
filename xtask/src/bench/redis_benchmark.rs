//! redis-benchmark as the load: one run, and what it reports. Its own work is on another processor where the server has one to itself.
use super::server::Server;
use std::process::Command;

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Load<'l> {
    pub(crate) test: &'l str,
    /// Requests in flight on each connection.
    pub(crate) depth: u32,
    pub(crate) requests: u64,
    /// Keys are drawn from so many.
    pub(crate) keyspace: &'l str,
    pub(crate) threads: usize,
}

/// What it says of a run.
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
        parse(&text, self.test).ok_or_else(|| format!("bench: redis-benchmark said: {text}"))
    }

    fn words(&self, port: u16) -> Vec<String> {
        let numbers = [port.to_string(), self.requests.to_string(), self.depth.to_string()];
        let [port, requests, depth] = numbers.each_ref().map(String::as_str);
        let load = ["redis-benchmark", "-p", port, "-t", self.test, "-n", requests, "-P", depth];
        let shape = ["-c", "50", "-d", "64", "-r", self.keyspace, "--csv"];
        let threads = self.threads.to_string();
        let (pin, more): (&[&str], &[&str]) = match self.threads {
            1 => (&["taskset", "-c", "1"], &[]),
            _ => (&[], &["--threads", &threads]),
        };
        [pin, &load, &shape, more].concat().into_iter().map(String::from).collect()
    }
}

/// The row of the test itself: LRANGE's stands behind that of the LPUSH which fills its list.
fn parse(text: &str, test: &str) -> Option<Report> {
    let mut rows = text.lines().filter(|line| line.starts_with('"') && !line.starts_with("\"test\""));
    let row = rows.find(|line| !(test.starts_with("lrange") && line.starts_with("\"LPUSH")))?;
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
        \"LPUSH (needed to benchmark LRANGE)\",\"1.0\",\"1\",\"1\",\"1\",\"1\",\"1\",\"1\"\n\
        \"LRANGE_100 (first 100 elements)\",\"5000.50\",\"0.1\",\"0.2\",\"0.3\",\"0.4\",\"0.5\",\"0.6\"\n";

    #[test]
    fn the_row_of_the_test_is_found_behind_that_of_its_preparation() {
        let report = parse(TEXT, "lrange_100").unwrap();
        assert_eq!(report, Report { rate: 5000.5, p50: 0.3, p95: 0.4, p99: 0.5, max: 0.6 });
        assert_eq!(parse(TEXT, "lpush").unwrap().rate, 1.0);
    }

    #[test]
    fn a_report_without_rows_is_none() {
        assert_eq!(parse("", "set"), None);
        assert_eq!(parse("\"SET\",\"x\"\n", "set"), None);
    }
}
