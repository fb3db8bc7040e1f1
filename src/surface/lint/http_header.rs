//! Headers that a surface sets are its own: those that frame or route a message are not.

use crate::protocol::json::shortened;
use crate::surface::file::HeaderEntry;
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::{At, Span};

pub(crate) const RULE: Rule = Rule::error(
    "http-header",
    "a header's name is a token, stands once, and frames or routes nothing; its value is visible text",
);

/// Headers of one hop (RFC 9110, Connection), and those that the request's own parts decide.
const OURS: &[&str] = &[
    "host",
    "content-length",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "accept-encoding",
    "cookie",
    "mcp-session-id",
];

/// Checks a header as written; `before` are those above it.
pub(crate) fn check(name: &At<String>, value: &str, span: Span, before: &[HeaderEntry], findings: &mut Findings) {
    let lower = name.value.to_ascii_lowercase();
    let shown = shortened(&name.value, 64);
    let is_token = !name.value.is_empty()
        && name.value.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
    if !is_token {
        let remedy = "use letters, digits and -, such as X-Api-Version";
        findings.report(&RULE, name.span, format!("{shown:?} is no header's name"), remedy);
    } else if OURS.contains(&lower.as_str()) {
        findings.report(&RULE, name.span, format!("{shown} is not a surface's to set"), "leave it out");
    } else if before.iter().any(|header| header.name.value == lower) {
        findings.report(&RULE, name.span, format!("{shown} stands here a second time"), "keep one of the two");
    }
    if value.chars().any(|c| !matches!(c, ' '..='\x7e')) || value.trim() != value {
        let remedy = "use visible ASCII on one line, without spaces at its ends";
        findings.report(&RULE, span, format!("the value of {shown} cannot be sent"), remedy);
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, http, keeps, upstream};

    #[test]
    fn headers_that_frame_or_route_are_refused() {
        for bad in [
            "{\"A B\": x}",
            "{\"\": x}",
            "{Host: x}",
            "{content-length: 3}",
            "{Transfer-Encoding: chunked}",
            "{Connection: close}",
            "{Accept-Encoding: gzip}",
            "{Cookie: a}",
            "{X-A: a, x-a: b}",
            "{X-A: \"a\\nX-B: c\"}",
            "{X-A: \" a\"}",
            "{X-A: é}",
        ] {
            breaks(super::RULE, &http(&format!("get: https://h/, headers: {bad}"), ""));
            breaks(super::RULE, &upstream(&format!("url: https://h/, digest: any, headers: {bad}")));
        }
        keeps(super::RULE, &http("get: https://h/, headers: {Accept: application/json, X-Version: 3}", ""));
    }
}
