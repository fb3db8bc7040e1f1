//! An address on the web tells a client to fetch it there itself.

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::Span;

pub(crate) const RULE: Rule = Rule::warning("fetched-uri", "what this server reads has no address on the web");

/// 2026-07-28 server/resources, Common URI Schemes.
pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    let resources = file.resources.iter().filter_map(|resource| resource.uri.as_ref());
    let templates = file.templates.iter().filter_map(|template| template.uri.as_ref());
    let on_web = |uri: &str| ["http:", "https:"].iter().any(|scheme| uri.to_ascii_lowercase().starts_with(scheme));
    let spans: Vec<Span> = resources.chain(templates).filter(|uri| on_web(&uri.value)).map(|uri| uri.span).collect();
    for span in spans {
        let message = "clients fetch such an address themselves, past this server";
        findings.report(&RULE, span, message, "give it a scheme of your own, such as `docs:`");
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, resource, template};

    #[test]
    fn an_address_on_the_web_is_warned_of() {
        breaks(super::RULE, &resource("uri: \"https://example.com/a\"\ntext: x"));
        breaks(super::RULE, &resource("uri: \"HTTP://example.com/a\"\ntext: x"));
        breaks(super::RULE, &template("uri: \"https://example.com/{x}\"\ntext: \"{x}\""));
        keeps(super::RULE, &resource("uri: \"docs:a\"\ntext: x"));
    }
}
