//! The rules over arguments, as written.

use crate::surface::fields::Fields;
use crate::surface::lint::{call_rule, expression, value_kind};
use crate::surface::problem::Findings;
use crate::surface::rules::CallRule;
use crate::surface::source::At;
use crate::surface::tree::{Node, Value};

/// Keys of a rule.
const KEYS: &[&str] = &["allow", "ask", "deny", "tools", "message"];

/// A rule.
#[derive(Debug)]
pub(crate) struct RuleEntry {
    /// The tools it is about; all if absent.
    pub(crate) tools: Option<Vec<At<String>>>,
    /// `None` if it cannot be read, which was reported.
    pub(crate) rule: Option<CallRule>,
}

/// Reads `rules`; `None` if there is no such key.
pub(super) fn read(fields: &Fields<'_>, findings: &mut Findings) -> Option<Vec<RuleEntry>> {
    let entry = fields.get("rules")?;
    match &entry.node.value {
        Value::List(items) => Some(items.iter().filter_map(|item| read_rule(item, findings)).collect()),
        _ => {
            value_kind::report("rules", &entry.node, "a list of rules; an empty one denies every call", findings);
            Some(Vec::new())
        }
    }
}

fn read_rule(node: &Node, findings: &mut Findings) -> Option<RuleEntry> {
    let fields = Fields::of(node, node.span, "a rule", KEYS, findings)?;
    let said = call_rule::ruling(&fields, node.span, findings);
    let tools = fields.get("tools").map(|_| fields.texts("tools", findings));
    let message = fields.text("message", findings).map(|message| message.value);
    let names = tools.as_ref().map(|tools| tools.iter().map(|name| name.value.clone()).collect());
    let rule = said.and_then(|(ruling, source)| {
        let compiled = CallRule::compile(ruling, &source.value, names, message);
        compiled.map_err(|unfit| expression::report(&source, unfit, findings)).ok()
    });
    Some(RuleEntry { tools, rule })
}
