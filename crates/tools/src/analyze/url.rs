//! Where a live server is: `redis://[user:pass@]HOST[:PORT][/DB]`, or `rediss://` where it speaks TLS.

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) is_secure: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    /// The one database that is looked at; all of them without it.
    pub(crate) db: Option<u16>,
}

impl Url {
    /// None for what is no such address.
    pub(crate) fn parse(text: &str) -> Option<Url> {
        let (scheme, rest) = text.split_once("://")?;
        let is_secure = match scheme {
            "redis" => false,
            "rediss" => true,
            _ => return None,
        };
        let (place, db) = rest.split_once('/').unwrap_or((rest, ""));
        let (who, place) = place.rsplit_once('@').unwrap_or(("", place));
        let (user, password) = who.split_once(':').unwrap_or(("", who));
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (place, 6379),
        };
        let given = |word: &str| (!word.is_empty()).then(|| plain(word));
        Some(Url {
            is_secure,
            host: host.trim_matches(['[', ']']).to_string(),
            port,
            user: given(user),
            password: given(password),
            db: if db.is_empty() { None } else { Some(db.parse().ok()?) },
        })
    }
}

/// Takes `%40` for `@`, and so on.
fn plain(word: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = word.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (first, code) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port_a_user_and_a_database_if_they_are_given() {
        let url = Url::parse("redis://me:p%40ss@host:7000/3").unwrap();
        assert_eq!((url.host.as_str(), url.port, url.db), ("host", 7000, Some(3)));
        assert_eq!((url.user.as_deref(), url.password.as_deref()), (Some("me"), Some("p@ss")));
        let url = Url::parse("redis://[::1]").unwrap();
        assert_eq!((url.host.as_str(), url.port, url.db, url.user), ("::1", 6379, None, None));
        assert!(!url.is_secure && Url::parse("rediss://me:x@host/0").unwrap().is_secure);
        assert_eq!((Url::parse("dump.rdb"), Url::parse("http://host")), (None, None));
    }
}
