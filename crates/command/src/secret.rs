//! Which arguments of a request are secret, by the grammar of its row: what MONITOR and the logs of commands
//! leave out.
//!
//! A request that follows the grammar hides the values that are marked there, and nothing else. One that does
//! not, and is refused therefore, may hold a password anywhere: it hides all that stands behind the first
//! argument at which one could begin, which is that of a positional secret, or the first word that reads like
//! the token or the name before a secret.
//!
//! ```text
//! HELLO 3 SETNAME auth AUTH default (redacted)       grammar: SETNAME takes `auth`, AUTH takes two
//! HELLO 3 SETNAME AUTH (redacted) (redacted)         `default` is no option: all behind the first AUTH
//! AUTH (redacted) (redacted) (redacted)              one or two arguments are the grammar
//! CONFIG SET hz 10 requirepass (redacted)            the value of a setting that is secret
//! ```
use crate::table::{Arg, ArgKind, Secret};
use resp::Args;

/// Whether a grammar marks any argument as secret.
pub const fn has_secrets(grammar: &[Arg]) -> bool {
    let mut index = 0;
    while index < grammar.len() {
        if !matches!(grammar[index].secret, Secret::Never) || has_secrets(grammar[index].args) {
            return true;
        }
        index += 1;
    }
    false
}

/// The indexes of the secret arguments, ascending. `first` is where the grammar begins: behind the command's
/// name, or behind the subcommand's.
pub fn secrets(grammar: &[Arg], args: &Args<'_>, first: usize) -> Vec<usize> {
    let mut walk = Walk { args, at: first, indexes: Vec::new() };
    match walk.all(grammar).filter(|()| walk.at == args.len()) {
        Some(()) => walk.indexes,
        None => (doubtful(grammar, args, first)..args.len()).collect(),
    }
}

/// Goes along a request as far as it follows a grammar.
struct Walk<'w, 'a> {
    args: &'w Args<'a>,
    at: usize,
    indexes: Vec<usize>,
}

impl Walk<'_, '_> {
    /// Reads the request by this grammar; None where it does not follow it.
    fn all(&mut self, grammar: &[Arg]) -> Option<()> {
        for part in grammar.chunk_by(|a, b| is_option(a) && is_option(b)) {
            match part {
                [one] if !is_option(one) => self.positional(one, least(grammar, one))?,
                options => while self.option(options)? {},
            }
        }
        Some(())
    }

    /// Reads an argument that no word announces; `kept` arguments are needed by what stands behind it.
    fn positional(&mut self, arg: &Arg, kept: usize) -> Option<()> {
        let has_room = |walk: &Self| walk.args.len() > walk.at + kept;
        if arg.optional && !has_room(self) {
            return Some(());
        }
        self.value(arg)?;
        while arg.multiple && has_room(self) {
            self.value(arg)?;
        }
        Some(())
    }

    /// Reads one of these options, if one stands here, and returns whether one did.
    fn option(&mut self, options: &[Arg]) -> Option<bool> {
        let Some(word) = self.args.get(self.at) else { return Some(false) };
        let Some(option) = flat(options).find(|arg| is_token(arg, word)) else { return Some(false) };
        self.at += 1;
        if option.kind != ArgKind::PureToken {
            self.value(option)?;
        }
        Some(true)
    }

    /// Reads one value, or those of a block.
    fn value(&mut self, arg: &Arg) -> Option<()> {
        match arg.kind {
            ArgKind::Block => self.all(arg.args)?,
            _ => {
                self.args.get(self.at)?;
                match arg.secret {
                    Secret::Never => {}
                    Secret::Always => self.indexes.push(self.at),
                    Secret::ByName(is_secret) => {
                        if is_secret(self.args.at(self.at - 1))? {
                            self.indexes.push(self.at);
                        }
                    }
                }
                self.at += 1;
            }
        }
        Some(())
    }
}

/// An argument that a word announces, or one of several such.
fn is_option(arg: &Arg) -> bool {
    arg.token.is_some() || (arg.kind == ArgKind::OneOf && arg.args.iter().all(is_option))
}

/// Options, those of a one-of each for itself.
fn flat(options: &[Arg]) -> Box<dyn Iterator<Item = &Arg> + '_> {
    Box::new(options.iter().flat_map(|arg| match arg.kind {
        ArgKind::OneOf => flat(arg.args),
        _ => Box::new(std::iter::once(arg)),
    }))
}

fn is_token(arg: &Arg, word: &[u8]) -> bool {
    arg.token.is_some_and(|token| word.eq_ignore_ascii_case(token.as_bytes()))
}

/// How many arguments must stand behind `arg`.
fn least(grammar: &[Arg], arg: &Arg) -> usize {
    let behind = grammar.iter().skip_while(|other| !std::ptr::eq(*other, arg)).skip(1);
    behind.filter(|arg| !arg.optional).map(|arg| 1 + usize::from(arg.token.is_some())).sum()
}

/// The first argument at which a secret could begin in a request that does not follow the grammar.
fn doubtful(grammar: &[Arg], args: &Args<'_>, first: usize) -> usize {
    let positional = first_positional(grammar).map(|index| first + index);
    let announced = (first..args.len()).find(|at| announces(grammar, args.at(*at))).map(|at| at + 1);
    positional.into_iter().chain(announced).min().unwrap_or(args.len())
}

/// How many arguments stand before the first secret that no word announces.
fn first_positional(grammar: &[Arg]) -> Option<usize> {
    let position = grammar.iter().position(|arg| !is_option(arg) && matches!(arg.secret, Secret::Always))?;
    Some(grammar[..position].iter().filter(|arg| !arg.optional).count())
}

/// Whether a secret may follow this word.
fn announces(grammar: &[Arg], word: &[u8]) -> bool {
    grammar.iter().any(|arg| {
        let names = matches!(arg.secret, Secret::ByName(is_secret) if is_secret(word) == Some(true));
        let is_token = is_token(arg, word) && has_secrets(std::slice::from_ref(arg));
        names || is_token || announces(arg.args, word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use resp::Span;

    const LOGIN: &[Arg] = &[Arg::str("username").secret().optional(), Arg::str("password").secret()];
    /// As MIGRATE's.
    const OPTIONS: &[Arg] = &[
        Arg::str("host"),
        Arg::one_of("target", &[Arg::key("key", 0), Arg::str("empty")]),
        Arg::word("copy", "COPY").optional(),
        Arg::one_of(
            "authentication",
            &[
                Arg::str("password").after("AUTH").secret(),
                Arg::block("both", &[Arg::str("user").secret(), Arg::str("password").secret()])
                    .after("AUTH2"),
            ],
        )
        .optional(),
    ];
    /// As ACL SETUSER's.
    const RULES: &[Arg] = &[Arg::str("username"), Arg::str("rule").secret().optional().many()];
    const PAIRS: &[Arg] =
        &[Arg::block("data", &[Arg::str("name"), Arg::str("value").secret_by_name(is_secret)]).many()];

    fn is_secret(name: &[u8]) -> Option<bool> {
        match name {
            b"pass" => Some(true),
            b"hz" => Some(false),
            _ => None,
        }
    }

    /// The request as others see it.
    fn shown(grammar: &[Arg], line: &str) -> String {
        let mut spans = Vec::new();
        for word in line.split(' ') {
            let start = spans.last().map_or(0, |s: &Span| s.start + s.len + 1);
            spans.push(Span { start, len: word.len() });
        }
        let indexes = secrets(grammar, &Args::new(line.as_bytes(), &spans), 1);
        let word = |(at, word)| if indexes.binary_search(&at).is_ok() { "*" } else { word };
        line.split(' ').enumerate().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_request_that_follows_the_grammar_hides_what_is_marked() {
        for (grammar, line, seen) in [
            (LOGIN, "AUTH x", "AUTH *"),
            (LOGIN, "AUTH x y", "AUTH * *"),
            (OPTIONS, "M host key COPY", "M host key COPY"),
            (OPTIONS, "M host key COPY auth x", "M host key COPY auth *"),
            (OPTIONS, "M auth auth Auth2 x y", "M auth auth Auth2 * *"),
            (RULES, "A bob", "A bob"),
            (RULES, "A bob on >x", "A bob * *"),
            (PAIRS, "C hz 1 pass x hz pass", "C hz 1 pass * hz pass"),
        ] {
            assert_eq!(shown(grammar, line), seen);
        }
    }

    #[test]
    fn one_that_does_not_hides_all_behind_the_first_place_of_a_secret() {
        for (grammar, line, seen) in [
            (LOGIN, "AUTH", "AUTH"),
            (LOGIN, "AUTH x y z", "AUTH * * *"),
            (OPTIONS, "M host key x", "M host key x"),
            (OPTIONS, "M auth", "M auth"),
            (OPTIONS, "M host key COPY AUTH x y", "M host key COPY AUTH * *"),
            (OPTIONS, "M host key AUTH2 x", "M host key AUTH2 *"),
            (OPTIONS, "M host key foo AUTH2 x AUTH y", "M host key foo AUTH2 * * *"),
            (OPTIONS, "M host AUTH x", "M host AUTH *"),
            (RULES, "A", "A"),
            (PAIRS, "C pass x y", "C pass * *"),
            (PAIRS, "C hz pass x 1", "C hz pass * *"),
            (PAIRS, "C foo x pass y", "C foo x pass *"),
        ] {
            assert_eq!(shown(grammar, line), seen);
        }
    }

    #[test]
    fn any_request_is_taken_by_any_grammar() {
        let mut random = base::random::Random::new(11);
        let words = ["auth", "auth2", "copy", "pass", "hz", "x", ""];
        for _ in 0..20_000 {
            let line: Vec<&str> =
                (0..=random.below(7)).map(|_| words[random.below(words.len() as u64) as usize]).collect();
            for grammar in [LOGIN, OPTIONS, RULES, PAIRS] {
                shown(grammar, &line.join(" "));
            }
        }
    }
}
