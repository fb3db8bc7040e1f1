//! A surface file is read, reviewed and committed: a token in a header of it is no secret.

use super::secret_header::names_a_secret;
use crate::surface::file::{HeaderEntry, KindEntry, SurfaceFile};
use crate::surface::outward::HeaderPiece;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule = Rule::warning("header-secret", "no secret is written into a header of a request");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    let of_tools = file.tools.iter().filter_map(|tool| match &tool.kind {
        Some(KindEntry::Http(Some(http))) => Some(&http.headers),
        _ => None,
    });
    for header in of_tools.chain(file.upstreams.iter().map(|upstream| &upstream.headers)).flatten() {
        if is_literal_secret(header) {
            let message = format!("{:?} looks like a secret in a file that others read", header.name.value);
            let remedy = "write `${NAME}` in its place: it is then taken from the server's environment";
            findings.report(&RULE, header.value.span, message, remedy);
        }
    }
}

/// Prefixes that issuers give their tokens, so that they are found where they were left.
const TOKENS: &[&str] =
    &["sk-", "ghp_", "gho_", "ghs_", "github_pat_", "xoxb-", "xoxp-", "glpat-", "AKIA", "AIza", "eyJ"];

fn is_literal_secret(header: &HeaderEntry) -> bool {
    let literal = header.value.value.iter().filter_map(|piece| match piece {
        HeaderPiece::Literal(text) => Some(text.as_str()),
        HeaderPiece::Argument(_) | HeaderPiece::Secret(_) => None,
    });
    let words: Vec<&str> = literal.flat_map(str::split_whitespace).collect();
    let bare = |word: &&&str| {
        !matches!(word.to_ascii_lowercase().as_str(), "bearer" | "basic" | "token" | "digest" | "apikey")
    };
    let mut said = words.iter().filter(bare);
    words.iter().any(|word| TOKENS.iter().any(|prefix| word.starts_with(prefix) && word.len() > 16))
        || ((names_a_secret(&header.name.value) || header.name.value == "x-auth-key") && said.next().is_some())
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, http, keeps, upstream};

    #[test]
    fn a_literal_secret_in_a_header_is_warned_of() {
        for bad in ["Authorization: Bearer abc", "X-Api-Key: 123", "X-Any: ghp_0123456789abcdefghij"] {
            breaks(super::RULE, &http(&format!("get: https://h/, headers: {{{bad}}}"), ""));
            breaks(super::RULE, &upstream(&format!("url: https://h/, digest: any, headers: {{{bad}}}")));
        }
        for good in ["Authorization: \"Bearer ${T}\"", "Accept: text/plain", "X-Version: \"3\""] {
            keeps(super::RULE, &http(&format!("get: https://h/, headers: {{{good}}}"), ""));
        }
    }
}
