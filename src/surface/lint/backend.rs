//! A tool is carried out by a command. Other backends have names of their own, which are refused with a word.

use crate::surface::problem::{Findings, Rule};
use crate::surface::tree::Node;

pub(crate) const RULE: Rule = Rule::error("backend", "a tool has the backend `run`, the only one served by this build");

/// The other kinds of backend that the format reserves.
const RESERVED: [&str; 4] = ["http", "target", "upstream", "builtin"];

/// The keys of other backends if a tool has any, so that they are not unknown and `run` is not asked for too.
pub(crate) fn among(tool: &Node) -> &'static [&'static str] {
    let any = RESERVED.iter().any(|backend| tool.get(backend).is_some());
    if any { &RESERVED } else { &[] }
}

/// Reports the other backends of a tool.
pub(crate) fn check(tool: &Node, findings: &mut Findings) {
    for entry in RESERVED.iter().filter_map(|backend| tool.get(backend)) {
        let message = format!("the backend `{}` is not served by this build", entry.key.value);
        findings.report(&RULE, entry.key.span, message, "declare the command with `run`");
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, problems, tool};

    #[test]
    fn a_reserved_backend_is_named_as_such_and_not_as_an_unknown_key() {
        let yaml = "surface: s\nversion: 1.0.0\ntools: {t: {description: x, http: {url: x}}}\n";
        breaks(super::RULE, yaml);
        assert_eq!(problems(yaml).list().len(), 1);
        keeps(super::RULE, &tool(""));
    }
}
