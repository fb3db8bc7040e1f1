//! A request has one method, and the URL stands behind it.

use crate::surface::fields::Fields;
use crate::surface::outward::HttpVerb;
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::{At, Span};
use crate::surface::tree::Node;

pub(crate) const RULE: Rule =
    Rule::error("http-method", "a request has one method, `get`, `post`, `put`, `patch` or `delete`, and its URL");

/// The one method of a request, and the node of its URL.
pub(crate) fn of<'t>(fields: &Fields<'t>, owner: Span, findings: &mut Findings) -> Option<(At<HttpVerb>, &'t Node)> {
    let mut present = HttpVerb::ALL.into_iter().filter_map(|verb| Some((verb, fields.get(verb.key())?)));
    match (present.next(), present.next()) {
        (Some((value, entry)), None) => Some((At { span: entry.key.span, value }, &entry.node)),
        (Some((first, _)), Some((second, entry))) => {
            let message = format!("a request has both `{}` and `{}`", first.key(), second.key());
            findings.report(&RULE, entry.key.span, message, "leave out one of the two, or make it two tools");
            None
        }
        (None, _) => {
            let remedy = "write it with its URL, such as `get: https://api.example.com/v1/items/{id}`";
            findings.report(&RULE, owner, "a request has no method", remedy);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, http, keeps};

    #[test]
    fn a_request_has_one_method() {
        breaks(super::RULE, &http("query: {a: b}", ""));
        breaks(super::RULE, &http("get: https://h/, post: https://h/", ""));
        for verb in ["get", "post", "put", "patch", "delete"] {
            keeps(super::RULE, &http(&format!("{verb}: https://h/"), ""));
        }
    }
}
