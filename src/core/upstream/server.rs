//! One upstream: its connection, what it lists, and whether that is what was reviewed.
//!
//! Promises: one connection for all calls, opened at the first of them; no call goes on before the list
//! of all pages was digested and compared with the pin, nor after the upstream said that it changed
//! until it was compared again. One that is not the reviewed list withholds every tool of the upstream,
//! and no other's. Nothing here waits for an upstream longer than its limits.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::{self, Handle};
use tokio::sync::{Semaphore, mpsc};

use super::breaker::{Breaker, Starts};
use super::program::program;
use super::question::Questions;
use crate::client::outbound::Reach;
use crate::client::{Door, Hear, HttpTarget, Listing, Options, Problem, Target};
use crate::core::http::render::{secrets, with_secrets};
use crate::core::http::{READ_BYTES, origin};
use crate::core::redact::Secrets;
use crate::protocol::digest;
use crate::protocol::json::shortened;
use crate::protocol::{Era, Json, Notification, Params};
use crate::surface::outward::{DeclaredUpstream, UpstreamEra, UpstreamWay};

/// Calls of one upstream at a time.
const IN_FLIGHT: usize = 16;
/// Names of tools that a text gives.
const NAMED: usize = 8;
/// How long a list is believed where the upstream does not say when it changes.
const KEPT: Duration = Duration::from_secs(60);
/// The least and the most that an upstream may say of that itself.
const KEPT_AT_LEAST: Duration = Duration::from_secs(1);
const KEPT_AT_MOST: Duration = Duration::from_secs(300);
/// How long a list that was not reviewed is believed: it may return to what it was.
const WITHHELD: Duration = Duration::from_secs(2);

/// How far a call is.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) progress: f64,
    pub(super) total: Option<f64>,
    pub(super) message: Option<String>,
}

/// A door, and the runtime that its tasks run on: it is closed there or, elsewhere, only dropped.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) door: Door,
    runtime: runtime::Id,
}

/// An open door, and the names of the tools behind it.
pub(super) type Ready = (Arc<Opened>, Arc<[String]>);

/// Why a call does not go on. The text is for the model.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Its list is not the one that was reviewed.
    Withheld(String),
    /// It failed, and is not asked for a while.
    Paused(Duration),
    /// It does not answer as it should.
    Failed(Problem),
    /// A credential is missing, or the declaration is defective.
    Declared(String),
}

#[derive(Clone)]
struct Connection {
    opened: Arc<Opened>,
    listed: Instant,
    kept: Duration,
    /// The names of its tools, or why they are withheld.
    offered: Result<Arc<[String]>, String>,
}

#[derive(Default)]
struct Held {
    connection: Option<Connection>,
    breaker: Breaker,
    starts: Starts,
    /// The tools as they were when the list was last the reviewed one, by name.
    reviewed: BTreeMap<String, String>,
    /// Whether the operator was told that it is withheld.
    told: bool,
}

/// What the upstream tells without being asked.
#[derive(Default)]
struct Heard {
    changed: AtomicBool,
    progress: Mutex<HashMap<u64, mpsc::Sender<Progress>>>,
}

impl Heard {
    fn hear(&self, told: &Notification) {
        match &*told.method {
            "notifications/tools/list_changed" => self.changed.store(true, Ordering::Release),
            "notifications/progress" => {
                let Some((token, progress)) = progress(&told.params) else { return };
                let open = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(sender) = open.get(&token) {
                    // One that falls behind misses some: the newest counts.
                    let _ = sender.try_send(progress);
                }
            }
            _ => {}
        }
    }
}

fn progress(params: &Params) -> Option<(u64, Progress)> {
    let number = |key: &str| params.get(key).and_then(|value| value.as_str().parse::<f64>().ok());
    let token = params.get("progressToken")?.as_str().parse().ok()?;
    let message = params.get("message").and_then(|text| text.as_text());
    Some((token, Progress { progress: number("progress")?, total: number("total"), message }))
}

/// A call's place among those that hear progress; dropped, it hears no more.
pub(super) struct Hearing<'u> {
    heard: &'u Heard,
    pub(super) token: u64,
    pub(super) progress: mpsc::Receiver<Progress>,
}

impl Drop for Hearing<'_> {
    fn drop(&mut self) {
        self.heard.progress.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
    }
}

/// Another MCP server.
pub(super) struct Upstream {
    pub(super) declared: Arc<DeclaredUpstream>,
    reach: Option<Reach>,
    heard: Arc<Heard>,
    held: Mutex<Held>,
    opening: tokio::sync::Mutex<()>,
    pub(super) flight: Semaphore,
    pub(super) questions: Questions,
    tokens: AtomicU64,
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream").field("name", &self.declared.name).finish_non_exhaustive()
    }
}

impl Upstream {
    /// Not connected yet; `reach` replaces how an address is reached.
    pub(super) fn new(declared: Arc<DeclaredUpstream>, reach: Option<Reach>) -> Self {
        Self {
            declared,
            reach,
            heard: Arc::default(),
            held: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            flight: Semaphore::new(IN_FLIGHT),
            questions: Questions::default(),
            tokens: AtomicU64::new(1),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A token under which a call hears its progress.
    pub(super) fn listen(&self) -> Hearing<'_> {
        let (sender, progress) = mpsc::channel(16);
        let token = self.tokens.fetch_add(1, Ordering::Relaxed);
        self.heard.progress.lock().unwrap_or_else(PoisonError::into_inner).insert(token, sender);
        Hearing { heard: &self.heard, token, progress }
    }

    /// The door, with a list that was compared; and the names of its tools.
    pub(super) async fn ready(&self) -> Result<Ready, Trouble> {
        if let Some(ready) = self.fresh() {
            return ready;
        }
        let _one = self.opening.lock().await;
        if let Some(ready) = self.fresh() {
            return ready;
        }
        if let Some(left) = self.held().breaker.paused(Instant::now()) {
            return Err(Trouble::Paused(left));
        }
        let opened = match self.alive() {
            Some(connection) => connection.opened,
            None => Arc::new(Opened { door: self.open().await?, runtime: Handle::current().id() }),
        };
        // What changes while it is listed is seen by the next call.
        self.heard.changed.store(false, Ordering::Release);
        let listing = match opened.door.list_tools().await {
            Ok(listing) => listing,
            Err(problem) => {
                self.forget(opened).await;
                return Err(self.failed(problem));
            }
        };
        let (offered, kept) = self.judge(&listing, opened.door.opening().revision.era());
        let connection = Connection { opened: Arc::clone(&opened), listed: Instant::now(), kept, offered };
        let offered = connection.offered.clone();
        self.held().connection = Some(connection);
        offered.map(|names| (opened, names)).map_err(Trouble::Withheld)
    }

    fn alive(&self) -> Option<Connection> {
        let here = Handle::current().id();
        let connection = self.held().connection.clone()?;
        (connection.opened.runtime == here && !connection.opened.door.is_closed()).then_some(connection)
    }

    fn fresh(&self) -> Option<Result<Ready, Trouble>> {
        if let Some(left) = self.held().breaker.paused(Instant::now()) {
            return Some(Err(Trouble::Paused(left)));
        }
        let connection = self.alive()?;
        let known = !self.heard.changed.load(Ordering::Acquire) && connection.listed.elapsed() < connection.kept;
        known.then(|| match connection.offered {
            Ok(names) => Ok((connection.opened, names)),
            Err(why) => Err(Trouble::Withheld(why)),
        })
    }

    async fn open(&self) -> Result<Door, Trouble> {
        self.close().await;
        let target = self.target().map_err(Trouble::Declared)?;
        if matches!(target, Target::Program(_)) {
            self.held().starts.begin(Instant::now()).map_err(Trouble::Paused)?;
        }
        let heard = Arc::clone(&self.heard);
        let hear = Some(Hear::new(move |told| heard.hear(&told)));
        let options = Options { hear, answer_bytes: READ_BYTES, ..Options::default() };
        let opened = match self.declared.era {
            UpstreamEra::Auto => Door::open_either(&target, &options).await,
            UpstreamEra::Legacy => Door::open(&target, Era::Legacy, &options).await,
            UpstreamEra::Modern => Door::open(&target, Era::Modern, &options).await,
        };
        match opened {
            Ok(door) => {
                self.held().starts.succeeded();
                let revision = door.opening().revision.name();
                tracing::info!(upstream = %self.declared.name, %revision, "connected");
                Ok(door)
            }
            Err(problem) => {
                self.held().starts.failed(Instant::now());
                Err(self.failed(problem))
            }
        }
    }

    /// What is sent to it that nobody else may learn.
    pub(super) fn secrets(&self) -> Secrets {
        match &self.declared.way {
            UpstreamWay::Url { headers, .. } => secrets(headers.iter().map(|header| header.value.as_slice())),
            UpstreamWay::Program { .. } => Secrets::default(),
        }
    }

    fn target(&self) -> Result<Target, String> {
        let name = &self.declared.name;
        match &self.declared.way {
            UpstreamWay::Program { program: path, arguments, env, cwd } => {
                Ok(Target::Program(program(name, path, arguments, env, cwd)))
            }
            UpstreamWay::Url { origin: declared, path, headers, allow_private } => {
                let mut sent = Vec::new();
                for header in headers {
                    let (key, value) = with_secrets(&header.name, &header.value).map_err(|refusal| {
                        tracing::warn!(upstream = %name, "{refusal:?}");
                        refusal.to_string()
                    })?;
                    sent.push((key.as_str().to_owned(), value.to_str().unwrap_or_default().to_owned()));
                }
                let reach = self.reach.clone().unwrap_or_else(|| Reach::new(*allow_private));
                HttpTarget::at(origin(declared), path.clone(), &sent, reach)
                    .map(Target::Http)
                    .map_err(|problem| problem.to_string())
            }
        }
    }

    /// Compares a list with the pin.
    fn judge(&self, listing: &Listing, era: Era) -> (Result<Arc<[String]>, String>, Duration) {
        let names = listing.names();
        let digests = [listing.digest.sorted_keys, listing.digest.rfc8785];
        let reviewed = self.declared.pin.is_none_or(|pin| digests.contains(&Some(pin)));
        let said = listing.ttl_ms.map(Duration::from_millis).filter(|_| era == Era::Modern);
        let kept = said.map_or(KEPT, |said| said.clamp(KEPT_AT_LEAST, KEPT_AT_MOST));
        let mut held = self.held();
        if reviewed {
            held.reviewed = by_name(&names, &listing.tools);
            if std::mem::take(&mut held.told) {
                tracing::info!(upstream = %self.declared.name, "its list is the reviewed one again: its tools are served");
            }
            return (Ok(names.into()), kept);
        }
        let differ = differences(&held.reviewed, &by_name(&names, &listing.tools));
        let first = !std::mem::replace(&mut held.told, true);
        drop(held);
        let name = &self.declared.name;
        if first {
            let listed = digests.iter().flatten().next().map(ToString::to_string).unwrap_or_default();
            tracing::warn!(
                upstream = %name, %listed, "its list is not the one that was reviewed{differ}: its tools are withheld. \
                 Review what it lists now (`twodoor import mcp` shows it, `twodoor verify` compares), then write its digest into the surface file"
            );
        }
        let text = format!(
            "{name} is withheld: what it lists is not what was reviewed{differ}. Its operator has to review it; other tools go on"
        );
        (Err(text), WITHHELD)
    }

    /// Counts a failure of the upstream.
    pub(super) fn failed(&self, problem: Problem) -> Trouble {
        let jitter = getrandom::u32().unwrap_or(0).to_le_bytes()[0];
        let paused = self.held().breaker.failed(Instant::now(), jitter);
        let name = &self.declared.name;
        let more = if paused { "; it is not asked for a while" } else { "" };
        // Its own words, which may repeat what it was sent.
        let problem_in_full = self.secrets().clean(&problem.in_full());
        tracing::warn!(upstream = %name, "{problem_in_full}{more}");
        Trouble::Failed(problem)
    }

    /// Counts an answer of the upstream.
    pub(super) fn answered(&self) {
        self.held().breaker.answered();
    }

    /// Whether the next call would have to wait.
    pub(super) fn is_paused(&self) -> bool {
        self.held().breaker.paused(Instant::now()).is_some()
    }

    /// Closes whatever connection there is; the next call opens another, by whichever door there is then.
    pub(super) async fn close(&self) {
        let connection = self.held().connection.take();
        if let Some(Connection { opened, .. }) = connection {
            let_go(opened).await;
        }
    }

    /// Lets go of a connection that failed, and of no other: a newer one that others have opened since stays.
    pub(super) async fn forget(&self, opened: Arc<Opened>) {
        let held = self.held().connection.take_if(|held| Arc::ptr_eq(&held.opened, &opened));
        drop(held);
        let_go(opened).await;
    }
}

/// Closes a connection in order, unless others still wait for answers through it: the last of them drops it.
async fn let_go(opened: Arc<Opened>) {
    if let Ok(Opened { door, runtime }) = Arc::try_unwrap(opened)
        && Handle::current().id() == runtime
    {
        let _ = door.close().await;
    }
}

fn by_name(names: &[String], tools: &[Json]) -> BTreeMap<String, String> {
    let definitions = tools.iter().map(|tool| digest::sorted_keys(tool).unwrap_or_default());
    names.iter().cloned().zip(definitions).collect()
}

/// `: changed: a, b; new: 2`, by reviewed names alone; nothing where the reviewed list was never seen.
fn differences(reviewed: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> String {
    if reviewed.is_empty() {
        return String::new();
    }
    let changed = now.iter().filter(|(name, tool)| reviewed.get(*name).is_some_and(|before| before != *tool));
    // Nobody has reviewed a new tool's name, so no model reads it.
    let new = now.keys().filter(|name| !reviewed.contains_key(*name)).count();
    let gone = reviewed.keys().filter(|name| !now.contains_key(*name));
    let parts = [("changed", changed.map(|(name, _)| name).collect::<Vec<_>>()), ("gone", gone.collect())];
    let parts = parts.iter().filter(|(_, names)| !names.is_empty()).map(|(word, names)| {
        let mut shown: Vec<String> = names.iter().take(NAMED).map(|name| shortened(name, 64)).collect();
        if names.len() > NAMED {
            shown.push(format!("and {} more", names.len() - NAMED));
        }
        format!("{word}: {}", shown.join(", "))
    });
    let parts: Vec<String> = parts.chain((new > 0).then(|| format!("new: {new}"))).collect();
    if parts.is_empty() { ": another order".to_owned() } else { format!(": {}", parts.join("; ")) }
}
