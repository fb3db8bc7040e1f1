//! A method that changes what it names is no reading.

use crate::surface::file::{KindEntry, SurfaceFile};
use crate::surface::outward::HttpVerb;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule =
    Rule::error("http-writes", "`read_only: true` does not stand beside `put`, `patch` or `delete`");

pub(crate) const POST: Rule = Rule::warning("post-reads", "a `post` that only reads says so with care");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for tool in &file.tools {
        let Some(KindEntry::Http(Some(http))) = &tool.kind else { continue };
        let Some(flag) = tool.read_only.as_ref().filter(|flag| flag.value) else { continue };
        let verb = http.verb.value.name();
        match http.verb.value {
            HttpVerb::Get => {}
            HttpVerb::Post => {
                let message = format!("{:?} says that it only reads, and is a POST", tool.name.value);
                let remedy =
                    "leave it so if the server changes nothing by it, as with a search; else leave `read_only` out";
                findings.report(&POST, flag.span, message, remedy);
            }
            HttpVerb::Put | HttpVerb::Patch | HttpVerb::Delete => {
                let message = format!("{:?} says that it only reads, and is a {verb}", tool.name.value);
                findings.report(&RULE, flag.span, message, "leave out `read_only`");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, http, keeps};

    #[test]
    fn a_method_that_changes_something_is_no_reading() {
        for verb in ["put", "patch", "delete"] {
            breaks(super::RULE, &http(&format!("{verb}: https://h/"), "read_only: true"));
            keeps(super::RULE, &http(&format!("{verb}: https://h/"), "read_only: false"));
        }
        breaks(super::POST, &http("post: https://h/", "read_only: true"));
        keeps(super::POST, &http("post: https://h/", ""));
        keeps(super::RULE, &http("get: https://h/", "read_only: true"));
    }
}
