//! What an engine costs by itself: answers `+PONG` to every line, so that `redis-benchmark -t ping_inline`
//! drives it and its processor time a request can be compared with that of a whole server.
//!
//! `echo_bench PORT [auto|epoll|uring]`
use net::{CloseWhen, Engine, EngineKind, Event, Listener, Received, Wait};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().and_then(|port| port.parse().ok()).unwrap_or(7000);
    let kind = match arguments.next().as_deref() {
        None | Some("auto") => EngineKind::Auto,
        Some("uring") => EngineKind::Uring,
        Some(_) => EngineKind::Epoll,
    };
    let opened = net::open(kind)?;
    eprintln!("{} on port {port}, refused: {:?}", opened.name, opened.refused);
    let mut engine = opened.engine;
    engine.listen(Arc::new(Listener::tcp((Ipv4Addr::LOCALHOST, port).into(), 511)?))?;
    serve(&mut *engine)
}

fn serve(engine: &mut dyn Engine) -> io::Result<()> {
    let (mut events, mut request, mut reply) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        engine.poll(Wait::Forever, &mut events)?;
        for event in events.drain(..) {
            match event {
                Event::Accepted(accepted) => {
                    engine.adopt(accepted)?;
                }
                Event::Readable(id) => {
                    request.clear();
                    match engine.receive(id, &mut request, 16 << 10) {
                        Received::Bytes(_) => answer(&request, &mut reply),
                        Received::End => engine.close(id, CloseWhen::Flushed),
                        Received::Empty | Received::Failed(_) => {}
                    }
                    engine.send(id, &mut reply);
                }
                Event::Refused(error) => return Err(error),
                Event::Drained(_) | Event::Gone(_) | Event::Woken | Event::Unsecured(..) => {}
            }
        }
    }
}

fn answer(request: &[u8], reply: &mut Vec<u8>) {
    for _ in request.iter().filter(|byte| **byte == b'\n') {
        reply.extend_from_slice(b"+PONG\r\n");
    }
}
