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

use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;
use twodoor::core::Router;
use twodoor::core::gate::Desk;
use twodoor::protocol::{Catalog, Changed, Digest, Offer, Revision};
use twodoor::surface::frozen::{self, Frozen};
use twodoor::surface::{LoadedSurface, Problems, Surface, Touched, Watch, Watched, lock};
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
    /// What its lock would refuse, where nobody holds it to that.
    pub(crate) unlocked: Option<Problems>,
}

/// How a surface file is read.
pub(crate) struct Reading {
    pub(crate) path: PathBuf,
    pub(crate) offer: Offer,
    pub(crate) task_list: bool,
    pub(crate) mode: lock::Mode,
    pub(crate) frozen: Option<Frozen>,
    /// What the gate of the surface keeps.
    pub(crate) desk: Arc<Desk>,
}

impl Reading {
    /// Reads, checks, holds against the lock and builds.
    pub(crate) fn read(&self) -> Result<Ready, Problems> {
        let Self { path, offer, task_list, mode, frozen, desk } = self;
        let mut loaded = Surface::load(path)?;
        loaded.parts.offer = *offer;
        loaded.parts.task_list = *task_list;
        // That it can be built was checked: its problems would be those of the surface.
        let catalog = Catalog::build(loaded.parts.clone()).map_err(|_| loaded.warnings.clone())?;
        let mode = if frozen.is_some() { lock::Mode::Required } else { *mode };
        lock::check(path, &catalog, mode)?;
        let ignored = (mode == lock::Mode::Ignored).then(|| lock::check(path, &catalog, lock::Mode::IfThere));
        let unlocked = ignored.and_then(Result::err);
        let catalog = catalog.with_behind(Router::of(&loaded).at(Arc::clone(desk)));
        Ok(Ready { loaded, catalog, unlocked })
    }

    /// The name under which the surface is served: its own, and the label of a frozen one.
    pub(crate) fn name(&self, loaded: &LoadedSurface) -> String {
        frozen::served_as(&self.path, &loaded.name)
    }
}

/// What is served, as people are told.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    name: String,
    label: Option<String>,
    unlocked: bool,
    version: String,
    tools: usize,
    declared: String,
    digest: String,
}

impl Shown {
    pub(crate) fn of(ready: &Ready, reading: &Reading) -> Self {
        Self {
            name: ready.loaded.name.clone(),
            label: reading.frozen.as_ref().map(|frozen| frozen.label.to_string()),
            unlocked: ready.unlocked.is_some(),
            version: ready.loaded.version.to_string(),
            tools: ready.catalog.tools().len(),
            declared: show::declared(&ready.loaded.parts),
            digest: ready.catalog.digest(Revision::MODERN).to_string(),
        }
    }

    pub(crate) fn text(&self) -> String {
        let Self { name, label, version, declared, digest, unlocked, .. } = self;
        let label = label.as_ref().map(|label| format!("@{label}")).unwrap_or_default();
        let unlocked = if *unlocked { ", UNLOCKED: not what its lock allows" } else { "" };
        format!("{name}{label} {version}, {declared}, {digest}{unlocked}")
    }

    pub(crate) fn json(&self) -> Map<String, Value> {
        let Self { name, label, version, tools, digest, unlocked, .. } = self;
        let pairs = [
            ("surface", Some(name.as_str().into())),
            ("label", label.as_deref().map(Value::from)),
            ("version", Some(version.as_str().into())),
            ("tools", Some((*tools).into())),
            ("digest", Some(digest.as_str().into())),
            ("unlocked", unlocked.then_some(Value::Bool(true))),
        ];
        pairs.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
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

/// Says in the log that a surface is served despite its lock.
pub(crate) fn warn_unlocked(path: &Path, unlocked: Option<&Problems>) {
    if let Some(problems) = unlocked {
        let (surface, lock) = (path.display(), lock::path_of(path));
        tracing::warn!(%problems, "{surface} is served although {} does not allow it: --unlocked", lock.display());
    }
}

/// Whoever publishes, and what it tells.
pub(crate) struct Reload {
    pub(crate) reading: Reading,
    /// The digest of a frozen surface's file, of which nothing else is taken.
    pub(crate) kept: Option<Digest>,
    /// Held while files are read: one surface at a time.
    pub(crate) turn: Arc<tokio::sync::Mutex<()>>,
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
    /// Whether a tool asks its callers for scopes.
    pub(crate) fn has_scopes(&self) -> bool {
        self.loaded.parts.tools.iter().any(|tool| !tool.scopes.is_empty())
    }

    /// Reads whenever there is a reason to, for as long as it is polled.
    pub(crate) async fn run(mut self, mut hang_ups: Signals) {
        self.watching.extend(&self.loaded.watched);
        let (pending, turn) = (Arc::clone(&self.watching.pending), Arc::clone(&self.turn));
        let reload = Arc::new(Mutex::new(self));
        loop {
            let cause = tokio::select! {
                () = pending.settled() => Cause::Change,
                () = hang_ups.next() => Cause::HangUp,
            };
            let began = Instant::now();
            let (reload, touched) = (Arc::clone(&reload), pending.take());
            let looked = move || reload.lock().unwrap_or_else(PoisonError::into_inner).look(cause, &touched);
            let turn = turn.lock().await;
            if let Err(error) = tokio::task::spawn_blocking(looked).await {
                tracing::error!(%error, "the surface could not be read again: a defect of ours");
            }
            drop(turn);
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
        match self.reading.read().and_then(|ready| self.check_kept().map(|()| ready)) {
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

    /// A frozen surface is published again only for what its file leads to, not for another file.
    fn check_kept(&self) -> Result<(), Problems> {
        self.kept.map_or(Ok(()), |kept| frozen::check_kept(&self.reading.path, kept))
    }

    fn publish(&mut self, ready: Ready) {
        // Its first task may be called as soon as it is published.
        if let Err((problem, remedy)) = self.state.open_for(&ready.catalog) {
            self.say("refused", json!({ "problem": problem }), &format!(" stays in force: {problem}: {remedy}"));
            return;
        }
        self.state.sweep();
        self.said = None;
        warn_unlocked(&self.reading.path, ready.unlocked.as_ref());
        self.shown = Shown::of(&ready, &self.reading);
        let Ready { loaded, catalog, .. } = ready;
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
            self.voice.say(&show::refusal(&[problems], self.reading.frozen.as_ref(), show::colour_on_stderr()));
        }
        let list = serde_json::to_value(problems).unwrap_or_default();
        self.say("refused", json!({ "problems": list }), " stays in force");
    }

    /// Says what came of a reading, and what is in force now.
    fn say(&mut self, came: &str, more: Value, text: &str) {
        let said = if self.json {
            let mut line = self.shown.json();
            line.insert("reload".to_owned(), came.into());
            line.extend(more.as_object().cloned().unwrap_or_default());
            Value::Object(line).to_string()
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
