//! `bind`: from words to addresses. Names are looked up, which may take long, so only the client that has
//! asked for it waits (`ServerRun::Outside`).
use super::values::Config;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// One address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bind {
    pub(crate) address: SocketAddr,
    /// Not an error if this machine does not have the address.
    pub(crate) is_optional: bool,
    /// For clients that speak TLS.
    pub(crate) is_secure: bool,
}

/// What the words of `bind` mean.
pub(crate) struct Binds {
    words: Vec<String>,
    /// The addresses with port 0; or the name that could not be looked up, and why.
    found: Result<Vec<Bind>, (String, String)>,
}

impl Binds {
    /// Looks up every name of `bind`. It may wait for a name server.
    pub(crate) fn look_up(config: &Config) -> Binds {
        let found = config.bind.iter().map(|word| look_up(word)).collect();
        Binds { words: config.bind.clone(), found }
    }

    /// Whether these are the words of this configuration.
    pub(crate) fn are_of(&self, config: &Config) -> bool {
        self.words == config.bind
    }

    /// The addresses at which this configuration listens, none if TCP is off; or a sentence for the log.
    pub(crate) fn at(&self, config: &Config) -> Result<Vec<Bind>, String> {
        let plain = (config.port != 0 || config.picks_port).then_some((config.port, false));
        let secure = config.uses_tls().then_some((config.tls_port, true));
        let ports: Vec<(u16, bool)> = plain.into_iter().chain(secure).collect();
        let at_port = |bind: &Bind, (port, is_secure): (u16, bool)| Bind {
            address: SocketAddr::new(bind.address.ip(), port),
            is_secure,
            ..*bind
        };
        match (&self.found, ports.first()) {
            (_, None) => Ok(Vec::new()),
            (Ok(all), _) => {
                Ok(ports.iter().flat_map(|port| all.iter().map(|bind| at_port(bind, *port))).collect())
            }
            (Err((name, why)), Some((port, _))) => {
                Err(format!("Warning: Could not create server TCP listening socket {name}:{port}: {why}"))
            }
        }
    }
}

/// A name means its first IPv4 address, as in Redis, or else its first.
fn look_up(word: &str) -> Result<Bind, (String, String)> {
    let (is_optional, name) = match word.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, word),
    };
    let ip = match name {
        "*" => Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        "::*" => Some(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
        _ => name.parse().ok(),
    };
    if let Some(ip) = ip {
        return Ok(Bind { address: SocketAddr::new(ip, 0), is_optional, is_secure: false });
    }
    let unknown = |why: &str| (name.to_owned(), why.to_owned());
    let all: Vec<SocketAddr> = (name, 0).to_socket_addrs().map_err(|e| unknown(&reason(&e)))?.collect();
    let address = all.iter().find(|address| address.is_ipv4()).or(all.first());
    let address = *address.ok_or_else(|| unknown("No address associated with hostname"))?;
    Ok(Bind { address, is_optional, is_secure: false })
}

/// The resolver's own words.
fn reason(error: &std::io::Error) -> String {
    let text = base::reason::reason(error);
    text.rsplit(": ").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(config: &Config) -> Result<Vec<Bind>, String> {
        Binds::look_up(config).at(config)
    }

    #[test]
    fn the_default_listens_on_every_address_and_may_lack_ipv6() {
        let all = addresses(&Config::default()).unwrap();
        let shown = |bind: &Bind| (bind.address.to_string(), bind.is_optional, bind.is_secure);
        assert_eq!(shown(&all[0]), ("0.0.0.0:6379".into(), false, false));
        assert_eq!(shown(&all[1]), ("[::]:6379".into(), true, false));
    }

    #[test]
    fn the_port_for_tls_has_the_same_addresses() {
        let config = Config { bind: vec!["127.0.0.1".into()], tls_port: 7, ..Config::default() };
        let shown = |config: &Config| -> Vec<_> {
            addresses(config).unwrap().iter().map(|b| (b.address.to_string(), b.is_secure)).collect()
        };
        assert_eq!(shown(&config), [("127.0.0.1:6379".into(), false), ("127.0.0.1:7".into(), true)]);
        assert_eq!(shown(&Config { port: 0, ..config }), [("127.0.0.1:7".into(), true)]);
    }

    #[test]
    fn port_zero_means_no_tcp() {
        let config = Config { port: 0, ..Config::default() };
        assert!(addresses(&config).unwrap().is_empty());
    }

    #[test]
    fn an_address_that_is_none_is_named() {
        let config = Config { bind: vec!["no such host !".into()], ..Config::default() };
        assert!(addresses(&config).unwrap_err().contains(" no such host !:6379: "));
    }

    #[test]
    fn a_name_means_its_address_of_ipv4() {
        let config = Config { bind: vec!["localhost".into()], port: 7, ..Config::default() };
        assert_eq!(addresses(&config).unwrap()[0].address, "127.0.0.1:7".parse().unwrap());
    }
}
