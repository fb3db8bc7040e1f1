//! Which files of a folder are resources.

use crate::protocol::json::shortened;
use crate::surface::matching::Matching;
use crate::surface::problem::{Findings, Rule};
use crate::surface::source::At;

pub(crate) const RULE: Rule = Rule::error("glob", "`match` holds patterns of file names, such as `*.md`");

/// Reads the patterns of `match`.
pub(crate) fn read(patterns: &[At<String>], findings: &mut Findings) -> Matching {
    let mut matching = Matching::default();
    for At { span, value } in patterns {
        if let Err(why) = matching.add(value) {
            let message = format!("{:?} is no pattern: {why}", shortened(value, 64));
            findings.report(&RULE, *span, message, "write one such as *.md, *.{md,txt} or guide/**/*.md");
        }
    }
    matching
}

#[cfg(test)]
mod tests {
    use super::super::examples::{Folder, breaks_in, keeps_in, resource};

    #[test]
    fn a_pattern_can_be_matched() {
        let folder = Folder::new("glob");
        folder.make("docs");
        let with = |pattern: &str| resource(&format!("folder: docs\nmatch: {pattern}"));
        for bad in ["\"[a\"", "\"{a\"", "[\"*.md\", \"[\"]", "\"\"", "\"/a\"", "\"../*\""] {
            breaks_in(&folder, super::RULE, &with(bad));
        }
        for good in ["\"*.md\"", "[\"*.md\", \"*.txt\"]", "\"guide/**/*.md\"", "\"*.{md,txt}\""] {
            keeps_in(&folder, super::RULE, &with(good));
        }
    }
}
