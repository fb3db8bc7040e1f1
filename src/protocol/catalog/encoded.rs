//! What peers of each revision are sent of a catalog, encoded once.

use bytes::{Bytes, BytesMut};

use super::definition;
use super::parts::{CacheScope, CatalogParts};
use super::served::Served;
use super::skills::SkillParts;
use super::{SERVER_INFO_KEY, SKILLS_EXTENSION, TASKS_EXTENSION};
use crate::protocol::content::{object, text};
use crate::protocol::digest::{self, Digest};
use crate::protocol::json::{Json, JsonLimits, RawJson};
use crate::protocol::revision::{Era, Revision, Rules, Tasks};

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// `tools/list`
    Tools,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
    /// `prompts/list`
    Prompts,
    /// `skills/list`
    Skills,
}

impl List {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts, Self::Skills];

    /// The member of the result that holds the definitions.
    pub fn key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
            Self::Skills => "skills",
        }
    }
}

/// One page of a list.
#[derive(Debug)]
pub struct Page {
    /// The whole result, as if no page followed.
    text: Bytes,
    /// Whether one follows.
    more: bool,
}

impl Page {
    /// The definitions on it.
    pub(super) fn definitions(&self, list: List) -> Vec<Json> {
        // Ours, so that no limit is needed but the parser's own.
        let limits = JsonLimits { depth: 127, keys: usize::MAX, items: usize::MAX };
        match Json::parse(&self.text, &limits) {
            Ok(Json::Object(members)) => members.into_iter().find(|(key, _)| key == list.key()).map(|(_, items)| items),
            _ => None,
        }
        .and_then(|items| if let Json::Array(items) = items { Some(items) } else { None })
        .unwrap_or_default()
    }

    /// The result; `cursor` makes the cursor of the next page, where there is one.
    pub(in crate::protocol) fn result(&self, cursor: impl FnOnce() -> String) -> Bytes {
        let Some(open) = self.text.strip_suffix(b"}").filter(|_| self.more) else { return self.text.clone() };
        let cursor = RawJson::encode(&cursor());
        let mut out = BytesMut::with_capacity(open.len() + cursor.as_bytes().len() + 16);
        for part in [open, b",\"nextCursor\":", cursor.as_bytes(), b"}"] {
            out.extend_from_slice(part);
        }
        out.freeze()
    }
}

/// A list in pages.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) pages: Vec<Page>,
    pub(super) digest: Digest,
    /// Of what is listed alone, whatever else the result holds.
    pub(super) definitions: Digest,
}

/// What one revision's peers are sent.
#[derive(Debug)]
pub(super) struct OfRevision {
    pub(super) digest: Digest,
    lists: [Listing; 5],
    /// The result of `initialize` or `server/discover`.
    pub(super) opening: Bytes,
    /// The same where nothing can be sent but answers.
    pub(super) opening_one_way: Bytes,
}

impl OfRevision {
    pub(super) fn list(&self, list: List) -> &Listing {
        let [tools, resources, templates, prompts, skills] = &self.lists;
        match list {
            List::Tools => tools,
            List::Resources => resources,
            List::Templates => templates,
            List::Prompts => prompts,
            List::Skills => skills,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Encoded {
    revisions: [OfRevision; 5],
    pub(super) identity_meta: Bytes,
    pub(super) cache_hints: Bytes,
}

impl Encoded {
    pub(super) fn of(parts: &CatalogParts, served: Served) -> Self {
        let identity = definition::identity(&parts.identity, Revision::MODERN);
        let mut hints = Vec::new();
        push_hints(&mut hints, parts);
        Self {
            revisions: Revision::ALL.map(|revision| of_revision(parts, served, revision)),
            identity_meta: object([(SERVER_INFO_KEY, Some(identity))]).to_text().into(),
            cache_hints: Bytes::copy_from_slice(Json::Object(hints).to_text().trim_matches(['{', '}']).as_bytes()),
        }
    }

    pub(super) fn of_revision(&self, revision: Revision) -> &OfRevision {
        let [a, b, c, d, e] = &self.revisions;
        match revision {
            Revision::V2024_11_05 => a,
            Revision::V2025_03_26 => b,
            Revision::V2025_06_18 => c,
            Revision::V2025_11_25 => d,
            Revision::V2026_07_28 => e,
        }
    }
}

fn push_hints(members: &mut Vec<(String, Json)>, parts: &CatalogParts) {
    let scope = if parts.cache.scope == CacheScope::Public { "public" } else { "private" };
    members.push(("ttlMs".to_owned(), Json::Number(parts.cache.ttl_ms.to_string().into())));
    members.push(("cacheScope".to_owned(), text(scope)));
}

/// What every listing and opening of a revision ends with.
fn tail(parts: &CatalogParts, rules: &Rules, meta: Json) -> Vec<(String, Json)> {
    let mut members = vec![("_meta".to_owned(), meta)];
    if rules.result_type {
        members.push(("resultType".to_owned(), text("complete")));
    }
    if rules.cache_hints {
        push_hints(&mut members, parts);
    }
    members
}

fn of_revision(parts: &CatalogParts, served: Served, revision: Revision) -> OfRevision {
    let rules = revision.rules();
    let tools: Vec<Json> = parts.tools.iter().map(|tool| definition::tool(tool, revision)).collect();
    let digest = digest::of(&Json::Array(tools.clone()));
    let identity = definition::identity(&parts.identity, revision);
    let own = || rules.identity_in_meta.then(|| identity.clone());
    let meta = |digested: bool| {
        object([(SERVER_INFO_KEY, own()), (parts.digest_key.as_str(), digested.then(|| text(&digest.to_string())))])
    };
    let of = |list: List, items: Vec<Json>| {
        let tail = match (list, rules.identity_in_meta) {
            (List::Tools, _) => tail(parts, rules, meta(true)),
            (_, true) => tail(parts, rules, meta(false)),
            (_, false) => Vec::new(),
        };
        listing(list, items, &tail, parts.page)
    };
    let resources = parts.resources.iter().map(definition::resource);
    let resources = resources.chain(parts.skills.iter().map(SkillParts::resource));
    let lists = [
        of(List::Tools, tools),
        of(List::Resources, resources.collect()),
        of(List::Templates, parts.templates.iter().map(definition::template).collect()),
        of(List::Prompts, parts.prompts.iter().map(definition::prompt).collect()),
        of(List::Skills, parts.skills.iter().map(SkillParts::entry).collect()),
    ];
    let opening = |way_back: bool| {
        let mut members = vec![("capabilities".to_owned(), capabilities(served, rules, way_back))];
        match rules.era {
            Era::Legacy => {
                members.push(("protocolVersion".to_owned(), text(rules.name)));
                members.push(("serverInfo".to_owned(), identity.clone()));
            }
            Era::Modern => {
                let supported = parts.offer.supported().into_iter().map(text).collect();
                members.push(("supportedVersions".to_owned(), Json::Array(supported)));
            }
        }
        if let Some(instructions) = &parts.instructions {
            members.push(("instructions".to_owned(), text(instructions)));
        }
        members.extend(tail(parts, rules, meta(true)));
        Bytes::from(Json::Object(members).to_text())
    };
    OfRevision { digest, lists, opening: opening(true), opening_one_way: opening(false) }
}

fn listing(list: List, items: Vec<Json>, tail: &[(String, Json)], page: usize) -> Listing {
    let count = items.len().div_ceil(page.max(1)).max(1);
    let definitions = digest::of_bytes(&items.iter().flat_map(|item| item.to_text().into_bytes()).collect::<Vec<_>>());
    let mut items = items.into_iter();
    let mut pages = Vec::with_capacity(count);
    let mut all = Vec::new();
    for number in 1..=count {
        let held: Vec<Json> = items.by_ref().take(page.max(1)).collect();
        let mut members = vec![(list.key().to_owned(), Json::Array(held))];
        members.extend_from_slice(tail);
        let text = Bytes::from(Json::Object(members).to_text());
        all.extend_from_slice(&text);
        pages.push(Page { text, more: number < count });
    }
    Listing { pages, digest: digest::of_bytes(&all), definitions }
}

/// What the server can do, as it will in fact be done (2026-07-28 server/discover; 2025-11-25 basic/lifecycle).
fn capabilities(served: Served, rules: &Rules, way_back: bool) -> Json {
    let changes = || ("listChanged", way_back.then_some(Json::Bool(true)));
    let resources = || object([("subscribe", way_back.then_some(Json::Bool(true))), changes()]);
    let empty = || object([]);
    let tasks = || {
        object([
            ("list", served.task_list.then(empty)),
            ("cancel", Some(empty())),
            ("requests", Some(object([("tools", Some(object([("call", Some(empty()))])))]))),
        ])
    };
    let skills = || object([("directoryRead", Some(Json::Bool(true)))]);
    let extensions =
        || object([(TASKS_EXTENSION, served.tasks.then(empty)), (SKILLS_EXTENSION, served.skills.then(skills))]);
    object([
        ("tools", served.tools.then(|| object([changes()]))),
        ("resources", served.resources.then(resources)),
        ("prompts", served.prompts.then(|| object([changes()]))),
        ("completions", (served.completions && rules.completions_capability).then(empty)),
        ("logging", (served.logs && way_back).then(empty)),
        ("tasks", (served.tasks && rules.tasks == Tasks::Experimental).then(tasks)),
        ("extensions", ((served.tasks || served.skills) && rules.extensions).then(extensions)),
    ])
}
