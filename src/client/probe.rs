//! Opens both doors of a server and compares what they show.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Options;
use super::door::{Door, Server};
use super::listing::{Listing, Published};
use super::peer::Target;
use crate::protocol::Era;
use crate::protocol::compare::{Change, Kind, compare};
use crate::protocol::digest::{Digest, Foreign};

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
    /// What each difference means to whoever relies on the modern door's list and is given the legacy door's.
    pub changes: Vec<Change>,
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
        let compared = compare(&modern.tools, &legacy.tools);
        let only = |here: &[String], there: &[String]| {
            let mut left: BTreeMap<&str, usize> = BTreeMap::new();
            there.iter().for_each(|name| *left.entry(name.as_str()).or_default() += 1);
            let unmatched = |name: &&String| match left.get_mut(name.as_str()) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    false
                }
                _ => true,
            };
            here.iter().filter(unmatched).cloned().collect::<Vec<_>>()
        };
        let (here, there) = (modern.names(), legacy.names());
        let mut changed: Vec<Changed> = Vec::new();
        for change in compared.changes().iter().filter(|change| change.kind == Kind::Changed) {
            let member = change.pointer.split('/').nth(1).unwrap_or("(no object)").to_owned();
            match changed.last_mut().filter(|last| last.name == change.tool) {
                Some(last) if last.members.contains(&member) => {}
                Some(last) => last.members.push(member),
                None => changed.push(Changed { name: change.tool.clone(), members: vec![member] }),
            }
        }
        changed.iter_mut().for_each(|changed| changed.members.sort());
        Self {
            only_modern: only(&here, &there),
            only_legacy: only(&there, &here),
            changed,
            reordered: compared.changes().iter().any(|change| change.kind == Kind::Reordered),
            one_form_only: false,
            changes: compared.changes().to_vec(),
        }
    }

    /// Whether both lists are one.
    pub fn is_none(&self) -> bool {
        self.only_modern.is_empty()
            && self.only_legacy.is_empty()
            && self.changed.is_empty()
            && self.changes.is_empty()
            && !self.reordered
    }
}

#[cfg(test)]
mod tests;
