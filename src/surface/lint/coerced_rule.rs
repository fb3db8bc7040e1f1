//! Rules read the names of arguments as they are sent: a runner that takes other spellings is the way around them.

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule = Rule::error(
    "coerced-rule",
    "a rule over an action's arguments is not about a runner with `coerce_arg_names`, which takes other spellings of their names",
);

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    let rules = || file.rules.iter().flatten().filter_map(|entry| entry.rule.as_ref());
    for tool in file.tools.iter().filter(|tool| tool.coerce_arg_names) {
        let name = &tool.name.value;
        let is_about = |tools: &Option<Vec<String>>| tools.as_ref().is_none_or(|tools| tools.contains(name));
        if rules().any(|rule| is_about(&rule.tools) && reads_inner(rule.source())) {
            let message = format!("{name:?} takes other spellings of argument names, which rules do not see");
            let remedy = "take `coerce_arg_names` away, or let the rules read `args.tool` and `args.action` alone";
            findings.report(&RULE, tool.name.span, message, remedy);
        }
    }
}

/// Whether an expression reads more of a runner's arguments than what is to run.
fn reads_inner(source: &str) -> bool {
    let names = ["args.tool", "args.agent", "args.action"];
    names.iter().fold(source.to_owned(), |rest, name| rest.replace(name, "")).contains("args")
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks_in, keeps_in, project};

    #[test]
    fn names_that_are_coerced_are_not_judged_as_they_were_sent() {
        let folder = project("coerced-rule");
        let of = |coerce: bool, rule: &str| {
            format!(
                "surface: s\nversion: 1.0.0\nregistry: .\ntools:\n  run_tool: {{ builtin: run_tool, coerce_arg_names: {coerce} }}\n  \
                 run_tool_confirmed: {{ builtin: run_tool_confirmed }}\nrules: [{rule}, {{ allow: 'true' }}]\n"
            )
        };
        let inner = "{ deny: 'has(args.args.to_iban)' }";
        breaks_in(&folder, super::RULE, &of(true, inner));
        keeps_in(&folder, super::RULE, &of(false, inner));
        keeps_in(&folder, super::RULE, &of(true, "{ deny: 'args.tool == \"wire\"' }"));
        keeps_in(&folder, super::RULE, &of(true, "{ deny: 'has(args.args.to_iban)', tools: [run_tool_confirmed] }"));
    }
}
