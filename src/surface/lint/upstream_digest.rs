//! What an upstream offers was reviewed, and is pinned by its digest.

use crate::protocol::json::shortened;
use crate::surface::fields::Fields;
use crate::surface::file::PinEntry;
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::{At, Span};

pub(crate) const RULE: Rule =
    Rule::error("upstream-digest", "an upstream's list is pinned: `digest: sha256:` and 64 hex digits, or `any`");

pub(crate) const ANY: Rule = Rule::warning("any-digest", "an upstream's list is the one that was reviewed");

const REMEDY: &str = "run `twodoor probe` on it and review what it lists, then write the digest that it prints";

/// Reads `digest`.
pub(crate) fn read(fields: &Fields<'_>, owner: Span, findings: &mut Findings) -> Option<At<PinEntry>> {
    if fields.get("digest").is_none() {
        findings.report(&RULE, owner, "an upstream has no `digest`", REMEDY);
        return None;
    }
    let said = fields.text("digest", findings)?;
    let value = match said.value.as_str() {
        "any" => {
            let message = "any list of this upstream is taken, also one that nobody reviewed";
            findings.report(&ANY, said.span, message, REMEDY);
            PinEntry::Any
        }
        text => match text.parse() {
            Ok(digest) => PinEntry::One(digest),
            Err(_) => {
                let message = format!("{:?} is no digest", shortened(text, 80));
                findings.report(&RULE, said.span, message, REMEDY);
                return None;
            }
        },
    };
    Some(At { span: said.span, value })
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, upstream};

    #[test]
    fn a_list_is_pinned() {
        for bad in ["run: [ls]", "run: [ls], digest: abc", "run: [ls], digest: \"sha256:00\"", "run: [ls], digest: 7"] {
            let rule = if bad.ends_with('7') { super::super::value_kind::RULE } else { super::RULE };
            breaks(rule, &upstream(bad));
        }
        breaks(super::ANY, &upstream("run: [ls], digest: any"));
        let pinned = format!("run: [ls], digest: \"sha256:{}\"", "0".repeat(64));
        keeps(super::RULE, &upstream(&pinned));
        keeps(super::ANY, &upstream(&pinned));
    }
}
