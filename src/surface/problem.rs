//! What is wrong with a surface file: each problem with its rule, its place and its remedy.
//!
//! Promises: a check goes on after a problem, so that one run names them all, in the order of the
//! file. Made by `tree`, `file`, `lint` and `load`; shown by `render`, or serialised for `--json`.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::source::{Source, Span};
use crate::protocol::json::visible;

/// Most problems that one run keeps; a file with more is answered with these and a count.
const PROBLEMS_KEPT: usize = 500;

/// Whether a problem keeps a surface from being served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The surface is refused.
    Error,
    /// The surface is served, but some clients will not get what was meant.
    Warning,
}

/// A rule that surface files are held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its name in messages and in `docs/surface-file.md`.
    pub id: &'static str,
    /// What breaking it means.
    pub severity: Severity,
    /// The rule in one sentence.
    pub text: &'static str,
}

impl Rule {
    pub(crate) const fn error(id: &'static str, text: &'static str) -> Self {
        Self { id, severity: Severity::Error, text }
    }

    pub(crate) const fn warning(id: &'static str, text: &'static str) -> Self {
        Self { id, severity: Severity::Warning, text }
    }
}

/// One way in which a surface file breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file.
    #[serde(serialize_with = "as_text")]
    pub file: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Column after the last character, on the same line.
    pub end_column: usize,
    /// What it means.
    pub severity: Severity,
    /// The rule's name.
    pub rule: &'static str,
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub remedy: String,
    /// What was probably meant: it may stand in the place of what is marked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The bytes that are marked, counted in the file without a byte order mark.
    #[serde(skip)]
    pub bytes: Range<usize>,
}

fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// The problems of one file, in its order. Serialises as the list of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    pub(super) source: Source,
    list: Vec<Problem>,
    dropped: usize,
}

impl Problems {
    /// The problems.
    pub fn list(&self) -> &[Problem] {
        &self.list
    }

    /// How many more there were than the list holds.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether any keeps the surface from being served.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|problem| problem.severity == Severity::Error)
    }
}

impl Serialize for Problems {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.list)
    }
}

impl fmt::Display for Problems {
    /// One line a problem: place, severity, rule and message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().enumerate() {
            let Problem { file, line, column, severity, rule, message, .. } = problem;
            let severity = if *severity == Severity::Error { "error" } else { "warning" };
            let end = if index == 0 { "" } else { "\n" };
            let (file, message) = (visible(file.display().to_string().chars()), visible(message.chars()));
            write!(f, "{end}{file}:{line}:{column}: {severity}[{rule}]: {message}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// A problem while the check is still running.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub(crate) rule: &'static str,
    pub(crate) severity: Severity,
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) remedy: String,
    pub(crate) suggestion: Option<String>,
}

/// Collects what a check finds.
#[derive(Debug)]
pub(crate) struct Findings {
    source: Source,
    list: Vec<Finding>,
    dropped: usize,
}

impl Findings {
    pub(crate) fn new(source: Source) -> Self {
        Self { source, list: Vec::new(), dropped: 0 }
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    pub(crate) fn report(&mut self, rule: &Rule, span: Span, message: impl Into<String>, remedy: impl Into<String>) {
        self.suggest(rule, span, message, remedy, None);
    }

    pub(crate) fn suggest(
        &mut self,
        rule: &Rule,
        span: Span,
        message: impl Into<String>,
        remedy: impl Into<String>,
        suggestion: Option<String>,
    ) {
        let Rule { id, severity, .. } = *rule;
        self.add(Finding { rule: id, severity, span, message: message.into(), remedy: remedy.into(), suggestion });
    }

    pub(crate) fn add(&mut self, finding: Finding) {
        if self.is_full() {
            self.dropped += 1;
        } else {
            self.list.push(finding);
        }
    }

    /// Takes what was found in a part of the same file.
    pub(crate) fn take(&mut self, part: Self) {
        self.dropped += part.dropped;
        part.list.into_iter().for_each(|finding| self.add(finding));
    }

    /// Whether what is found from here on is only counted, so that nothing need be looked for to mend it.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= PROBLEMS_KEPT
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.list.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// The problems in the order of the file, each once.
    pub(crate) fn into_problems(self) -> Problems {
        let Self { source, mut list, dropped } = self;
        list.sort_by_key(|finding| (finding.span.start, finding.severity));
        let mut seen = HashSet::new();
        list.retain(|finding| seen.insert((finding.span, finding.rule, finding.message.clone())));
        let list = list.into_iter().map(|finding| {
            let place = source.place(finding.span);
            Problem {
                file: source.file().to_owned(),
                line: place.line,
                column: place.column,
                end_column: place.end_column,
                severity: finding.severity,
                rule: finding.rule,
                message: finding.message,
                remedy: finding.remedy,
                suggestion: finding.suggestion,
                bytes: place.bytes,
            }
        });
        Problems { list: list.collect(), source, dropped }
    }
}

/// The word among those known that was probably meant, if one is near: a slip or two of the finger.
pub fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    /// Longest word that is compared: the distance is quadratic, and no known word comes near.
    const LONGEST: usize = 80;
    if word.len() > LONGEST {
        return None;
    }
    let folded = |text: &str| text.to_lowercase().replace('-', "_");
    let wanted = folded(word);
    let distances = known.into_iter().filter(|k| k.len() <= LONGEST).map(|known| {
        let distance = strsim::damerau_levenshtein(&wanted, &folded(known));
        (distance, known)
    });
    let (distance, known) = distances.min_by_key(|(distance, _)| *distance)?;
    let near = distance <= 1 + wanted.chars().count() / 4 && distance < wanted.chars().count();
    near.then(|| known.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_mended_and_another_word_is_not() {
        let known = ["description", "read_only", "inputSchema", "run", "env"];
        for (word, meant) in [
            ("descripton", Some("description")),
            ("readOnly", Some("read_only")),
            ("read-only", Some("read_only")),
            ("input_schema", Some("inputSchema")),
            ("rnu", Some("run")),
            ("x", None),
            ("banana", None),
        ] {
            assert_eq!(did_you_mean(word, known).as_deref(), meant, "{word}");
        }
        assert_eq!(did_you_mean(&"run".repeat(100), known), None);
    }

    #[test]
    fn a_flood_of_problems_is_cut_and_counted() {
        let mut findings = Findings::new(Source::new("f.yaml".into(), String::new()));
        const RULE: Rule = Rule::error("rule", "a rule");
        for index in 0..=PROBLEMS_KEPT {
            findings.report(&RULE, Span::START, format!("{index}"), "mend it");
        }
        let problems = findings.into_problems();
        assert_eq!((problems.list().len(), problems.dropped()), (PROBLEMS_KEPT, 1));
    }
}
