//! A caller chooses what is asked for, never who is asked; a path keeps its shape.

use crate::surface::file::{KindEntry, SurfaceFile};
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule = Rule::error(
    "http-placeholder",
    "a placeholder stands in a path segment, a query's value, a header's value or the body; one in the path always has a value",
);

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for tool in &file.tools {
        let Some(KindEntry::Http(Some(http))) = &tool.kind else { continue };
        for name in http.in_path() {
            let argument = tool.backend.input.arguments.iter().find(|argument| argument.name.value == name);
            let optional = argument.filter(|argument| !argument.required && argument.default.is_none());
            if optional.is_some() {
                let span = findings.source().narrow(http.url.span, &format!("{{{name}}}"));
                let message = format!("{{{name}}} stands in the path, and its argument may be absent");
                let remedy = format!("write `required: true` or a `default` for {name}, or move it to `query`");
                findings.report(&RULE, span, message, remedy);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, http, keeps, upstream};

    #[test]
    fn a_placeholder_does_not_choose_who_is_asked() {
        let args = "args: {a: {type: string, required: true}}";
        for bad in ["{a}://h/", "https://{a}/", "https://h.{a}/x", "https://h:{a}/", "https://h/?q={a}"] {
            breaks(super::RULE, &http(&format!("get: \"{bad}\""), args));
        }
        for good in
            ["get: \"https://h/{a}\"", "get: \"https://h/x-{a}.json\"", "get: \"https://h/\", query: {q: \"{a}\"}"]
        {
            keeps(super::RULE, &http(good, args));
        }
        breaks(super::RULE, &upstream("url: \"https://h/{a}\", digest: any"));
    }

    #[test]
    fn an_argument_in_the_path_is_always_there() {
        breaks(super::RULE, &http("get: \"https://h/{a}\"", "args: {a: {type: string}}"));
        keeps(super::RULE, &http("get: \"https://h/{a}\"", "args: {a: {type: string, default: x}}"));
        keeps(super::RULE, &http("get: \"https://h/\", query: {q: \"{a}\"}", "args: {a: {type: string}}"));
    }
}
