//! The journal as a stream of commands, as a file holds it and a replica reads it: SELECT before an effect in
//! another database, MULTI and EXEC around effects that belong together.
use crate::journal::record::{Audience, Frame, Record};

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
        Stream { is_for_replicas: false, db: None }
    }

    /// What a replica reads: that, and messages.
    pub fn for_replicas() -> Stream {
        Stream { is_for_replicas: true, db: None }
    }

    /// Whoever reads on begins without a database: the next command will be preceded by SELECT.
    pub fn begin_anew(&mut self) {
        self.db = None;
    }

    /// Appends the commands of a record, perhaps none.
    pub fn write(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        // Nearly all records are like this.
        if let Some(Frame { db, audience: Audience::Everybody, words }) = record.only_frame()
            && self.db == Some(db)
        {
            return out.extend_from_slice(words);
        }
        self.write_any(record, out);
    }

    #[cold]
    fn write_any(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        let concerns = |frame: &Frame<'_>| self.is_for_replicas || frame.audience == Audience::Everybody;
        let is_group = record.frames().filter(concerns).nth(1).is_some();
        let frames = record.frames().filter(concerns);
        if is_group {
            out.extend_from_slice(MULTI);
        }
        let mut selected = self.db;
        for frame in frames {
            if selected.replace(frame.db) != Some(frame.db) {
                let number = frame.db.to_string();
                let select = format!("*2\r\n$6\r\nSELECT\r\n${}\r\n{number}\r\n", number.len());
                out.extend_from_slice(select.as_bytes());
            }
            out.extend_from_slice(frame.words);
        }
        self.db = selected;
        if is_group {
            out.extend_from_slice(EXEC);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Group;

    fn stream(stream: &mut Stream, records: &[&[(u16, Audience, &str)]]) -> String {
        let mut out = Vec::new();
        for (number, frames) in records.iter().enumerate() {
            let (mut group, mut buffer) = (Group::default(), Vec::new());
            for (db, audience, words) in *frames {
                group.add(
                    *db,
                    *audience,
                    words.split(' ').map(str::as_bytes).collect::<Vec<_>>().into_iter(),
                );
            }
            group.finish(number as u64, &mut buffer);
            stream.write(&Record::first(&buffer).unwrap().0, &mut out);
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
