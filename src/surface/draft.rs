//! Texts that are no surface file yet: a draft that is checked before it is written, and a foreign document in YAML.
//!
//! Promises: a draft is held to every rule that a file of the same text is held to, but for those on the file itself. A
//! foreign document is read with the bounds of a surface file, the size aside; nothing is read but the text. Used by
//! the importers.

use std::path::{Path, PathBuf};

use super::load::{self, Host, LoadedSurface};
use super::problem::{Findings, Problem, Problems, Severity};
use super::source::Source;
use super::tree;
use crate::protocol::Json;

/// Checks a text as the surface file that it will be; paths are relative to the folder. An error holds every problem.
pub fn check(text: String, folder: &Path) -> Result<LoadedSurface, Problems> {
    let findings = Findings::new(Source::new(folder.join("surface.yaml"), text));
    load::examine(findings, &Host::new(folder.to_owned()))
}

/// Reads YAML as the JSON that it stands for, up to so many bytes, aliases written out. Beside it stands what was passed
/// over: keys that are no text, keys that stand twice, and what else readers of YAML dispute.
pub(crate) fn read(text: String, bytes: usize) -> Result<(Json, Problems), Problems> {
    let mut findings = Findings::new(Source::new(PathBuf::from("document"), text));
    match tree::parse_within(bytes, &mut findings) {
        Some((node, _)) => Ok((node.to_json(), findings.into_problems())),
        None => Err(findings.into_problems()),
    }
}

/// The first error.
pub(crate) fn first_error(problems: &Problems) -> Option<&Problem> {
    problems.list().iter().find(|problem| problem.severity == Severity::Error)
}
