//! A key that is known, where it has no effect: a path that looks confined and is not.

use crate::protocol::json::shortened;
use crate::surface::arguments::Input;
use crate::surface::declaration::ArgumentKind;
use crate::surface::problem::{Findings, Rule};
use crate::surface::tree::{Entry, Node, Value};

pub(crate) const RULE: Rule =
    Rule::error("misplaced-key", "`as`, `header` and `required: true` stand where they have an effect");

/// Reports a tool's `as` without the schema that it speaks of.
pub(crate) fn beside_no_schema(roles: &Entry, findings: &mut Findings) {
    let message = "a tool's `as` stands beside `inputSchema` alone: here it confines nothing";
    let first = roles.node.as_map().and_then(|roles| Some((&roles.first()?.key.value, roles.first()?.node.as_text()?)));
    let remedy = match first {
        Some((name, role)) => {
            let (name, role) = (shortened(name, 64), shortened(role, 64));
            format!("in `args` write it in the argument: `{name}: {{ type: string, as: {role} }}`")
        }
        None => "in `args` write it in the argument: `p: { type: string, as: path }`".to_owned(),
    };
    findings.report(&RULE, roles.key.span, message, remedy);
}

/// Reports roles that an argument has for a command alone: elsewhere they would confine nothing.
pub(crate) fn roles(input: &Input<'_>, findings: &mut Findings) {
    for argument in input.arguments.iter().filter(|argument| argument.kind != ArgumentKind::Value) {
        let message = format!("`as` of {:?} has no effect here: this tool is no command", argument.name.value);
        let remedy = "leave it out, and say in the schema what the value may be";
        findings.report(&RULE, argument.name.span, message, remedy);
    }
}

/// Reports `as: data` of a target's argument: what is passed on behind a flag is no option whatever it begins with.
pub(crate) fn data(input: &Input<'_>, findings: &mut Findings) {
    for argument in input.arguments.iter().filter(|argument| argument.kind == ArgumentKind::Data) {
        let message = format!("`as: data` of {:?} has no effect beside a target", argument.name.value);
        let remedy = "leave it out: a value is passed on behind its flag, so it may begin with `-`";
        findings.report(&RULE, argument.name.span, message, remedy);
    }
}

/// Reports keys of the shorthand in the properties of a whole schema, which is sent as written.
pub(crate) fn check_schema(schema: &Node, findings: &mut Findings) {
    check_properties(schema, true, findings);
}

fn check_properties(schema: &Node, at_root: bool, findings: &mut Findings) {
    for Entry { key: name, node: property } in properties(schema) {
        for Entry { key, node } in property.as_map().unwrap_or_default() {
            let name = shortened(&name.value, 64);
            let remedy = match (key.value.as_str(), &node.value) {
                ("as", _) if at_root => {
                    let role = shortened(node.as_text().unwrap_or("path"), 64);
                    format!("write `as: {{ {name}: {role} }}` beside `inputSchema`")
                }
                ("as", _) => "leave it out: `as` is for the properties at the root of a schema".to_owned(),
                ("header", Value::Text(header)) => format!("write `x-mcp-header: {}`", shortened(header, 64)),
                ("required", Value::Bool(true)) => format!("write `required: [{name}]` beside `properties`"),
                ("required", Value::Bool(false)) => {
                    "leave it out: what the list `required` does not name is optional".to_owned()
                }
                _ => continue,
            };
            let message =
                format!("`{}` has no effect here: `inputSchema` is JSON Schema, not the shorthand", key.value);
            findings.report(&RULE, key.span, message, remedy);
        }
        check_properties(property, false, findings);
        if let Some(items) = property.get("items") {
            check_properties(&items.node, false, findings);
        }
    }
}

fn properties(schema: &Node) -> &[Entry] {
    schema.get("properties").and_then(|entry| entry.node.as_map()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, http, keeps, problems, tool};

    fn remedy(yaml: &str) -> String {
        let problems = problems(yaml);
        problems.list().iter().find(|p| p.rule == super::RULE.id).map(|p| p.remedy.clone()).unwrap()
    }

    #[test]
    fn a_tools_as_without_a_schema_is_refused() {
        let run = "run: [ls, --, \"{p}\"]";
        let beside_args = tool(&format!("args: {{p: {{type: string}}}}\nas: {{p: path}}\n{run}"));
        breaks(super::RULE, &beside_args);
        assert!(remedy(&beside_args).contains("p: { type: string, as: path }"));
        breaks(super::RULE, &tool("as: {p: path}"));
        breaks(super::RULE, &tool("as: path"));
        keeps(super::RULE, &tool(&format!("args: {{p: {{type: string, as: path}}}}\n{run}")));
        let schema = "inputSchema: {type: object, properties: {p: {type: string}}}";
        keeps(super::RULE, &tool(&format!("{schema}\nas: {{p: path}}\n{run}")));
    }

    #[test]
    fn a_role_beside_no_command_is_refused() {
        for role in ["path", "data"] {
            let args = format!("args: {{a: {{type: string, required: true, as: {role}}}}}");
            breaks(super::RULE, &http("get: \"https://h/{a}\"", &args));
        }
    }

    #[test]
    fn the_shorthand_in_a_schema_is_refused_with_the_right_place() {
        let with = |property: &str| {
            let schema = format!("{{type: object, properties: {{p: {{{property}}}}}}}");
            tool(&format!("inputSchema: {schema}\nrun: [ls, --, \"{{p}}\"]"))
        };
        for (bad, place) in [
            ("type: string, as: path", "`as: { p: path }` beside `inputSchema`"),
            ("type: string, as: [path]", "`as: { p: path }` beside `inputSchema`"),
            ("type: string, header: Region", "`x-mcp-header: Region`"),
            ("type: string, required: true", "`required: [p]` beside `properties`"),
            ("type: string, required: false", "leave it out"),
            ("type: object, properties: {q: {type: string, as: path}}", "at the root"),
            ("type: array, items: {type: object, properties: {q: {type: string, header: Q}}}", "x-mcp-header"),
        ] {
            breaks(super::RULE, &with(bad));
            assert!(remedy(&with(bad)).contains(place), "{}", remedy(&with(bad)));
        }
        keeps(super::RULE, &with("type: object, properties: {as: {type: string}, header: {}}, required: [as]"));
        keeps(super::RULE, &with("type: string, default: as, x-mcp-header: Region"));
    }
}
