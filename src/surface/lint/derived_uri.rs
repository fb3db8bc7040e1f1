//! A resource that names no address has one made of the surface's name, where that makes one.

use crate::surface::address;
use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule =
    Rule::error("derived-uri", "a resource says its `uri` where the surface's name makes no scheme for one");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    let Some(surface) = &file.name else { return };
    if address::scheme(&surface.value).is_some() {
        return;
    }
    for resource in file.resources.iter().filter(|resource| resource.node.get("uri").is_none()) {
        let message = format!("the surface's name {:?} makes no scheme for an address", surface.value);
        let remedy = format!("write one, such as `uri: \"x-{}:a\"`", surface.value.to_lowercase());
        findings.report(&RULE, resource.name.span, message, remedy);
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, resource};

    #[test]
    fn a_name_that_is_no_scheme_needs_addresses() {
        let named = |name: &str, lines: &str| resource(lines).replace("surface: s", &format!("surface: {name}"));
        for name in ["\"1a\"", "_a", "http", "FILE", "data"] {
            breaks(super::RULE, &named(name, "text: x"));
            keeps(super::RULE, &named(name, "uri: \"x:a\"\ntext: x"));
        }
        for name in ["repo", "My_Notes", "a.b"] {
            keeps(super::RULE, &named(name, "text: x"));
        }
    }
}
