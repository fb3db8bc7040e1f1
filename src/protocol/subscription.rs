//! What a peer wants to hear of unasked: the filter of a listen stream and what it is told.

use serde_json::{Map, Value, json};

use super::catalog::{Catalog, List};
use super::fault::Fault;
use super::json::{Kind, RawJson};
use super::limits::{SUBSCRIBED_BYTES, SUBSCRIBED_URI_BYTES, SUBSCRIBED_URIS};
use super::message::{Params, RequestId};
use super::task::TaskId;

/// The `_meta` key that names the subscription a message belongs to (2026-07-28 basic/patterns/subscriptions).
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Which lists are not what they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changed {
    /// The tools.
    pub tools: bool,
    /// The resources or their templates.
    pub resources: bool,
    /// The prompts.
    pub prompts: bool,
}

impl Changed {
    /// What differs between two catalogs.
    pub fn between(old: &Catalog, new: &Catalog) -> Self {
        let differs = |list| !old.same_list(new, list);
        Self {
            tools: differs(List::Tools),
            resources: differs(List::Resources) || differs(List::Templates),
            prompts: differs(List::Prompts),
        }
    }

    /// The lists that a catalog has, so that they may change.
    pub(super) fn possible(catalog: &Catalog) -> Self {
        Self {
            tools: !catalog.tools().is_empty(),
            resources: catalog.has_resources(),
            prompts: !catalog.prompts().is_empty(),
        }
    }

    /// Whether nothing is.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// The notifications that tell it.
    pub(super) fn methods(self) -> impl Iterator<Item = &'static str> {
        let all = [
            (self.tools, "notifications/tools/list_changed"),
            (self.resources, "notifications/resources/list_changed"),
            (self.prompts, "notifications/prompts/list_changed"),
        ];
        all.into_iter().filter(|(changed, _)| *changed).map(|(_, method)| method)
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            tools: self.tools && other.tools,
            resources: self.resources && other.resources,
            prompts: self.prompts && other.prompts,
        }
    }
}

/// Whether what happened to `uri` concerns whoever subscribed to `subscribed`: it is that, or beneath it
/// (2025-11-25 schema, `ResourceUpdatedNotification`).
pub(super) fn concerns(subscribed: &str, uri: &str) -> bool {
    uri.strip_prefix(subscribed)
        .is_some_and(|rest| rest.is_empty() || subscribed.ends_with('/') || rest.starts_with('/'))
}

/// What a listen stream is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    lists: Changed,
    uris: Vec<String>,
    tasks: Vec<TaskId>,
}

impl Filter {
    /// Reads `params.notifications` of `subscriptions/listen`; unknown kinds are left out.
    pub(super) fn read(params: &Params) -> Result<Self, Fault> {
        let invalid = |problem: &str| Fault::InvalidParams(problem.to_owned());
        let members = params.get("notifications").and_then(|raw| raw.members());
        let members = members.ok_or_else(|| invalid("subscriptions/listen needs params.notifications, an object"))?;
        let member = |name: &str| members.iter().find(|(key, _)| &**key == name).map(|(_, raw)| raw);
        let flag = |name: &str| match member(name).map(RawJson::as_str) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(invalid(&format!("notifications.{name} must be true or false"))),
        };
        let texts = |name: &str| -> Result<Vec<String>, Fault> {
            let Some(raw) = member(name) else { return Ok(Vec::new()) };
            let texts =
                Some(raw).filter(|raw| raw.kind() == Kind::Array).and_then(|raw| raw.parse::<Vec<String>>().ok());
            let texts = texts.ok_or_else(|| invalid(&format!("notifications.{name} must be an array of texts")))?;
            if texts.len() > SUBSCRIBED_URIS {
                let problem =
                    format!("notifications.{name} has {} entries: at most {SUBSCRIBED_URIS} are taken", texts.len());
                return Err(Fault::InvalidParams(problem));
            }
            if texts.iter().map(String::len).sum::<usize>() > SUBSCRIBED_BYTES {
                let problem = format!("notifications.{name} has more than {SUBSCRIBED_BYTES} bytes: listen to less");
                return Err(Fault::InvalidParams(problem));
            }
            Ok(texts)
        };
        let lists = Changed {
            tools: flag("toolsListChanged")?,
            resources: flag("resourcesListChanged")?,
            prompts: flag("promptsListChanged")?,
        };
        let uris = texts("resourceSubscriptions")?;
        let tasks = texts("taskIds")?.iter().filter_map(|id| TaskId::new(id)).collect();
        Ok(Self { lists, uris, tasks })
    }

    /// Whether it asks for tasks, which not every client may.
    pub(super) fn wants_tasks(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Only what this catalog can tell of.
    pub(super) fn honoured(mut self, catalog: &Catalog) -> Self {
        self.lists = self.lists.and(Changed::possible(catalog));
        if !catalog.has_tasks() {
            self.tasks.clear();
        }
        self.uris.retain(|uri| uri.len() <= SUBSCRIBED_URI_BYTES && catalog.names(uri));
        self
    }

    /// The `notifications` object of the acknowledgement.
    pub(super) fn to_json(&self) -> Value {
        let mut members = Map::new();
        let flags = [
            ("toolsListChanged", self.lists.tools),
            ("promptsListChanged", self.lists.prompts),
            ("resourcesListChanged", self.lists.resources),
        ];
        members.extend(flags.into_iter().filter(|(_, on)| *on).map(|(name, on)| (name.to_owned(), on.into())));
        if !self.uris.is_empty() {
            members.insert("resourceSubscriptions".to_owned(), json!(self.uris));
        }
        if !self.tasks.is_empty() {
            members.insert("taskIds".to_owned(), self.tasks.iter().map(TaskId::as_str).collect());
        }
        Value::Object(members)
    }

    /// Of what changed, what it wants to hear.
    pub(super) fn of(&self, changed: Changed) -> Changed {
        changed.and(self.lists)
    }

    /// Whether it wants to hear of a resource.
    pub(super) fn wants_uri(&self, uri: &str) -> bool {
        self.uris.iter().any(|subscribed| concerns(subscribed, uri))
    }

    /// Whether it wants to hear of a task.
    pub(super) fn wants_task(&self, id: &TaskId) -> bool {
        self.tasks.contains(id)
    }
}

/// The `_meta` of everything that belongs to a subscription.
pub(super) fn meta(id: &RequestId) -> Value {
    json!({ SUBSCRIPTION_ID: id.to_json() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::catalog::{CatalogParts, PromptParts, ToolParts};

    #[test]
    fn a_list_differs_only_where_what_it_lists_does() {
        let catalog = |version: &str, tool: &str, prompts: Vec<PromptParts>| {
            let mut parts =
                CatalogParts { tools: vec![ToolParts::new(tool)], prompts, ..CatalogParts::new("s", version) };
            parts.cache.ttl_ms = if version == "1.0.0" { 0 } else { 1000 };
            Catalog::build(parts).unwrap()
        };
        let between = |new: Catalog| Changed::between(&catalog("1.0.0", "a", Vec::new()), &new);
        assert!(between(catalog("1.0.0", "a", Vec::new())).is_none());
        assert!(between(catalog("2.0.0", "a", Vec::new())).is_none(), "only the identity and the hints differ");
        let tools = Changed { tools: true, ..Changed::default() };
        assert_eq!(between(catalog("1.0.0", "b", Vec::new())), tools);
        let prompts = Changed { prompts: true, ..Changed::default() };
        assert_eq!(
            between(catalog("1.0.0", "a", vec![PromptParts { name: "p".to_owned(), ..PromptParts::default() }])),
            prompts
        );
    }

    #[test]
    fn a_resource_concerns_whoever_subscribed_to_it_or_to_what_holds_it() {
        for (subscribed, uri, does) in [
            ("a:b", "a:b", true),
            ("a:b", "a:bc", false),
            ("a:b", "a:b/c", true),
            ("a:b/", "a:b/c", true),
            ("a:b/c", "a:b", false),
        ] {
            assert_eq!(concerns(subscribed, uri), does, "{subscribed} {uri}");
        }
    }
}
