//! A lock as it was read: hostile until its digest is found to be that of its definitions.

use std::path::Path;

use semver::Version;

use super::super::fields::Fields;
use super::super::lint::{unknown_key, value_kind};
use super::super::problem::{Findings, Problems};
use super::super::source::{self, Span};
use super::super::tree::{self, Node, Value};
use super::{CONFLICT, DIGEST, REMEDY, VERSION};
use crate::protocol::digest::of_foreign;
use crate::protocol::{Digest, Json, Revision};

/// What was reviewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// The surface's name, where the lock says it.
    pub surface: Option<String>,
    /// The surface's version, where the lock says it.
    pub version: Option<Version>,
    /// The definitions as the modern era receives them, where the lock holds them: they have its digest.
    pub tools: Option<Vec<Json>>,
    digest: Digest,
    revisions: Vec<(Revision, Digest)>,
    /// Where the digests stand; that of all revisions first.
    spans: Vec<(Option<Revision>, Span)>,
}

impl Lock {
    /// Reads a lock.
    pub fn read(path: &Path) -> Result<Self, Problems> {
        let mut findings = match source::open_as(path, REMEDY) {
            Ok(opened) => opened.findings,
            Err(findings) => return Err(findings.into_problems()),
        };
        Self::of(&mut findings).ok_or_else(|| findings.into_problems())
    }

    /// Reads the text of a lock; the path is what problems are reported for.
    pub fn parse(path: &Path, text: Vec<u8>) -> Result<Self, Problems> {
        let mut findings = source::decode(path, text).map(Findings::new).map_err(Findings::into_problems)?;
        Self::of(&mut findings).ok_or_else(|| findings.into_problems())
    }

    /// The digest of the tools as peers of a revision receive them.
    pub fn digest(&self, revision: Revision) -> Digest {
        let own = self.revisions.iter().find(|(own, _)| *own == revision);
        own.map_or(self.digest, |(_, digest)| *digest)
    }

    /// Where the digest of a revision stands.
    pub(super) fn span(&self, revision: Revision) -> Span {
        let own = self.spans.iter().find(|(own, _)| *own == Some(revision));
        own.or(self.spans.first()).map_or(Span::START, |(_, span)| *span)
    }

    /// What the findings' source says, if it is a lock; what is wrong with it stands in the findings.
    pub(super) fn of(findings: &mut Findings) -> Option<Self> {
        if findings.source().text().trim().is_empty() {
            findings.report(&VERSION, Span::START, "the lock is empty", REMEDY);
            return None;
        }
        if let Some(span) = conflict(findings.source().text()) {
            let remedy =
                "take the lock of one side, read what changed (`twodoor diff`), then write it with `twodoor lock`";
            findings.report(&CONFLICT, span, "a merge left both sides of a conflict here", remedy);
            return None;
        }
        let root = tree::parse(findings)?;
        let known = ["version", "surface", "surface_version", "digest", "revisions", "tools"];
        let fields = Fields::of(&root, Span::START, "a lock", &known, findings)?;
        for key in ["version", "digest"] {
            fields.require(key, REMEDY, findings);
        }
        let format = fields.get("version").and_then(|version| match &version.node.value {
            Value::Number(text) => Some(&**text),
            _ => None,
        });
        match (fields.get("version"), format) {
            (None, _) | (_, Some("1" | "2")) => {}
            (Some(version), _) => {
                let message = format!("the lock's version is {}", findings.source().slice(version.node.span));
                findings.report(&VERSION, version.node.span, message, format!("write 1 or 2; or {REMEDY}"));
            }
        }
        if format == Some("1") {
            // What came with the second version.
            for key in ["surface", "surface_version", "tools"] {
                if let Some(entry) = fields.get(key) {
                    unknown_key::report(entry, "a lock of version 1", &["version", "digest", "revisions"], findings);
                }
            }
        }
        let surface = fields.text("surface", findings).map(|name| name.value);
        let version = fields.text("surface_version", findings).and_then(|text| {
            let version = Version::parse(&text.value);
            if version.is_err() {
                findings.report(
                    &VERSION,
                    text.span,
                    "the surface's version in the lock is no semantic version",
                    REMEDY,
                );
            }
            version.ok()
        });
        let all = fields.get("digest").and_then(|entry| digest("digest", &entry.node, findings));
        let mut revisions = Vec::new();
        let mut spans: Vec<_> = fields.get("digest").iter().map(|entry| (None, entry.node.span)).collect();
        if let Some(entry) = fields.get("revisions") {
            let names = Revision::ALL.map(Revision::name);
            if entry.node.as_map().is_none() {
                value_kind::report("revisions", &entry.node, "a mapping of revisions to digests", findings);
            }
            for entry in entry.node.as_map().unwrap_or_default() {
                let Some(revision) = Revision::ALL.into_iter().find(|known| known.name() == entry.key.value) else {
                    unknown_key::report(entry, "`revisions`", &names, findings);
                    continue;
                };
                spans.push((Some(revision), entry.node.span));
                revisions.extend(digest(&entry.key.value, &entry.node, findings).map(|digest| (revision, digest)));
            }
        }
        let mut lock = Self { surface, version, digest: all?, revisions, spans, tools: None };
        if let Some(entry) = fields.get("tools") {
            match entry.node.to_json() {
                Json::Array(tools) => {
                    let found = of_foreign(&Json::Array(tools.clone())).sorted_keys;
                    if found != Some(lock.digest(Revision::MODERN)) {
                        let message =
                            "the tools in the lock do not have its digest: one of the two was changed by hand";
                        findings.report(&DIGEST, entry.key.span, message, REMEDY);
                    }
                    lock.tools = Some(tools);
                }
                _ => value_kind::report("tools", &entry.node, "a list of definitions", findings),
            }
        }
        (!findings.has_errors()).then_some(lock)
    }
}

/// Where a line stands that version control writes between the sides of a conflict.
fn conflict(text: &str) -> Option<Span> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end();
        if ["<<<<<<<", ">>>>>>>"].iter().any(|mark| bare == *mark || bare.starts_with(&format!("{mark} "))) {
            return Some(Span { start, end: start + bare.len() });
        }
        start += line.len();
    }
    None
}

fn digest(key: &str, node: &Node, findings: &mut Findings) -> Option<Digest> {
    let Some(text) = node.as_text() else {
        value_kind::report(key, node, "text", findings);
        return None;
    };
    let digest = text.parse();
    if let Err(error) = &digest {
        findings.report(&DIGEST, node.span, format!("{error}"), REMEDY);
    }
    digest.ok()
}
