//! A rule about one of two tools that run the same is about the other too: otherwise the other is the way around it.

use crate::surface::builtin::Builtin;
use crate::surface::file::{KindEntry, SurfaceFile};
use crate::surface::problem::{Findings, Rule};
use crate::surface::rules::{CallRule, Ruling};

pub(crate) const RULE: Rule = Rule::warning(
    "rule-twin",
    "a rule that denies or asks names a runner and its confirmed twin, or neither, where the other is let through",
);

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    let Some(entries) = &file.rules else { return };
    let runners: Vec<(Builtin, &str)> = file
        .tools
        .iter()
        .filter_map(|tool| match &tool.kind {
            Some(KindEntry::Builtin(builtin)) if builtin.runs() => Some((*builtin, tool.name.value.as_str())),
            _ => None,
        })
        .collect();
    let rules: Vec<&CallRule> = entries.iter().filter_map(|entry| entry.rule.as_ref()).collect();
    for entry in entries {
        let (Some(tools), Some(rule)) = (&entry.tools, &entry.rule) else { continue };
        // Whoever denies the confirmed one alone, and always, keeps what cannot be undone from running.
        let closes = rule.ruling == Ruling::Deny && rule.source().trim() == "true";
        for named in tools {
            let Some((builtin, name)) = runners.iter().find(|(_, name)| *name == named.value) else { continue };
            let twins = runners.iter().filter(|(other, twin)| {
                other.confirmed() == builtin.confirmed() && other != builtin && !tools.iter().any(|t| t.value == *twin)
            });
            for (_, twin) in twins {
                let same = |other: &&CallRule| {
                    other.ruling == rule.ruling && other.source() == rule.source() && is_about(other, twin)
                };
                let goes_on = |other: &&CallRule| other.ruling != Ruling::Deny && is_about(other, twin);
                if rule.ruling == Ruling::Allow
                    || (closes && builtin.is_confirmed())
                    || rules.iter().any(same)
                    || !rules.iter().any(goes_on)
                {
                    continue;
                }
                let message =
                    format!("what this rule {} through {name:?} is let through by {twin:?}", says(rule.ruling));
                let remedy = format!("name both: `tools: [{name}, {twin}]`");
                findings.report(&RULE, named.span, message, remedy);
            }
        }
    }
}

fn is_about(rule: &CallRule, tool: &str) -> bool {
    rule.tools.as_ref().is_none_or(|tools| tools.iter().any(|name| name == tool))
}

fn says(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Deny => "denies",
        Ruling::Ask | Ruling::Allow => "asks about",
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks_in, keeps_in, project};

    #[test]
    fn a_rule_names_both_runners_or_the_other_is_closed_too() {
        let folder = project("rule-twin");
        let of = |rules: &str| {
            let runner = |name: &str| format!("  {name}: {{ builtin: {name} }}\n");
            let tools: String = ["run_tool", "run_tool_confirmed", "run_agent"].map(runner).concat();
            format!("surface: s\nversion: 1.0.0\nregistry: .\ntools:\n{tools}rules: [{rules}, {{ allow: 'true' }}]\n")
        };
        for bad in [
            "{ deny: 'args.tool == \"mail\"', tools: [run_tool] }",
            "{ deny: 'args.tool == \"mail\"', tools: [run_tool_confirmed] }",
            "{ ask: 'true', tools: [run_tool, run_agent] }",
            "{ deny: 'true', tools: [run_tool] }",
        ] {
            breaks_in(&folder, super::RULE, &of(bad));
        }
        for good in [
            "{ deny: 'args.tool == \"mail\"', tools: [run_tool, run_tool_confirmed] }",
            "{ deny: 'true', tools: [run_tool] }, { deny: 'true', tools: [run_tool_confirmed] }",
            "{ deny: 'true', tools: [run_tool_confirmed] }",
            "{ deny: 'true', tools: [run_agent] }",
            "{ allow: 'true', tools: [run_tool] }",
        ] {
            keeps_in(&folder, super::RULE, &of(good));
        }
        let closed = of("{ allow: 'true', tools: [run_agent] }, { deny: 'true', tools: [run_tool] }");
        keeps_in(&folder, super::RULE, &closed.replace(", { allow: 'true' }]", "]"));
    }
}
