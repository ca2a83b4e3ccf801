//! How connections begin, are answered and end.
use crate::client::{Client, config, request, start};

#[test]
fn a_client_is_answered() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.check("PING", "+PONG\r\n");
    client.send(b"PING\r\nPING\r\n\r\n");
    client.expect("+PONG\r\n+PONG\r\n");
    server.stop();
}

#[test]
fn a_pipeline_is_answered_wherever_it_is_split() {
    let server = start(config());
    let pipeline =
        [request(&["ECHO", "one"]), b"PING\r\n".to_vec(), request(&["ECHO", ""]), request(&["PING", "x"])];
    let (pipeline, replies) = (pipeline.concat(), "$3\r\none\r\n+PONG\r\n$0\r\n\r\n$1\r\nx\r\n");
    for split in 0..pipeline.len() {
        let mut client = Client::connect(&server);
        client.send(&pipeline[..split]);
        // A full round trip on another connection: the first part has most likely been read.
        Client::connect(&server).check("PING", "+PONG\r\n");
        client.send(&pipeline[split..]);
        client.expect(replies);
    }
}
