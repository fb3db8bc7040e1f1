//! What an admitted request asks for. No state, no I/O, never waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use serde_json::{Value, json};

use super::admit::{Admitted, ClientCapabilities};
use super::catalog::{Catalog, Tool};
use super::content::Content;
use super::exchange;
use super::fault::Fault;
use super::headers::Mirror;
use super::invoke::{Arguments, Invocation, Principal, Published};
use super::json::{Kind, RawJson};
use super::message::Params;
use super::revision::{BadArguments, Method, Revision};
use super::schema;
use super::seal::{Binding, Sealer};
use super::session::Session;

/// What a request asks for.
#[derive(Debug)]
pub enum Step {
    /// The answer is known: the text of its result.
    Reply(Bytes),
    /// The answer to `initialize`, and the session it opens.
    Open(Bytes, Session),
    /// A call has to be made.
    Invoke(Box<Invocation>),
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

    /// What the request asks for; `now` is in Unix seconds.
    pub fn dispatch(
        &self,
        request: &Admitted,
        session: Option<&Session>,
        principal: &Principal,
        mirror: Option<&Mirror>,
        now: u64,
    ) -> Result<Step, Fault> {
        let catalog = self.catalog();
        let revision = request.revision();
        match request.method() {
            Method::Initialize => initialize(request, session, &catalog),
            Method::Ping => Ok(Step::Reply(Bytes::from_static(b"{}"))),
            Method::Discover => Ok(Step::Reply(catalog.opening(revision))),
            Method::ToolsList => {
                offers_tools(&catalog, request)?;
                no_cursor(&request.request().params)?;
                Ok(Step::Reply(catalog.tools_list(revision)))
            }
            Method::ToolsCall => {
                offers_tools(&catalog, request)?;
                self.call(request, principal, mirror, now, catalog)
            }
        }
    }

    fn call(
        &self,
        request: &Admitted,
        principal: &Principal,
        mirror: Option<&Mirror>,
        now: u64,
        catalog: Arc<Catalog>,
    ) -> Result<Step, Fault> {
        let params = &request.request().params;
        let revision = request.revision();
        let rules = revision.rules();
        let Some(name) = params.get("name").and_then(RawJson::as_text) else {
            return Err(Fault::InvalidParams("tools/call needs params.name, a text".to_owned()));
        };
        let arguments = match params.get("arguments") {
            None => Arguments::new(RawJson::empty_object()),
            Some(text) => Arguments::new(text.clone()),
        };
        let Some(arguments) = arguments else {
            return Err(Fault::InvalidParams("params.arguments must be an object".to_owned()));
        };
        let Some(tool) = catalog.tool(&name) else {
            return Err(Fault::unknown_tool(&name));
        };
        let (answers, state) = match rules.input_required {
            true => (answers(params)?, self.state(request, principal, &name, &arguments, now)?),
            false => (Vec::new(), None),
        };
        if let Some(mirror) = mirror.filter(|_| rules.input_required) {
            mirror.check_arguments(&tool.headers, &arguments)?;
        }
        if let Some(refused) = misfit(tool, &arguments, revision, &catalog)? {
            return Ok(refused);
        }
        Ok(Step::Invoke(Box::new(Invocation {
            tool: tool.name.clone(),
            arguments,
            answers,
            state,
            principal: principal.clone(),
            revision,
            client: request.client(),
            catalog,
        })))
    }

    /// What the tool put into its last question. Without a state nothing is hashed: most calls have none.
    fn state(
        &self,
        request: &Admitted,
        principal: &Principal,
        tool: &str,
        arguments: &Arguments,
        now: u64,
    ) -> Result<Option<Value>, Fault> {
        let Some(sealed) = request.request().params.get("requestState") else { return Ok(None) };
        let text = sealed.as_text().unwrap_or_default();
        let binding = || Binding::to_call(principal.name(), request.method().name(), tool, arguments.text().as_bytes());
        let opened = self.sealer.open(now, &text, binding);
        opened.map(Some).map_err(|unsealable| Fault::InvalidParams(unsealable.to_string()))
    }
}

fn initialize(request: &Admitted, session: Option<&Session>, catalog: &Catalog) -> Result<Step, Fault> {
    let params = &request.request().params;
    let parsed = |key: &str| params.get(key).and_then(|raw| raw.parse::<Value>().ok());
    let text = |value: &Value, key: &str| value.get(key).is_some_and(Value::is_string);
    let wanted = params.get("protocolVersion").and_then(RawJson::as_text);
    let capabilities = params.get("capabilities").filter(|raw| raw.kind() == Kind::Object);
    let client = parsed("clientInfo").filter(|info| text(info, "name") && text(info, "version"));
    let (Some(wanted), Some(capabilities), Some(_)) = (wanted, capabilities, client) else {
        let problem = "initialize needs protocolVersion (a text), capabilities (an object) and clientInfo (with name and version)";
        return Err(Fault::InvalidParams(problem.to_owned()));
    };
    if session.is_some() {
        return Err(Fault::InvalidRequest(
            "this session is initialized already: go on with it, or open another".to_owned(),
        ));
    }
    let revision = Revision::negotiate(&wanted);
    Ok(Step::Open(catalog.opening(revision), Session::agreed(revision, ClientCapabilities::read(capabilities))))
}

/// A method whose capability is not advertised does not exist (2026-07-28 schema, MethodNotFoundError).
fn offers_tools(catalog: &Catalog, request: &Admitted) -> Result<(), Fault> {
    if catalog.tools().is_empty() {
        let method = request.method().name();
        return Err(Fault::MethodNotFound(format!("{method}: this server offers no tools")));
    }
    Ok(())
}

/// All tools come on one page, so no cursor was ever given out (2026-07-28 server/utilities/pagination, Error Handling).
fn no_cursor(params: &Params) -> Result<(), Fault> {
    match params.get("cursor").map(RawJson::kind) {
        None | Some(Kind::Null) => Ok(()),
        Some(_) => Err(Fault::InvalidParams("unknown cursor: this list has one page, ask without a cursor".to_owned())),
    }
}

/// What the client answered to a tool's questions: bare results by key (2026-07-28 basic/patterns/mrtr).
fn answers(params: &Params) -> Result<Vec<(Box<str>, RawJson)>, Fault> {
    let Some(raw) = params.get("inputResponses") else { return Ok(Vec::new()) };
    let members = raw.members().filter(|members| members.iter().all(|(_, value)| value.kind() == Kind::Object));
    members.ok_or_else(|| Fault::InvalidParams("inputResponses must be an object of result objects".to_owned()))
}

/// Answers arguments that do not fit, as the revision has it.
fn misfit(tool: &Tool, arguments: &Arguments, revision: Revision, catalog: &Catalog) -> Result<Option<Step>, Fault> {
    let value: Value = arguments.text().parse().unwrap_or_else(|_| json!({}));
    let violations = tool.input.violations(&value);
    if violations.is_empty() {
        return Ok(None);
    }
    let text = format!(
        "the arguments of {} do not fit its inputSchema:\n{}",
        tool.name,
        schema::explain("the arguments", &violations)
    );
    match revision.rules().bad_arguments {
        BadArguments::Fault => Err(Fault::InvalidParams(text)),
        BadArguments::ToolError => {
            Ok(Some(Step::Reply(exchange::encode_result(&Content::text(text), true, revision, catalog))))
        }
    }
}
