//! A secret goes where it is not logged, cached or shown: into a header, and nowhere else.

use super::{braces, env_name};
use crate::protocol::json::shortened;
use crate::surface::declaration::Piece;
use crate::surface::outward::HeaderPiece;
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::Span;

pub(crate) const RULE: Rule =
    Rule::error("secret-variable", "`${NAME}` names a variable of the server, and stands in a header's value alone");

/// Where `${NAME}` begins, if it does: a doubled brace is a brace.
fn next(text: &str) -> Option<(&str, &str)> {
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.find("${")?;
        let (before, rest) = text.split_at_checked(at)?;
        let rest = rest.strip_prefix("${")?;
        if !rest.starts_with('{') {
            return Some((before, rest));
        }
        from = at + 2;
    }
}

/// Reads a header's value.
pub(crate) fn read(text: &str, span: Span, findings: &mut Findings) -> Option<Vec<HeaderPiece>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = next(rest) {
        plain(before, span, &mut pieces, findings)?;
        let Some((name, after)) = after.split_once('}').filter(|(name, _)| env_name::is_name(name)) else {
            let message = format!("{:?} does not name a variable", shortened(rest, 64));
            findings.report(&RULE, span, message, "write it like `Bearer ${API_TOKEN}`");
            return None;
        };
        pieces.push(HeaderPiece::Secret(name.to_owned()));
        rest = after;
    }
    plain(rest, span, &mut pieces, findings)?;
    Some(pieces)
}

fn plain(text: &str, span: Span, pieces: &mut Vec<HeaderPiece>, findings: &mut Findings) -> Option<()> {
    let template = braces::read(text, span, findings)?;
    pieces.extend(template.0.into_iter().filter_map(|piece| match piece {
        Piece::Literal(text) if text.is_empty() => None,
        Piece::Literal(text) => Some(HeaderPiece::Literal(text)),
        Piece::Argument(name) => Some(HeaderPiece::Argument(name)),
    }));
    Some(())
}

/// Whether a text that is no header's is free of `${NAME}`, which is reported.
pub(crate) fn is_absent(text: &str, span: Span, findings: &mut Findings) -> bool {
    let found = next(text).is_some();
    if found {
        let remedy = "send it in a header, such as `Authorization: \"Bearer ${NAME}\"`";
        findings.report(&RULE, span, "a variable of the server stands outside a header", remedy);
    }
    !found
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, http, keeps, upstream};

    #[test]
    fn a_secret_stands_in_a_header_alone() {
        breaks(super::RULE, &http("get: https://h/, query: {key: \"${TOKEN}\"}", ""));
        breaks(super::RULE, &http("post: https://h/, json: {a: [\"${TOKEN}\"]}", ""));
        breaks(super::RULE, &http("post: https://h/, body: \"x${TOKEN}\"", ""));
        breaks(super::RULE, &http("get: https://h/, headers: {A: \"${}\"}", ""));
        breaks(super::RULE, &http("get: https://h/, headers: {A: \"${1A}\"}", ""));
        breaks(super::RULE, &http("get: https://h/, headers: {A: \"${TOKEN\"}", ""));
        keeps(super::RULE, &http("get: https://h/, headers: {Authorization: \"Bearer ${API_TOKEN}\"}", ""));
        keeps(super::RULE, &http("get: https://h/, headers: {A: \"${{x}}\"}", ""));
        keeps(super::RULE, &upstream("url: https://h/, digest: any, headers: {Authorization: \"Bearer ${T}\"}"));
    }
}
