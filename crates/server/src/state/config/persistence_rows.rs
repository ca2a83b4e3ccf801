//! The settings of snapshots and of the append-only file: the rows of these topics.
use super::append::AppendSync;
use super::setting::Change::{Anytime, AtStart, Protected};
use super::setting::{Kind, Outcome, Setting};
use super::snapshots::{on_signal_of, points_of, render_on_signal, render_points};
use super::table::{bytes_of, field, path, place, row};
use super::values::Config;
use std::path::PathBuf;

const INT_MAX: i64 = i32::MAX as i64;
const BYTES_MAX: u64 = i64::MAX as u64;

fn set_file_name(config: &mut Config, name: &[u8]) -> Outcome {
    if name.contains(&b'/') {
        return Err("dbfilename can't be a path, just a filename".into());
    }
    config.snapshots.file_name = path(name);
    Ok(())
}

macro_rules! on_signal {
    ($field:ident) => {
        Kind::List {
            get: |c| render_on_signal(c.snapshots.$field),
            set: |c, words| {
                c.snapshots.$field = on_signal_of(words)?;
                Ok(())
            },
        }
    };
}

pub(super) const SNAPSHOTS: &[Setting] = &[
    row(
        "save",
        Anytime,
        Kind::Lines {
            get: |c| render_points(c.snapshots.points()),
            set: |c, words| {
                c.snapshots.points = Some(points_of(words)?);
                Ok(())
            },
            add: |c, words| {
                let more = points_of(words)?;
                let points = c.snapshots.points.get_or_insert_default();
                if more.is_empty() {
                    points.clear();
                }
                points.extend(more);
                Ok(())
            },
        },
        "Write a snapshot when so many seconds have passed since the last one and there were at least so many \
         changes: pairs of both numbers. Each line adds pairs; an empty text takes all back.",
        "Set it to \"\" for a cache. Add shorter times where less may be lost.",
    ),
    row(
        "dbfilename",
        Protected,
        Kind::Text { get: |c| bytes_of(&c.snapshots.file_name), set: set_file_name },
        "The name of the file that snapshots are written to and loaded from, in the working directory.",
        "Set it where several servers share a directory.",
    ),
    row(
        "rdb-version",
        Anytime,
        field!(int disk::rdb::VERSION_WRITTEN as i64, disk::rdb::VERSION_WRITTEN_MAX as i64, snapshots.version as u16),
        "The version of the format in which snapshots are written: 10 is read by Redis 7.0 and all later versions, 11 \
         by 7.2, 12 by 7.4. Where fields of hashes have deadlines it is 12 in any case.",
        "Raise it where nothing older will ever read the file: small sets of texts take fewer bytes.",
    ),
    row(
        "rdbchecksum",
        AtStart,
        field!(bool snapshots.has_checksum),
        "End snapshots with a checksum, and look at it when one is loaded.",
        "Turn it off to save and load some percent faster.",
    ),
    row(
        "rdbcompression",
        Anytime,
        field!(bool store.rdb_compresses),
        "Compress strings of more than 20 bytes in dump files and in what DUMP answers.",
        "Turn it off where processor time matters more than the size of files.",
    ),
    row(
        "rdb-save-incremental-fsync",
        Anytime,
        field!(bool snapshots.syncs),
        "Have a snapshot put on the disk every 4 MB while it is written, not all at its end.",
        "There is hardly a reason to.",
    ),
    row(
        "stop-writes-on-bgsave-error",
        Anytime,
        field!(bool snapshots.stops_writes),
        "Refuse writes while the last snapshot in the background has failed and there are save points.",
        "Turn it off where something else watches the disk, and clients shall not notice.",
    ),
    row(
        "shutdown-on-sigint",
        Anytime,
        on_signal!(on_interrupt),
        "What SIGINT means: words of SHUTDOWN, or `default`, which saves if there are save points.",
        "Set it to `nosave` where a server that is stopped by hand shall not wait for its disk.",
    ),
    row(
        "shutdown-on-sigterm",
        Anytime,
        on_signal!(on_terminate),
        "What SIGTERM means: words of SHUTDOWN, or `default`, which saves if there are save points.",
        "Set it to `save force` or `nosave` where a service manager does not wait for long.",
    ),
];

/// Rows that `CONFIG GET *` leaves out, for tests.
pub(super) const UNLISTED: &[Setting] = &[
    row(
        "key-load-delay",
        Anytime,
        field!(int i32::MIN as i64, INT_MAX, snapshots.load_delay as i32),
        "Microseconds that loading waits after each key, or keys for each microsecond where it is negative.",
        "For tests.",
    ),
    row(
        "rdb-key-save-delay",
        Anytime,
        field!(int i32::MIN as i64, INT_MAX, snapshots.save_delay as i32),
        "Microseconds that saving waits after each key, or keys for each microsecond where it is negative.",
        "For tests.",
    ),
];

const SYNCS: [AppendSync; 3] = [AppendSync::EverySecond, AppendSync::Always, AppendSync::No];

fn set_append_name(config: &mut Config, name: &[u8]) -> Outcome {
    config.append.file_name = plain_name(name, "appendfilename", "filename")?;
    Ok(())
}

fn set_folder(config: &mut Config, name: &[u8]) -> Outcome {
    config.append.folder = plain_name(name, "appenddirname", "dirname")?;
    Ok(())
}

fn plain_name(name: &[u8], setting: &str, what: &str) -> Result<PathBuf, String> {
    if name.is_empty() {
        return Err(format!("{setting} can't be empty"));
    }
    if name.contains(&b'/') {
        return Err(format!("{setting} can't be a path, just a {what}"));
    }
    Ok(path(name))
}

pub(super) const APPEND_ONLY: &[Setting] = &[
    row(
        "appendonly",
        Anytime,
        field!(bool append.is_wanted),
        "Write every change of the data to the append-only file, from which the data is loaded at the next start. \
         It can be turned on and off while the server runs: the file then begins with a snapshot.",
        "Turn it on where less may be lost than what was written since the last snapshot.",
    ),
    row(
        "appendfsync",
        Anytime,
        field!(word SYNCS, &["everysec", "always", "no"], append.sync),
        "When what was appended is put on the disk: `always`, before the reply to each write; `everysec`, once a \
         second; `no`, when the system does it.",
        "Set it to `always` where nothing that was acknowledged may be lost, even if the power fails.",
    ),
    row(
        "appenddirname",
        AtStart,
        Kind::Text { get: |c| bytes_of(&c.append.folder), set: set_folder },
        "The folder of the append-only file, in the working directory: it consists of several files.",
        "Set it where several servers share a directory.",
    ),
    row(
        "appendfilename",
        AtStart,
        Kind::Text { get: |c| bytes_of(&c.append.file_name), set: set_append_name },
        "What the names of the files that the append-only file consists of begin with.",
        "There is hardly a reason to.",
    ),
    row(
        "auto-aof-rewrite-percentage",
        Anytime,
        field!(int 0, INT_MAX, append.growth_percent as u32),
        "Begin the append-only file anew, from a snapshot, when it has grown by so many percent since it was last \
         begun (Redis calls that a rewrite); 0: never.",
        "Lower it where the disk is small, raise it where it is busy.",
    ),
    row(
        "auto-aof-rewrite-min-size",
        Anytime,
        field!(memory 0, append.rewrite_bytes_min),
        "The append-only file does not begin anew by itself while it is smaller than this.",
        "Raise it where a start that takes a little longer does not matter.",
    ),
    row(
        "no-appendfsync-on-rewrite",
        Anytime,
        field!(bool append.rests_while_saving),
        "Leave it to the system when to put what is appended on the disk, while a snapshot is written or the \
         append-only file is begun anew.",
        "Turn it on where the disk is too slow for both, and more than a second may be lost.",
    ),
    row(
        "aof-load-truncated",
        Anytime,
        field!(bool append.may_be_truncated),
        "Load an append-only file that ends in the middle of a command, as a crash may leave it, and cut that end \
         off. Otherwise the server does not start, and `sardine check --fix` cuts it.",
        "Turn it off where somebody shall look at the file first.",
    ),
    row(
        "aof-timestamp-enabled",
        Anytime,
        field!(bool append.has_times),
        "Write the time into the append-only file too, so that it can be cut at a time. Redis before 7.0 does not \
         read such files.",
        "Turn it on where a mistake shall be undone by going back to a time.",
    ),
    row(
        "aof-use-rdb-preamble",
        Anytime,
        field!(bool append.begins_with_dump),
        "Begin the append-only file with a dump file. Otherwise it begins with commands that make all data, which \
         takes more room and longer to load.",
        "Turn it off where a program reads the file that knows commands only.",
    ),
    row(
        "aof-rewrite-incremental-fsync",
        Anytime,
        field!(bool append.syncs_rewrites),
        "Have the snapshot with which the append-only file begins put on the disk every 4 MB while it is written, not \
         all at its end.",
        "There is hardly a reason to.",
    ),
];
