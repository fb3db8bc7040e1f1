//! One body, and none where a request only reads.

use crate::surface::fields::Fields;
use crate::surface::outward::HttpVerb;
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::At;
use crate::surface::tree::Entry;

pub(crate) const RULE: Rule =
    Rule::error("http-body", "a request has at most one body, `json` or `body`, and none where it is a `get`");

/// The one body of a request.
pub(crate) fn of<'t>(fields: &Fields<'t>, verb: Option<&At<HttpVerb>>, findings: &mut Findings) -> Option<&'t Entry> {
    let (json, body) = (fields.get("json"), fields.get("body"));
    if let (Some(_), Some(body)) = (json, body) {
        findings.report(&RULE, body.key.span, "a request has both `json` and `body`", "leave out one of the two");
    }
    let one = json.or(body)?;
    if verb.is_some_and(|verb| verb.value == HttpVerb::Get) {
        let remedy = "write its parts under `query`, or use `post`";
        findings.report(&RULE, one.key.span, "a `get` has a body, which servers and proxies drop", remedy);
    }
    Some(one)
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, http, keeps};

    #[test]
    fn a_request_has_one_body() {
        breaks(super::RULE, &http("post: https://h/, json: {a: 1}, body: x", ""));
        breaks(super::RULE, &http("get: https://h/, json: {a: 1}", ""));
        for good in [
            "post: https://h/, json: \"{*}\"",
            "put: https://h/, body: x",
            "delete: https://h/, json: [1]",
            "get: https://h/",
        ] {
            keeps(super::RULE, &http(good, ""));
        }
    }
}
