//! The HELP subcommand of every container: a header, the subcommands, HELP itself, as simple strings.
use crate::core::call::ServerCall;
use command::{Doc, Done, Group, help_header};

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
pub(crate) fn reply(call: &mut ServerCall<'_>, lines: &[&str]) -> Done {
    call.reply.array(lines.len() + 3);
    call.reply.simple(&help_header(call.args.at(0)));
    for line in lines {
        call.reply.simple(line);
    }
    call.reply.simple("HELP");
    call.reply.simple("    Print this help.");
    Ok(())
}
