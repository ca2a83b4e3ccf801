//! The addresses of a connection as text: as CLIENT LIST and MONITOR show them and CLIENT KILL compares them.
use net::Peer;
use std::io::Write;
use std::net::SocketAddr;

/// Whose end of a connection.
#[derive(Clone, Copy)]
pub(crate) enum Side {
    Theirs,
    Ours,
}

/// Appends the address of that end. A Unix socket has its path for both.
pub(crate) fn append_address(peer: &Peer, side: Side, out: &mut Vec<u8>) {
    let address = match (peer, side) {
        (Peer::Tcp { peer, .. }, Side::Theirs) => peer,
        (Peer::Tcp { local, .. }, Side::Ours) => local,
        (Peer::Unix { path }, _) => {
            out.extend_from_slice(path.to_string_lossy().as_bytes());
            out.extend_from_slice(b":0");
            return;
        }
    };
    match address {
        SocketAddr::V4(address) => {
            let mut separator = None;
            for byte in address.ip().octets() {
                out.extend(separator.replace(b'.'));
                base::text::append_i64(out, byte.into());
            }
            out.push(b':');
            base::text::append_i64(out, address.port().into());
        }
        SocketAddr::V6(address) => {
            let _ = write!(out, "{address}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_usual() {
        for text in ["127.0.0.1:6379", "255.10.0.99:65535", "[::1]:1", "[fe80::1%3]:80"] {
            let address: SocketAddr = text.parse().unwrap();
            let peer = Peer::Tcp { peer: address, local: "0.0.0.0:0".parse().unwrap() };
            for (side, expected) in [(Side::Theirs, text), (Side::Ours, "0.0.0.0:0")] {
                let mut out = Vec::new();
                append_address(&peer, side, &mut out);
                assert_eq!(String::from_utf8_lossy(&out), expected);
            }
        }
        let mut out = Vec::new();
        append_address(&Peer::Unix { path: "/run/s.sock".into() }, Side::Ours, &mut out);
        assert_eq!(out, b"/run/s.sock:0");
    }
}
