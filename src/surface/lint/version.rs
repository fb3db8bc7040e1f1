//! The version is the contract's, so that a client can tell a breaking change by it.

use crate::protocol::json::shortened;
use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule = Rule::error("version", "the version is a semantic version");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    let Some(version) = &file.version else { return };
    let Err(error) = semver::Version::parse(&version.value) else { return };
    let message = format!("{:?} is not a semantic version: {error}", shortened(&version.value, 64));
    let text = version.value.trim_start_matches(['v', 'V']);
    let meant = [text.to_owned(), format!("{text}.0"), format!("{text}.0.0")];
    let meant = meant.into_iter().find(|text| semver::Version::parse(text).is_ok());
    findings.suggest(&RULE, version.span, message, "write MAJOR.MINOR.PATCH, such as 1.0.0", meant);
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, problems};

    #[test]
    fn versions_have_three_numbers() {
        let with = |version: &str| format!("surface: s\nversion: {version}\ntools: {{t: {{run: [ls]}}}}\n");
        for bad in ["1", "1.2", "v1.2.3", "\"\"", "1.02.3", "latest"] {
            breaks(super::RULE, &with(bad));
        }
        for good in ["1.2.3", "0.1.0-rc.1+build.5", "\"2.0.0\""] {
            keeps(super::RULE, &with(good));
        }
        for (bad, meant) in [("1.2", "1.2.0"), ("3", "3.0.0"), ("v1.2.3", "1.2.3")] {
            assert_eq!(problems(&with(bad)).list()[0].suggestion.as_deref(), Some(meant));
        }
    }
}
