//! A default is a value that the caller could have given, of an argument that may be left out.

use std::path::{Component, Path};

use crate::protocol::schema::Schema;
use crate::surface::arguments::Origin;
use crate::surface::declaration::ArgumentKind;
use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule = Rule::error("default-value", "a default fits its argument, which is not required");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    let arguments = file.backends().flat_map(|tool| tool.input.arguments.iter().map(|a| (&tool.input.origin, a)));
    for (origin, argument) in arguments {
        let Some(default) = &argument.default else { continue };
        // A whole schema may come from elsewhere, where the two are customary beside each other.
        if argument.required && matches!(origin, Origin::Shorthand(_)) {
            let message = format!("{:?} is required, so its default is never used", argument.name.value);
            findings.report(&RULE, default.span, message, "leave out one of the two");
        }
        // A schema that does not compile is reported where it is published.
        let violations = Schema::compile(&argument.schema).map(|s| s.violations(&default.value.to_value()));
        if let Some(violation) = violations.unwrap_or_default().first() {
            let message = format!("the default does not fit: {}", violation.problem);
            findings.report(&RULE, default.span, message, "write a value that the argument's own rules let through");
        }
        let refused = (argument.kind == ArgumentKind::Path).then(|| default.value.as_str().and_then(outside)).flatten();
        if let Some(why) = refused {
            let message = format!("every call with this default would be refused: the path {why}");
            findings.report(
                &RULE,
                default.span,
                message,
                "write a path relative to `root` without `..`; `.` is `root`",
            );
        }
    }
}

/// Why a text can be no path beneath the root, whatever is on disk.
fn outside(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some("is empty");
    }
    Path::new(text).components().find_map(|part| match part {
        Component::ParentDir => Some("has a `..`"),
        Component::RootDir | Component::Prefix(_) => Some("is absolute"),
        Component::CurDir | Component::Normal(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn a_default_fits_its_argument() {
        let with = |arg: &str| tool(&format!("args: {{x: {{{arg}}}}}\nrun: [ls, \"--x={{x}}\"]"));
        for bad in [
            "type: integer, default: many",
            "type: integer, minimum: 1, default: 0",
            "type: string, enum: [a, b], default: c",
            "type: string, required: true, default: a",
        ] {
            breaks(super::RULE, &with(bad));
        }
        keeps(super::RULE, &with("type: integer, minimum: 1, default: 20"));
        let whole = "inputSchema: {type: object, properties: {x: {type: string, default: 5}}}\nrun: [ls, \"--x={x}\"]";
        breaks(super::RULE, &tool(whole));
    }

    #[test]
    fn the_default_of_a_path_is_one_that_a_call_could_give() {
        let args = |default: &str| {
            tool(&format!("args: {{x: {{type: string, as: path, default: {default}}}}}\nrun: [ls, --, \"{{x}}\"]"))
        };
        for bad in ["/etc", "..", "a/../b", "\"\""] {
            breaks(super::RULE, &args(bad));
        }
        for good in [".", "./a", "a/b", "a..b", "\"~\""] {
            keeps(super::RULE, &args(good));
        }
        let schema = "inputSchema: {type: object, properties: {x: {type: string, default: ../a}}}";
        breaks(super::RULE, &tool(&format!("{schema}\nas: {{x: path}}\nrun: [ls, --, \"{{x}}\"]")));
        keeps(super::RULE, &tool(&format!("{schema}\nrun: [ls, --, \"{{x}}\"]")));
    }
}
