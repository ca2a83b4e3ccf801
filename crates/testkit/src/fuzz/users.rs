//! Users as text (ACL files, lines `user` of the configuration): any is read or refused with a reason, and
//! what is written of the users that it makes makes the same ones, by either way.
use server::WrittenUsers;

/// What rules are made of: random bytes are seldom rules.
const PARTS: [&str; 40] = [
    " ",
    " ",
    " ",
    "\nuser ",
    "user ",
    "a",
    "default",
    " on",
    " off",
    " nopass",
    " >p",
    " (",
    ")",
    " ~",
    " %R~",
    " %W~",
    " %RW~",
    " &",
    " +",
    " -",
    "@all",
    "@read",
    "get",
    "config|get",
    "config",
    "select|0",
    "\"",
    "'",
    "\\",
    "*",
    "|",
    " reset",
    " resetkeys",
    " resetchannels",
    " clearselectors",
    " allkeys",
    " allchannels",
    " allcommands",
    " nocommands",
    "\t",
];

pub(super) fn run(data: &[u8]) {
    read_and_write(data);
    let mut spelled = b"user ".to_vec();
    for byte in data {
        match PARTS.get(usize::from(*byte % 48)) {
            Some(part) => spelled.extend_from_slice(part.as_bytes()),
            None => spelled.push(*byte),
        }
    }
    read_and_write(&spelled);
}

fn read_and_write(data: &[u8]) {
    let written = match WrittenUsers::of_file(data) {
        Ok(written) => written,
        Err(why) => {
            assert!(!why.is_empty(), "a refusal says why");
            return;
        }
    };
    assert_eq!(WrittenUsers::of_file(&written.file).as_ref(), Ok(&written), "the file makes the same users");
    assert_eq!(WrittenUsers::of_lines(&written.lines).as_ref(), Ok(&written), "and so do the lines");
}
