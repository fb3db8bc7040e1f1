//! What a name tells of effects: enough for a proposal, never enough to call a tool read-only.

use super::name::split;
use super::yaml::Line;
use crate::surface::effect::{Policy, classify, is_read_verb_first};

/// Short words of command lines, beside the verbs that the gate knows.
const IRREVERSIBLE: [&str; 3] = ["rm", "prune", "rmi"];
const READING: [&str; 12] =
    ["log", "diff", "info", "version", "ls", "cat", "grep", "tree", "blame", "explain", "verify", "display"];

/// The verb of what cannot be undone that a name carries.
pub(crate) fn irreversible(name: &str) -> Option<&'static str> {
    let words = split(name);
    let short = || IRREVERSIBLE.into_iter().find(|verb| words.iter().any(|word| word == verb));
    classify([name], Policy::default()).verb.or_else(short)
}

/// Whether a name begins with a verb of what looks.
pub(crate) fn reads(name: &str) -> bool {
    is_read_verb_first(name) || split(name).first().is_some_and(|word| READING.contains(&word.as_str()))
}

/// What is said of a tool's effect for now, and what to decide, by its name.
pub(crate) fn lines(name: &str) -> Vec<Line> {
    if let Some(verb) = irreversible(name) {
        return vec![
            Line::Comment(format!("decide: {verb:?} reads like what cannot be undone; `true` if it can be.")),
            Line::flag("reversible", false),
        ];
    }
    if reads(name) {
        let question =
            "decide: it reads like a query. If it changes nothing, whatever its options, uncomment the next line.";
        return vec![Line::Comment(question.to_owned()), Line::off(Line::flag("read_only", true))];
    }
    let question = "decide: what does it change? Uncomment one: nothing, nothing that stays, or what cannot be undone.";
    vec![
        Line::Comment(question.to_owned()),
        Line::off(Line::flag("read_only", true)),
        Line::off(Line::flag("reversible", true)),
        Line::off(Line::flag("reversible", false)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_verbs_by_words_alone() {
        assert_eq!(irreversible("remote_remove"), Some("remove"));
        assert_eq!(irreversible("deleteAll"), Some("delete"));
        assert_eq!(irreversible("container_prune"), Some("prune"));
        assert_eq!(irreversible("list_archive"), None);
        assert_eq!(irreversible("reissue"), None);
        assert!(reads("getPet") && reads("log") && !reads("logout"));
    }
}
