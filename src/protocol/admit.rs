//! Admission: from a request to its era, revision, metadata and method.
//!
//! Promises: [`Admitted`] is made here and nowhere else, and only for a request whose era,
//! revision, metadata and method are known. The body decides; nothing from an earlier message
//! touches a modern request (2026-07-28 basic, Statelessness). The order of checks is the
//! validation ladder: claim, version header, revision, mirrored headers, method, params.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::catalog::TASKS_EXTENSION;
use super::fault::Fault;
use super::headers::Mirror;
use super::invoke::InputKind;
use super::json::{Kind, RawJson, shortened};
use super::limits::ECHOED_CHARACTERS;
use super::log::LogLevel;
use super::members::Text;
use super::message::{Message, Notification, Params, Request};
use super::revision::{Era, Method, Offer, Revision};
use super::session::Session;

/// The `_meta` key that claims a revision.
pub const CLAIM_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The `_meta` key that declares what the client can be asked.
pub const CLAIM_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The `_meta` key that names the client.
pub const CLAIM_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// What a client declared it can be asked. Only that is kept of its capabilities: they are the client's
/// own text, of any size, and a session lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClientCapabilities {
    elicit_form: bool,
    elicit_url: bool,
    sample: bool,
    sample_with_tools: bool,
    roots: bool,
    tasks: bool,
}

impl ClientCapabilities {
    /// Reads a capabilities object (2026-07-28 client/elicitation, client/sampling, client/roots).
    ///
    /// An empty `elicitation` means the form mode; a mode named alone excludes the other.
    pub fn read(declared: &RawJson) -> Self {
        if declared.as_bytes() == b"{}" {
            return Self::default();
        }
        let within = |raw: Option<RawJson>| raw.and_then(|raw| raw.members()).unwrap_or_default();
        let object = |members: &[(Box<str>, RawJson)], name: &str| {
            members.iter().find(|(key, raw)| &**key == name && raw.kind() == Kind::Object).map(|(_, raw)| raw.clone())
        };
        let declared = declared.members().unwrap_or_default();
        let (elicitation, sampling) = (object(&declared, "elicitation"), object(&declared, "sampling"));
        let (elicits, samples) = (elicitation.is_some(), sampling.is_some());
        let (modes, sampling) = (within(elicitation), within(sampling));
        let elicit_url = object(&modes, "url").is_some();
        Self {
            elicit_form: object(&modes, "form").is_some() || (elicits && !elicit_url),
            elicit_url,
            sample: samples,
            sample_with_tools: object(&sampling, "tools").is_some(),
            roots: object(&declared, "roots").is_some(),
            tasks: object(&within(object(&declared, "extensions")), TASKS_EXTENSION).is_some(),
        }
    }

    /// Whether the client can be asked this.
    pub fn can(&self, kind: InputKind) -> bool {
        match kind {
            InputKind::ElicitForm => self.elicit_form,
            InputKind::ElicitUrl => self.elicit_url,
            InputKind::Sample => self.sample,
            InputKind::SampleWithTools => self.sample_with_tools,
            InputKind::Roots => self.roots,
        }
    }

    /// Whether the client declared the tasks extension.
    pub fn follows_tasks(&self) -> bool {
        self.tasks
    }

    /// The capabilities object of what is missing among `kinds`; `None` if nothing is.
    pub fn missing(&self, kinds: impl Iterator<Item = InputKind>) -> Option<Value> {
        let mut required = serde_json::Map::new();
        for kind in kinds.filter(|kind| !self.can(*kind)) {
            let (name, mode) = match kind {
                InputKind::ElicitForm => ("elicitation", Some("form")),
                InputKind::ElicitUrl => ("elicitation", Some("url")),
                InputKind::Sample => ("sampling", None),
                InputKind::SampleWithTools => ("sampling", Some("tools")),
                InputKind::Roots => ("roots", None),
            };
            let entry = required.entry(name).or_insert_with(|| json!({}));
            if let (Some(mode), Some(entry)) = (mode, entry.as_object_mut()) {
                entry.insert(mode.to_owned(), json!({}));
            }
        }
        (!required.is_empty()).then_some(Value::Object(required))
    }
}

/// A request's metadata, as far as serving it needs.
#[derive(Debug, Clone, Default)]
pub struct Meta {
    /// Token under which progress is told; a text or an integer, echoed as sent.
    pub progress: Option<RawJson>,
    /// The least level of log messages that a modern request wants.
    pub level: Option<LogLevel>,
}

/// A request that may be dispatched.
#[derive(Debug)]
pub struct Admitted {
    request: Request,
    method: Method,
    revision: Revision,
    client: ClientCapabilities,
    meta: Meta,
}

impl Admitted {
    /// The only way to make one. `mirror` holds the HTTP headers, where there are any.
    pub fn admit(
        request: Request,
        session: Option<&Session>,
        offer: Offer,
        mirror: Option<&Mirror>,
    ) -> Result<Self, Fault> {
        match Claim::read(&request.params, offer)? {
            Some(claim) => admit_modern(request, claim, offer, mirror),
            None => admit_legacy(request, session, offer),
        }
    }

    /// The request.
    pub fn request(&self) -> &Request {
        &self.request
    }
    /// Its method.
    pub fn method(&self) -> Method {
        self.method
    }
    /// The revision it is served under.
    pub fn revision(&self) -> Revision {
        self.revision
    }
    /// What its client can be asked.
    pub fn client(&self) -> ClientCapabilities {
        self.client
    }
    /// Its metadata.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// The modern revision that a message's metadata claims.
#[derive(Debug)]
pub struct Claim {
    version: Text,
    client: ClientCapabilities,
}

impl Claim {
    /// Reads the claim of a message: none, a complete one, or the fault of an incomplete one.
    ///
    /// Any of the three reserved keys is a claim, so that a broken modern request never slips into the legacy era.
    pub fn read(params: &Params, offer: Offer) -> Result<Option<Self>, Fault> {
        let Some(meta) = params.meta() else { return Ok(None) };
        let (version, capabilities) = (meta.get(CLAIM_VERSION), meta.get(CLAIM_CAPABILITIES));
        let client = meta.get(CLAIM_CLIENT);
        if version.is_none() && capabilities.is_none() && client.is_none() {
            return Ok(None);
        }
        let mut missing = Vec::new();
        let version = version.and_then(|version| version.as_words());
        if version.is_none() {
            missing.push(CLAIM_VERSION);
        }
        let capabilities = capabilities.filter(|c| c.kind() == Kind::Object);
        if capabilities.is_none() {
            missing.push(CLAIM_CAPABILITIES);
        }
        if client.is_some_and(|client| !names_itself(&client)) {
            missing.push(CLAIM_CLIENT);
        }
        match (version, capabilities, missing.is_empty()) {
            (Some(version), Some(capabilities), true) => {
                Ok(Some(Self { version, client: ClientCapabilities::read(&capabilities) }))
            }
            _ => Err(incomplete("_meta lacks required keys, or they have the wrong type", missing, offer)),
        }
    }

    /// The revision named.
    pub fn version(&self) -> &str {
        &self.version
    }
}

/// Whether an implementation says its name and its version.
pub(super) fn names_itself(info: &RawJson) -> bool {
    #[derive(serde::Deserialize)]
    struct Named<'i> {
        #[serde(borrow)]
        name: &'i RawValue,
        #[serde(borrow)]
        version: &'i RawValue,
    }
    let is_text = |raw: &RawValue| raw.get().starts_with('"');
    info.kind() == Kind::Object
        && info.parse::<Named<'_>>().is_ok_and(|named| is_text(named.name) && is_text(named.version))
}

/// Whether params make a modern claim, be it a complete one.
pub(super) fn claims(params: &Params) -> bool {
    let claims = [CLAIM_VERSION, CLAIM_CAPABILITIES, CLAIM_CLIENT];
    params.meta().is_some_and(|meta| claims.iter().any(|key| meta.kind(key).is_some()))
}

/// Whether a message may not be part of a batch: it opens a session, or it is modern.
pub fn stands_alone(message: &Message) -> bool {
    match message {
        Message::Request(Request { method, params, .. }) => &**method == "initialize" || claims(params),
        Message::Notification(Notification { params, .. }) => claims(params),
        Message::Response(_) => false,
    }
}

/// The fault of a request that must carry a claim and has none, or half of one.
pub fn incomplete(problem: &str, missing: Vec<&'static str>, offer: Offer) -> Fault {
    Fault::IncompleteClaim {
        problem: format!("{problem}: {}", missing.join(", ")),
        missing,
        supported: offer.supported(),
    }
}

/// The fault of a modern request without any claim.
pub fn unclaimed(offer: Offer) -> Fault {
    incomplete("a request of this revision needs _meta with these keys", vec![CLAIM_VERSION, CLAIM_CAPABILITIES], offer)
}

/// The fault of a revision that is not served this way.
pub fn unsupported(requested: &str, supported: Vec<&'static str>) -> Fault {
    let requested = requested.chars().take(ECHOED_CHARACTERS).collect();
    Fault::UnsupportedProtocolVersion { supported, requested }
}

fn admit_modern(request: Request, claim: Claim, offer: Offer, mirror: Option<&Mirror>) -> Result<Admitted, Fault> {
    if let Some(mirror) = mirror {
        mirror.check_version(&claim.version)?;
    }
    let revision = match Revision::parse(&claim.version) {
        Ok(revision) if revision.era() == Era::Modern => revision,
        Ok(_) => return Err(unsupported(&claim.version, Offer::claimable())),
        Err(_) => return Err(unsupported(&claim.version, offer.supported())),
    };
    let method = Method::parse(&request.method).filter(|m| revision.rules().methods.contains(m));
    if let Some(mirror) = mirror {
        mirror.check_method(&request.method)?;
        mirror.check_name_readable()?;
        let mirrored = method.and_then(Method::mirrored_name).and_then(|key| request.params.text(key));
        if let Some(name) = mirrored {
            mirror.check_name(&name)?;
        }
    }
    let method = method.ok_or_else(|| Fault::unknown_method(&request.method))?;
    let mut meta = read_meta(&request.params)?;
    meta.level = asked_level(&request.params)?;
    Ok(Admitted { request, method, revision, client: claim.client, meta })
}

fn admit_legacy(request: Request, session: Option<&Session>, offer: Offer) -> Result<Admitted, Fault> {
    let method = Method::parse(&request.method);
    if method == Some(Method::Discover) {
        return Err(unclaimed(offer));
    }
    if offer == Offer::ModernOnly {
        return Err(match method {
            // A modern-only server names what it serves in whatever answers `initialize` (2026-07-28 basic/versioning).
            Some(Method::Initialize) => {
                let wanted = request.params.text("protocolVersion");
                unsupported(wanted.as_deref().unwrap_or_default(), offer.supported())
            }
            _ => unclaimed(offer),
        });
    }
    let (revision, client) = match (session, method) {
        (Some(session), _) => (session.revision(), session.client()),
        (None, Some(Method::Initialize | Method::Ping)) => (Revision::NEWEST_LEGACY, ClientCapabilities::default()),
        (None, _) => return Err(Fault::NotOpened { supported: offer.supported() }),
    };
    let method = method.filter(|m| revision.rules().methods.contains(m));
    let method = method.ok_or_else(|| Fault::unknown_method(&request.method))?;
    if matches!(request.params, Params::Other) {
        return Err(Fault::InvalidParams("params must be an object".to_owned()));
    }
    let meta = read_meta(&request.params)?;
    Ok(Admitted { request, method, revision, client, meta })
}

fn read_meta(params: &Params) -> Result<Meta, Fault> {
    if params.kind("_meta").is_none() {
        return Ok(Meta::default());
    }
    let Some(meta) = params.meta() else {
        return Err(Fault::InvalidParams("_meta must be an object".to_owned()));
    };
    let progress = meta.get("progressToken");
    if let Some(token) = &progress {
        let whole = token.kind() == Kind::Number && !token.as_str().contains(['.', 'e', 'E']);
        if token.kind() != Kind::String && !whole {
            return Err(Fault::InvalidParams("progressToken must be a text or an integer".to_owned()));
        }
    }
    Ok(Meta { progress, level: None })
}

/// A level is asked for request by request in the modern era alone (2026-07-28 server/utilities/logging).
fn asked_level(params: &Params) -> Result<Option<LogLevel>, Fault> {
    let Some(level) = params.meta().and_then(|meta| meta.get(LOG_LEVEL)) else { return Ok(None) };
    log_level(&level.as_text().unwrap_or_else(|| level.as_str().to_owned())).map(Some)
}

/// The level of that name.
pub(super) fn log_level(name: &str) -> Result<LogLevel, Fault> {
    LogLevel::parse(name).ok_or_else(|| {
        let name = shortened(name, ECHOED_CHARACTERS);
        Fault::InvalidParams(format!("unknown log level {name:?}: expected one of {}", LogLevel::names()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capabilities(text: &str) -> ClientCapabilities {
        ClientCapabilities::read(
            &RawJson::new(bytes::Bytes::copy_from_slice(text.as_bytes()), &Default::default()).unwrap(),
        )
    }

    #[test]
    fn a_capability_is_what_its_object_says() {
        let table = [
            (r#"{"elicitation":{}}"#, InputKind::ElicitForm, true),
            (r#"{"elicitation":{}}"#, InputKind::ElicitUrl, false),
            (r#"{"elicitation":{"url":{}}}"#, InputKind::ElicitForm, false),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, InputKind::ElicitForm, true),
            (r#"{"elicitation":true}"#, InputKind::ElicitForm, false),
            (r#"{"sampling":{}}"#, InputKind::SampleWithTools, false),
            (r#"{"sampling":{"tools":{}}}"#, InputKind::SampleWithTools, true),
            (r#"{"roots":{"listChanged":true}}"#, InputKind::Roots, true),
            ("{}", InputKind::Sample, false),
        ];
        for (text, kind, can) in table {
            assert_eq!(capabilities(text).can(kind), can, "{text} {kind:?}");
        }
    }

    #[test]
    fn only_what_is_missing_is_required() {
        let have = capabilities(r#"{"sampling":{}}"#);
        let kinds = [InputKind::Sample, InputKind::ElicitUrl, InputKind::ElicitForm, InputKind::Roots];
        assert_eq!(have.missing(kinds.into_iter()), Some(json!({"elicitation":{"url":{},"form":{}},"roots":{}})));
        assert_eq!(have.missing([InputKind::Sample].into_iter()), None);
        assert_eq!(have.missing([InputKind::SampleWithTools].into_iter()), Some(json!({"sampling":{"tools":{}}})));
    }
}
