//! An argument that reaches nothing tells the model something untrue.

use std::collections::HashSet;

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};
use crate::surface::template;

pub(crate) const RULE: Rule = Rule::error(
    "unused-argument",
    "every argument is used in `run`, `stdin`, a text or a path, or mirrored in a header",
);

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for tool in file.backends().filter(|backend| backend.whole) {
        let used: HashSet<&str> = tool.all_templates().flat_map(|t| template::arguments(&t.value)).collect();
        let fed = |name: &str| tool.stdin.as_ref().is_some_and(|feed| feed.value.holds(name));
        for argument in &tool.input.arguments {
            let name = &argument.name;
            if !used.contains(name.value.as_str()) && !fed(&name.value) && argument.header.is_none() {
                let message = format!("{:?} is never used", name.value);
                let remedy = format!("use it as {{{}}}, or leave it out", name.value);
                findings.report(&RULE, name.span, message, remedy);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn an_argument_that_reaches_nothing_is_refused() {
        breaks(super::RULE, &tool("args: {a: {type: string}}"));
        breaks(super::RULE, &tool("args: {a: {type: string}}\nrun: [ls, \"{{a}}\"]"));
        for used in [
            "args: {a: {type: string}}\nrun: [ls, \"x{a}\"]",
            "args: {a: {type: string}}\nrun: [ls, [-x, \"x{a}\"]]",
            "args: {a: {type: string}}\nstdin: \"{a}\"",
            "args: {a: {type: string}, b: {type: string}}\nstdin: \"{*}\"",
            "args: {a: {type: string, header: Region}}",
        ] {
            keeps(super::RULE, &tool(used));
        }
    }
}
