//! Values that are mirrored in headers are read and logged by everything on the way.

use crate::surface::file::SurfaceFile;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule = Rule::warning("secret-header", "no secret is mirrored in a header");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for argument in file.backends().flat_map(|backend| &backend.input.arguments) {
        let Some(header) = &argument.header else { continue };
        if names_a_secret(&header.value) || names_a_secret(&argument.name.value) {
            let message = format!("{:?} looks like a secret, and routers and logs read headers", argument.name.value);
            findings.report(
                &RULE,
                header.span,
                message,
                "leave the header out; secrets belong in `env`, not in arguments",
            );
        }
    }
}

/// Whether one of a name's words, or two in a row, means a secret.
pub(super) fn names_a_secret(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "secret",
        "secrets",
        "token",
        "apikey",
        "credential",
        "credentials",
        "authorization",
        "bearer",
        "cookie",
        "privatekey",
        "accesskey",
        "jwt",
    ];
    let mut words: Vec<String> = Vec::new();
    let mut in_word = false;
    for (before, character) in std::iter::once(' ').chain(name.chars()).zip(name.chars()) {
        let begins = !in_word || (before.is_lowercase() && character.is_uppercase());
        in_word = character.is_alphanumeric();
        match words.last_mut().filter(|_| !begins) {
            _ if !in_word => {}
            Some(word) => word.extend(character.to_lowercase()),
            None => words.push(character.to_lowercase().collect()),
        }
    }
    let pairs = words.iter().zip(words.iter().skip(1)).map(|(a, b)| format!("{a}{b}"));
    words.iter().cloned().chain(pairs).any(|word| WORDS.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn a_secret_in_a_header_is_warned_of() {
        let with = |name: &str, header: &str| tool(&format!("args: {{{name}: {{type: string, header: {header}}}}}"));
        for (name, header) in [("region", "X-Api-Key"), ("api_key", "Key"), ("accessToken", "T"), ("a", "Password")] {
            breaks(super::RULE, &with(name, header));
        }
        for (name, header) in [("region", "Region"), ("tokenizer", "Tokenizer"), ("key", "Sort-Key")] {
            keeps(super::RULE, &with(name, header));
        }
        let schema = "{type: object, properties: {a: {type: string, x-mcp-header: Token}}}";
        breaks(super::RULE, &tool(&format!("inputSchema: {schema}")));
    }
}
