//! What an argument's text is decides what it may look like: a path stays beneath the root.

use super::value_kind;
use crate::surface::declaration::ArgumentKind;
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::At;

pub(crate) const RULE: Rule =
    Rule::error("argument-as", "`as: path` is for strings, `as: data` for strings and numbers");

/// Reads the value of `as`.
pub(crate) fn read(said: &At<String>, kind: Option<&str>, findings: &mut Findings) -> ArgumentKind {
    let (role, fits): (_, &[&str]) = match said.value.as_str() {
        "path" => (ArgumentKind::Path, &["string"]),
        "data" => (ArgumentKind::Data, &["string", "integer", "number"]),
        _ => {
            value_kind::one_of("as", said, &["path", "data"], findings);
            return ArgumentKind::Value;
        }
    };
    if let Some(kind) = kind.filter(|kind| !fits.contains(kind)) {
        let message = format!("`as: {}` does not suit the type {kind:?}", said.value);
        findings.report(&RULE, said.span, message, format!("use it with the type {}", fits.join(" or ")));
    }
    role
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn a_path_is_text() {
        let with = |arg: &str| tool(&format!("args: {{x: {{{arg}}}}}\nrun: [ls, --, \"{{x}}\"]"));
        breaks(super::RULE, &with("type: integer, as: path"));
        breaks(super::RULE, &with("type: boolean, as: data"));
        keeps(super::RULE, &with("type: string, as: path"));
        keeps(super::RULE, &with("type: integer, as: data"));
    }
}
