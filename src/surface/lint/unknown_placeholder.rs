//! A placeholder stands for a declared argument.

use crate::surface::arguments;
use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule, did_you_mean};
use crate::surface::template;

pub(crate) const RULE: Rule =
    Rule::error("unknown-placeholder", "a placeholder names an argument of its tool, template or prompt");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for tool in file.backends().filter(|tool| arguments::are_known(&tool.input)) {
        let known: Vec<&str> = tool.input.arguments.iter().map(|a| a.name.value.as_str()).collect();
        for element in tool.all_templates() {
            for name in template::arguments(&element.value).filter(|name| !known.contains(name)) {
                let placeholder = format!("{{{name}}}");
                let span = findings.source().narrow(element.span, &placeholder);
                let message = format!("{placeholder} names no argument of {:?}", tool.name.value);
                let remedy = "declare it under `args`, or write {{ and }} for braces that the program shall see";
                let meant = did_you_mean(name, known.iter().copied()).map(|name| format!("{{{name}}}"));
                findings.suggest(&RULE, span, message, remedy, meant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, problems, tool};

    #[test]
    fn a_placeholder_without_an_argument_is_refused_at_its_place() {
        let bad = tool("args:\n  path: {type: string}\nrun: [ls, \"--a={path}\", \"--x={paht}\"]");
        breaks(super::RULE, &bad);
        let problems = problems(&bad);
        let problem = problems.list().iter().find(|p| p.rule == super::RULE.id).unwrap();
        assert_eq!((problem.line, problem.column, problem.end_column), (8, 34, 40));
        assert_eq!(problem.suggestion.as_deref(), Some("{path}"));
        breaks(super::RULE, &tool("run: [ls, [-a, \"x{b}\"]]"));
        keeps(super::RULE, &tool("args: {path: {type: string}}\nrun: [ls, \"--x={path}\"]"));
        keeps(super::RULE, &tool("inputSchema: {type: object, properties: {a: {type: string}}}\nrun: [ls, \"x{a}\"]"));
    }
}
