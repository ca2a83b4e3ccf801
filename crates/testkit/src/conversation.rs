//! Several clients in one transcript: requests that are not answered at once, and what arrives without a
//! request. `tests/transcripts/README.md` has the lines for it; here is what a peer must be able to do.
//!
//! That nothing arrives cannot be seen by waiting, so a barrier is asked behind which it would have come. A
//! client that can answer is asked PING twice: when the second answer is there, its worker has ended the turn
//! in which it answered the first, and with it has emptied its mailbox. A client that waits in a command
//! cannot answer; of that one the server says that it still waits (`flags=b` in CLIENT LIST).
use crate::resp_value::Value;
use resp::Protocol;

/// What came on a connection where something was to come, or was not to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    Value(Value),
    /// For as long as a client of tests waits.
    Nothing,
    /// The server has closed the connection.
    Closed,
    /// The request that was to wait has been answered or given up.
    NoLongerWaits,
    /// A PING was queued: quiet cannot be tested inside a transaction.
    InTransaction,
}

impl Heard {
    /// The lines of a transcript for what was heard; words in brackets where that is no value.
    pub fn lines(&self) -> Vec<String> {
        let words = match self {
            Heard::Value(value) => return value.lines(),
            Heard::Nothing => "(nothing arrives)",
            Heard::Closed => "(the server closes the connection)",
            Heard::NoLongerWaits => "(it waits no longer)",
            Heard::InTransaction => "(a PING inside a transaction is queued)",
        };
        vec![words.to_owned()]
    }
}

/// Several clients of one server, by the names that the transcript gives them.
pub trait Conversation {
    /// A transcript of several clients begins. No connection of it is open yet.
    fn begin(&mut self);
    /// Sends a request that is not answered now. An error is what came instead of waiting.
    fn wait(&mut self, connection: &str, protocol: Protocol, args: &[Vec<u8>]) -> Result<(), Heard>;
    /// The next value that arrives.
    fn receive(&mut self, connection: &str) -> Heard;
    /// That nothing has arrived which was not received; an error is what has.
    fn stay_quiet(&mut self, connection: &str) -> Result<(), Heard>;
    /// That the server closes it; an error is what arrives instead.
    fn await_end(&mut self, connection: &str) -> Result<(), Heard>;
    /// Closes it, and waits until the server has seen that.
    fn close(&mut self, connection: &str);
    /// All connections are quiet, and then closed; otherwise the first that is not, with what it heard.
    fn finish(&mut self) -> Result<(), (String, Heard)>;
}

#[cfg(test)]
mod tests {
    use crate::in_process::InProcess;
    use crate::transcript::Transcript;
    use resp::Protocol;

    /// A monitor is told of every request, so there is something to hear.
    const BEGINNING: &str = "> PING\n+PONG\nconn M\n> MONITOR\n+OK\nconn A\n> SET k v\n+OK\nconn M\n";

    /// The line and the words of each mismatch when these lines follow.
    fn wrong(lines: &str) -> Vec<(usize, String)> {
        let server = InProcess::start(InProcess::config());
        let transcript = Transcript::parse(&format!("{BEGINNING}{lines}")).unwrap();
        let mismatches = transcript.replay(&mut server.peer().unwrap(), Protocol::Resp2);
        mismatches.into_iter().map(|wrong| (wrong.line_number, wrong.actual.join(" "))).collect()
    }

    #[test]
    fn what_arrives_unasked_is_compared() {
        assert_eq!(wrong("shape\ngets\n+...\nquiet\n"), []);
        let wrong = wrong("gets\n+1 [0 none] \"SET\" \"k\" \"v\"\n");
        assert!(wrong.len() == 1 && wrong[0].1.ends_with("\"SET\" \"k\" \"v\""), "{wrong:?}");
    }

    #[test]
    fn a_connection_that_is_not_quiet_is_found_also_at_the_end() {
        assert!(wrong("quiet\n")[0].1.starts_with('+'));
        assert_eq!(wrong("shape\ngets\n+...\nclose\n"), []);
        let wrong = wrong("shape\ngets\n+...\nconn A\n> PING\n+PONG\nquiet\n");
        assert!(wrong.len() == 1 && wrong[0].1.ends_with("\"PING\""), "{wrong:?}");
    }

    #[test]
    fn a_request_that_is_answered_at_once_does_not_wait() {
        assert_eq!(wrong("conn A\nwaits\n> GET k\nconn M\nclose\n"), [(12, "$1 v".to_owned())]);
    }

    #[test]
    fn an_answer_is_no_end_and_an_end_no_answer() {
        let kill = "shape\ngets\n+...\nconn A\n> CLIENT KILL TYPE normal SKIPME yes\n:2\nconn M\n";
        assert_eq!(wrong(&format!("{kill}closed\n")), []);
        assert_eq!(wrong(&format!("{kill}gets\n:1\n"))[0].1, "(the server closes the connection)");
        assert!(wrong("closed\n")[0].1.starts_with('+'));
    }
}
