//! INFO: the server's state in Redis's field names, section by section, gathered when somebody asks for it.
//!
//! `sections` is the table of all metrics, whose rows are in `rows`, a file for each subject; `metric` says
//! what a row is, `reading` what it is read from. `report` writes INFO's text from them and `reference`
//! docs/metrics.md. Monitoring reads fields by name, so those of mechanisms that Sardine does not have
//! (replicas, snapshots, scripts) are here with the value of a server that does not use them.
//! Some fields are Sardine's own, such as `sardine_version`, `worker_threads` and `arena_used`.
mod metric;
mod reading;
mod reference;
mod report;
mod rows;
mod sections;

pub use reference::markdown as metrics_reference;
pub(crate) use report::human;

use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use command::{Acl, Arg, Arity, Doc, Done, Flags, Group};
use reading::Reading;
use report::Report;
use sections::{SECTIONS, Section, Sort};

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&INFO]);

const INFO: ServerCommand = ServerCommand {
    name: "INFO",
    arity: Arity::AtLeast(1),
    flags: Flags::LOADING.or(Flags::STALE),
    acl: Acl::DANGEROUS,
    doc: Doc {
        group: Group::Server,
        since: "1.0.0",
        summary: "Reports the server's state and statistics.",
        complexity: "O(1)",
        args: &[Arg::str("section").optional().many()],
        history: &[("7.0.0", "Takes several sections.")],
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        ..Doc::NEW
    },
    run: ServerRun::Shared(info),
    ..ROW
};

fn info(call: &mut ServerCall<'_>) -> Done {
    let names: Vec<Vec<u8>> = call.args.iter_from(1).map(<[u8]>::to_ascii_lowercase).collect();
    let (mut report, reading) = (Report::new(), Reading::new(call.server, call.now));
    for section in SECTIONS.iter().filter(|s| is_wanted(s, &names)) {
        report.section(section.title);
        section.rows.iter().for_each(|metric| report.metric(metric, &reading));
    }
    call.reply.verbatim("txt", report.text().as_bytes());
    Ok(())
}

fn is_wanted(section: &Section, names: &[Vec<u8>]) -> bool {
    let by_default = section.sort == Sort::Default;
    if names.is_empty() {
        return by_default;
    }
    names.iter().any(|name| match name.as_slice() {
        b"all" | b"everything" => true,
        b"default" => by_default,
        name => section.title.as_bytes().eq_ignore_ascii_case(name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(names: &[&str]) -> Vec<&'static str> {
        let names: Vec<Vec<u8>> = names.iter().map(|n| n.as_bytes().to_vec()).collect();
        SECTIONS.iter().filter(|s| is_wanted(s, &names)).map(|s| s.title).collect()
    }

    #[test]
    fn sections_are_chosen_by_name_and_keep_their_order() {
        assert_eq!(titles(&["memory", "foo", "server"]), ["Server", "Memory"]);
        assert!(titles(&[]).contains(&"Keyspace") && !titles(&[]).contains(&"Commandstats"));
        assert_eq!(titles(&["default", "commandstats"]).len(), titles(&["default"]).len() + 1);
        assert_eq!(titles(&["everything"]), titles(&["all"]));
        assert!(titles(&["nonsense"]).is_empty());
    }
}
