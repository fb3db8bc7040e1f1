//! Words that are no verb of doing harm to the gate, and may mean one to whoever chose the name: `deletes`, `rm`,
//! `get-transfer-do`. They decide nothing; `check` tells of them.

use super::{JOINTS, VERBS, Verb, begins_with_reading, harm, readings};

/// Short and other words for a verb.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("rm", "remove"),
    ("rmdir", "remove"),
    ("unlink", "remove"),
    ("removal", "remove"),
    ("del", "delete"),
    ("deletion", "delete"),
    ("destruction", "destroy"),
    ("trunc", "truncate"),
    ("exec", "execute"),
    ("xfer", "transfer"),
    ("payout", "pay"),
    ("paid", "pay"),
    ("sent", "send"),
    ("bought", "buy"),
    ("unsub", "unsubscribe"),
    ("overwrote", "overwrite"),
    ("overwritten", "overwrite"),
];

/// What makes a deed of the thing before or after it.
const DOING: &[&str] =
    &["do", "make", "run", "perform", "trigger", "start", "begin", "apply", "commit", "confirm", "now"];

/// A word of a name without a verb of doing harm that may mean one all the same, and that verb.
pub fn near_verb(name: &str) -> Option<(String, &'static str)> {
    let readings = readings(name);
    if readings.iter().any(|words| harm(words).is_some()) {
        return None;
    }
    readings.iter().find_map(|words| {
        let other = |word: &String| OTHER_WORDS.iter().find(|(other, _)| other == word).map(|(_, verb)| *verb);
        if let Some(found) = words.iter().find_map(|word| Some((word.clone(), other(word)?))) {
            return Some(found);
        }
        let reading = begins_with_reading(words) && !words.iter().any(|word| JOINTS.contains(&word.as_str()));
        if reading {
            // A participle behind a verb of reading says of which things: `list-deleted`. A deed is something else.
            let does = words.iter().any(|word| DOING.contains(&word.as_str()));
            let thing = words.iter().find_map(|word| VERBS.iter().find(|verb| verb.noun && verb.name == word));
            return thing.filter(|_| does).map(|verb| (verb.name.to_owned(), verb.name));
        }
        words.iter().find_map(|word| {
            let verb = VERBS.iter().find(|verb| is_form_of(word, verb))?;
            Some((word.clone(), verb.name))
        })
    })
}

/// Whether a word is a regular form of a verb: `deletes`, `deleted`, `deleting`. The plural of what is as often a thing
/// is none: `blog-posts`.
fn is_form_of(word: &str, verb: &Verb) -> bool {
    let stem = verb.name.strip_suffix('e').unwrap_or(verb.name);
    let last = verb.name.chars().next_back().unwrap_or_default();
    let without_y = verb.name.strip_suffix('y').unwrap_or(verb.name);
    let rest = |start: &str| word.strip_prefix(start).unwrap_or_default();
    let plural = matches!(rest(verb.name), "s" | "es") || rest(without_y) == "ies";
    let past = matches!(rest(stem), "ed" | "ing") || (without_y != verb.name && rest(without_y) == "ied");
    let doubled = word.strip_prefix(verb.name).and_then(|rest| rest.strip_prefix(last)).unwrap_or_default();
    past || matches!(doubled, "ed" | "ing") || (plural && !verb.noun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_short_words_and_deeds_are_found_and_things_are_not() {
        for (name, word, verb) in [
            ("deletes", "deletes", "delete"),
            ("user_deleted", "deleted", "delete"),
            ("deletingAll", "deleting", "delete"),
            ("itemDROPPED", "dropped", "drop"),
            ("banning", "banning", "ban"),
            ("publishes", "publishes", "publish"),
            ("mail-sending", "sending", "send"),
            ("destroyed", "destroyed", "destroy"),
            ("cancelled", "cancelled", "cancel"),
            ("cancelling-order", "cancelling", "cancel"),
            ("rm", "rm", "remove"),
            ("unlink-file", "unlink", "remove"),
            ("get-rm", "rm", "remove"),
            ("get-transfer-do", "transfer", "transfer"),
            ("find-then-paying", "paying", "pay"),
        ] {
            assert_eq!(near_verb(name), Some((word.to_owned(), verb)), "{name}");
        }
        for name in [
            "delete",
            "rm-and-delete",
            "blog-posts",
            "list-deleted",
            "get-archived-items",
            "get-transfer",
            "sender",
            "resend-guard",
            "dropdown",
            "transfers",
            "form",
            "model",
            "killer",
            "payload",
            "run-process",
            "delta",
            "",
        ] {
            assert_eq!(near_verb(name), None, "{name}");
        }
    }
}
