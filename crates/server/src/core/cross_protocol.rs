//! Protection against requests that a web page makes a browser send. A page can have its visitor's browser
//! send HTTP to any port of the visitor's own machine, and lines of such a message might read as commands.
//! `POST` and `Host:`, with which lines of every such message begin, end the connection before anything
//! behind them runs, unanswered, as in Redis.
use crate::core::server::Server;
use crate::core::session::{After, Session};
use net::Peer;
use std::sync::atomic::Ordering::Relaxed;

/// The warning is logged at most once in this time: an attacker could fill a disk with it.
const LOG_EVERY_S: i64 = 60;

/// Whether the name of an unknown command shows that this is a browser, not a client.
pub(crate) fn is_sign(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

/// Ends the connection at once; replies that it has not been sent yet are dropped.
pub(crate) fn end(server: &Server, session: &mut Session) {
    session.after = After::Abort;
    let now_s = server.clock.now().0 / 1000;
    let logged_s = server.stats.attack_logged_s.load(Relaxed);
    if now_s.abs_diff(logged_s) <= LOG_EVERY_S as u64 {
        return;
    }
    server.stats.attack_logged_s.store(now_s, Relaxed);
    let from = match &session.record.peer {
        Peer::Tcp { peer, .. } => format!("{}:{}", peer.ip(), peer.port()),
        Peer::Unix { .. } => "/unixsocket:0".to_owned(),
    };
    server.log.warning(&format!(
        "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: commands to Redis. This is \
         likely due to an attacker attempting to use Cross Protocol Scripting to compromise your Redis instance. \
         Connection from {from} aborted."
    ));
}
