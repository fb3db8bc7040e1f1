//! Actions by keywords: who has most of them, nearest first, and a plain word where there is nothing.
//!
//! Promises: the same order on every machine; an answer without matches says whether to go on looking. Reads nothing but
//! what it is given.

use std::cmp::Reverse;

use super::words::{Object, summary};
use crate::surface::manifest::CapabilityKind;

/// Most matches that are told where nothing is said.
pub const LIMIT: usize = 20;
/// Most matches that may be asked for.
pub const LIMIT_AT_MOST: usize = 50;

const DESCRIPTION_CHARACTERS: usize = 200;
/// More matches than so many times the limit are too many to choose from.
const VAGUE: usize = 3;
/// Segments of names that take something away: no match unless they are asked for.
const TAKES_AWAY: [&str; 6] = ["delete", "remove", "destroy", "drop", "purge", "uninstall"];

/// Something that can be found: an action, a capability without actions, or a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Findable<'r> {
    /// What it belongs to.
    pub kind: CapabilityKind,
    /// Whose it is.
    pub capability: &'r str,
    /// The action, if there are actions.
    pub action: Option<&'r str>,
    /// What it does.
    pub description: &'r str,
}

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Query<'q> {
    /// As typed.
    pub text: &'q str,
    /// The capability that it is confined to, if it is.
    pub name: Option<&'q str>,
    /// Most matches that are told.
    pub limit: usize,
}

/// Most keywords that are looked for: what is looked for is told of each, so many cost their square.
const TERMS: usize = 64;

struct Candidate<'r> {
    found: Findable<'r>,
    /// Of the informative terms, which stand in it.
    hits: Vec<usize>,
    score: usize,
    precision: f64,
}

/// Looks for the keywords among what can be found, which is confined already.
pub fn search(query: Query<'_>, among: &[Findable<'_>]) -> Object {
    let whole = query.text.trim().to_lowercase();
    let mut terms: Vec<&str> = Vec::new();
    for term in whole.split_whitespace() {
        if terms.len() < TERMS && !terms.contains(&term) {
            terms.push(term);
        }
    }
    let scope = query.name.map(str::to_lowercase);
    let mut informative: Vec<&str> = terms.iter().copied().filter(|term| scope.as_deref() != Some(*term)).collect();
    if informative.is_empty() {
        informative.clone_from(&terms);
    }
    let mut candidates: Vec<Candidate<'_>> =
        among.iter().filter_map(|found| candidate(*found, &informative, &whole)).collect();
    let most = candidates.iter().map(|candidate| candidate.hits.len()).max().unwrap_or(0);
    candidates.retain(|candidate| candidate.hits.len() == most);
    candidates.sort_by(|a, b| {
        let names =
            |c: &Candidate<'_>| (Reverse(c.score), c.found.capability.to_owned(), c.found.action.map(str::to_owned));
        b.precision.total_cmp(&a.precision).then_with(|| names(a).cmp(&names(b)))
    });
    let Some(top) = candidates.first() else { return nothing(&query) };
    let is_relaxed = most < informative.len();
    if is_relaxed {
        let survives = |index: &usize| candidates.iter().any(|candidate| candidate.hits.contains(index));
        let (matched, dropped): (Vec<usize>, Vec<usize>) = (0..informative.len()).partition(survives);
        let is_name = |index: &usize| {
            let term = informative.get(*index).copied();
            among.iter().any(|found| Some(found.capability.to_lowercase().as_str()) == term)
        };
        if matched.iter().all(is_name) {
            return nothing(&query)
                .with("relaxed", true)
                .with("matched_terms", named(&informative, &matched))
                .with("dropped_terms", named(&informative, &dropped));
        }
    }
    let total = candidates.len();
    let (matched, dropped): (Vec<usize>, Vec<usize>) =
        (0..informative.len()).partition(|index| top.hits.contains(index));
    let told: Vec<Object> = candidates.iter().take(query.limit).map(|candidate| told(&candidate.found)).collect();
    let dropped_names = named(&informative, &dropped);
    let hint = hint(&query, total, is_relaxed.then_some(dropped_names.as_slice()));
    let mut answer = Object::new()
        .with("query", query.text)
        .with("count", told.len())
        .with("total_matches", total)
        .with("matches", told);
    if is_relaxed {
        answer.put("relaxed", true);
        answer.put("matched_terms", named(&informative, &matched));
        answer.put("dropped_terms", dropped_names);
    }
    answer.with("hint", hint)
}

fn candidate<'r>(found: Findable<'r>, informative: &[&str], whole: &str) -> Option<Candidate<'r>> {
    let name = found.action.unwrap_or(found.capability).to_lowercase();
    let hay = match found.action {
        Some(_) => format!("{}.{name} {}", found.capability.to_lowercase(), found.description.to_lowercase()),
        None => format!("{name} {}", found.description.to_lowercase()),
    };
    let hits: Vec<usize> =
        informative.iter().enumerate().filter(|(_, term)| hay.contains(**term)).map(|(index, _)| index).collect();
    if hits.is_empty() {
        return None;
    }
    let in_name = informative.iter().filter(|term| name.contains(**term)).count();
    let bonus = match () {
        () if whole == name => 100,
        () if in_name == informative.len() => 50,
        () => 0,
    };
    Some(Candidate { found, score: 10 * in_name + bonus, precision: precision(&name, informative, &hits), hits })
}

/// The share of the name's segments that a hit accounts for; less by one where the name takes something away and nobody
/// asked for that.
fn precision(name: &str, informative: &[&str], hits: &[usize]) -> f64 {
    let segments: Vec<&str> = name.split(['-', '_']).filter(|segment| !segment.is_empty()).collect();
    let accounted = segments.iter().filter(|segment| {
        let mut hits = hits.iter().filter_map(|index| informative.get(*index));
        hits.any(|hit| hit.contains(**segment) || segment.contains(hit))
    });
    let count = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    let share = if segments.is_empty() { 0.0 } else { count(accounted.count()) / count(segments.len()) };
    let takes_away = segments.iter().any(|segment| TAKES_AWAY.contains(segment));
    let asked_for = informative.iter().any(|term| TAKES_AWAY.contains(term));
    if takes_away && !asked_for { share - 1.0 } else { share }
}

fn told(found: &Findable<'_>) -> Object {
    Object::new()
        .with("kind", found.kind.name())
        .with("name", found.capability)
        .with("action", found.action)
        .with("description", summary(found.description, DESCRIPTION_CHARACTERS))
}

fn named(terms: &[&str], indices: &[usize]) -> Vec<String> {
    indices.iter().filter_map(|index| terms.get(*index)).map(|term| (*term).to_owned()).collect()
}

fn nothing(query: &Query<'_>) -> Object {
    let hint = "No registered action has these words. This is conclusive: do not try again with synonyms. What you look \
                for may be a building block inside the system that a capability works on, not a capability itself.";
    Object::new()
        .with("query", query.text)
        .with("count", 0usize)
        .with("total_matches", 0usize)
        .with("matches", Vec::<Object>::new())
        .with("hint", hint)
}

fn hint(query: &Query<'_>, total: usize, dropped: Option<&[String]>) -> String {
    let mut hint = String::new();
    if let Some(dropped) = dropped {
        let words: Vec<String> = dropped.iter().map(|word| format!("{word:?}")).collect();
        hint = format!("No action has all words; the best match is without {}. ", words.join(", "));
        if total > VAGUE.saturating_mul(query.limit) {
            let narrow = if query.name.is_none() { ", and `name` for one capability" } else { "" };
            return format!("{hint}{total} actions match, which is too vague: add a verb{narrow}.");
        }
    }
    if total > query.limit {
        hint = format!("{hint}{} of {total} are shown: add a word to narrow it. ", query.limit);
    }
    format!("{hint}For the arguments of one action ask again with its `name` and `action`.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Json;

    const TOOL: CapabilityKind = CapabilityKind::Tool;

    fn action<'r>(capability: &'r str, action: &'r str, description: &'r str) -> Findable<'r> {
        Findable { kind: TOOL, capability, action: Some(action), description }
    }

    fn registry() -> Vec<Findable<'static>> {
        vec![
            action("bigtool", "datastore-create", "Create a store."),
            action("bigtool", "datastore-update", "Change a store."),
            action("bigtool", "datastore-get-rows", "Read from a store."),
            action("bigtool", "export", "Write a process as a .procesio bundle"),
            action("bigtool", "list-processes", "List them."),
            action("smalltool", "ping", "Answer."),
            Findable {
                kind: CapabilityKind::Agent,
                capability: "bigagent",
                action: Some("guidance"),
                description: "Tell how.",
            },
        ]
    }

    fn ask(text: &str, name: Option<&str>, among: &[Findable<'_>]) -> Json {
        let among: Vec<Findable<'_>> =
            among.iter().copied().filter(|found| name.is_none_or(|name| found.capability == name)).collect();
        search(Query { text, name, limit: LIMIT }, &among).into_json()
    }

    fn actions(answer: &Json) -> Vec<&str> {
        let Some(Json::Array(matches)) = answer.get("matches") else { panic!("{answer:?}") };
        matches.iter().map(|found| found.get("action").unwrap().as_str().unwrap()).collect()
    }

    fn texts(answer: &Json, key: &str) -> Option<Vec<String>> {
        let Json::Array(items) = answer.get(key)? else { panic!("{answer:?}") };
        Some(items.iter().map(|item| item.as_str().unwrap().to_owned()).collect())
    }

    fn ranked(text: &str, among: &[Findable<'_>]) -> Vec<(String, f64, usize)> {
        let terms: Vec<&str> = text.split_whitespace().collect();
        let found = among.iter().filter_map(|found| candidate(*found, &terms, text));
        let mut found: Vec<Candidate<'_>> = found.collect();
        let most = found.iter().map(|c| c.hits.len()).max().unwrap();
        found.retain(|c| c.hits.len() == most);
        found.into_iter().map(|c| (c.found.action.unwrap().to_owned(), c.precision, c.score)).collect()
    }

    #[test]
    fn one_word_finds_every_action_that_has_it_the_most_precise_first() {
        let answer = ask("datastore", None, &registry());
        assert_eq!(actions(&answer), ["datastore-create", "datastore-update", "datastore-get-rows"]);
        for (name, precision, score) in ranked("datastore", &registry()) {
            let expected = if name == "datastore-get-rows" { 1.0 / 3.0 } else { 0.5 };
            assert!((precision - expected).abs() < 1e-9 && score == 60, "{name} {precision} {score}");
        }
    }

    #[test]
    fn all_words_have_to_be_there_if_any_action_has_them_all() {
        let answer = ask("datastore rows", None, &registry());
        assert_eq!(actions(&answer), ["datastore-get-rows"]);
        let (_, precision, score) = ranked("datastore rows", &registry()).remove(0);
        assert!((precision - 2.0 / 3.0).abs() < 1e-9 && score == 70);
        for key in ["relaxed", "matched_terms", "dropped_terms"] {
            assert_eq!(answer.get(key), None, "a strict answer says nothing of {key}");
        }
    }

    #[test]
    fn a_word_of_the_description_finds_an_action_and_its_name_finds_it_better() {
        assert_eq!(actions(&ask("bundle", None, &registry())), ["export"]);
        assert_eq!(ranked("bundle", &registry()), [("export".to_owned(), 0.0, 0)]);
        assert_eq!(actions(&ask("export", None, &registry())), ["export"]);
        assert_eq!(ranked("export", &registry()), [("export".to_owned(), 1.0, 110)]);
    }

    #[test]
    fn a_word_that_nothing_has_is_dropped_and_named() {
        let answer = ask("datastore create template", None, &registry());
        assert_eq!(actions(&answer), ["datastore-create"]);
        assert_eq!(answer.get("relaxed"), Some(&Json::Bool(true)));
        assert_eq!(texts(&answer, "matched_terms").unwrap(), ["datastore", "create"]);
        assert_eq!(texts(&answer, "dropped_terms").unwrap(), ["template"]);
        assert!(answer.get("hint").unwrap().as_str().unwrap().contains("\"template\""));
    }

    #[test]
    fn the_action_with_most_words_wins_over_those_with_fewer() {
        let answer = ask("datastore export bundle", None, &registry());
        assert_eq!(actions(&answer), ["export"]);
        assert_eq!(texts(&answer, "matched_terms").unwrap(), ["export", "bundle"]);
        assert_eq!(texts(&answer, "dropped_terms").unwrap(), ["datastore"]);
    }

    #[test]
    fn the_name_that_it_is_confined_to_is_no_word_to_look_for() {
        let answer = ask("bigtool zzzz", Some("bigtool"), &registry());
        assert_eq!(actions(&answer), [""; 0]);
        assert_eq!(actions(&ask("bigtool", Some("bigtool"), &registry())).len(), 5, "alone it is");
        assert_eq!(actions(&ask("BIGTOOL Export", Some("bigtool"), &registry())), ["export"]);
    }

    #[test]
    fn where_only_the_name_of_a_capability_is_left_the_answer_is_empty_and_conclusive() {
        let answer = ask("bigtool nosuchthing", None, &registry());
        assert_eq!(actions(&answer), [""; 0]);
        assert_eq!(answer.get("relaxed"), Some(&Json::Bool(true)));
        assert_eq!(texts(&answer, "matched_terms").unwrap(), ["bigtool"]);
        assert_eq!(texts(&answer, "dropped_terms").unwrap(), ["nosuchthing"]);
        assert!(answer.get("hint").unwrap().as_str().unwrap().contains("conclusive"));
    }

    #[test]
    fn what_takes_away_comes_last_unless_it_is_asked_for() {
        let forms = [action("bigtool", "form-delete", "Delete it."), action("bigtool", "form-create", "Create it.")];
        assert_eq!(actions(&ask("form generate", None, &forms)), ["form-create", "form-delete"]);
        let precisions: Vec<f64> = ranked("form generate", &forms).into_iter().map(|(_, p, _)| p).collect();
        assert!((precisions[0] + 0.5).abs() < 1e-9 && (precisions[1] - 0.5).abs() < 1e-9);
        let asked = ask("form delete", None, &forms);
        assert_eq!(actions(&asked), ["form-delete"]);
        assert_eq!(asked.get("relaxed"), None);
    }

    #[test]
    fn no_more_than_the_limit_is_told_and_the_total_is_the_truth() {
        let names: Vec<String> = (0..70).map(|n| format!("item-{n:02}")).collect();
        let many: Vec<Findable<'_>> = names.iter().map(|name| action("bigtool", name, "")).collect();
        let answer = ask("item", None, &many);
        assert_eq!(actions(&answer).len(), LIMIT);
        assert_eq!(answer.get("total_matches"), Some(&Json::Number("70".into())));
        assert!(answer.get("hint").unwrap().as_str().unwrap().contains("20 of 70"));
        let vague = ask("item nosuchthing", None, &many);
        assert!(vague.get("hint").unwrap().as_str().unwrap().contains("too vague: add a verb, and `name`"));
        let confined = ask("item nosuchthing", Some("bigtool"), &many);
        assert!(confined.get("hint").unwrap().as_str().unwrap().ends_with("too vague: add a verb."));
    }

    #[test]
    fn a_capability_without_actions_is_found_by_its_own_name() {
        let flat = Findable { kind: TOOL, capability: "word-count", action: None, description: "Counts." };
        let answer = ask("word count", None, &[flat]);
        assert!(answer.to_owned().to_text().contains(r#""name":"word-count","action":null"#));
    }

    #[test]
    fn equal_matches_come_by_their_names() {
        let equal = [action("b", "run-x", ""), action("a", "run-y", ""), action("a", "run-x", "")];
        let answer = ask("run", None, &equal).to_text();
        let order: Vec<usize> = [r#""a","action":"run-x""#, r#""a","action":"run-y""#, r#""b","action""#]
            .map(|part| answer.find(part).unwrap())
            .to_vec();
        assert!(order.is_sorted(), "{answer}");
    }
}
