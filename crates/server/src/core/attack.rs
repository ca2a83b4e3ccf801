//! Requests that no client sends but a browser that was made to: a web page can have it send HTTP to any port
//! of its own machine, and what follows the first lines might read as commands. `POST` and `Host:`, which
//! begin lines of every such message, end the connection before anything behind them runs, unanswered, as in
//! the peer.
use crate::core::server::Server;
use crate::core::session::{After, Session};
use net::Peer;
use std::sync::atomic::Ordering::Relaxed;

/// The log hears of it no more often: whoever sends it could fill a disk.
const LOG_EVERY_S: i64 = 60;

/// Whether the name of an unknown command says that this is no client.
pub(crate) fn is_one(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

/// Ends the connection at once, with what it has not been sent yet.
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
