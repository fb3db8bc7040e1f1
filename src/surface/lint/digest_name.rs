//! A published digest is found by its name: whoever looks for it does not know the prefix.

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule =
    Rule::warning("digest-name", "`digest_key` ends in `/toolsDigest`, by which clients and `twodoor probe` find it");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    // Without a prefix it is no key at all, which the catalog reports.
    let Some(key) = &file.digest_key else { return };
    let Some((prefix, name)) = key.value.split_once('/') else { return };
    if name != "toolsDigest" {
        let message = "no client that looks for a digest, nor `twodoor probe`, finds it under this name";
        let meant = format!("{prefix}/toolsDigest");
        findings.suggest(&RULE, key.span, message, "keep the prefix and end it in `/toolsDigest`", Some(meant));
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, problems, tool};

    #[test]
    fn a_digest_that_nobody_finds_is_warned_of() {
        let with = |key: &str| format!("digest_key: {key}\n{}", tool(""));
        for bad in ["com.example/digest", "com.example/toolsdigest", "com.example/v1.toolsDigest"] {
            breaks(super::RULE, &with(bad));
        }
        keeps(super::RULE, &with("com.example/toolsDigest"));
        keeps(super::RULE, &with("nokey"));
        let problems = problems(&with("com.example/digest"));
        assert_eq!(problems.list()[0].suggestion.as_deref(), Some("com.example/toolsDigest"));
    }
}
