//! A URL in a surface file: an origin that nothing reaches, and a path of segments.
//!
//! Promises: one that comes out is absolute, names its host literally, and leads nowhere by `.` or
//! `..`; what is literal is percent-encoded as it goes on the wire. Resolves nothing.

use super::declaration::{Piece, Template};
use super::outward::HttpOrigin;
use super::template;

/// A URL that was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Url {
    pub(crate) origin: HttpOrigin,
    pub(crate) segments: Vec<Template>,
    pub(crate) query: Option<String>,
}

/// Why a text is no URL of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The part to point at.
    pub(crate) at: String,
    pub(crate) problem: String,
    pub(crate) remedy: &'static str,
    /// Whether it is a placeholder where none may stand.
    pub(crate) misplaced: bool,
}

fn refused<T>(at: &str, problem: impl Into<String>, remedy: &'static str) -> Result<T, Refused> {
    Err(Refused { at: at.to_owned(), problem: problem.into(), remedy, misplaced: false })
}

fn misplaced<T>(at: &str, place: &str, remedy: &'static str) -> Result<T, Refused> {
    Err(Refused { at: at.to_owned(), problem: format!("a placeholder stands in {place}"), remedy, misplaced: true })
}

const SHOWN: &str = "write it like https://api.example.com/v1/items/{id}";

/// Reads a URL whose path may have placeholders.
pub(crate) fn read(text: &str) -> Result<Url, Refused> {
    if let Some(odd) = text.chars().find(|c| !matches!(c, '\x21'..='\x7e')) {
        let problem = format!("a URL holds {odd:?}, which is no character of one");
        return refused(&odd.to_string(), problem, "percent-encode it, such as %20 for a space");
    }
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme @ ("http" | "https"), rest)) => (scheme, rest),
        Some((scheme, _)) if scheme.contains('{') => {
            return misplaced(scheme, "the scheme", "write https:// literally");
        }
        _ => return refused(text, "a URL begins with neither http:// nor https://", SHOWN),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, after) = rest.split_at(end);
    let origin = origin(scheme == "https", authority)?;
    if let Some((_, fragment)) = after.split_once('#') {
        return refused(&format!("#{fragment}"), "a URL has a fragment, which no server sees", "leave it out");
    }
    let (path, query) = match after.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (after, None),
    };
    if let Some(query) = query {
        if query.contains(['{', '}']) {
            let remedy = "write it under `query`, such as `query: { q: \"{q}\" }`";
            return misplaced(query, "the query of the URL", remedy);
        }
        encoded(query, "/?")?;
    }
    let segments = path.strip_prefix('/').unwrap_or(path).split('/').map(segment).collect::<Result<_, _>>()?;
    Ok(Url { origin, segments, query: query.map(str::to_owned) })
}

fn origin(tls: bool, authority: &str) -> Result<HttpOrigin, Refused> {
    if authority.contains(['{', '}']) {
        let remedy = "write host and port literally: who is asked is not the caller's to choose";
        return misplaced(authority, "the host or the port", remedy);
    }
    if let Some((user, _)) = authority.rsplit_once('@') {
        let remedy = "send it in a header, such as `Authorization: \"Basic ${NAME}\"`";
        return refused(user, "a URL holds a user name", remedy);
    }
    let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => (host, Some(rest.strip_prefix(':').unwrap_or("?"))),
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let is_host = if authority.starts_with('[') {
        host.contains(':') && host.bytes().all(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.'))
    } else {
        !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'))
    };
    if !is_host || host.len() > 253 {
        return refused(authority, "a URL names no host", SHOWN);
    }
    let port = match port {
        None => Some(if tls { 443 } else { 80 }),
        Some(port) => Some(port).filter(|p| p.bytes().all(|b| b.is_ascii_digit())).and_then(|p| p.parse().ok()),
    };
    match port.filter(|port| *port > 0) {
        Some(port) => Ok(HttpOrigin { tls, host: host.to_ascii_lowercase(), port }),
        None => refused(authority, "a URL has a port that is none", "write a number from 1 to 65535"),
    }
}

fn segment(text: &str) -> Result<Template, Refused> {
    let template = template::parse(text).map_err(|stray| Refused {
        at: stray.at,
        problem: stray.problem,
        remedy: "write {name} for an argument, or %7B and %7D for braces",
        misplaced: false,
    })?;
    for piece in &template.0 {
        match piece {
            Piece::Literal(literal) => encoded(literal, "")?,
            Piece::Argument(_) => {}
        }
    }
    let plain = text.to_ascii_lowercase().replace("%2e", ".");
    if plain == "." || plain == ".." {
        return refused(text, format!("a URL's path has the segment {text:?}"), "write the path that it leads to");
    }
    Ok(template)
}

/// Whether a literal is as it goes on the wire (RFC 3986, `pchar`, and what may stand beside).
fn encoded(text: &str, beside: &str) -> Result<(), Refused> {
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let (here, after) = rest.split_at(character.len_utf8());
        let is_plain = character.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@".contains(character);
        rest = if is_plain || beside.contains(character) {
            after
        } else if character == '%' {
            match after.split_at_checked(2) {
                Some((hex, after)) if hex.bytes().all(|b| b.is_ascii_hexdigit()) => after,
                _ => return refused("%", "a `%` is not followed by two hex digits", "write %25 for a percent sign"),
            }
        } else {
            let problem = format!("a URL holds {character:?}, which is no character of one");
            return refused(here, problem, "percent-encode it, such as %20 for a space");
        };
    }
    Ok(())
}

/// Whether a host, as it is written, is this machine or a private network.
pub(crate) fn is_private(host: &str) -> bool {
    let octets: Vec<Option<u8>> = host.split('.').map(|part| part.parse().ok()).collect();
    match octets.as_slice() {
        [Some(10 | 127 | 0), Some(_), Some(_), Some(_)]
        | [Some(192), Some(168), Some(_), Some(_)]
        | [Some(169), Some(254), Some(_), Some(_)]
        | [Some(172), Some(16..=31), Some(_), Some(_)]
        | [Some(100), Some(64..=127), Some(_), Some(_)] => return true,
        _ => {}
    }
    let host = host.trim_end_matches('.');
    host == "localhost"
        || host.ends_with(".localhost")
        || (host.contains(':')
            && (matches!(host, "::1" | "::")
                || ["fc", "fd", "fe8", "fe9", "fea", "feb"].iter().any(|p| host.starts_with(p))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_an_origin_and_segments() {
        let url = read("https://API.example.com:8443/v1/{a}.json/x%2Fy/?k=v").unwrap();
        assert_eq!(url.origin.to_string(), "https://api.example.com:8443");
        assert_eq!(url.segments.len(), 4);
        assert_eq!(url.query.as_deref(), Some("k=v"));
        assert_eq!(read("http://[::1]").unwrap().origin, HttpOrigin { tls: false, host: "::1".to_owned(), port: 80 });
        assert_eq!(read("http://h").unwrap().segments, [Template::literal("")]);
    }

    #[test]
    fn what_is_no_url_of_a_request_is_refused_with_the_part_that_is_wrong() {
        for (text, at, misplaced) in [
            ("api.example.com/x", "api.example.com/x", false),
            ("ftp://h/", "ftp://h/", false),
            ("{s}://h/", "{s}", true),
            ("https://{h}/", "{h}", true),
            ("https://h:{p}/", "h:{p}", true),
            ("https://h/?q={q}", "q={q}", true),
            ("https://user:pw@h/", "user:pw", false),
            ("https://h/#x", "#x", false),
            ("https://h/a b", " ", false),
            ("https://h/é", "é", false),
            ("https://h/../x", "..", false),
            ("https://h/%2E%2e/x", "%2E%2e", false),
            ("https://h/%zz", "%", false),
            ("https://h/a|b", "|", false),
            ("https://h:0/", "h:0", false),
            ("https://h:65536/", "h:65536", false),
            ("https://h:/", "h:", false),
            ("https:///x", "", false),
            ("https://[x]/", "[x]", false),
            ("https://h/{a", "{a", false),
        ] {
            let refused = read(text).unwrap_err();
            assert_eq!((refused.at.as_str(), refused.misplaced), (at, misplaced), "{text}");
        }
    }

    #[test]
    fn private_hosts_are_known_by_their_names_and_addresses() {
        for host in [
            "localhost",
            "a.localhost",
            "127.0.0.1",
            "10.1.2.3",
            "172.31.0.1",
            "192.168.0.1",
            "169.254.169.254",
            "::1",
            "fd00::1",
            "fe80::1",
        ] {
            assert!(is_private(host), "{host}");
        }
        for host in ["example.com", "8.8.8.8", "172.32.0.1", "10.example.com", "2001:db8::1", "fd.example.com"] {
            assert!(!is_private(host), "{host}");
        }
    }
}
