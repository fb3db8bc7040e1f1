//! What a tool publishes of its arguments is what its action takes: each by its name and of its type, and none that the
//! action needs left out.

use std::collections::HashMap;

use crate::protocol::Json;
use crate::surface::arguments::ArgumentEntry;
use crate::surface::did_you_mean;
use crate::surface::file::{SurfaceFile, ToolEntry};
use crate::surface::manifest::{ArgType, ManifestArg};
use crate::surface::problem::{Findings, Rule};
use crate::surface::resolve::Resolved;
use crate::surface::source::Span;
use crate::surface::target::Aim;

pub(crate) const RULE: Rule =
    Rule::error("target-argument", "an argument of a target is one of its action's, each once and of the same type");
pub(crate) const REQUIRED: Rule = Rule::error(
    "target-required",
    "what an action requires is always given: by a required argument, a default, or the action's own default",
);
pub(crate) const NARROW: Rule = Rule::error("narrow-by", "`narrow_by` names arguments of the tool");

pub(crate) fn check(file: &SurfaceFile<'_>, resolved: &Resolved, findings: &mut Findings) {
    for (tool, target) in file.targets() {
        let arguments = &tool.backend.input.arguments;
        for named in &target.narrow_by {
            let known: Vec<&str> = arguments.iter().map(|argument| argument.name.value.as_str()).collect();
            if !known.contains(&named.value.as_str()) {
                let message = format!("{:?} is no argument of {:?}", named.value, tool.name.value);
                let meant = did_you_mean(&named.value, known.iter().copied());
                findings.suggest(&NARROW, named.span, message, "name an argument that the tool publishes", meant);
            }
        }
        let Some(Ok(project)) = &resolved.project else { continue };
        if let Ok(aim) = project.aim(target) {
            check_tool(tool, aim, target.span, findings);
        }
    }
}

fn check_tool(tool: &ToolEntry<'_>, aim: Aim<'_>, target: Span, findings: &mut Findings) {
    let mut taken: HashMap<&str, &ArgumentEntry> = HashMap::new();
    for argument in &tool.backend.input.arguments {
        let span = argument.flag.as_ref().map_or(argument.name.span, |flag| flag.span);
        let Some(arg) = aim.arg(argument) else {
            let wanted = argument.flag.as_ref().map_or(&argument.name.value, |flag| &flag.value);
            let known: Vec<&str> = aim.args().iter().map(|arg| arg.name.as_str()).collect();
            let message = format!("{wanted:?} is no argument of {}", named(aim));
            let meant = did_you_mean(wanted, known.iter().copied());
            let remedy = match known.as_slice() {
                [] => "leave it out: the action takes no arguments".to_owned(),
                [..] => format!("name one of its arguments with `flag`: {}", known.join(", ")),
            };
            findings.suggest(&RULE, span, message, remedy, meant);
            continue;
        };
        if let Some(other) = taken.insert(arg.name.as_str(), argument) {
            let message =
                format!("{:?} and {:?} are both passed on as {:?}", other.name.value, argument.name.value, arg.name);
            findings.report(&RULE, span, message, "keep one of the two, or say another `flag`");
        }
        check_type(argument, arg, findings);
    }
    for arg in aim.args().iter().filter(|arg| arg.required && arg.default.is_none()) {
        match taken.get(arg.name.as_str()) {
            None => {
                let message = format!("{} requires {:?}, which the tool does not publish", named(aim), arg.name);
                let remedy = format!(
                    "add it to `args`: `{}: {{ type: {}, required: true }}`",
                    arg.name.replace('-', "_"),
                    arg.kind.name()
                );
                findings.report(&REQUIRED, target, message, remedy);
            }
            Some(argument) if !argument.required && argument.default.is_none() => {
                let message = format!("{:?} may be left out, but {} requires it", argument.name.value, named(aim));
                findings.report(&REQUIRED, argument.name.span, message, "say `required: true`, or give it a `default`");
            }
            Some(_) => {}
        }
    }
}

/// The types that the schema of an argument lets through are those of the action's argument.
fn check_type(argument: &ArgumentEntry, arg: &ManifestArg, findings: &mut Findings) {
    let types: Vec<&str> = match argument.schema.get("type") {
        Some(Json::String(kind)) => vec![kind],
        Some(Json::Array(kinds)) => kinds.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    };
    let fits = |kind: &str| {
        ArgType::of(kind)
            .is_some_and(|kind| kind == arg.kind || (kind, arg.kind) == (ArgType::Integer, ArgType::Number))
    };
    if types.is_empty() || !types.iter().all(|kind| fits(kind)) {
        let said = if types.is_empty() { "no type".to_owned() } else { types.join(" or ") };
        let message =
            format!("{:?} has {said}, but the action's {:?} is {}", argument.name.value, arg.name, arg.kind.name());
        findings.report(&RULE, argument.name.span, message, format!("say `type: {}`", arg.kind.name()));
    }
}

fn named(aim: Aim<'_>) -> String {
    match aim.action {
        Some(action) => format!("{}/{}", aim.manifest.name, action.name),
        None => aim.manifest.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks_in, keeps_in, problems_in, project, target};

    const PATH: &str = "path: {type: string, required: true}";

    #[test]
    fn arguments_are_those_of_the_action() {
        let folder = project("target-argument");
        let with = |args: &str| target(&format!("target: xlsx/read-sheet\nargs: {{{PATH}, {args}}}"));
        for bad in [
            "sheets: {type: string}",
            "rows: {type: integer, flag: max-result}",
            "max_results: {type: string}",
            "max_results: {type: number}",
            "rows: {type: integer, flag: max-results}, max_results: {type: integer}",
        ] {
            breaks_in(&folder, super::RULE, &with(bad));
        }
        for good in [
            "max_results: {type: integer}",
            "max-results: {type: integer, minimum: 1}",
            "rows: {type: integer, flag: max-results}",
            "sheet: {type: string}, ratio: {type: integer}",
            "ratio: {type: number}",
        ] {
            keeps_in(&folder, super::RULE, &with(good));
        }
        let schema = |property: &str| {
            target(&format!(
                "target: xlsx/read-sheet\ninputSchema: {{type: object, properties: {{{property}}}, required: [path]}}"
            ))
        };
        breaks_in(&folder, super::RULE, &schema("path: {}"));
        breaks_in(&folder, super::RULE, &schema("path: {type: [string, integer]}"));
        keeps_in(&folder, super::RULE, &schema("path: {type: string}"));
        let problems = problems_in(&folder, &with("max_result: {type: integer}"));
        let suggested = problems.list().iter().find(|p| p.rule == "target-argument").unwrap().suggestion.clone();
        assert_eq!(suggested.as_deref(), Some("max-results"));
    }

    #[test]
    fn what_the_action_requires_is_always_given() {
        let folder = project("target-required");
        let with = |args: &str| target(&format!("target: xlsx/read-sheet\nargs: {{{args}}}"));
        for bad in ["", "path: {type: string}", "sheet: {type: string}"] {
            breaks_in(&folder, super::REQUIRED, &with(bad));
        }
        for good in [PATH, "path: {type: string, default: a.xlsx}", "file: {type: string, required: true, flag: path}"]
        {
            keeps_in(&folder, super::REQUIRED, &with(good));
        }
    }

    #[test]
    fn arguments_that_tools_share_are_taken_by_name() {
        let folder = project("common");
        let with = |common: &str| {
            let tool = target(&format!("target: xlsx/read-sheet\nargs: {{{PATH}}}\n{common}"));
            format!("common_args: {{profile: {{type: string, flag: sheet}}, other: {{type: string}}}}\n{tool}")
        };
        keeps_in(&folder, super::RULE, &with("common: [profile]"));
        breaks_in(&folder, super::RULE, &with("common: [other]"));
        breaks_in(&folder, super::super::target_common::RULE, &with("common: [profil]"));
        breaks_in(&folder, super::super::target_common::RULE, &with("common: [profile, profile]"));
    }

    #[test]
    fn a_path_is_confined_and_data_needs_no_word() {
        let folder = project("target-path");
        let with = |role: &str| {
            target(&format!("target: xlsx/read-sheet\nargs: {{path: {{type: string, required: true, as: {role}}}}}"))
        };
        assert!(problems_in(&folder, &with("path")).is_empty());
        breaks_in(&folder, super::super::misplaced_key::RULE, &with("data"));
        let schema = "inputSchema: {type: object, properties: {path: {type: string}}, required: [path]}";
        assert!(
            problems_in(&folder, &target(&format!("target: xlsx/read-sheet\n{schema}\nas: {{path: path}}"))).is_empty()
        );
        let rows = target(
            "target: xlsx/read-sheet\nargs: {path: {type: string, required: true}, max_results: {type: integer, as: path}}",
        );
        breaks_in(&folder, super::super::argument_as::RULE, &rows);
    }

    #[test]
    fn what_narrows_is_an_argument_of_the_tool() {
        let folder = project("narrow");
        let with = |names: &str| target(&format!("target: xlsx/read-sheet\nargs: {{{PATH}}}\nnarrow_by: {names}"));
        breaks_in(&folder, super::NARROW, &with("[sheet]"));
        keeps_in(&folder, super::NARROW, &with("[path]"));
    }
}
