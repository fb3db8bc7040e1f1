//! What an admitted request asks for. No I/O, never waits; no state but a counter of incidents.

mod call;
mod complete;
mod skills;
mod tasks;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use serde_json::Value;

pub(super) use self::complete::encode as encode_completion;
use super::admit::{Admitted, ClientCapabilities, log_level, names_itself};
use super::catalog::{Catalog, List};
use super::digest::Digest;
use super::exchange;
use super::fault::Fault;
use super::headers::Mirror;
use super::invoke::{Invocation, Operation, Principal, Published};
use super::json::{Kind, RawJson};
use super::limits::SUBSCRIBED_URI_BYTES;
use super::log::LogLevel;
use super::message::Params;
use super::revision::{Method, Revision};
use super::seal::{Binding, Sealer};
use super::session::Session;
use super::subscription::{Changed, Filter};

/// What a request asks for.
#[derive(Debug)]
pub enum Step {
    /// The answer is known: the text of its result.
    Reply(Bytes),
    /// The answer to `initialize`, and the session it opens.
    Open(Bytes, Session),
    /// A backend has to carry it out.
    Invoke(Arc<Invocation>),
    /// The peer wants to hear of changes on this request's stream, for as long as that stands.
    Listen(Filter),
    /// The session wants to hear of a resource.
    Subscribe(String),
    /// It does not any more.
    Unsubscribe(String),
    /// The session wants log messages from this level on.
    SetLevel(LogLevel),
}

/// Who asks, and what is around the request.
#[derive(Debug, Clone, Copy)]
pub struct Context<'c> {
    /// The legacy session, where there is one.
    pub session: Option<&'c Session>,
    /// Who asks.
    pub principal: &'c Principal,
    /// The HTTP headers, where there are any.
    pub mirror: Option<&'c Mirror<'c>>,
    /// Unix seconds.
    pub now: u64,
    /// Whether the peer can be told something that answers nothing.
    pub way_back: bool,
}

/// Decides what requests ask for; shared by all connections.
pub struct Dispatcher {
    published: Arc<dyn Published>,
    sealer: Sealer,
    /// The next incident's number: where it begins, only the key tells.
    incidents: AtomicU64,
}

impl Dispatcher {
    /// A dispatcher over what is published; `key` seals tools' state and must come from the system's randomness.
    pub fn new(published: Arc<dyn Published>, key: [u8; 32]) -> Self {
        let sealer = Sealer::new(key);
        let incidents = AtomicU64::new(sealer.number("incidents"));
        Self { published, sealer, incidents }
    }

    /// The catalog in force.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.published.current()
    }

    /// A number for a defect, under which the log has its cause: none is given twice by one dispatcher, and none tells
    /// how many there were.
    pub(super) fn incident(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        self.incidents.fetch_add(STEP, Ordering::Relaxed)
    }

    /// Seals and opens what tools want to be told again.
    pub(super) fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    /// A cursor: a position in a list of one digest, sealed for one principal.
    pub(super) fn cursor(&self, principal: &str, method: Method, list: Digest, position: usize, now: u64) -> String {
        let binding = Binding { principal, method: method.name(), request: list };
        self.sealer.seal(now, binding, position.into()).unwrap_or_default()
    }

    /// The position that a cursor names. What was not given out for this very list is no cursor
    /// (2026-07-28 server/utilities/pagination, Error Handling).
    fn position(&self, params: &Params, method: Method, list: Digest, context: &Context<'_>) -> Result<usize, Fault> {
        let Some(raw) = params.get("cursor") else { return Ok(0) };
        let sealed = raw.as_text();
        let binding = || Binding { principal: context.principal.name(), method: method.name(), request: list };
        let opened = sealed.and_then(|text| self.sealer.open(context.now, &text, binding).ok());
        let position = opened.as_ref().and_then(Value::as_u64).and_then(|position| usize::try_from(position).ok());
        position.ok_or_else(|| {
            Fault::InvalidParams("unknown cursor: it is not of this list, or too old; ask without a cursor".to_owned())
        })
    }

    /// What the request asks for.
    pub fn dispatch(&self, request: &Admitted, context: &Context<'_>) -> Result<Step, Fault> {
        let catalog = self.catalog();
        let revision = request.revision();
        let params = &request.request().params;
        offered(&catalog, request, context)?;
        match request.method() {
            Method::Initialize => initialize(request, context, &catalog),
            Method::Ping => Ok(Step::Reply(Bytes::from_static(b"{}"))),
            Method::Discover => Ok(Step::Reply(catalog.opening(revision, context.way_back))),
            Method::ToolsList => self.list(List::Tools, request, context, &catalog),
            Method::ResourcesList => self.list(List::Resources, request, context, &catalog),
            Method::TemplatesList => self.list(List::Templates, request, context, &catalog),
            Method::PromptsList => self.list(List::Prompts, request, context, &catalog),
            Method::SkillsList => self.list(List::Skills, request, context, &catalog),
            Method::SkillsGet => skills::entry(request, &catalog),
            Method::DirectoryRead => self.folder(request, context, &catalog),
            Method::ToolsCall => self.call(request, context, catalog),
            Method::PromptsGet => self.prompt(request, context, catalog),
            Method::ResourcesRead => self.read(request, context, catalog),
            Method::Complete => complete::complete(request, context, catalog),
            Method::Subscribe => Ok(Step::Subscribe(subscribed(params, &catalog, revision)?)),
            Method::Unsubscribe => {
                let uri = params.text("uri");
                uri.map(|uri| Step::Unsubscribe(uri.into())).ok_or_else(|| needs(request, "uri"))
            }
            Method::SetLevel => {
                let level = params.text("level");
                let level = level.ok_or_else(|| needs(request, "level"))?;
                log_level(&level).map(Step::SetLevel)
            }
            Method::Listen => {
                let filter = Filter::read(params)?;
                if filter.wants_tasks() && catalog.has_tasks() {
                    tasks::declared(request)?;
                }
                Ok(Step::Listen(filter.honoured(&catalog)))
            }
            Method::TasksGet | Method::TasksResult | Method::TasksList | Method::TasksCancel | Method::TasksUpdate => {
                self.task(request, context, catalog)
            }
        }
    }

    fn list(&self, list: List, request: &Admitted, context: &Context<'_>, catalog: &Catalog) -> Result<Step, Fault> {
        let (method, revision) = (request.method(), request.revision());
        let digest = catalog.list_digest(list, revision);
        let number = self.position(&request.request().params, method, digest, context)?;
        let page = catalog.page(list, revision, number);
        let page = page.ok_or_else(|| Fault::InvalidParams("unknown cursor: the list ends before it".to_owned()))?;
        let next = || self.cursor(context.principal.name(), method, digest, number + 1, context.now);
        Ok(Step::Reply(page.result(next)))
    }

    /// What was put into the last question. Without a state nothing is hashed: most requests have none.
    fn state(&self, request: &Admitted, context: &Context<'_>, operation: &Operation) -> Result<Option<Value>, Fault> {
        let Some(sealed) = request.request().params.get("requestState") else { return Ok(None) };
        let text = sealed.as_text().unwrap_or_default();
        let binding = || exchange::bind(context.principal.name(), request.method(), operation);
        let opened = self.sealer.open(context.now, &text, binding);
        opened.map(Some).map_err(|unsealable| Fault::InvalidParams(unsealable.to_string()))
    }

    /// An invocation, with what the client answered to an earlier question where the revision has that.
    fn invocation(
        &self,
        operation: Operation,
        request: &Admitted,
        context: &Context<'_>,
        catalog: Arc<Catalog>,
    ) -> Result<Arc<Invocation>, Fault> {
        let params = &request.request().params;
        let (answers, state) = match request.revision().rules().input_required {
            true => (answers(params)?, self.state(request, context, &operation)?),
            false => (Vec::new(), None),
        };
        Ok(Arc::new(Invocation { answers, state, ..first_invocation(operation, request, context, catalog) }))
    }
}

/// An invocation that nothing was answered for yet.
fn first_invocation(
    operation: Operation,
    request: &Admitted,
    context: &Context<'_>,
    catalog: Arc<Catalog>,
) -> Invocation {
    Invocation {
        catalog,
        operation,
        answers: Vec::new(),
        state: None,
        principal: context.principal.clone(),
        revision: request.revision(),
        client: request.client(),
    }
}

fn initialize(request: &Admitted, context: &Context<'_>, catalog: &Catalog) -> Result<Step, Fault> {
    let params = &request.request().params;
    let wanted = params.text("protocolVersion");
    let capabilities = params.get("capabilities").filter(|raw| raw.kind() == Kind::Object);
    let client = params.get("clientInfo").filter(names_itself);
    let (Some(wanted), Some(capabilities), Some(_)) = (wanted, capabilities, client) else {
        let problem = "initialize needs protocolVersion (a text), capabilities (an object) and clientInfo (with name and version)";
        return Err(Fault::InvalidParams(problem.to_owned()));
    };
    if context.session.is_some() {
        return Err(Fault::InvalidRequest(
            "this session is initialized already: go on with it, or open another".to_owned(),
        ));
    }
    let revision = Revision::negotiate(&wanted);
    let session = Session::agreed(revision, ClientCapabilities::read(&capabilities));
    let session = session.hearing_of(Changed::possible(catalog));
    Ok(Step::Open(catalog.opening(revision, context.way_back), session))
}

/// A method whose capability is not advertised does not exist (2026-07-28 schema, MethodNotFoundError).
fn offered(catalog: &Catalog, request: &Admitted, context: &Context<'_>) -> Result<(), Fault> {
    let (offered, what) = match request.method() {
        Method::Initialize | Method::Ping | Method::Discover | Method::Listen => return Ok(()),
        Method::ToolsList | Method::ToolsCall => (!catalog.tools().is_empty(), "no tools"),
        Method::ResourcesList | Method::TemplatesList | Method::ResourcesRead => {
            (catalog.has_resources(), "no resources")
        }
        Method::Subscribe | Method::Unsubscribe => {
            (catalog.has_resources() && context.way_back, "no resources to subscribe to")
        }
        Method::PromptsList | Method::PromptsGet => (!catalog.prompts().is_empty(), "no prompts"),
        Method::SkillsList | Method::SkillsGet | Method::DirectoryRead => (catalog.has_skills(), "no skills"),
        Method::Complete => (catalog.completes(), "no completion"),
        Method::SetLevel => (catalog.logs() && context.way_back, "no log messages"),
        Method::TasksList => (catalog.lists_tasks(), "no list of tasks"),
        Method::TasksGet | Method::TasksResult | Method::TasksCancel | Method::TasksUpdate => {
            (catalog.has_tasks(), "no tasks")
        }
    };
    if offered {
        return Ok(());
    }
    let method = request.method().name();
    Err(Fault::MethodNotFound(format!("{method}: this server offers {what}")))
}

fn needs(request: &Admitted, member: &str) -> Fault {
    Fault::InvalidParams(format!("{} needs params.{member}, a text", request.method().name()))
}

/// The resource that a legacy session subscribes to, or the folder of some.
fn subscribed(params: &Params, catalog: &Catalog, revision: Revision) -> Result<String, Fault> {
    let uri = params.text("uri");
    let uri = uri.ok_or_else(|| Fault::InvalidParams("resources/subscribe needs params.uri, a text".to_owned()))?;
    if uri.len() > SUBSCRIBED_URI_BYTES || !catalog.names(&uri) {
        return Err(Fault::ResourceNotFound { uri: uri.into(), code: revision.rules().resource_missing });
    }
    Ok(uri.into())
}

/// What the client answered to earlier questions: bare results by key (2026-07-28 basic/patterns/mrtr).
fn answers(params: &Params) -> Result<Vec<(Box<str>, RawJson)>, Fault> {
    let Some(raw) = params.get("inputResponses") else { return Ok(Vec::new()) };
    let members = raw.members().filter(|members| members.iter().all(|(_, value)| value.kind() == Kind::Object));
    members.ok_or_else(|| Fault::InvalidParams("inputResponses must be an object of result objects".to_owned()))
}
