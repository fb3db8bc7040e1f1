//! A surface file is read, reviewed and committed; a secret in it is no secret.

use super::secret_header::names_a_secret;
use crate::surface::declaration::Variable;
use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule = Rule::warning("secret-literal", "no secret is written into a surface file");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for variable in file.backends().flat_map(|backend| &backend.env) {
        let Variable::Literal(name, value) = &variable.value else { continue };
        if names_a_secret(name) && !value.is_empty() {
            let remedy =
                format!("write the name alone, as in `env: [{name}]`: it is then taken from the server's environment");
            findings.report(
                &RULE,
                variable.span,
                format!("{name:?} looks like a secret in a file that others read"),
                remedy,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn a_secret_in_the_file_is_warned_of() {
        breaks(super::RULE, &tool("env: {GITHUB_TOKEN: abc}"));
        keeps(super::RULE, &tool("env: [GITHUB_TOKEN]"));
        keeps(super::RULE, &tool("env: {TZ: UTC, GIT_TERMINAL_PROMPT: 0}"));
    }
}
