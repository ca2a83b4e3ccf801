//! A small blocking RESP client that pipelines: enough to load data and time requests.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// One reply, as far as benchmarks look at it.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    Text(Vec<u8>),
    Int(i64),
    Null,
    Many(Vec<Answer>),
}

/// A request as clients send it.
pub(crate) fn append_request(out: &mut Vec<u8>, args: &[&[u8]]) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, "*{}\r\n", args.len());
    for arg in args {
        let _ = write!(out, "${}\r\n", arg.len());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}

pub(crate) struct Client {
    reader: BufReader<TcpStream>,
    /// Requests not yet sent.
    out: Vec<u8>,
    pending: usize,
}

impl Client {
    pub(crate) fn connect(port: u16) -> io::Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        Ok(Client { reader: BufReader::with_capacity(1 << 16, stream), out: Vec::new(), pending: 0 })
    }

    /// Sends one request and waits for its answer.
    pub(crate) fn call(&mut self, args: &[&[u8]]) -> Result<Answer, String> {
        self.flush()?;
        self.queue(args);
        self.send()?;
        self.pending = 0;
        self.read()
    }

    pub(crate) fn call_int(&mut self, args: &[&[u8]]) -> Result<i64, String> {
        match self.call(args)? {
            Answer::Int(n) => Ok(n),
            other => Err(format!("bench: {:?} is no integer", other)),
        }
    }

    /// One field of INFO.
    pub(crate) fn info(&mut self, section: &str, field: &str) -> Result<String, String> {
        let Answer::Text(text) = self.call(&[b"INFO", section.as_bytes()])? else {
            return Err("bench: INFO is no text".into());
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value
            .map(|value| value.trim().to_string())
            .ok_or_else(|| format!("bench: INFO {section} has no {field}"))
    }

    /// Whether the server has a command.
    pub(crate) fn knows(&mut self, command: &str) -> Result<bool, String> {
        let answer = self.call(&[b"COMMAND", b"INFO", command.as_bytes()])?;
        Ok(matches!(answer, Answer::Many(rows) if rows.iter().any(|row| matches!(row, Answer::Many(_)))))
    }

    /// Sends one request and reads its reply without looking at it; how many bytes it has.
    pub(crate) fn call_unread(&mut self, args: &[&[u8]]) -> Result<u64, String> {
        const END: &[u8] = b"$14\r\nend-of-replies\r\n";
        self.flush()?;
        self.queue(args);
        self.queue(&[b"ECHO", b"end-of-replies"]);
        self.send()?;
        self.pending = 0;
        let (mut bytes, mut tail) = (0, Vec::new());
        while !tail.ends_with(END) {
            let got = self.reader.fill_buf().map_err(|e| format!("bench: receive: {e}"))?;
            if got.is_empty() {
                return Err("bench: the server hung up".into());
            }
            let len = got.len();
            tail.extend_from_slice(&got[len.saturating_sub(END.len())..]);
            tail.drain(..tail.len().saturating_sub(END.len()));
            self.reader.consume(len);
            bytes += len as u64;
        }
        Ok(bytes - END.len() as u64)
    }

    /// Sends one request and does not wait for its answer.
    pub(crate) fn send_only(&mut self, args: &[&[u8]]) -> Result<(), String> {
        self.queue(args);
        self.send()
    }

    /// Adds a request to the pipeline; every `depth` of them are sent and their answers awaited.
    pub(crate) fn pipe(&mut self, args: &[&[u8]], depth: usize) -> Result<(), String> {
        self.queue(args);
        if self.pending >= depth { self.flush() } else { Ok(()) }
    }

    /// Sends what is queued and reads the answers.
    pub(crate) fn flush(&mut self) -> Result<(), String> {
        self.send()?;
        for _ in 0..std::mem::take(&mut self.pending) {
            self.read()?;
        }
        Ok(())
    }

    /// Sends what is queued, and returns the answers.
    pub(crate) fn collect(&mut self) -> Result<Vec<Answer>, String> {
        self.send()?;
        (0..std::mem::take(&mut self.pending)).map(|_| self.read()).collect()
    }

    fn queue(&mut self, args: &[&[u8]]) {
        self.pending += 1;
        append_request(&mut self.out, args);
    }

    fn send(&mut self) -> Result<(), String> {
        let sent = self.reader.get_mut().write_all(&self.out);
        self.out.clear();
        sent.map_err(|e| format!("bench: send: {e}"))
    }

    fn read(&mut self) -> Result<Answer, String> {
        let mut line = Vec::new();
        let count = self.reader.read_until(b'\n', &mut line).map_err(|e| format!("bench: receive: {e}"))?;
        if count < 3 {
            return Err("bench: the server hung up".into());
        }
        let text = String::from_utf8_lossy(&line[1..count - 2]).into_owned();
        let number = || text.parse::<i64>().map_err(|_| format!("bench: bad reply {text:?}"));
        match line[0] {
            b'+' => Ok(Answer::Text(text.into_bytes())),
            b':' => Ok(Answer::Int(number()?)),
            b'$' | b'*' if number()? < 0 => Ok(Answer::Null),
            b'$' => {
                let mut body = vec![0; number()? as usize + 2];
                self.reader.read_exact(&mut body).map_err(|e| format!("bench: receive: {e}"))?;
                body.truncate(body.len() - 2);
                Ok(Answer::Text(body))
            }
            b'%' => (0..2 * number()?).map(|_| self.read()).collect::<Result<_, _>>().map(Answer::Many),
            b'*' => (0..number()?).map(|_| self.read()).collect::<Result<_, _>>().map(Answer::Many),
            _ => Err(format!("bench: the server answered: {}", String::from_utf8_lossy(&line).trim())),
        }
    }
}
