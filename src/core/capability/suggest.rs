//! Names that were probably meant, whatever the order of their words.
//!
//! Promises: the same ranking on every machine; the name that was typed is never suggested; work is bounded however long
//! the name is. Candidates come from manifests, what was typed from a peer. The score is the contract's and its vectors
//! hold to the last digit; words that differ in their spelling alone decide who is considered, and who comes first.

use std::collections::BTreeSet;

/// Most characters of a name that are compared.
const COMPARED_AT_MOST: usize = 199;
/// Most names that are suggested.
const SUGGESTED_AT_MOST: usize = 8;
/// Names that are told where none is near.
const LISTED_AT_MOST: usize = 15;
/// Least likeness of a name that shares no word.
const ALIKE: f64 = 0.5;
const FOR_EACH_WORD: f64 = 2.0;
const FOR_THE_SAME_WORDS: f64 = 10.0;

/// A name with how near it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near<'n> {
    /// The name.
    pub name: &'n str,
    /// How near; more is nearer.
    pub score: f64,
}

/// The names that are near what was typed, nearest first.
pub fn near<'n>(typed: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<Near<'n>> {
    let (compared, typed_words) = (capped(typed), Words::of(typed));
    let mut found: Vec<(bool, Near<'n>)> = names
        .into_iter()
        .filter(|name| *name != typed)
        .filter_map(|name| {
            let words = Words::of(name);
            let shared = typed_words.counted.intersection(&words.counted).count();
            let ratio = ratio_of(&compared, &capped(name));
            if shared == 0 && ratio < ALIKE && typed_words.loose.is_disjoint(&words.loose) {
                return None;
            }
            let same = typed_words.counted == words.counted;
            let score = ratio
                + FOR_EACH_WORD * f64::from(u32::try_from(shared).unwrap_or(u32::MAX))
                + if same { FOR_THE_SAME_WORDS } else { 0.0 };
            let alike = !typed_words.loose.is_empty() && typed_words.loose == words.loose;
            Some((alike, Near { name, score }))
        })
        .collect();
    found.sort_by(|(alike_a, a), (alike_b, b)| {
        alike_b.cmp(alike_a).then(b.score.total_cmp(&a.score)).then(a.name.cmp(b.name))
    });
    found.truncate(SUGGESTED_AT_MOST);
    found.into_iter().map(|(_, near)| near).collect()
}

/// What to suggest for an action: the near ones, or the first of all.
pub fn of_action<'n>(typed: &str, names: &[&'n str]) -> Vec<&'n str> {
    let near = near(typed, names.iter().copied());
    if near.is_empty() {
        return names.iter().copied().filter(|name| *name != typed).take(LISTED_AT_MOST).collect();
    }
    near.into_iter().map(|near| near.name).collect()
}

/// What to suggest for an argument: its twin in another spelling alone, else the near ones; nothing if none is near.
pub fn of_argument<'n>(typed: &str, names: &[&'n str]) -> Vec<&'n str> {
    let folded = |name: &str| name.to_lowercase().replace(['_', '.'], "-").trim_matches('-').to_owned();
    let twins: Vec<&str> =
        names.iter().copied().filter(|name| *name != typed && folded(name) == folded(typed)).collect();
    if twins.is_empty() {
        near(typed, names.iter().copied()).into_iter().map(|near| near.name).collect()
    } else {
        twins
    }
}

/// The words of a name. What is counted is bound by the contract's vectors, in which `_` parts no words and
/// `processes` is not the plural of `process`; what is loosely the same is not.
#[derive(Debug)]
struct Words {
    counted: BTreeSet<String>,
    loose: BTreeSet<String>,
}

impl Words {
    fn of(name: &str) -> Self {
        let name: String = name.chars().take(COMPARED_AT_MOST).collect();
        let hyphenated = in_hyphens(&name);
        let words = |separators: &[char], singular: fn(&str) -> String| {
            hyphenated.split(separators).filter(|word| !word.is_empty()).map(singular).collect()
        };
        Self { counted: words(&['-'], counted_singular), loose: words(&['-', '_'], loose_singular) }
    }
}

/// Camel humps, dots and spaces become hyphens, capitals small.
fn in_hyphens(name: &str) -> String {
    let mut out = String::new();
    let mut before: Option<char> = None;
    let mut characters = name.chars().peekable();
    while let Some(character) = characters.next() {
        let begins_word = character.is_uppercase()
            && before.is_some_and(|b| {
                b.is_lowercase()
                    || b.is_numeric()
                    || b.is_uppercase() && characters.peek().is_some_and(|n| n.is_lowercase())
            });
        if begins_word {
            out.push('-');
        }
        match character {
            '.' | ' ' | '/' | ':' => out.push('-'),
            other => out.extend(other.to_lowercase()),
        }
        before = Some(character);
    }
    out
}

fn counted_singular(word: &str) -> String {
    if let Some(singular) = in_y_or_hissing(word) {
        return singular;
    }
    let is_long = word.chars().count() > 3;
    word.strip_suffix('s').filter(|_| is_long).unwrap_or(word).to_owned()
}

fn loose_singular(word: &str) -> String {
    if let Some(singular) = in_y_or_hissing(word) {
        return singular;
    }
    let is_long = word.chars().count() > 3;
    if let Some(singular) = word.strip_suffix("es").filter(|singular| is_long && singular.ends_with('s')) {
        return singular.to_owned();
    }
    word.strip_suffix('s').filter(|rest| is_long && !rest.ends_with(['s', 'u'])).unwrap_or(word).to_owned()
}

/// The singular of `…ies`, `…xes`, `…zes`, `…ches`, `…shes`.
fn in_y_or_hissing(word: &str) -> Option<String> {
    if let Some(stem) = word.strip_suffix("ies").filter(|stem| stem.chars().count() > 1) {
        return Some(format!("{stem}y"));
    }
    let hisses = |stem: &&str| ["x", "z", "ch", "sh"].iter().any(|end| stem.ends_with(end));
    word.strip_suffix("es").filter(hisses).map(str::to_owned)
}

fn capped(name: &str) -> Vec<char> {
    name.to_lowercase().chars().take(COMPARED_AT_MOST).collect()
}

/// How alike two texts are, by Ratcliff and Obershelp: twice what their longest common blocks hold, found again and again
/// on both sides of each, over what both hold. From 0 to 1.
pub fn ratio(a: &str, b: &str) -> f64 {
    ratio_of(&capped(a), &capped(b))
}

fn ratio_of(a: &[char], b: &[char]) -> f64 {
    let both = a.len() + b.len();
    if both == 0 {
        return 1.0;
    }
    let mut matched = 0;
    let mut left = vec![(a, b)];
    while let Some((a, b)) = left.pop() {
        let (start_a, start_b, length) = longest_block(a, b);
        if length == 0 {
            continue;
        }
        matched += length;
        let before = (a.get(..start_a).unwrap_or_default(), b.get(..start_b).unwrap_or_default());
        let after = (a.get(start_a + length..).unwrap_or_default(), b.get(start_b + length..).unwrap_or_default());
        left.extend([before, after]);
    }
    let count = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    2.0 * count(matched) / count(both)
}

/// The longest block that stands in both; of several the earliest in `a`, then the earliest in `b`.
fn longest_block(a: &[char], b: &[char]) -> (usize, usize, usize) {
    let mut best = (0, 0, 0);
    // At `j + 1`: the length of the block that ends at `j` of `b` and at the last character of `a`.
    let (mut ending, mut next) = (vec![0; b.len() + 1], vec![0; b.len() + 1]);
    for (i, in_a) in a.iter().enumerate() {
        for ((j, in_b), (before, here)) in b.iter().enumerate().zip(ending.iter().zip(next.iter_mut().skip(1))) {
            let length: usize = if in_a == in_b { before + 1 } else { 0 };
            *here = length;
            if length > best.2 {
                best = (i + 1 - length, j + 1 - length, length);
            }
        }
        std::mem::swap(&mut ending, &mut next);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &[&str] = &["datastore-create", "datastore-update", "datastore-get-rows", "export", "list-processes"];

    #[test]
    fn the_contracts_suggestions_come_in_their_order_with_their_scores() {
        for (typed, names, expected) in [
            (
                "datastore-crate",
                FIRST,
                &[("datastore-create", 2.967_742), ("datastore-update", 2.838_710), ("datastore-get-rows", 2.666_667)]
                    [..],
            ),
            (
                "credential-list",
                &["list-credentials", "credential-test", "credential-get", "run-process"],
                &[("list-credentials", 14.709_677), ("credential-test", 2.866_667), ("credential-get", 2.827_586)],
            ),
            ("instances-list", &["list-instances"], &[("list-instances", 14.642_857)]),
            (
                "sheets-list",
                &["list-sheets", "read-sheet", "dump"],
                &[("list-sheets", 14.545_455), ("read-sheet", 2.476_190)],
            ),
            (
                "list_credentials",
                &["list-credentials", "credential-test"],
                &[("list-credentials", 0.937_500), ("credential-test", 0.709_677)],
            ),
            ("process-list", FIRST, &[("list-processes", 2.615_385)]),
            ("exprt", FIRST, &[("export", 0.909_091)]),
            (
                "get-status",
                &["get-statuses", "status-get", "statuses"],
                &[("status-get", 14.6), ("get-statuses", 2.909_091), ("statuses", 0.666_667)],
            ),
            ("datastore-create", &["send-email", "run-process"], &[]),
        ] {
            let found = near(typed, names.iter().copied());
            let ranked: Vec<&str> = found.iter().map(|near| near.name).collect();
            assert_eq!(ranked, expected.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "{typed}");
            for (near, (_, score)) in found.iter().zip(expected) {
                assert!((near.score - score).abs() < 0.000_001, "{typed}: {near:?}, not {score}");
            }
        }
    }

    #[test]
    fn the_contracts_ratios_hold() {
        for (a, b, expected) in
            [("abcd", "bcde", 0.75), ("qabxcd", "abycdf", 0.666_667), ("", "", 1.0), ("a", "", 0.0), ("", "a", 0.0)]
        {
            assert!((ratio(a, b) - expected).abs() < 0.000_001, "{a}/{b}: {}", ratio(a, b));
        }
        assert!((ratio("ÄÖÜ", "äöü") - 1.0).abs() < f64::EPSILON, "characters are counted, not bytes");
    }

    #[test]
    fn words_survive_order_plural_and_spelling() {
        for (typed, meant) in [
            ("processes-run", "run-process"),
            ("processRuns", "run-process"),
            ("entries.list", "list-entry"),
            ("boxes_get", "get-box"),
            ("HTTPServer-stop", "stop-http-servers"),
            ("branches", "branch"),
            ("statuses-get", "get-status"),
        ] {
            let names = ["unrelated", meant, "stop-the-run-of-list-entries-of-get-boxes"];
            assert_eq!(near(typed, names)[0].name, meant, "{typed}");
        }
    }

    #[test]
    fn the_name_that_was_typed_is_never_suggested() {
        assert_eq!(of_action("list", &["list", "lists"]), ["lists"]);
        assert_eq!(of_action("zz", &["zz", "a", "b"]), ["a", "b"]);
        assert_eq!(of_argument("path", &["path"]), [""; 0]);
    }

    #[test]
    fn where_nothing_is_near_the_first_fifteen_are_told_in_their_order() {
        let names: Vec<String> = (0..20).map(|n| format!("q{}", 20 - n)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(of_action("unlike", &names), names[..15]);
        assert_eq!(near("q", names.iter().copied()).len(), 8);
    }

    #[test]
    fn an_argument_in_another_spelling_has_its_twin_alone() {
        let names = ["max-results", "max-result-size", "path"];
        assert_eq!(of_argument("max_results", &names), ["max-results"]);
        assert_eq!(of_argument("Max.Results", &names), ["max-results"]);
        assert_eq!(of_argument("--max-results", &names), ["max-results"]);
        assert_eq!(of_argument("pth", &names), ["path"]);
        assert_eq!(of_argument("zzz", &names), [""; 0]);
    }

    #[test]
    fn a_name_of_a_megabyte_is_compared_by_its_beginning() {
        let long = "ab".repeat(500_000);
        let names: Vec<String> = (0..40).map(|n| format!("{}-{n}", "ba".repeat(90))).collect();
        assert_eq!(near(&long, names.iter().map(String::as_str)).len(), 8);
    }
}
