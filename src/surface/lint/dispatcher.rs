//! A tool that runs what its caller names does whatever that does.

use crate::protocol::Json;
use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule = Rule::error(
    "dispatcher",
    "a tool that takes an `action` and a `tool` or an `agent` does not say that it only reads",
);

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for tool in &file.tools {
        let Some(reads) = tool.read_only.as_ref().filter(|flag| flag.value) else { continue };
        let properties = tool.backend.input.schema.as_ref().and_then(|schema| schema.get("properties"));
        let has =
            |name: &str| properties.and_then(Json::as_object).is_some_and(|of| of.iter().any(|(key, _)| key == name));
        if has("action") && (has("tool") || has("agent")) {
            let message = format!("{:?} runs whatever its caller names, and says that it only reads", tool.name.value);
            findings.report(&RULE, reads.span, message, "say `read_only: false`, or publish a tool for each action");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn a_dispatcher_is_no_reader() {
        let with = |names: &[&str], more: &str| {
            let args: Vec<String> = names.iter().map(|name| format!("{name}: {{type: string}}")).collect();
            let run: Vec<String> = names.iter().map(|name| format!("\"x{{{name}}}\"")).collect();
            tool(&format!("args: {{{}}}\nrun: [ls, {}]\n{more}", args.join(", "), run.join(", ")))
        };
        breaks(super::RULE, &with(&["tool", "action"], "read_only: true"));
        breaks(super::RULE, &with(&["agent", "action", "x"], "read_only: true"));
        keeps(super::RULE, &with(&["tool", "action"], "read_only: false"));
        keeps(super::RULE, &with(&["action", "name"], "read_only: true"));
        keeps(super::RULE, &with(&["tool", "agent"], "read_only: true"));
    }
}
