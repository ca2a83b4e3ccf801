//! The settings of snapshots: the rows of that topic.
use super::setting::Change::{Anytime, AtStart, Protected};
use super::setting::{Kind, Outcome, Setting};
use super::snapshots::{on_signal_of, points_of, render_on_signal, render_points};
use super::table::{bytes_of, field, path, row};
use super::values::Config;

const INT_MAX: i64 = i32::MAX as i64;

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

pub(super) const ROWS: &[Setting] = &[
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
        "What SIGTERM means, likewise.",
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
