//! A surface file while it is made: its head, its tools, and what has to be left out so that it can be served.
//!
//! Promises: what comes out passes `check` without an error, each tool held to the rules by itself; one that does not is
//! switched off, with the reason beside it. No tool is dropped in silence.

use std::path::Path;

use super::yaml::{self, Line, Yaml};
use crate::surface::{Problem, draft};

/// Most bytes that a surface file may have.
const FILE_BYTES: usize = 1024 * 1024;
/// Most bytes of one tool: nobody reads a longer one, and one alone must not keep the others from being written.
const TOOL_BYTES: usize = 128 * 1024;

/// A surface file, made for a person to review.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The file's text.
    pub text: String,
    /// How many tools it offers.
    pub tools: usize,
    /// The tools that are switched off in it, and why.
    pub withheld: Vec<(String, String)>,
    /// What else the operator should know.
    pub remarks: Vec<String>,
}

/// Why there is no surface file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// What was read is not what was expected.
    #[error("{problem}")]
    Unreadable {
        /// What is wrong.
        problem: String,
        /// How to mend it.
        remedy: String,
    },
    /// No tool is left that could be served.
    #[error("there is no tool to offer: {why}")]
    Nothing {
        /// The first reason.
        why: String,
    },
    /// A file of this size is refused.
    #[error("the surface file would have {bytes} bytes, and at most {FILE_BYTES} are read")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
}

impl ImportError {
    pub(crate) fn unreadable(problem: impl Into<String>, remedy: &str) -> Self {
        Self::Unreadable { problem: problem.into(), remedy: remedy.to_owned() }
    }

    /// How to mend it.
    pub fn remedy(&self) -> &str {
        match self {
            Self::Unreadable { remedy, .. } => remedy,
            Self::Nothing { .. } => "choose others, or write the surface file by hand: docs/surface-file.md",
            Self::TooLarge { .. } => "choose fewer tools: a model loses its way among more than 40",
        }
    }
}

/// What stands before the tools.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    /// Where it came from, and what to decide.
    pub(crate) comments: Vec<String>,
    /// The lines up to `tools`.
    pub(crate) lines: Vec<Line>,
}

/// A tool.
#[derive(Debug, Clone)]
pub(crate) struct Drafted<T> {
    pub(crate) name: String,
    /// What it is made of.
    pub(crate) of: T,
    /// Why it is switched off.
    pub(crate) off: Option<String>,
}

/// Holds each tool to the rules. What breaks one is mended by `mend`, given the problem and the text at its place, as often as it
/// can; after that the tool is switched off.
pub(crate) fn settle<T>(
    head: &Head,
    mut tools: Vec<Drafted<T>>,
    folder: &Path,
    lines: impl Fn(&T) -> Vec<Line>,
    mend: impl Fn(&mut T, &Problem, &str) -> bool,
) -> Result<Imported, ImportError> {
    /// More than a tool has options that could be wrong one by one.
    const ATTEMPTS: usize = 100;
    for tool in &mut tools {
        for attempt in 0.. {
            if tool.off.is_some() {
                break;
            }
            let bytes = written(&entry(tool, &lines)).len();
            if bytes > TOOL_BYTES {
                tool.off = Some(format!("it would take {bytes} bytes, and a tool takes at most {TOOL_BYTES}"));
                break;
            }
            let text = assemble(head, std::slice::from_ref(tool), &lines);
            let Err(problems) = draft::check(text.clone(), folder) else { break };
            let Some(problem) = draft::first_error(&problems) else { break };
            let at = text.get(problem.bytes.clone()).unwrap_or_default();
            if attempt >= ATTEMPTS || !mend(&mut tool.of, problem, at) {
                tool.off = Some(format!("{} ({})", problem.message, problem.rule));
            }
        }
    }
    let offered = tools.iter().filter(|tool| tool.off.is_none()).count();
    let withheld: Vec<_> = tools.iter().filter_map(|tool| Some((tool.name.clone(), tool.off.clone()?))).collect();
    if offered == 0 {
        let why = withheld.first().map_or_else(|| "none was found".to_owned(), |(name, why)| format!("{name}: {why}"));
        return Err(ImportError::Nothing { why });
    }
    let text = assemble(head, &tools, &lines);
    if text.len() > FILE_BYTES {
        return Err(ImportError::TooLarge { bytes: text.len() });
    }
    Ok(Imported { text, tools: offered, withheld, remarks: Vec::new() })
}

fn entry<T>(tool: &Drafted<T>, lines: &impl Fn(&T) -> Vec<Line>) -> Line {
    Line::Entry(tool.name.clone(), Yaml::Map(lines(&tool.of)))
}

fn written(line: &Line) -> String {
    yaml::document(std::slice::from_ref(line))
}

fn assemble<T>(head: &Head, tools: &[Drafted<T>], lines: &impl Fn(&T) -> Vec<Line>) -> String {
    let mut all: Vec<Line> = head.comments.iter().cloned().map(Line::Comment).collect();
    all.extend(head.lines.iter().cloned());
    all.push(Line::Blank);
    let mut entries = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        if index > 0 {
            entries.push(Line::Blank);
        }
        let entry = entry(tool, lines);
        match &tool.off {
            None => entries.push(entry),
            Some(why) if written(&entry).len() > TOOL_BYTES => {
                entries.push(Line::Comment(format!("left out: {}: {why}", tool.name)));
            }
            Some(why) => {
                entries.push(Line::Comment(format!("left out: {why}")));
                entries.push(Line::off(entry));
            }
        }
    }
    all.push(Line::Entry("tools".to_owned(), Yaml::Map(entries)));
    yaml::document(&all)
}
