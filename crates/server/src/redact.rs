//! What a request says that nobody else may read: passwords. Whatever shows requests to others asks here first.
use crate::config;
use resp::Args;

/// Stands where a secret stood.
pub(crate) const MARK: &[u8] = b"(redacted)";

/// The places of the arguments that are secret. `command` is the row's full name.
pub(crate) fn secrets(command: &str, args: &Args<'_>) -> Vec<usize> {
    match command {
        "auth" => (1..args.len()).collect(),
        "hello" => after_auth(args),
        "config|set" => (2..args.len())
            .step_by(2)
            .filter(|name| config::is_secret(args.at(*name)))
            .map(|name| name + 1)
            .filter(|value| *value < args.len())
            .collect(),
        _ => Vec::new(),
    }
}

/// HELLO's user and password.
fn after_auth(args: &Args<'_>) -> Vec<usize> {
    let word = (2..args.len()).find(|index| args.at(*index).eq_ignore_ascii_case(b"auth"));
    word.map_or(Vec::new(), |word| (word + 1..args.len().min(word + 3)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use resp::Span;

    fn secrets_of(command: &str, line: &str) -> Vec<usize> {
        let mut spans = Vec::new();
        for word in line.split(' ') {
            let start = spans.last().map_or(0, |s: &Span| s.start + s.len + 1);
            spans.push(Span { start, len: word.len() });
        }
        secrets(command, &Args::new(line.as_bytes(), &spans))
    }

    #[test]
    fn passwords_are_found_wherever_they_are_said() {
        assert_eq!(secrets_of("auth", "AUTH secret"), [1]);
        assert_eq!(secrets_of("auth", "AUTH user secret"), [1, 2]);
        assert_eq!(secrets_of("hello", "HELLO 3 Auth user secret SETNAME n"), [3, 4]);
        assert_eq!(secrets_of("hello", "HELLO 3 AUTH user"), [3]);
        assert_eq!(secrets_of("hello", "HELLO 3"), []);
        let set = "CONFIG SET maxclients 5 RequirePass secret masterauth other";
        assert_eq!(secrets_of("config|set", set), [5, 7]);
        assert_eq!(secrets_of("config|set", "CONFIG SET maxclients 5 requirepass"), []);
        assert_eq!(secrets_of("set", "SET requirepass x"), []);
    }
}
