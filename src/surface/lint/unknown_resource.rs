//! A prompt that shows a resource shows one that there is.

use crate::protocol::Catalog;
use crate::surface::file::{SaidEntry, SurfaceFile};
use crate::surface::problem::{Findings, Rule};
use crate::surface::template;

pub(crate) const RULE: Rule = Rule::error("unknown-resource", "a prompt's resource is one that the surface has");

/// Looks every address without placeholders up in what will be published.
pub(crate) fn check(file: &SurfaceFile<'_>, catalog: &Catalog, findings: &mut Findings) {
    for said in file.prompts.iter().filter_map(|prompt| prompt.messages.as_ref()).flatten().map(|message| &message.said)
    {
        let (SaidEntry::Resource(uri) | SaidEntry::Link(uri)) = said else { continue };
        let Some(literal) = template::literal(&uri.value).filter(|uri| catalog.find(uri).is_none()) else { continue };
        let message = format!("there is no resource {literal:?} in this surface");
        let known = catalog.resources().iter().map(|resource| resource.uri.as_str());
        let meant = crate::surface::did_you_mean(literal, known);
        findings.suggest(&RULE, uri.span, message, "declare it below `resources:`, or correct its address", meant);
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, prompt};

    #[test]
    fn a_resource_that_is_not_there_is_not_shown() {
        let with = |uri: &str| {
            let resources = "resources: {motd: {text: Hello}}\ntemplates: {day: {uri: \"day:{d}\", text: \"{d}\"}}\n";
            format!(
                "{}{resources}",
                prompt(&format!("args: {{x: }}\nmessages: [{{text: \"{{x}}\"}}, {{resource: \"{uri}\"}}]"))
            )
        };
        breaks(super::RULE, &with("s:///motdd"));
        breaks(super::RULE, &with("day:a/b"));
        for good in ["s:///motd", "day:monday", "day:{x}"] {
            keeps(super::RULE, &with(good));
        }
    }
}
