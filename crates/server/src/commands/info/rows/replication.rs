//! Metrics of replication and cluster mode, neither of which there is yet.
use super::{NO_CLUSTER, NO_REPLICATION};
use crate::commands::info::metric::{Kind, Metric, Unit, Value, gauge, text, zero};

pub(in super::super) const REPLICATION: &[Metric] = &[
    text("role", "`master`, or `slave` where the server follows another.", |_| "master".into())
        .constant(NO_REPLICATION),
    zero(Kind::Gauge, "connected_slaves", "Replicas that follow this server.", NO_REPLICATION),
    text("master_failover_state", "The state of a failover in progress.", |_| "no-failover".into())
        .constant(NO_REPLICATION),
    text("master_replid", "The replication ID of this server.", |r| {
        r.server.replication_id.text().to_string().into()
    }),
    text("master_replid2", "The replication ID that the server had before its last failover.", |_| {
        "0".repeat(40).into()
    })
    .constant(NO_REPLICATION),
    zero(Kind::Counter, "master_repl_offset", "The replication offset of this server.", NO_REPLICATION)
        .unit(Unit::Bytes),
    gauge("second_repl_offset", "The offset up to which `master_replid2` is valid.", |_| Value::Int(-1))
        .unit(Unit::Bytes)
        .constant(NO_REPLICATION),
    zero(Kind::Gauge, "repl_backlog_active", "Whether a backlog is kept.", NO_REPLICATION),
    gauge("repl_backlog_size", "The setting `repl-backlog-size`.", |r| {
        let size = r.config.value("repl-backlog-size").unwrap_or_default();
        String::from_utf8_lossy(&size).into_owned().into()
    })
    .unit(Unit::Bytes),
    zero(Kind::Gauge, "repl_backlog_first_byte_offset", "Where the backlog begins.", NO_REPLICATION)
        .unit(Unit::Bytes),
    zero(Kind::Gauge, "repl_backlog_histlen", "How much the backlog holds.", NO_REPLICATION)
        .unit(Unit::Bytes),
];

pub(in super::super) const CLUSTER: &[Metric] =
    &[zero(Kind::Gauge, "cluster_enabled", "Whether the server is a node of a cluster.", NO_CLUSTER)];
