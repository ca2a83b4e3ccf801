//! The journal as a stream of commands, as a file holds it and a replica reads it: SELECT before an effect in
//! another database, MULTI and EXEC around effects that belong together.
use crate::journal::record::{Audience, Frame, Run};

/// Writes records as commands, for one reader.
#[derive(Clone, Debug)]
pub struct Stream {
    is_for_replicas: bool,
    /// The database that the commands so far have selected.
    db: Option<u16>,
}

const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

impl Stream {
    /// What a file holds: all that changes data.
    pub fn for_files() -> Stream {
        Stream::for_files_in(None)
    }

    /// The same behind commands that have selected this database.
    pub fn for_files_in(db: Option<u16>) -> Stream {
        Stream { is_for_replicas: false, db }
    }

    /// The database that the commands so far have selected.
    pub fn db(&self) -> Option<u16> {
        self.db
    }

    /// What a replica reads: that, and messages.
    pub fn for_replicas() -> Stream {
        Stream { is_for_replicas: true, db: None }
    }

    /// Somebody else has written this command.
    pub fn note(&mut self, words: &[Vec<u8>]) {
        if let [word, db] = words
            && word.eq_ignore_ascii_case(b"SELECT")
        {
            self.db = base::text::parse_i64(db).and_then(|db| u16::try_from(db).ok());
        }
    }

    /// Whoever reads on begins without a database: the next command will be preceded by SELECT.
    pub fn begin_anew(&mut self) {
        self.db = None;
    }

    /// Appends the commands of these records, perhaps none.
    pub fn write(&mut self, run: &Run<'_>, out: &mut Vec<u8>) {
        match run.words() {
            Some((db, words)) => {
                self.select(db, out);
                out.extend_from_slice(words);
            }
            None => self.write_frames(run, out),
        }
    }

    /// How many of the first of these runs read in the stream as their words do, one behind the other.
    pub fn count_plain(&self, runs: &[Run<'_>]) -> usize {
        let is_plain = |run: &&Run<'_>| run.words().is_some_and(|(db, _)| self.db == Some(db));
        runs.iter().take_while(is_plain).count()
    }

    fn write_frames(&mut self, run: &Run<'_>, out: &mut Vec<u8>) {
        let others = if self.is_for_replicas { Audience::Files } else { Audience::Replicas };
        let concerns = |frame: &Frame<'_>| frame.audience != others;
        let is_group = run.frames().filter(concerns).nth(1).is_some();
        if is_group {
            out.extend_from_slice(MULTI);
        }
        for frame in run.frames().filter(concerns) {
            self.select(frame.db, out);
            out.extend_from_slice(frame.words);
        }
        if is_group {
            out.extend_from_slice(EXEC);
        }
    }

    /// What follows is for this database.
    fn select(&mut self, db: u16, out: &mut Vec<u8>) {
        if self.db.replace(db) != Some(db) {
            let number = db.to_string();
            let select = format!("*2\r\n$6\r\nSELECT\r\n${}\r\n{number}\r\n", number.len());
            out.extend_from_slice(select.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Group, Records};

    fn stream(stream: &mut Stream, records: &[&[(u16, Audience, &str)]]) -> String {
        let mut out = Vec::new();
        for (number, frames) in records.iter().enumerate() {
            let (mut group, mut buffer) = (Group::default(), Records::default());
            for (db, audience, words) in *frames {
                group.add(
                    *db,
                    *audience,
                    words.split(' ').map(str::as_bytes).collect::<Vec<_>>().into_iter(),
                );
            }
            group.finish(number as u64, &mut buffer);
            stream.write(&buffer.run(0).unwrap(), &mut out);
        }
        let lines = String::from_utf8(out).unwrap();
        let words = lines.split("\r\n").filter(|line| !line.starts_with('$'));
        words.map(|word| if word.starts_with('*') { ";" } else { word }).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_database_is_selected_where_it_changes_within_a_transaction_too() {
        use Audience::Everybody as All;
        let records: [&[(u16, Audience, &str)]; 3] =
            [&[(0, All, "SET a 1")], &[(3, All, "SET b 1"), (0, All, "DEL a")], &[(0, All, "INCR n")]];
        assert_eq!(
            stream(&mut Stream::for_files(), &records),
            "; SELECT 0 ; SET a 1 ; MULTI ; SELECT 3 ; SET b 1 ; SELECT 0 ; DEL a ; EXEC ; INCR n "
        );
    }

    #[test]
    fn what_was_limited_afterwards_is_read_by_those_alone() {
        let mut group = Group::default();
        let add = |group: &mut Group, key: &str| {
            group.add(0, Audience::Everybody, ["DEL", key].map(str::as_bytes).into_iter());
        };
        add(&mut group, "all");
        for (keys, audience) in [(["f", "g"], Audience::Files), (["r", "s"], Audience::Replicas)] {
            let mark = group.mark();
            keys.iter().for_each(|key| add(&mut group, key));
            group.limit(mark, audience);
        }
        let (mut buffer, mut out) = (Records::default(), [Vec::new(), Vec::new()]);
        group.finish(0, &mut buffer);
        let run = buffer.run(0).unwrap();
        Stream::for_files().write(&run, &mut out[0]);
        Stream::for_replicas().write(&run, &mut out[1]);
        let keys =
            out.map(|out| String::from_utf8(out).unwrap().matches(['f', 'g', 'r', 's']).collect::<String>());
        assert_eq!(keys, ["fg", "rs"]);
    }

    #[test]
    fn messages_are_for_replicas_and_make_no_transaction_in_a_file() {
        use Audience::{Everybody, Replicas};
        let records: [&[(u16, Audience, &str)]; 2] =
            [&[(0, Replicas, "PUBLISH c m")], &[(0, Replicas, "PUBLISH c m"), (0, Everybody, "SET a 1")]];
        assert_eq!(stream(&mut Stream::for_files(), &records), "; SELECT 0 ; SET a 1 ");
        assert_eq!(
            stream(&mut Stream::for_replicas(), &records),
            "; SELECT 0 ; PUBLISH c m ; MULTI ; PUBLISH c m ; SET a 1 ; EXEC "
        );
    }
}
