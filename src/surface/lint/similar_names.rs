//! Names that a person or a renaming client cannot tell apart let one tool stand in for another.

use std::collections::HashMap;

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule =
    Rule::error("similar-names", "no two tools' names differ only in case, in punctuation, or by 0 for o and 1 for l");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for name in file.tools.iter().map(|tool| tool.name) {
        if let Some(other) = seen.get(folded(&name.value).as_str()) {
            let message = format!("{:?} looks like {other:?} to people and to clients that rename", name.value);
            findings.report(&RULE, name.span, message, "rename one of the two, so that they differ in a word");
        } else {
            seen.insert(folded(&name.value), &name.value);
        }
    }
}

/// A name as people and renaming clients tell it from others.
pub(crate) fn folded(name: &str) -> String {
    let plain = name.chars().filter(|c| !matches!(c, '_' | '-' | '.'));
    plain
        .flat_map(char::to_lowercase)
        .map(|c| {
            if c == '0' {
                'o'
            } else if c == '1' {
                'l'
            } else {
                c
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, named};

    #[test]
    fn look_alikes_are_refused() {
        for pair in [["Read_File", "read_file"], ["read-file", "read_file"], ["tool1", "tooll"], ["l0g", "log"]] {
            breaks(super::RULE, &named("s", &pair));
        }
        keeps(super::RULE, &named("s", &["read_file", "read_files", "file_read"]));
    }
}
