//! Users as text, read and written again: for the fuzzer of their rules (`testkit::fuzz`). What ACL SAVE and
//! CONFIG REWRITE write must make the same users again, whatever made them.
use crate::commands::families::FAMILIES;
use crate::core::registry::Registry;
use crate::state::acl::{Catalog, Rules, Users, file};
use crate::state::config::{ChannelDefault, UserLine, merged, words};
use std::sync::LazyLock;

static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Registry::new(FAMILIES).catalog());

fn rules() -> Rules<'static> {
    Rules { catalog: &CATALOG, channels: ChannelDefault::None }
}

/// Users as they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenUsers {
    /// The ACL file, as ACL SAVE writes it.
    pub file: Vec<u8>,
    /// Lines of the configuration, as CONFIG REWRITE writes them.
    pub lines: Vec<Vec<u8>>,
}

impl WrittenUsers {
    fn of(users: &Users) -> WrittenUsers {
        WrittenUsers { file: file::written(users), lines: file::lines(users) }
    }

    /// The users that the text of an ACL file makes; or what is wrong with it.
    pub fn of_file(text: &[u8]) -> Result<WrittenUsers, Vec<u8>> {
        let present = Users::new(b"", &rules());
        file::read(text, "file", &present, &rules()).map(|users| WrittenUsers::of(&users))
    }

    /// The users that lines of the configuration make; or what is wrong with one.
    pub fn of_lines(lines: &[Vec<u8>]) -> Result<WrittenUsers, String> {
        let mut users = Users::new(b"", &rules());
        for line in lines {
            let words = words(line).ok_or("its quotes do not close")?;
            let [_, name, rest @ ..] = &words[..] else { return Err("it names nobody".into()) };
            let merged =
                merged(rest.iter().map(Vec::as_slice)).map_err(|_| "a parenthesis does not close")?;
            users.declare(&UserLine { name: name.clone(), rules: merged }, &rules())?;
        }
        Ok(WrittenUsers::of(&users))
    }
}
