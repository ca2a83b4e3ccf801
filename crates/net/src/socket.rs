//! The calls on connected sockets. All of them say `MSG_DONTWAIT`, so a socket's own mode does not matter,
//! and none raises SIGPIPE. This file is on the path of every request: no allocation, but what `receive` must
//! reserve.
//!
//! `recv` and `send` are system calls here, not the C library's functions: in a process of several threads
//! those make the calling thread cancellable and then not, which takes two locked instructions a call, and no
//! thread is cancelled here.
use crate::SocketOptions;
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, RawFd};
use std::ptr::{null, null_mut};
use std::time::Duration;

/// A closing socket reads and drops up to this much of what has arrived, see `discard`.
const DISCARD_BYTES_MAX: usize = 1 << 20;

/// Appends what has arrived, at most `limit` bytes, straight into `into`'s spare room. Returns how many
/// bytes; 0 is the end of the connection.
pub(crate) fn receive(fd: RawFd, into: &mut Vec<u8>, limit: usize) -> io::Result<usize> {
    into.reserve(limit);
    let spare = into.spare_capacity_mut();
    // SAFETY: `spare` is `limit` writable bytes or more, borrowed for the duration of the call.
    let n = unsafe {
        let (nobody, no_len) = (null_mut::<libc::sockaddr>(), null_mut::<libc::socklen_t>());
        libc::syscall(libc::SYS_recvfrom, fd, spare.as_mut_ptr(), limit, libc::MSG_DONTWAIT, nobody, no_len)
    };
    let n = checked(n as isize)?;
    // SAFETY: the kernel has written the first `n` bytes of the spare room.
    unsafe { into.set_len(into.len() + n) };
    Ok(n)
}

/// Sends as much as the kernel takes at once. Returns how many bytes that was.
pub(crate) fn send(fd: RawFd, data: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: `data` is readable for its length, borrowed for the duration of the call.
    let n = unsafe {
        let (nobody, no_len) = (null::<libc::sockaddr>(), 0 as libc::socklen_t);
        libc::syscall(libc::SYS_sendto, fd, data.as_ptr(), data.len(), flags, nobody, no_len)
    };
    checked(n as isize)
}

/// [`send`] for several pieces, in one call.
pub(crate) fn send_pieces(fd: RawFd, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
    // SAFETY: all-zero is a valid msghdr: no address, no pieces, no control data.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // IoSlice is guaranteed to have the layout of an iovec; sendmsg only reads through the pointer.
    message.msg_iov = pieces.as_ptr().cast_mut().cast();
    message.msg_iovlen = pieces.len();
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: `message` names `pieces.len()` iovecs whose bytes are borrowed for the duration of the call.
    checked(unsafe { libc::sendmsg(fd, &raw const message, flags) })
}

/// Ends both directions: nothing more is sent or arrives. What has arrived can still be received, and then
/// the end.
pub(crate) fn shut_down(fd: RawFd) {
    // SAFETY: no pointers. That the peer has gone already is no error.
    unsafe { libc::shutdown(fd, libc::SHUT_RDWR) };
}

/// Reads and drops what has arrived. Closing a TCP socket with unread data resets the connection, and the
/// reset can overtake the last reply (the error that says why we close).
pub(crate) fn discard(fd: RawFd) {
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: with MSG_TRUNC TCP copies nothing, so the null buffer is never written; other kinds of sockets,
    // which would write to it, answer EFAULT.
    unsafe { libc::recv(fd, std::ptr::null_mut(), DISCARD_BYTES_MAX, flags) };
}

/// Sends `words` before a close, as far as the kernel takes them at once: there is nothing to do about what
/// does not leave.
pub(crate) fn send_last(fd: RawFd, words: &[u8], is_tcp: bool) {
    let _ = send(fd, words);
    if is_tcp {
        discard(fd);
    }
}

/// The result of a system call.
fn checked(n: isize) -> io::Result<usize> {
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// The longest keepalive that the kernel accepts, in seconds.
const KEEPALIVE_S_MAX: u32 = 32_767;

/// No delay and keepalive, of TCP. Keepalive as Redis sets it: first probe after the given seconds of
/// silence, then three probes a third of that apart.
pub(crate) fn set_up(fd: &impl AsFd, options: SocketOptions) -> io::Result<()> {
    let socket = SockRef::from(fd);
    let delay = socket.set_tcp_nodelay(true);
    if options.keepalive_s != 0 {
        let idle_s = u64::from(options.keepalive_s.min(KEEPALIVE_S_MAX));
        let keepalive = TcpKeepalive::new()
            .with_time(Duration::from_secs(idle_s))
            .with_interval(Duration::from_secs((idle_s / 3).max(1)))
            .with_retries(3);
        socket.set_tcp_keepalive(&keepalive)?;
    }
    delay
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn keepalive_is_set_as_redis_sets_it() {
        let (_client, server) = pair();
        set_up(&server, SocketOptions { keepalive_s: 300 }).unwrap();
        let socket = SockRef::from(&server);
        assert!(socket.keepalive().unwrap() && socket.tcp_nodelay().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(300));
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), Duration::from_secs(100));
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), 3);
    }

    #[test]
    fn keepalive_is_never_longer_than_the_kernel_knows() {
        for keepalive_s in [32_767, 32_768, u32::MAX] {
            let (_client, server) = pair();
            set_up(&server, SocketOptions { keepalive_s }).unwrap();
            assert_eq!(SockRef::from(&server).tcp_keepalive_time().unwrap(), Duration::from_secs(32_767));
        }
    }

    #[test]
    fn keepalive_of_zero_seconds_is_off() {
        let (_client, server) = pair();
        set_up(&server, SocketOptions::default()).unwrap();
        assert!(!SockRef::from(&server).keepalive().unwrap());
    }

    #[test]
    fn receiving_appends_at_most_the_limit() {
        let (mut client, server) = pair();
        client.write_all(b"hello").unwrap();
        server.peek(&mut [0; 5]).unwrap();
        let mut into = Vec::from(*b"> ");
        assert_eq!(receive(server.as_raw_fd(), &mut into, 4).unwrap(), 4);
        assert_eq!(receive(server.as_raw_fd(), &mut into, 4).unwrap(), 1);
        assert_eq!(into, b"> hello");
        let empty = receive(server.as_raw_fd(), &mut into, 4).err().unwrap();
        assert_eq!(empty.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn what_is_discarded_is_gone() {
        let (mut client, server) = pair();
        client.write_all(b"hello").unwrap();
        server.peek(&mut [0; 5]).unwrap();
        discard(server.as_raw_fd());
        assert!(receive(server.as_raw_fd(), &mut Vec::new(), 4).is_err());
    }
}
