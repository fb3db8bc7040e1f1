//! Names that pass through every client: some refuse dots, hide long names or rename what they do not like.

use crate::protocol::ToolName;
use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule = Rule::warning(
    "portable-name",
    "a tool's name is a letter, then letters, digits and _, at most 32; with the surface's name it stays within 60",
);

/// Longest name that clients show whole.
const NAME_CHARACTERS: usize = 32;
/// Longest `mcp__SURFACE__TOOL` that no client hides.
const WHOLE_CHARACTERS: usize = 60;

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    let surface = file.name.as_ref().map_or("", |name| name.value.as_str());
    for name in file.tools.iter().map(|tool| tool.name).filter(|name| ToolName::new(&name.value).is_some()) {
        let text = name.value.as_str();
        let whole = format!("mcp__{surface}__{text}").len();
        let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let (message, remedy) = if !plain {
            (format!("some clients refuse or rename {text:?}"), "use a letter first, then letters, digits and _")
        } else if text.len() > NAME_CHARACTERS {
            (format!("{text:?} has {} characters", text.len()), "keep it to 32: some clients cut or hide longer names")
        } else if whole > WHOLE_CHARACTERS {
            let message = format!("clients that call it mcp__{surface}__{text} count {whole} characters");
            (message, "shorten it or the surface's name: above 60 some clients hide the tool")
        } else {
            continue;
        };
        findings.report(&RULE, name.span, message, remedy);
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, named};

    #[test]
    fn names_that_some_client_refuses_are_warned_of() {
        for bad in ["a.b", "a-b", "1a", "_a", &"a".repeat(33)] {
            breaks(super::RULE, &named("s", &[bad]));
        }
        keeps(super::RULE, &named("s", &["read_file", "readFile2", &"a".repeat(32)]));
        let surface = "s".repeat(60 - "mcp____".len() - 20);
        keeps(super::RULE, &named(&surface, &[&"a".repeat(20)]));
        breaks(super::RULE, &named(&surface, &[&"a".repeat(21)]));
    }
}
