//! What a name tells of effects: enough for a proposal, never enough to call a tool read-only.

use super::name::split;
use super::yaml::Line;

/// Verbs of what cannot be undone.
const IRREVERSIBLE: [&str; 39] = [
    "send",
    "delete",
    "remove",
    "purge",
    "drop",
    "pay",
    "purchase",
    "buy",
    "charge",
    "transfer",
    "post",
    "publish",
    "ban",
    "kick",
    "wire",
    "refund",
    "archive",
    "revoke",
    "deactivate",
    "wipe",
    "destroy",
    "truncate",
    "overwrite",
    "erase",
    "reset",
    "uninstall",
    "cancel",
    "terminate",
    "kill",
    "merge",
    "deploy",
    "release",
    "rollback",
    "approve",
    "submit",
    "execute",
    "invite",
    "unsubscribe",
    "prune",
];

/// Verbs of what looks.
const READING: [&str; 32] = [
    "get", "list", "read", "search", "find", "show", "view", "fetch", "status", "describe", "inspect", "check",
    "count", "lookup", "resolve", "query", "probe", "help", "summary", "stats", "log", "diff", "info", "version", "ls",
    "cat", "grep", "tree", "blame", "explain", "verify", "display",
];

/// The verb of what cannot be undone that a name carries.
pub(crate) fn irreversible(name: &str) -> Option<&'static str> {
    let words = split(name);
    let reads = reads(name);
    IRREVERSIBLE.into_iter().find(|verb| words.iter().any(|word| word == verb)).filter(|_| !reads)
}

/// Whether a name begins with a verb of what looks.
pub(crate) fn reads(name: &str) -> bool {
    split(name).first().is_some_and(|word| READING.contains(&word.as_str()))
}

/// What is said of a tool's effect for now, and what to decide, by the name of its last part.
pub(crate) fn lines(name: &str) -> Vec<Line> {
    if let Some(verb) = irreversible(name) {
        return vec![
            Line::Comment(format!("decide: {verb:?} reads like what cannot be undone; `true` if it can be.")),
            Line::flag("reversible", false),
        ];
    }
    let question = if reads(name) {
        "decide: it reads like a query. If it changes nothing, whatever its options, uncomment the next line."
    } else {
        "decide: what does it change? Uncomment one: nothing, nothing that stays, or what cannot be undone."
    };
    let mut lines = vec![Line::Comment(question.to_owned()), Line::off(Line::flag("read_only", true))];
    if !reads(name) {
        lines.push(Line::off(Line::flag("reversible", true)));
        lines.push(Line::off(Line::flag("reversible", false)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_verbs_by_words_alone() {
        assert_eq!(irreversible("remote_remove"), Some("remove"));
        assert_eq!(irreversible("deleteAll"), Some("delete"));
        assert_eq!(irreversible("list_archive"), None);
        assert_eq!(irreversible("reissue"), None);
        assert!(reads("getPet") && reads("log") && !reads("logout"));
    }
}
