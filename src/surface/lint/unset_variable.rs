//! A request whose header lacks its secret fails: whoever checks should know before a caller does.

use std::collections::HashSet;

use crate::surface::file::{KindEntry, SurfaceFile};
use crate::surface::outward::HeaderPiece;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule = Rule::warning("unset-variable", "a variable that a header's value names is set");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    let of_tools = file.tools.iter().filter_map(|tool| match &tool.kind {
        Some(KindEntry::Http(Some(http))) => Some(&http.headers),
        _ => None,
    });
    let mut told = HashSet::new();
    for header in of_tools.chain(file.upstreams.iter().map(|upstream| &upstream.headers)).flatten() {
        for piece in &header.value.value {
            let HeaderPiece::Secret(name) = piece else { continue };
            if std::env::var_os(name).is_none_or(|value| value.is_empty()) && told.insert(name) {
                let message = format!("the variable {name} is not set here: calls will fail");
                findings.report(&RULE, header.value.span, message, "set it where the server runs");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, http, keeps, upstream};

    #[test]
    fn a_variable_that_is_not_set_is_warned_of() {
        let header = |name: &str| format!("headers: {{Authorization: \"Bearer ${{{name}}}\"}}");
        breaks(super::RULE, &http(&format!("get: https://h/, {}", header("NEVER_SET_IN_A_TEST")), ""));
        breaks(super::RULE, &upstream(&format!("url: https://h/, digest: any, {}", header("NEVER_SET_IN_A_TEST"))));
        keeps(super::RULE, &http(&format!("get: https://h/, {}", header("PATH")), ""));
        keeps(super::RULE, &http("get: https://h/, headers: {Accept: text/plain}", ""));
    }
}
