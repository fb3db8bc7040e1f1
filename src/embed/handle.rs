//! What is published now, and how it is changed while it is served.
//!
//! Promises: a change is published whole or not at all; a call that began on one set of tools ends
//! on it; every listening client is told which of its lists changed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use tokio::sync::watch;

use super::error::ServerError;
use super::prompt::Prompt;
use super::resource::{Resource, Template};
use super::skill::Skill;
use super::tool::Tool;
use crate::protocol::{Catalog, CatalogParts, Changed, Digest, Published, Revision};
use crate::transport::Hub;

/// Everything that is listed; changed in place, published as a whole by [`Handle::change`].
#[derive(Clone, Default)]
pub struct Listing {
    pub(super) tools: Vec<Arc<Tool>>,
    pub(super) resources: Vec<Arc<Resource>>,
    pub(super) templates: Vec<Arc<Template>>,
    pub(super) prompts: Vec<Arc<Prompt>>,
    pub(super) skills: Vec<Arc<Skill>>,
}

/// Puts an item in the place of the one of the same name, or at the end.
fn put<T>(items: &mut Vec<Arc<T>>, item: T, name: impl Fn(&T) -> &str) {
    match items.iter_mut().find(|known| name(known) == name(&item)) {
        Some(known) => *known = Arc::new(item),
        None => items.push(Arc::new(item)),
    }
}

/// Takes the item of that name out; says whether there was one.
fn take<T>(items: &mut Vec<Arc<T>>, wanted: &str, name: impl Fn(&T) -> &str) -> bool {
    let before = items.len();
    items.retain(|known| name(known) != wanted);
    items.len() != before
}

impl Listing {
    /// Adds a tool, or replaces the one of that name.
    pub fn put_tool(&mut self, tool: Tool) {
        put(&mut self.tools, tool, |tool| &tool.parts.name);
    }

    /// Removes the tool of that name; says whether there was one.
    pub fn remove_tool(&mut self, name: &str) -> bool {
        take(&mut self.tools, name, |tool| &tool.parts.name)
    }

    /// Adds a resource, or replaces the one of that URI.
    pub fn put_resource(&mut self, resource: Resource) {
        put(&mut self.resources, resource, |resource| &resource.parts.uri);
    }

    /// Removes the resource of that URI; says whether there was one.
    pub fn remove_resource(&mut self, uri: &str) -> bool {
        take(&mut self.resources, uri, |resource| &resource.parts.uri)
    }

    /// Adds a template, or replaces the one of that text.
    pub fn put_template(&mut self, template: Template) {
        put(&mut self.templates, template, |template| &template.parts.uri_template);
    }

    /// Removes the template of that text; says whether there was one.
    pub fn remove_template(&mut self, uri_template: &str) -> bool {
        take(&mut self.templates, uri_template, |template| &template.parts.uri_template)
    }

    /// Adds a prompt, or replaces the one of that name.
    pub fn put_prompt(&mut self, prompt: Prompt) {
        put(&mut self.prompts, prompt, |prompt| &prompt.parts.name);
    }

    /// Removes the prompt of that name; says whether there was one.
    pub fn remove_prompt(&mut self, name: &str) -> bool {
        take(&mut self.prompts, name, |prompt| &prompt.parts.name)
    }

    /// Adds a skill, or replaces the one of that URI.
    pub fn put_skill(&mut self, skill: Skill) {
        put(&mut self.skills, skill, Skill::uri);
    }

    /// Removes the skill of that URI; says whether there was one.
    pub fn remove_skill(&mut self, uri: &str) -> bool {
        take(&mut self.skills, uri, Skill::uri)
    }

    pub(super) fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.iter().find(|tool| tool.parts.name == name)
    }

    pub(super) fn prompt(&self, name: &str) -> Option<&Arc<Prompt>> {
        self.prompts.iter().find(|prompt| prompt.parts.name == name)
    }

    pub(super) fn template(&self, uri_template: &str) -> Option<&Arc<Template>> {
        self.templates.iter().find(|template| template.parts.uri_template == uri_template)
    }

    /// The catalog of these under a server's own parts.
    fn catalog(&self, own: &CatalogParts) -> Result<Arc<Catalog>, ServerError> {
        let parts = CatalogParts {
            tools: self.tools.iter().map(|tool| tool.parts.clone()).collect(),
            resources: self.resources.iter().map(|resource| resource.parts.clone()).collect(),
            templates: self.templates.iter().map(|template| template.parts.clone()).collect(),
            prompts: self.prompts.iter().map(|prompt| prompt.parts.clone()).collect(),
            skills: self.skills.iter().map(|skill| skill.parts()).collect(),
            ..own.clone()
        };
        let named = parts.clone();
        Catalog::build(parts).map(Arc::new).map_err(|problems| ServerError::unpublishable(&named, problems))
    }
}

/// A server that is ready or being served: changes what it publishes, tells of resources, stops it. Cloning shares it.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    /// What a server says of itself; its lists are empty.
    own: CatalogParts,
    /// What was published last; held while another is published, so that changes come one after the other.
    listing: Mutex<Arc<Listing>>,
    current: RwLock<Arc<Catalog>>,
    /// Which handlers belong to which catalog, as long as a call may still need them.
    generations: RwLock<Vec<(Weak<Catalog>, Arc<Listing>)>>,
    hub: Hub,
    stop: watch::Sender<bool>,
}

impl Handle {
    pub(super) fn new(own: CatalogParts, listing: Listing) -> Result<Self, ServerError> {
        let (listing, catalog) = (Arc::new(listing.clone()), listing.catalog(&own)?);
        Ok(Self(Arc::new(Shared {
            own,
            generations: RwLock::new(vec![(Arc::downgrade(&catalog), Arc::clone(&listing))]),
            listing: Mutex::new(listing),
            current: RwLock::new(catalog),
            hub: Hub::new(),
            stop: watch::Sender::new(false),
        })))
    }

    fn listing(&self) -> MutexGuard<'_, Arc<Listing>> {
        self.0.listing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is listed. What comes of it is published if it is valid, and all clients that listen are told;
    /// otherwise nothing changes. Calls that have begun end on what they began with.
    pub fn change(&self, change: impl FnOnce(&mut Listing)) -> Result<(), ServerError> {
        let mut last = self.listing();
        let mut listing = Listing::clone(&last);
        change(&mut listing);
        let catalog = listing.catalog(&self.0.own)?;
        let listing = Arc::new(listing);
        {
            let mut generations = self.0.generations.write().unwrap_or_else(PoisonError::into_inner);
            generations.retain(|(catalog, _)| catalog.strong_count() > 0);
            generations.push((Arc::downgrade(&catalog), Arc::clone(&listing)));
        }
        let mut current = self.0.current.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, Arc::clone(&catalog));
        drop(current);
        *last = listing;
        // Told while the next change waits, so that clients hear of changes in their order.
        self.0.hub.published(Changed::between(&before, &catalog));
        Ok(())
    }

    /// Tells every client that subscribed to it that a resource is not what it was.
    pub fn updated(&self, uri: &str) {
        self.0.hub.updated(uri);
    }

    /// Stops the server in order: what is in flight is answered, for a while.
    pub fn stop(&self) {
        self.0.stop.send_replace(true);
    }

    /// Ends once the server is to stop.
    pub async fn stopped(&self) {
        let mut stop = self.0.stop.subscribe();
        // The sender lives as long as this handle does.
        let _ = stop.wait_for(|stop| *stop).await;
    }

    /// The digest of the tools as modern clients receive them.
    pub fn digest(&self) -> Digest {
        self.current().digest(Revision::MODERN)
    }

    pub(super) fn hub(&self) -> &Hub {
        &self.0.hub
    }

    /// The handlers that belong to a catalog.
    pub(super) fn of(&self, catalog: &Arc<Catalog>) -> Option<Arc<Listing>> {
        let generations = self.0.generations.read().unwrap_or_else(PoisonError::into_inner);
        let known = |(known, _): &&(Weak<Catalog>, Arc<Listing>)| std::ptr::eq(known.as_ptr(), Arc::as_ptr(catalog));
        generations.iter().rev().find(known).map(|(_, listing)| Arc::clone(listing))
    }
}

impl Published for Handle {
    fn current(&self) -> Arc<Catalog> {
        Arc::clone(&self.0.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}
