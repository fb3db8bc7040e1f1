//! Names that pass through every client: a letter, then letters, digits and `_`, at most 32, each told from the others.

use std::collections::HashSet;

use crate::surface::folded;

/// Longest tool name that clients show whole.
const TOOL_CHARACTERS: usize = 32;
/// Longest surface name beside which the longest tool name still stays within what clients count.
const SURFACE_CHARACTERS: usize = 20;

/// Words that tell little.
const FILLERS: [&str; 12] = ["the", "a", "an", "of", "for", "to", "by", "with", "and", "in", "on", "from"];

/// Long words that everybody knows a short form of.
const SHORT: &[(&str, &str)] = &[
    ("administrator", "admin"),
    ("application", "app"),
    ("applications", "apps"),
    ("attribute", "attr"),
    ("attributes", "attrs"),
    ("authenticated", "auth"),
    ("authentication", "auth"),
    ("authorization", "authz"),
    ("configuration", "config"),
    ("configurations", "configs"),
    ("database", "db"),
    ("description", "desc"),
    ("directory", "dir"),
    ("document", "doc"),
    ("documents", "docs"),
    ("environment", "env"),
    ("environments", "envs"),
    ("identifier", "id"),
    ("information", "info"),
    ("message", "msg"),
    ("messages", "msgs"),
    ("notification", "notice"),
    ("notifications", "notices"),
    ("organization", "org"),
    ("organizations", "orgs"),
    ("parameter", "param"),
    ("parameters", "params"),
    ("password", "pass"),
    ("permission", "perm"),
    ("permissions", "perms"),
    ("reference", "ref"),
    ("references", "refs"),
    ("repositories", "repos"),
    ("repository", "repo"),
    ("specification", "spec"),
    ("statistics", "stats"),
    ("subscription", "sub"),
    ("subscriptions", "subs"),
    ("transaction", "txn"),
    ("transactions", "txns"),
];

/// The names given so far.
#[derive(Debug, Default)]
pub(crate) struct Names(HashSet<String>);

impl Names {
    /// A portable name near to a text, unlike all given before.
    pub(crate) fn take(&mut self, wanted: &str) -> String {
        let name = portable(wanted, TOOL_CHARACTERS);
        // Alike to people: counted on until it is not.
        let mut candidates = std::iter::once(name.clone()).chain((2u32..).map(|number| {
            let suffix = format!("_{number}");
            let room = TOOL_CHARACTERS - suffix.len();
            format!("{}{suffix}", name.get(..name.len().min(room)).unwrap_or_default().trim_end_matches('_'))
        }));
        let free = candidates.find(|name| self.0.insert(folded(name)));
        free.unwrap_or(name)
    }
}

/// A name for a surface, without words that any of its kind has: short enough that its tools' names stay within what
/// clients count.
pub(crate) fn of_surface(wanted: &str, idle: &[&str]) -> String {
    let words: Vec<String> = split(wanted).into_iter().filter(|word| !idle.contains(&word.as_str())).collect();
    let wanted = if words.is_empty() { wanted.to_owned() } else { words.join("_") };
    let name = portable(&wanted.to_ascii_lowercase(), SURFACE_CHARACTERS);
    // A client keeps that one for itself.
    if name == "workspace" { "workspace_tools".to_owned() } else { name }
}

/// A name for an environment variable.
pub(crate) fn of_variable(words: &[&str]) -> String {
    let text = words.iter().flat_map(|word| split(word)).collect::<Vec<_>>().join("_").to_ascii_uppercase();
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) { text } else { format!("API_{text}") }
}

/// A name for an argument, which may have more: 1 to 64 of `A-Z a-z 0-9 _ . -`.
pub(crate) fn of_argument(wanted: &str) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let mut name = String::new();
    for character in wanted.chars() {
        if kept(character) {
            name.push(character);
        } else if !name.ends_with('_') {
            name.push('_');
        }
    }
    let name = name.trim_matches('_');
    let name = name.get(..name.len().min(64)).unwrap_or_default();
    if name.is_empty() { "value".to_owned() } else { name.to_owned() }
}

fn portable(wanted: &str, most: usize) -> String {
    let plain = wanted.starts_with(|c: char| c.is_ascii_alphabetic())
        && wanted.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if plain && wanted.len() <= most {
        return wanted.to_owned();
    }
    let parts: Vec<&str> = wanted.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    let joined = lettered(&parts.join("_"));
    if joined.len() <= most {
        return joined;
    }
    shortened(split(wanted), most)
}

/// Words joined within so many characters: fillers left out, long words shortened, then words out of the middle.
fn shortened(mut words: Vec<String>, most: usize) -> String {
    let length = |words: &[String]| lettered(&words.join("_")).len();
    if length(&words) > most {
        words.retain(|word| !FILLERS.contains(&word.as_str()));
    }
    for word in &mut words {
        if let Some((_, short)) = SHORT.iter().find(|(long, _)| long == word) {
            (*short).clone_into(word);
        }
    }
    words.dedup();
    while length(&words) > most && words.len() > 1 {
        // A verb and its thing stay as long as they can.
        words.remove(if words.len() > 3 { words.len() - 2 } else { words.len() - 1 });
    }
    let name = lettered(&words.join("_"));
    name.get(..name.len().min(most)).unwrap_or_default().trim_end_matches('_').to_owned()
}

/// With a letter in front.
fn lettered(name: &str) -> String {
    match name.chars().next() {
        None => "tool".to_owned(),
        Some(first) if first.is_ascii_alphabetic() => name.to_owned(),
        Some(_) => format!("t{name}"),
    }
}

/// The words of a name, in lower case: `listPetsForOwner` has four.
pub(crate) fn split(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in name.split(|c: char| !c.is_ascii_alphanumeric()) {
        let characters: Vec<char> = part.chars().collect();
        let mut word = String::new();
        for (index, character) in characters.iter().enumerate() {
            let before = index.checked_sub(1).and_then(|index| characters.get(index));
            let after = characters.get(index + 1);
            // `listHTTPHosts`: a word begins where lower case ends, and at the last capital of several.
            let begins = character.is_ascii_uppercase()
                && (before.is_some_and(|b| !b.is_ascii_uppercase())
                    || (before.is_some() && after.is_some_and(char::is_ascii_lowercase)));
            if begins && !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            word.push(character.to_ascii_lowercase());
        }
        if !word.is_empty() {
            words.push(word);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_stay_readable_and_become_portable() {
        let mut names = Names::default();
        for (wanted, name) in [
            ("getPetById", "getPetById"),
            ("repos/list-for-org", "repos_list_for_org"),
            ("remote add", "remote_add"),
            ("2fa.check", "t2fa_check"),
            ("", "tool"),
            ("größe", "gr_e"),
            ("repos/list-for-org", "repos_list_for_org_2"),
            ("repos_listForOrg", "repos_listForOrg_3"),
            ("actions/set-github-actions-permissions-organization", "actions_set_github_actions_org"),
            ("getApplicationConfigurationForTheEnvironment", "get_app_config_env"),
        ] {
            assert_eq!(names.take(wanted), name);
        }
        assert_eq!(of_surface("Swagger Petstore - OpenAPI 3.0", &["open", "api", "3", "0"]), "swagger_petstore");
        assert_eq!(of_surface("workspace", &[]), "workspace_tools");
        assert_eq!(of_surface("secure-filesystem-server", &["server"]), "secure_filesystem");
        assert_eq!(of_surface("MCP", &["mcp"]), "mcp");
        assert_eq!(of_argument("filter[name]"), "filter_name");
        assert_eq!(of_variable(&["pet-store", "api_key"]), "PET_STORE_API_KEY");
        assert_eq!(split("listHTTPHosts v2"), ["list", "http", "hosts", "v2"]);
    }

    proptest! {
        #[test]
        fn whatever_is_wanted_is_portable_and_told_from_the_others(wanted in prop::collection::vec(".{0,80}", 1..20)) {
            let mut names = Names::default();
            let given: Vec<String> = wanted.iter().map(|wanted| names.take(wanted)).collect();
            let alike: HashSet<String> = given.iter().map(|name| folded(name)).collect();
            prop_assert_eq!(alike.len(), given.len());
            for name in given {
                prop_assert!(name.len() <= 32 && name.starts_with(|c: char| c.is_ascii_alphabetic()), "{}", name);
                prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'), "{}", name);
            }
        }
    }
}
