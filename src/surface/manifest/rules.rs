//! What manifests are held to beyond the rules that every YAML file here is held to.

use crate::surface::problem::Rule;

/// A name that cannot be used.
pub(super) const NAME: Rule = Rule::error(
    "manifest-name",
    "names are ASCII: of a capability A-Z a-z 0-9 _ . -, of an action : too, of an argument a letter first",
);
/// A name twice.
pub(super) const TWICE: Rule =
    Rule::error("manifest-twice", "a name stands once among its kind; of two capabilities the first by path counts");
/// Both flat and of actions.
pub(super) const SHAPE: Rule =
    Rule::error("manifest-shape", "a capability has `args` or `actions`, not both, and what it refers to");
/// An entry point that cannot be run.
pub(super) const ENTRYPOINT: Rule =
    Rule::error("manifest-entrypoint", "the entry point is a file beneath its manifest's folder that can be run");
/// A secret that cannot be referred to.
pub(super) const SECRET: Rule = Rule::error(
    "manifest-secret",
    "a secret is NAME or SPACE:NAME, and none of the variables that programs are started with",
);
/// A number of runs that is none.
pub(super) const CONCURRENT: Rule =
    Rule::error("manifest-concurrent", "`max_concurrent` is a whole number of runs at once, from 1 to 64");
/// A schema that is none.
pub(super) const SCHEMA: Rule = Rule::error("manifest-schema", "the schema of an argument is a JSON Schema");
/// No front matter.
pub(super) const FRONT_MATTER: Rule =
    Rule::error("manifest-front-matter", "a SKILL.md begins with front matter: YAML between two lines of `---`");
/// More than is read.
pub(super) const TOO_MANY: Rule =
    Rule::error("registry-size", "a registry has at most 1,000 folders of each kind and 64 MiB of manifests");
/// The list of hidden tools cannot be read.
pub(super) const HIDDEN: Rule =
    Rule::error("registry-hidden", "hidden-tools.json is an object with a list of folders' names under `hide`");

/// Every rule on manifests that is not one of all YAML files.
pub fn rules() -> Vec<Rule> {
    vec![NAME, TWICE, SHAPE, ENTRYPOINT, SECRET, CONCURRENT, SCHEMA, FRONT_MATTER, TOO_MANY, HIDDEN]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_on_manifests_stands_in_its_page() {
        let page = include_str!("../../../docs/capabilities.md");
        for rule in rules() {
            let row = format!("| `{}` | error | {} |", rule.id, rule.text);
            assert!(page.contains(&row), "docs/capabilities.md lacks the line\n{row}");
        }
    }
}
