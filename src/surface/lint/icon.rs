//! A picture is fetched by clients, which take it from the web or out of the address itself.

use crate::protocol::json::shortened;
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::At;

pub(crate) const RULE: Rule = Rule::error("icon", "an icon's `src` is an `https:` or a `data:` address");

/// Checks an icon's address (2025-11-25 basic, Icons).
pub(crate) fn check(src: &At<String>, findings: &mut Findings) {
    let scheme = src.value.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    let blank = src.value.contains(|c: char| c.is_whitespace() || c.is_control());
    if blank || !matches!(scheme.as_deref(), Some("https" | "data")) {
        let message = format!("clients do not show an icon from {:?}", shortened(&src.value, 64));
        let remedy = "write an address such as https://example.com/icon.png, or the picture as data:image/png;base64,…";
        findings.report(&RULE, src.span, message, remedy);
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, problems, tool};

    #[test]
    fn an_icon_is_on_the_web_or_in_its_address() {
        let with = |src: &str| tool(&format!("icons: [{{src: {src}}}]"));
        for bad in ["icon.png", "\"http://a/b.png\"", "\"file:///icon.png\"", "\"javascript:x\"", "\"https://a/b c\""] {
            breaks(super::RULE, &with(bad));
        }
        for good in ["\"https://example.com/a.png\"", "\"data:image/png;base64,AAAA\""] {
            keeps(super::RULE, &with(good));
        }
        let whole = "icons: [{src: \"https://a/b\", mime_type: image/png, sizes: 48x48, theme: dark}]";
        assert!(problems(&tool(whole)).is_empty());
        breaks(super::super::missing_key::RULE, &tool("icons: [{theme: dark}]"));
        breaks(super::super::value_kind::RULE, &tool("icons: [{src: \"https://a/b\", theme: grey}]"));
        breaks(super::super::value_kind::RULE, &tool("icons: https://a/b"));
    }
}
