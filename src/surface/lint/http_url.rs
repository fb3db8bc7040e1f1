//! Who is asked is written in the file, where a reviewer sees it.

use super::{http_placeholder, value_kind};
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::At;
use crate::surface::template;
use crate::surface::tree::Node;
use crate::surface::url::{self, Url};

pub(crate) const RULE: Rule = Rule::error(
    "http-url",
    "a URL is absolute, `http` or `https`, without user name and fragment, percent-encoded, without `.` and `..`",
);

/// Reads a URL whose path may have placeholders.
pub(crate) fn read(node: &Node, findings: &mut Findings) -> Option<At<Url>> {
    let Some(text) = node.as_text() else {
        value_kind::report("the URL", node, "text", findings);
        return None;
    };
    match url::read(text) {
        Ok(value) => Some(At { span: node.span, value }),
        Err(refused) => {
            let rule = if refused.misplaced { http_placeholder::RULE } else { RULE };
            let span = findings.source().narrow(node.span, &refused.at);
            findings.report(&rule, span, refused.problem, refused.remedy);
            None
        }
    }
}

/// Reads a URL without placeholders.
pub(crate) fn read_fixed(node: &Node, findings: &mut Findings) -> Option<At<Url>> {
    let url = read(node, findings)?;
    if url.value.segments.iter().any(|segment| template::arguments(segment).next().is_some()) {
        let message = "a placeholder stands in the address of an upstream";
        findings.report(&http_placeholder::RULE, node.span, message, "write the address literally");
        return None;
    }
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, http, keeps, problems, upstream};

    #[test]
    fn a_url_is_absolute_and_leads_where_it_says() {
        for bad in [
            "/v1/x",
            "ftp://h/x",
            "https://u:p@h/",
            "https://h/#f",
            "https://h/a b",
            "https://h/../x",
            "https://h:99999/",
        ] {
            breaks(super::RULE, &http(&format!("get: \"{bad}\""), ""));
            breaks(super::RULE, &upstream(&format!("url: \"{bad}\", digest: any")));
        }
        for good in ["https://h", "https://h:8443/a/b/?k=v", "https://h/%7Bx%7D", "https://[2001:db8::1]/"] {
            keeps(super::RULE, &http(&format!("get: \"{good}\""), ""));
        }
        let problems = problems(&http("get: \"https://h/a%2z\"", ""));
        let problem = problems.list().iter().find(|p| p.rule == super::RULE.id).unwrap();
        assert_eq!((problem.line, problem.end_column - problem.column), (6, 1));
    }
}
