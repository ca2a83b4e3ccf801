//! What HELP of a command with subcommands answers.
use crate::call::{Done, WholeCall};

/// Replies the HELP of a container: its usage line, then each subcommand with what it does.
pub(crate) fn reply_help(call: &mut WholeCall<'_>, subcommands: &[(&str, &str)]) -> Done {
    call.reply.array(subcommands.len() * 2 + 3);
    call.reply.simple(&help_header(call.args.at(0)));
    for (usage, meaning) in subcommands {
        call.reply.simple(usage);
        call.reply.simple(&format!("    {meaning}"));
    }
    call.reply.simple("HELP");
    call.reply.simple("    Print this help.");
    Ok(())
}

/// The usage line of a container, by the name that it was called by: `rename-command` may have given it
/// another than its own.
pub fn help_header(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name).to_ascii_uppercase().replace(char::is_control, " ");
    format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
}
