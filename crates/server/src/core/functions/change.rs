//! The commands that change libraries: FUNCTION LOAD, DELETE, FLUSH and RESTORE, as a client sends them and
//! an append-only file holds them. Each changes all that it says, or nothing.
use super::{FunctionInterpreter, Limit, Others};
use crate::core::call::Change;
use crate::core::error;
use crate::core::server::Server;
use crate::state::scripts::Former;
use command::{Done, Error};
use disk::rdb::{LibrariesError, read_libraries};
use resp::{Args, Reply};

impl FunctionInterpreter {
    /// Runs it. The caller runs alone, or loads the data.
    pub(crate) fn change(
        &mut self,
        server: &Server,
        (what, args): (Change, &Args<'_>),
        limit: Limit,
        reply: &mut Reply,
    ) -> Done {
        match what {
            Change::Load => self.load_words(server, args, limit, reply),
            Change::Delete => match self.remove(&server.scripts.libraries, args.at(2)) {
                true => {
                    reply.ok();
                    Ok(())
                }
                false => Err(error::no_library()),
            },
            Change::Flush => flush(server, args, reply),
            Change::Restore => self.restore(server, args, limit, reply),
        }
    }

    fn load_words(&mut self, server: &Server, args: &Args<'_>, limit: Limit, reply: &mut Reply) -> Done {
        let code = args.len() - 1;
        let mut former = Former::Stays;
        for word in args.iter_from(2).take(code - 2) {
            match word.eq_ignore_ascii_case(b"replace") {
                true => former = Former::Goes,
                false => return Err(error::unknown_load_option(word)),
            }
        }
        let name = self.load(server, args.at(code), (former, limit))?;
        reply.bulk(&name);
        Ok(())
    }

    fn restore(&mut self, server: &Server, args: &Args<'_>, limit: Limit, reply: &mut Reply) -> Done {
        if args.len() > 4 {
            return Err(error::too_many_words(args));
        }
        let others = match args.get(3).map(<[u8]>::to_ascii_lowercase).as_deref() {
            None | Some(b"append") => Others::Stay(Former::Stays),
            Some(b"replace") => Others::Stay(Former::Goes),
            Some(b"flush") => Others::Go,
            Some(_) => return Err(error::restore_policy()),
        };
        let codes = read_libraries(args.at(2), &server.config().store).map_err(|why| match why {
            LibrariesError::Footer => Error::dump_footer(),
            LibrariesError::Other => error::not_a_function(),
            LibrariesError::OldForm => error::old_function(),
            LibrariesError::Broken => error::broken_library(),
        })?;
        self.load_all(server, &codes, (others, limit))?;
        reply.ok();
        Ok(())
    }
}

fn flush(server: &Server, args: &Args<'_>, reply: &mut Reply) -> Done {
    if args.len() > 3 {
        return Err(error::too_many_words(args));
    }
    let is_good = |word: &[u8]| [&b"sync"[..], b"async"].iter().any(|good| word.eq_ignore_ascii_case(good));
    if args.get(2).is_some_and(|word| !is_good(word)) {
        return Err(error::function_flush_option());
    }
    server.scripts.libraries.flush();
    reply.ok();
    Ok(())
}
