//! Access control: clients on this machine, or clients that know the token.

use hyper::header::{HOST, HeaderMap, ORIGIN};
use std::io;

/// Protects the server against other machines, and against pages of other sites in a browser on this machine.
pub(crate) enum Access {
    /// The server is bound to the loopback address. A page of another site whose name resolves to it (DNS rebinding) has
    /// another `Host`.
    Local { port: u16 },
    /// The first part of every path must be this token.
    Token(String),
}

impl Access {
    /// Access with 128 random bits.
    pub(crate) fn with_random_token() -> io::Result<Access> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Access::Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The path after the token, without the leading slash; `None` if the request is refused.
    pub(crate) fn path<'a>(&self, headers: &HeaderMap, path: &'a str) -> Option<&'a str> {
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next()?.to_str().ok()?;
        if hosts.next().is_some() || !is_same_origin(headers, host) {
            return None;
        }
        let path = path.strip_prefix('/')?;
        match self {
            Access::Local { port } => is_loopback(host, *port).then_some(path),
            Access::Token(token) => {
                let (found, rest) = path.split_once('/')?;
                are_equal(found.as_bytes(), token.as_bytes()).then_some(rest)
            }
        }
    }
}

/// Whether the value of `Host` is a name of the loopback address with this port.
fn is_loopback(host: &str, port: u16) -> bool {
    let names = ["localhost", "127.0.0.1", "[::1]"];
    let found = names.iter().find_map(|name| host.strip_prefix(name));
    match found.map(|rest| rest.strip_prefix(':')) {
        Some(Some(found)) => found == port.to_string(),
        Some(None) => port == 80 && names.contains(&host),
        None => false,
    }
}

/// Whether a browser sent this for a page of ours, or because a user opened the URL.
fn is_same_origin(headers: &HeaderMap, host: &str) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let is_own = |origin: &str| origin == format!("http://{host}");
    let origin = headers.get(ORIGIN).map(|value| value.to_str().unwrap_or("?"));
    let site = text("sec-fetch-site");
    // A link on another site may open the page; that site cannot read it.
    let is_opened = text("sec-fetch-mode") == Some("navigate");
    origin.is_none_or(is_own)
        && (is_opened || site.is_none_or(|site| site == "same-origin" || site == "none"))
}

/// Compares without revealing in how many bytes two tokens agree.
fn are_equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            let name: HeaderName = name.parse().unwrap();
            (name, HeaderValue::from_str(value).unwrap())
        };
        let mut headers = HeaderMap::new();
        pairs.iter().map(pair).for_each(|(name, value)| _ = headers.append(name, value));
        headers
    }

    #[test]
    fn only_names_of_the_loopback_address_are_hosts() {
        let access = Access::Local { port: 8000 };
        let path = |host: &str| access.path(&headers(&[("host", host)]), "/a");
        for host in ["localhost:8000", "127.0.0.1:8000", "[::1]:8000"] {
            assert_eq!(path(host), Some("a"), "{host}");
        }
        let others = [
            "evil.example:8000",
            "localhost",
            "localhost:80",
            "localhost:80000",
            "localhost.evil.example:8000",
            "127.0.0.1.evil.example:8000",
            "127.0.0.1:8000.evil.example",
            "",
        ];
        for host in others {
            assert_eq!(path(host), None, "{host}");
        }
        assert_eq!(access.path(&headers(&[]), "/a"), None);
        let two = [("host", "localhost:8000"), ("host", "localhost:8000")];
        assert_eq!(access.path(&headers(&two), "/a"), None);
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let access = Access::Local { port: 8000 };
        let path = |name: &str, value: &str| {
            access.path(&headers(&[("host", "localhost:8000"), (name, value)]), "/a")
        };
        assert_eq!(path("origin", "http://localhost:8000"), Some("a"));
        assert_eq!(path("origin", "http://evil.example"), None);
        assert_eq!(path("origin", "null"), None);
        assert_eq!(path("sec-fetch-site", "same-origin"), Some("a"));
        assert_eq!(path("sec-fetch-site", "cross-site"), None);
        assert_eq!(path("sec-fetch-site", "same-site"), None);
    }

    #[test]
    fn a_token_is_the_first_part_of_the_path() {
        let Access::Token(token) = Access::with_random_token().unwrap() else { unreachable!() };
        assert_eq!(token.len(), 32);
        let access = Access::Token(token.clone());
        let path =
            |path: &str| access.path(&headers(&[("host", "any:1")]), path).map(str::to_owned);
        assert_eq!(path(&format!("/{token}/a")), Some("a".to_owned()));
        assert_eq!(path(&format!("/{token}/")), Some(String::new()));
        for wrong in ["/".to_owned(), "/a".to_owned(), format!("/{token}"), format!("/x{token}/a")]
        {
            assert_eq!(path(&wrong), None, "{wrong}");
        }
    }
}
