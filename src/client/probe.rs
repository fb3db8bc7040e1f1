//! Opens both doors of a server and compares what they show.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::Options;
use super::door::{Door, Server};
use super::listing::{Listing, Published};
use super::peer::Target;
use crate::protocol::digest::{self, Digest, Foreign};
use crate::protocol::{Era, Json};

/// What both doors show, and what that means.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The address or the command.
    pub target: String,
    /// What it comes to.
    pub verdict: Verdict,
    /// The door for clients that send per-request metadata.
    pub modern: DoorReport,
    /// The door for clients that open with a handshake.
    pub legacy: DoorReport,
    /// In what the two lists differ, if both could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differences: Option<Differences>,
}

/// What a probe comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Both doors deliver one list, and what is published about it holds.
    Same,
    /// Both doors deliver one list, but a published digest is not its digest.
    PublishedDiffers,
    /// The lists differ.
    Differ,
    /// One door opens, the other does not.
    OneDoorOnly,
    /// No door opens.
    NoDoor,
    /// Both doors open, but a list could not be read strictly, or not at all.
    CannotTell,
}

impl Verdict {
    /// What a command ends with: 0 the same, 1 different, 2 cannot tell.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Same => 0,
            Self::PublishedDiffers | Self::Differ => 1,
            Self::OneDoorOnly | Self::NoDoor | Self::CannotTell => 2,
        }
    }
}

/// What one door shows.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DoorReport {
    /// Whether it opens.
    pub opens: bool,
    /// Whether the server said no, as opposed to not answering or answering nonsense.
    pub refused: bool,
    /// Why it does not open, or why its list cannot be used.
    pub problem: Option<String>,
    /// The revision spoken behind it.
    pub revision: Option<&'static str>,
    /// Who the server says it is.
    pub server: Option<Server>,
    /// Its instructions for models.
    pub instructions: Option<String>,
    /// The tools' names in order.
    pub tools: Option<Vec<String>>,
    /// How many pages they came in.
    pub pages: Option<usize>,
    /// The digest recomputed from the tools as delivered.
    pub digest: Option<Digests>,
    /// The digests that the server publishes.
    pub published: Vec<PublishedSays>,
    /// What is unusual.
    pub remarks: Vec<String>,
    /// The list itself.
    #[serde(skip)]
    pub listing: Option<Listing>,
}

/// A digest in both canonical forms, as text; `None` where a form has no text for a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Digests {
    /// Keys sorted by code point, numbers as CPython writes them.
    pub sorted_keys: Option<String>,
    /// RFC 8785.
    pub rfc8785: Option<String>,
}

impl From<Foreign> for Digests {
    fn from(digest: Foreign) -> Self {
        let text = |digest: Option<Digest>| digest.map(|digest| digest.to_string());
        Self { sorted_keys: text(digest.sorted_keys), rfc8785: text(digest.rfc8785) }
    }
}

/// A published digest against the recomputed one.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PublishedSays {
    /// The method whose answer carried it.
    pub from: &'static str,
    /// Its key in `_meta`.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Whether it is the recomputed digest in one of the forms; `None` without a list to recompute from.
    pub holds: Option<bool>,
}

/// In what two lists differ.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Differences {
    /// Names that the modern door alone delivers.
    pub only_modern: Vec<String>,
    /// Names that the legacy door alone delivers.
    pub only_legacy: Vec<String>,
    /// Tools that both deliver, differently.
    pub changed: Vec<Changed>,
    /// Whether the tools that both deliver come in another order.
    pub reordered: bool,
    /// Whether the lists agree in one canonical form only.
    pub one_form_only: bool,
}

/// A tool that two doors define differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// Its name.
    pub name: String,
    /// The members of its definition that differ.
    pub members: Vec<String>,
}

/// Opens the modern door, then the legacy door, each on a connection or process of its own.
pub async fn probe(target: &Target, options: &Options) -> Report {
    // One after the other: a program that locks something at its start must not meet itself.
    let modern = look(target, Era::Modern, options).await;
    let legacy = look(target, Era::Legacy, options).await;
    Report::new(target.shown(), modern, legacy)
}

async fn look(target: &Target, era: Era, options: &Options) -> DoorReport {
    let door = match Door::open(target, era, options).await {
        Ok(door) => door,
        Err(problem) => {
            return DoorReport {
                refused: problem.is_refusal(),
                problem: Some(problem.in_full()),
                ..DoorReport::default()
            };
        }
    };
    let listed = door.list_tools().await;
    let opening = door.opening().clone();
    let mut report = DoorReport {
        opens: true,
        revision: Some(opening.revision.name()),
        server: opening.server,
        instructions: opening.instructions,
        remarks: opening.remarks,
        ..DoorReport::default()
    };
    report.remarks.extend(door.strays());
    let end = door.close().await;
    let mut published = opening.published;
    match listed {
        Err(problem) => report.problem = Some(problem.with_end(end).in_full()),
        Ok(listing) => {
            if !opening.has_tools {
                report.remarks.push("it declares no tools, so none were asked for".to_owned());
            }
            published.extend(listing.published.iter().cloned());
            report.remarks.extend(listing.remarks.iter().cloned());
            report.tools = Some(listing.names());
            report.pages = Some(listing.pages);
            report.digest = Some(listing.digest.into());
            report.listing = Some(listing);
        }
    }
    let digest = report.listing.as_ref().map(|listing| listing.digest);
    report.published = published.into_iter().map(|found| says(found, digest)).collect();
    report
}

fn says(published: Published, digest: Option<Foreign>) -> PublishedSays {
    let claimed = published.value.parse::<Digest>().ok();
    let holds = digest.map(|digest| claimed.is_some() && [digest.sorted_keys, digest.rfc8785].contains(&claimed));
    PublishedSays { from: published.from, key: published.key, value: published.value, holds }
}

impl Report {
    fn new(target: String, modern: DoorReport, legacy: DoorReport) -> Self {
        let differences = match (&modern.listing, &legacy.listing) {
            (Some(modern), Some(legacy)) => Some(Differences::between(modern, legacy)),
            _ => None,
        };
        let false_claim = |door: &DoorReport| door.published.iter().any(|published| published.holds == Some(false));
        let verdict = match (&differences, modern.opens, legacy.opens) {
            (Some(differences), _, _) if !differences.is_none() => Verdict::Differ,
            (Some(_), _, _) if false_claim(&modern) || false_claim(&legacy) => Verdict::PublishedDiffers,
            (Some(_), _, _) => Verdict::Same,
            (None, true, true) => Verdict::CannotTell,
            (None, false, false) => Verdict::NoDoor,
            (None, _, _) => Verdict::OneDoorOnly,
        };
        Self { target, verdict, modern, legacy, differences }
    }

    /// The report for programs: one JSON object, indented.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// Whether two digests are of one list: 1.0 and 1 are the same to RFC 8785 alone.
fn agree(a: Option<Digest>, b: Option<Digest>) -> bool {
    a.is_some() && a == b
}

impl Differences {
    /// Compares two lists: by their digests, then by name, member and order.
    pub fn between(modern: &Listing, legacy: &Listing) -> Self {
        let sorted = agree(modern.digest.sorted_keys, legacy.digest.sorted_keys);
        let rfc8785 = agree(modern.digest.rfc8785, legacy.digest.rfc8785);
        if sorted || rfc8785 {
            return Self { one_form_only: sorted != rfc8785, ..Self::default() };
        }
        let (modern, legacy) = (keyed(modern), keyed(legacy));
        let only = |here: &[(Key, &Json)], there: &[(Key, &Json)]| {
            let there: BTreeSet<&Key> = there.iter().map(|(key, _)| key).collect();
            here.iter().filter(|(key, _)| !there.contains(key)).map(|(key, _)| key.0.clone()).collect::<Vec<_>>()
        };
        let by_key: BTreeMap<&Key, &Json> = legacy.iter().map(|(key, tool)| (key, *tool)).collect();
        let changed = modern.iter().filter_map(|(key, tool)| {
            let members = different_members(tool, by_key.get(key)?);
            (!members.is_empty()).then(|| Changed { name: key.0.clone(), members })
        });
        let shared_order = |here: &[(Key, &Json)], there: &[(Key, &Json)]| {
            let there: BTreeSet<&Key> = there.iter().map(|(key, _)| key).collect();
            here.iter().map(|(key, _)| key.clone()).filter(|key| there.contains(key)).collect::<Vec<_>>()
        };
        Self {
            only_modern: only(&modern, &legacy),
            only_legacy: only(&legacy, &modern),
            changed: changed.collect(),
            reordered: shared_order(&modern, &legacy) != shared_order(&legacy, &modern),
            one_form_only: false,
        }
    }

    /// Whether both lists are one.
    pub fn is_none(&self) -> bool {
        self.only_modern.is_empty() && self.only_legacy.is_empty() && self.changed.is_empty() && !self.reordered
    }
}

/// A tool's name, and which of several of that name it is.
type Key = (String, usize);

fn keyed(listing: &Listing) -> Vec<(Key, &Json)> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let key = |name: String| {
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        (name, *count)
    };
    listing.names().into_iter().map(key).zip(&listing.tools).collect()
}

fn different_members(a: &Json, b: &Json) -> Vec<String> {
    let differ = |a: Option<&Json>, b: Option<&Json>| a.map(digest::sorted_keys) != b.map(digest::sorted_keys);
    let (Some(first), Some(second)) = (a.as_object(), b.as_object()) else {
        return if differ(Some(a), Some(b)) { vec!["(no object)".to_owned()] } else { Vec::new() };
    };
    let names: BTreeSet<&String> = first.iter().chain(second).map(|(name, _)| name).collect();
    names.into_iter().filter(|name| differ(a.get(name), b.get(name))).cloned().collect()
}

#[cfg(test)]
mod tests;
