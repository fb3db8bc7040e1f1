//! One entrance of a server, opened: what it says of itself, its tools, calls.
//!
//! Promises: the modern door never sends a handshake and the legacy door never sends a claim, so
//! what a door shows is what a client of that era alone would see.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;

use super::Options;
use super::listing::{Listing, Pages, Published, published};
use super::peer::{Peer, Target};
use super::problem::Problem;
use super::wire::Ask;
use crate::protocol::admit::{CLAIM_CAPABILITIES, CLAIM_CLIENT, CLAIM_VERSION};
use crate::protocol::catalog::SERVER_INFO_KEY;
use crate::protocol::headers::{self, HeaderPlan};
use crate::protocol::json::{JsonLimits, shortened};
use crate::protocol::{Arguments, Era, Json, Method, RawJson, Revision};

/// Who a server says it is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Server {
    /// Its name, as sent.
    pub name: String,
    /// Its version, as sent.
    pub version: String,
}

/// What a server says when a door opens.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The revision that was agreed on or is claimed.
    pub revision: Revision,
    /// Who it is, if it says so.
    pub server: Option<Server>,
    /// Its instructions for models, as sent.
    pub instructions: Option<String>,
    /// Whether it declares tools.
    pub has_tools: bool,
    /// What it publishes about its tools.
    pub published: Vec<Published>,
    /// What is unusual about its answer.
    pub remarks: Vec<String>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It did what was asked.
    Complete,
    /// It failed; the result tells a model why.
    Failed,
    /// It asks something first; the result holds the questions.
    InputRequired,
}

/// A tool's result.
#[derive(Debug, Clone)]
pub struct Called {
    /// How the call ended.
    pub ending: Ending,
    /// The whole result, as sent.
    pub result: RawJson,
}

/// A call of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Call<'c> {
    /// The tool.
    pub name: &'c str,
    /// What it is called with.
    pub arguments: &'c Arguments,
    /// The token under which the server may tell its progress; it tells none if absent.
    pub progress: Option<u64>,
    /// Whether a modern server may ask with forms before it goes on.
    pub elicits: bool,
    /// What it is told of what it asked before; a legacy server is told nothing.
    pub answers: Option<&'c Answers>,
}

/// Answers to what a modern server asked.
#[derive(Debug, Clone)]
pub struct Answers {
    /// The results by the server's keys, an object.
    pub responses: RawJson,
    /// The state that it wanted to be told again.
    pub state: Option<RawJson>,
}

type Plans = HashMap<String, Result<HeaderPlan, String>>;

/// An open door.
#[derive(Debug)]
pub struct Door {
    peer: Peer,
    options: Options,
    opening: Opening,
    /// Which arguments of which tool are mirrored in headers, by the latest listing.
    plans: Mutex<Arc<Plans>>,
}

impl Door {
    /// Opens the door of one era, and nothing else.
    pub async fn open(target: &Target, era: Era, options: &Options) -> Result<Self, Problem> {
        let peer = Peer::connect(target, options).await?;
        let opened = open(&peer, era, options).await;
        Self::finish(peer, opened, options).await
    }

    /// Opens the modern door or, where a server has none, the legacy door: on the same pipe if it is still there.
    pub async fn open_either(target: &Target, options: &Options) -> Result<Self, Problem> {
        let mut peer = Peer::connect(target, options).await?;
        let mut opened = open(&peer, Era::Modern, options).await;
        if let Err(problem) = &opened
            && has_no_modern_door(problem, &peer)
        {
            if matches!(problem, Problem::Closed { .. }) {
                peer.close(Vec::new()).await;
                peer = Peer::connect(target, options).await?;
            }
            opened = open(&peer, Era::Legacy, options).await;
        }
        Self::finish(peer, opened, options).await
    }

    async fn finish(peer: Peer, opened: Result<Opening, Problem>, options: &Options) -> Result<Self, Problem> {
        match opened {
            Ok(opening) => Ok(Self { peer, options: options.clone(), opening, plans: Mutex::default() }),
            Err(problem) => {
                let end = peer.close(Vec::new()).await;
                Err(problem.with_end(end))
            }
        }
    }

    /// What the server said when the door opened.
    pub fn opening(&self) -> &Opening {
        &self.opening
    }

    /// What the server wrote that answers nothing, if anything.
    pub fn strays(&self) -> Option<String> {
        self.peer.strays()
    }

    /// Lists the tools, all pages; a server that declares none is not asked.
    pub async fn list_tools(&self) -> Result<Listing, Problem> {
        let mut pages = Pages::default();
        if self.opening.has_tools {
            self.read_pages(&mut pages).await?;
        }
        let listing = pages.finish()?;
        *self.plans.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(plans(&listing));
        Ok(listing)
    }

    async fn read_pages(&self, pages: &mut Pages) -> Result<(), Problem> {
        let until = Instant::now() + self.options.listing;
        let mut cursor: Option<RawJson> = None;
        loop {
            let params = cursor.iter().map(|cursor| ("cursor", cursor.clone())).collect();
            let within = self.options.answer.min(until.saturating_duration_since(Instant::now()));
            let result = self.request(Method::ToolsList, params, Vec::new(), within).await?;
            cursor = pages.add(&result)?;
            if cursor.is_none() {
                return Ok(());
            }
        }
    }

    /// Calls a tool. Over HTTP a modern call mirrors arguments in headers as the latest listing says.
    ///
    /// Dropping the future, or running out of `within`, cancels the call at the server where its
    /// revision and transport have a way to say so.
    pub async fn call_tool(&self, name: &str, arguments: &Arguments, within: Duration) -> Result<Called, Problem> {
        self.call(Call { name, arguments, progress: None, elicits: false, answers: None }, within).await
    }

    /// As [`Door::call_tool`], for a caller that hears progress.
    pub async fn call(&self, call: Call<'_>, within: Duration) -> Result<Called, Problem> {
        let Call { name, arguments, .. } = call;
        let plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mirrored = match plans.get(name) {
            None => Vec::new(),
            Some(Ok(plan)) => plan.headers(arguments),
            // 2026-07-28 server/tools: over HTTP a client must not use a tool whose annotations are malformed.
            Some(Err(why)) => return Err(Problem::shape(Method::ToolsList.name(), why.clone())),
        };
        let mut params = vec![("name", RawJson::encode(&name)), ("arguments", arguments.text().clone())];
        if let Some(answers) = call.answers.filter(|_| self.opening.revision.rules().input_required) {
            params.push(("inputResponses", answers.responses.clone()));
            params.extend(answers.state.iter().map(|state| ("requestState", state.clone())));
        }
        let mut headers = vec![(headers::NAME.to_owned(), headers::encode(name))];
        headers.extend(mirrored);
        let result = self.request_with(Method::ToolsCall, params, headers, Some(&call), within).await?;
        let members = result.members().unwrap_or_default();
        let member = |name: &str| members.iter().find(|(key, _)| &**key == name).map(|(_, value)| value);
        let ending = match member("resultType").and_then(RawJson::as_text).as_deref() {
            Some("complete") | None if member("isError").is_some_and(|failed| failed.as_str() == "true") => {
                Ending::Failed
            }
            Some("complete") | None => Ending::Complete,
            Some("input_required") => Ending::InputRequired,
            Some(other) => return Err(unknown_type(Method::ToolsCall, other)),
        };
        Ok(Called { ending, result })
    }

    /// Whether nothing will come through this door any more, as far as that is known without asking.
    pub fn is_closed(&self) -> bool {
        self.peer.is_closed()
    }

    /// Closes the door: ends the session or the program; says how it ended, if that is known.
    pub async fn close(self) -> Option<String> {
        let headers = version_header(self.opening.revision);
        self.peer.close(headers).await
    }

    async fn request(
        &self,
        method: Method,
        params: Vec<(&str, RawJson)>,
        mirrored: Vec<(String, String)>,
        within: Duration,
    ) -> Result<RawJson, Problem> {
        self.request_with(method, params, mirrored, None, within).await
    }

    async fn request_with(
        &self,
        method: Method,
        mut params: Vec<(&str, RawJson)>,
        mut mirrored: Vec<(String, String)>,
        call: Option<&Call<'_>>,
        within: Duration,
    ) -> Result<RawJson, Problem> {
        let mut headers = version_header(self.opening.revision);
        let modern = self.opening.revision.era() == Era::Modern;
        let elicits = call.is_some_and(|call| call.elicits);
        let progress = call.and_then(|call| call.progress);
        let mut meta = if modern { claim(&self.options, elicits) } else { json!({}) };
        if let (Some(token), Some(meta)) = (progress, meta.as_object_mut()) {
            meta.insert("progressToken".to_owned(), token.into());
        }
        if modern || progress.is_some() {
            params.push(("_meta", RawJson::encode(&meta)));
        }
        if modern {
            headers.push((headers::METHOD.to_owned(), method.name().to_owned()));
            headers.append(&mut mirrored);
        }
        self.peer.request(&Ask { method: method.name(), params, headers }, within).await
    }
}

fn version_header(revision: Revision) -> Vec<(String, String)> {
    vec![(headers::VERSION.to_owned(), revision.name().to_owned())]
}

/// The metadata of every modern request (2026-07-28 basic, `_meta`): nothing can be asked of this client but, where that
/// is said of a call, forms.
fn claim(options: &Options, elicits: bool) -> serde_json::Value {
    let capabilities = if elicits { json!({ "elicitation": { "form": {} } }) } else { json!({}) };
    json!({
        CLAIM_VERSION: Revision::MODERN.name(),
        CLAIM_CLIENT: { "name": options.name, "version": options.version },
        CLAIM_CAPABILITIES: capabilities,
    })
}

async fn open(peer: &Peer, era: Era, options: &Options) -> Result<Opening, Problem> {
    match era {
        Era::Modern => discover(peer, options).await,
        Era::Legacy => initialize(peer, options).await,
    }
}

async fn discover(peer: &Peer, options: &Options) -> Result<Opening, Problem> {
    let method = Method::Discover;
    let mut headers = version_header(Revision::MODERN);
    headers.push((headers::METHOD.to_owned(), method.name().to_owned()));
    let ask = Ask { method: method.name(), params: vec![("_meta", RawJson::encode(&claim(options, false)))], headers };
    let answer = Answer::read(method, &peer.request(&ask, options.answer).await?)?;
    let listed = match answer.member("supportedVersions") {
        Some(Json::Array(listed)) => listed.iter().filter_map(Json::as_str),
        _ => return Err(Problem::shape(method.name(), "it has no array of supportedVersions")),
    };
    let listed: Vec<&str> = listed.collect();
    if !listed.contains(&Revision::MODERN.name()) {
        let supported = listed.iter().map(|name| shortened(name, 64)).collect();
        return Err(Problem::NotServed { wanted: Revision::MODERN.name(), supported });
    }
    let mut remarks = Vec::new();
    match answer.member("resultType").and_then(Json::as_str) {
        Some("complete") => {}
        None => remarks.push(format!("the answer to {} has no resultType, which strict clients refuse", method.name())),
        Some(other) => return Err(unknown_type(method, other)),
    }
    let identity = answer.member("_meta").and_then(|meta| meta.get(SERVER_INFO_KEY));
    Ok(answer.opening(Revision::MODERN, identity, remarks))
}

async fn initialize(peer: &Peer, options: &Options) -> Result<Opening, Problem> {
    let method = Method::Initialize;
    let wanted = Revision::NEWEST_LEGACY.name();
    let params = vec![
        ("protocolVersion", RawJson::encode(&wanted)),
        ("capabilities", RawJson::empty_object()),
        ("clientInfo", RawJson::encode(&json!({ "name": options.name, "version": options.version }))),
    ];
    let ask = Ask { method: method.name(), params, headers: Vec::new() };
    let answer = Answer::read(method, &peer.request(&ask, options.answer).await?)?;
    let agreed = answer.member("protocolVersion").and_then(Json::as_str);
    let agreed = agreed.ok_or_else(|| Problem::shape(method.name(), "it has no protocolVersion"))?;
    let revision = Revision::parse(agreed).ok().filter(|revision| revision.era() == Era::Legacy);
    let revision = revision.ok_or_else(|| Problem::NotServed { wanted, supported: vec![shortened(agreed, 64)] })?;
    let initialized =
        Ask { method: "notifications/initialized", params: Vec::new(), headers: version_header(revision) };
    peer.notify(&initialized, options.answer).await?;
    Ok(answer.opening(revision, answer.member("serverInfo"), Vec::new()))
}

/// The answer to an opening.
struct Answer {
    method: Method,
    whole: Json,
    meta: Option<RawJson>,
}

impl Answer {
    fn read(method: Method, result: &RawJson) -> Result<Self, Problem> {
        let whole = Json::parse(result.as_bytes(), &JsonLimits::default())
            .map_err(|error| Problem::NotStrict { method: method.name().to_owned(), why: error.to_string() })?;
        let members = result.members().ok_or_else(|| Problem::shape(method.name(), "it is no object"))?;
        let meta = members.into_iter().find(|(key, _)| &**key == "_meta").map(|(_, meta)| meta);
        Ok(Self { method, whole, meta })
    }

    fn member(&self, name: &str) -> Option<&Json> {
        self.whole.get(name)
    }

    fn opening(&self, revision: Revision, identity: Option<&Json>, remarks: Vec<String>) -> Opening {
        let text = |key: &str| identity.and_then(|identity| identity.get(key)?.as_str()).map(str::to_owned);
        let server = text("name").map(|name| Server { name, version: text("version").unwrap_or_default() });
        Opening {
            revision,
            server,
            instructions: self.member("instructions").and_then(Json::as_str).map(str::to_owned),
            has_tools: self.member("capabilities").is_some_and(|declared| declared.get("tools").is_some()),
            published: published(self.meta.as_ref(), self.method),
            remarks,
        }
    }
}

fn unknown_type(method: Method, named: &str) -> Problem {
    Problem::shape(method.name(), format!("its resultType is {:?}", shortened(named, 64)))
}

fn plans(listing: &Listing) -> Plans {
    let plan = |tool: &Json| {
        let name = tool.get("name")?.as_str()?.to_owned();
        let plan = HeaderPlan::read(tool.get("inputSchema")?).map_err(|problems| {
            let (pointer, problem) = problems.into_iter().next().unwrap_or_default();
            format!("{name:?} cannot be called: inputSchema{pointer}: {problem}", name = shortened(&name, 64))
        });
        Some((name, plan))
    };
    listing.tools.iter().filter_map(plan).collect()
}

/// Whether a failed discovery means a legacy server, as opposed to a modern one that objects
/// (2026-07-28 basic/versioning, Compatibility; transports/streamable-http, Backward Compatibility).
fn has_no_modern_door(problem: &Problem, peer: &Peer) -> bool {
    let serves_legacy = || {
        let supported = problem.supported().unwrap_or_default();
        supported.iter().any(|name| Revision::parse(name).is_ok_and(|revision| revision.era() == Era::Legacy))
    };
    match problem {
        Problem::Refused { code: -32022, .. } | Problem::NotServed { .. } => serves_legacy(),
        Problem::Refused { code, .. } => !matches!(code, -32021 | -32020),
        Problem::Status { status, .. } => (400..500).contains(status) && !matches!(status, 401 | 403 | 429),
        Problem::Time { .. } | Problem::Closed { .. } => matches!(peer, Peer::Stdio(_)),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
