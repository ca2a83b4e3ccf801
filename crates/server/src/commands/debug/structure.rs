//! DEBUG OBJECT, LISTPACK, QUICKLIST, HTSTATS, HTSTATS-KEY: how data is kept. OBJECT answers in Redis's
//! words, the others in Sardine's own; MEMORY LAYOUT tells more.
use crate::core::call::ServerCall;
use crate::core::error;
use base::text::parse_i64;
use command::{Done, Error};
use std::fmt::Write;
use store::KeyInfo;

/// Redis's words for Sardine's layout. Values move, so there is no address, and nothing refers to them twice;
/// the leaves of a list are its nodes.
pub(super) fn object(call: &mut ServerCall<'_>) -> Done {
    let info = info(call)?;
    let mut text = format!(
        "Value at:0x0 refcount:1 encoding:{} serializedlength:{} lru:{} lru_seconds_idle:0",
        info.encoding,
        info.serialized_bytes,
        (call.now.0 / 1000) & 0xFF_FFFF,
    );
    if info.encoding == "quicklist" {
        let leaves = info.nodes.leaves.max(1);
        let _ = write!(
            text,
            " ql_nodes:{leaves} ql_avg_node:{:.2} ql_listpack_max:{} ql_compressed:{} ql_uncompressed_size:{}",
            info.len as f64 / leaves as f64,
            call.server.config().list_max_listpack_size.clamp(-5, 32_767),
            info.nodes.compressed,
            info.nodes.uncompressed_bytes,
        );
    }
    call.reply.simple(&text);
    Ok(())
}

/// What is known of the key that is the third argument.
fn info(call: &ServerCall<'_>) -> Result<KeyInfo, Error> {
    let config = call.server.config();
    let (mut view, key) =
        call.server.keyspace.lock_one(call.session.db, call.now, &config.store, call.args.at(2));
    view.info(&key).ok_or_else(Error::no_such_key)
}

pub(super) fn listpack(call: &mut ServerCall<'_>) -> Done {
    let info = info(call)?;
    log_layout(call, &info, "listpack", error::not_a_listpack)
}

pub(super) fn quicklist(call: &mut ServerCall<'_>) -> Done {
    let info = info(call)?;
    log_layout(call, &info, "quicklist", error::not_a_quicklist)
}

/// Redis writes the structure that the encoding's name stands for to its log; this writes what there is
/// instead.
fn log_layout(call: &mut ServerCall<'_>, info: &KeyInfo, encoding: &str, wrong: fn() -> Error) -> Done {
    if info.encoding != encoding {
        return Err(wrong());
    }
    let place = if info.is_inline { "inside its keyspace entry" } else { "in leaves of its own" };
    call.server.log.notice(&format!(
        "DEBUG {encoding}: {} elements {place}, {} leaves ({} compressed), {} bytes in all",
        info.len, info.nodes.leaves, info.nodes.compressed, info.memory_bytes
    ));
    call.reply.simple("The layout of the value is in the log");
    Ok(())
}

/// HTSTATS: the trees that hold a database's keys, and the wheels that hold deadlines, under the headings
/// that tools look for.
pub(super) fn table_stats(call: &mut ServerCall<'_>) -> Done {
    let number = parse_i64(call.args.at(2)).ok_or_else(Error::not_an_integer)?;
    let keyspace = &call.server.keyspace;
    let db = u16::try_from(number).ok().filter(|db| *db < keyspace.databases());
    let db = db.ok_or_else(error::database_out_of_range)?;
    let (stats, (volatile, _)) = (keyspace.tree_stats(db), keyspace.volatile(db, call.now));
    let (leaves, inner) = (stats.tagged, stats.inner);
    let text = format!(
        "[Dictionary HT]\nTrees of {} shards (there is no hash table):\n number of elements: {}\n leaves: {}\n \
         avg elements in a leaf: {:.2}\n bytes of leaves: {} filled, {} allocated\n inner nodes: {}\n \
         bytes of inner nodes: {} filled, {} allocated\n height: {}\n values outside leaves: {}\n\
         [Expires HT]\nTiming wheels:\n number of elements: {volatile}\n bytes: {}\n",
        keyspace.shards(),
        keyspace.len(db),
        leaves.nodes,
        leaves.entries as f64 / leaves.nodes.max(1) as f64,
        leaves.used_bytes,
        leaves.allocated_bytes,
        inner.nodes,
        inner.used_bytes,
        inner.allocated_bytes,
        stats.height,
        stats.outside.nodes,
        keyspace.wheel_bytes(Some(db)),
    );
    call.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

/// HTSTATS-KEY: no value is kept in a hash table, so this is always an error.
pub(super) fn table_stats_of_key(call: &mut ServerCall<'_>) -> Done {
    info(call)?;
    Err(error::not_a_hash_table())
}
