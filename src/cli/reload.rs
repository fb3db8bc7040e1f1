//! Reading a surface again while it is served.
//!
//! Promises: a surface that is refused, or that its lock does not allow, changes nothing; one that is good is
//! published whole, its catalog with what is behind it; connections are told of what differs, once. One reading at
//! a time, at most one a second, never on the threads that serve.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;
use twodoor::core::Router;
use twodoor::core::gate::Desk;
use twodoor::protocol::{Catalog, Changed, Offer, Revision};
use twodoor::surface::{LoadedSurface, Problems, Surface, Touched, Watch, Watched, lock, render};
use twodoor::transport::Hub;

use super::logging::Voice;
use super::show;
use super::signals::Signals;
use super::state::State;

/// How long nothing must happen to the files before they are read: an editor writes more than once.
const QUIET: Duration = Duration::from_millis(100);
/// How long reading is put off at most, and the shortest time from one reading to the next.
const PAUSE: Duration = Duration::from_secs(1);

/// A surface that can be served.
pub(crate) struct Ready {
    pub(crate) loaded: LoadedSurface,
    pub(crate) catalog: Catalog,
}

impl Ready {
    /// Reads, checks, holds against the lock and builds.
    pub(crate) fn read(path: &Path, offer: Offer, task_list: bool, desk: &Arc<Desk>) -> Result<Self, Problems> {
        let mut loaded = Surface::load(path)?;
        loaded.parts.offer = offer;
        loaded.parts.task_list = task_list;
        // That it can be built was checked: its problems would be those of the surface.
        let catalog = Catalog::build(loaded.parts.clone()).map_err(|_| loaded.warnings.clone())?;
        lock::check(path, &catalog)?;
        let catalog = catalog.with_behind(Router::of(&loaded).at(Arc::clone(desk)));
        Ok(Self { loaded, catalog })
    }
}

/// What is served, as people are told.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    name: String,
    version: String,
    tools: usize,
    declared: String,
    digest: String,
}

impl Shown {
    pub(crate) fn of(ready: &Ready) -> Self {
        Self {
            name: ready.loaded.name.clone(),
            version: ready.loaded.version.to_string(),
            tools: ready.catalog.tools().len(),
            declared: show::declared(&ready.loaded.parts),
            digest: ready.catalog.digest(Revision::MODERN).to_string(),
        }
    }

    pub(crate) fn text(&self) -> String {
        let Self { name, version, declared, digest, .. } = self;
        format!("{name} {version}, {declared}, {digest}")
    }

    pub(crate) fn json(&self) -> Value {
        let Self { name, version, tools, digest, .. } = self;
        json!({ "surface": name, "version": version, "tools": tools, "digest": digest })
    }
}

/// What was heard of and not looked at yet.
#[derive(Default)]
struct Pending {
    touched: Mutex<BTreeSet<Touched>>,
    told: Notify,
}

impl Pending {
    fn add(&self, touched: Touched) {
        self.touched.lock().unwrap_or_else(PoisonError::into_inner).insert(touched);
        self.told.notify_one();
    }

    fn take(&self) -> BTreeSet<Touched> {
        std::mem::take(&mut *self.touched.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for something, and then until no more comes.
    async fn settled(&self) {
        self.told.notified().await;
        let latest = Instant::now() + PAUSE;
        while Instant::now() < latest && tokio::time::timeout(QUIET, self.told.notified()).await.is_ok() {}
    }
}

/// A watch that begins anew whenever something was heard.
pub(crate) struct Watching {
    pending: Arc<Pending>,
    /// What is watched, and the watch; none where watching is off or fails.
    watch: Option<(Watched, Watch)>,
    on: bool,
    failed: AtomicBool,
}

impl Watching {
    /// Begins with the surface file, so that nothing is missed from its first reading on.
    pub(crate) fn begin(path: &Path, on: bool) -> Self {
        let mut watching = Self { pending: Arc::default(), watch: None, on, failed: AtomicBool::new(false) };
        watching.renew(&Surface::watched(path));
        watching
    }

    fn renew(&mut self, watched: &Watched) {
        if !self.on {
            return;
        }
        let pending = Arc::clone(&self.pending);
        match Watch::begin(watched, move |touched| pending.add(touched)) {
            Ok(watch) => {
                self.failed.store(false, Ordering::Relaxed);
                self.watch = Some((watched.clone(), watch));
            }
            // Said once: the next one may fail for the same reason a second later.
            Err(error) if !self.failed.swap(true, Ordering::Relaxed) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                tracing::warn!(%cause, "{error}: changes may be missed; a hang-up (kill -HUP) has the surface read again");
            }
            Err(_) => {}
        }
    }

    /// Takes in what a surface that was read since is made of.
    fn extend(&mut self, watched: &Watched) {
        if self.watch.as_ref().is_some_and(|(known, _)| known != watched) {
            self.renew(watched);
            // What changed in the new files before they were watched was not heard of.
            self.pending.add(Touched::Listing);
        }
    }
}

/// Why the files are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Change,
    /// Whoever asks is answered even if nothing changed.
    HangUp,
}

/// Whoever publishes, and what it tells.
pub(crate) struct Reload {
    pub(crate) path: PathBuf,
    pub(crate) offer: Offer,
    pub(crate) task_list: bool,
    pub(crate) state: Arc<State>,
    pub(crate) surface: Arc<Surface>,
    pub(crate) hub: Hub,
    pub(crate) watching: Watching,
    pub(crate) loaded: LoadedSurface,
    pub(crate) shown: Shown,
    pub(crate) voice: Voice,
    pub(crate) json: bool,
    /// The problems that were said last, their text included: they are said once for each content of the files.
    pub(crate) said: Option<Problems>,
}

impl Reload {
    /// Reads whenever there is a reason to, for as long as it is polled.
    pub(crate) async fn run(mut self, mut hang_ups: Signals) {
        self.watching.extend(&self.loaded.watched);
        let pending = Arc::clone(&self.watching.pending);
        let reload = Arc::new(Mutex::new(self));
        loop {
            let cause = tokio::select! {
                () = pending.settled() => Cause::Change,
                () = hang_ups.next() => Cause::HangUp,
            };
            let began = Instant::now();
            let (reload, touched) = (Arc::clone(&reload), pending.take());
            let looked = move || reload.lock().unwrap_or_else(PoisonError::into_inner).look(cause, &touched);
            if let Err(error) = tokio::task::spawn_blocking(looked).await {
                tracing::error!(%error, "the surface could not be read again: a defect of ours");
            }
            tokio::time::sleep_until(began + PAUSE).await;
        }
    }

    fn look(&mut self, cause: Cause, touched: &BTreeSet<Touched>) {
        // Before anything is read, so that a change in the meantime is heard of.
        self.watching.renew(&self.loaded.watched);
        if cause == Cause::HangUp || touched.contains(&Touched::Listing) {
            self.read(cause);
        }
        for touched in touched {
            if let Touched::Contents(uri) = touched {
                self.hub.updated(uri);
            }
        }
    }

    fn read(&mut self, cause: Cause) {
        match Ready::read(&self.path, self.offer, self.task_list, self.state.desk()) {
            Err(problems) => self.refuse(&problems, cause),
            Ok(ready) if ready.loaded == self.loaded => {
                let mended = self.said.take().is_some();
                if cause == Cause::HangUp || mended {
                    self.say("unchanged", json!({}), "");
                }
            }
            Ok(ready) => self.publish(ready),
        }
    }

    fn publish(&mut self, ready: Ready) {
        // Its first task may be called as soon as it is published.
        if let Err((problem, remedy)) = self.state.open_for(&ready.catalog) {
            self.say("refused", json!({ "problem": problem }), &format!(" stays in force: {problem}: {remedy}"));
            return;
        }
        self.state.sweep();
        self.said = None;
        self.shown = Shown::of(&ready);
        let Ready { loaded, catalog } = ready;
        let changed = self.surface.publish(catalog);
        self.hub.published(changed);
        loaded.updated_since(&self.loaded).iter().for_each(|uri| self.hub.updated(uri));
        self.watching.extend(&loaded.watched);
        self.loaded = loaded;
        let lists = lists(changed);
        let text = match lists.join(", ") {
            none if none.is_empty() => ": the lists are the same".to_owned(),
            some => format!(": other {some}"),
        };
        self.say("published", json!({ "changed": lists }), &text);
    }

    fn refuse(&mut self, problems: &Problems, cause: Cause) {
        if cause == Cause::Change && self.said.as_ref() == Some(problems) {
            return;
        }
        self.said = Some(problems.clone());
        if !self.json {
            self.voice.say(&render(problems, show::colour_on_stderr()));
        }
        let list = serde_json::to_value(problems).unwrap_or_default();
        self.say("refused", json!({ "problems": list }), " stays in force");
    }

    /// Says what came of a reading, and what is in force now.
    fn say(&mut self, came: &str, more: Value, text: &str) {
        let said = if self.json {
            let mut line = self.shown.json();
            if let (Some(line), Value::Object(more)) = (line.as_object_mut(), more) {
                line.insert("reload".to_owned(), came.into());
                line.extend(more);
            }
            line.to_string()
        } else {
            format!("{came}: {}{text}", self.shown.text())
        };
        self.voice.say(&format!("{said}\n"));
    }
}

/// The lists that differ, by their names.
fn lists(changed: Changed) -> Vec<&'static str> {
    let all = [(changed.tools, "tools"), (changed.resources, "resources"), (changed.prompts, "prompts")];
    all.into_iter().filter(|(differs, _)| *differs).map(|(_, name)| name).collect()
}
