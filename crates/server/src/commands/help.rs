//! The HELP subcommand of every container: a header, the subcommands, HELP itself, as simple strings.
use command::{Doc, Group};
use resp::Reply;

/// What the row of every HELP subcommand says.
pub(crate) const fn doc(group: Group, since: &'static str) -> Doc {
    Doc {
        group,
        since,
        summary: "Lists the subcommands with a line on each.",
        complexity: "O(1)",
        ..Doc::NEW
    }
}

/// `lines`: names at the margin, explanations indented by four.
pub(crate) fn reply(reply: &mut Reply, container: &str, lines: &[&str]) {
    reply.array(lines.len() + 3);
    reply.simple(&format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for line in lines {
        reply.simple(line);
    }
    reply.simple("HELP");
    reply.simple("    Print this help.");
}
