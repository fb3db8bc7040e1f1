//! Every revision of the protocol and everything in which they differ, as data.
//!
//! Promises: no other file holds a revision's date; no code compares revisions by date. A new
//! revision is a variant and a [`Rules`] static, a new difference is a field of [`Rules`].

use std::fmt;

use super::fault::ErrorCode;
pub use super::method::Method;

/// A dated protocol revision that this engine knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Revision {
    /// 2024-11-05
    V2024_11_05,
    /// 2025-03-26
    V2025_03_26,
    /// 2025-06-18
    V2025_06_18,
    /// 2025-11-25
    V2025_11_25,
    /// 2026-07-28
    V2026_07_28,
}

/// How a peer opens: by a handshake, or by metadata on each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize`, then a session.
    Legacy,
    /// `_meta` on every request, no session.
    Modern,
}

/// What is done with arguments that do not fit a tool's `inputSchema`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadArguments {
    /// A JSON-RPC error `-32602`.
    Fault,
    /// A result with `isError`, which a model can read (2025-11-25 server/tools, Error Handling).
    ToolError,
}

/// Which `structuredContent` a revision's results may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Structured {
    /// None at all.
    Never,
    /// Objects only.
    Object,
    /// Any JSON value.
    Any,
}

/// What the end of an HTTP response stream means for the request on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDisconnect {
    /// Nothing: the work goes on (2025-11-25 basic/transports).
    Continue,
    /// The request is cancelled (2026-07-28 basic/patterns/cancellation).
    Cancel,
}

/// Everything that differs between revisions, as data.
#[derive(Debug)]
pub struct Rules {
    /// The date that names the revision on the wire.
    pub name: &'static str,
    /// How its peers open.
    pub era: Era,
    /// Whether an array of messages is accepted.
    pub batches: bool,
    /// Whether every result carries `resultType`.
    pub result_type: bool,
    /// Whether listings and discovery carry `ttlMs` and `cacheScope`.
    pub cache_hints: bool,
    /// Whether results carry the server's identity in `_meta`.
    pub identity_in_meta: bool,
    /// Whether the implementation object may have a `title`.
    pub identity_title: bool,
    /// Whether progress may carry a `message`.
    pub progress_message: bool,
    /// Arguments that do not fit the schema.
    pub bad_arguments: BadArguments,
    /// Which structured results exist.
    pub structured: Structured,
    /// Whether an `outputSchema` may have a root other than an object.
    pub any_output_root: bool,
    /// Whether a tool may ask the client by an `input_required` result.
    pub input_required: bool,
    /// What a closed HTTP response means.
    pub on_disconnect: OnDisconnect,
    /// The methods a peer of this revision may call.
    pub methods: &'static [Method],
    /// The code of a resource that does not exist.
    pub resource_missing: ErrorCode,
    /// Whether there are blocks of sound.
    pub audio_blocks: bool,
    /// Whether there are blocks that only name a resource.
    pub link_blocks: bool,
    /// Whether blocks and resource contents have `_meta`.
    pub block_meta: bool,
    /// Whether annotations may say when something was last modified.
    pub last_modified: bool,
    /// Whether the implementation object may have a description, icons and a website.
    pub identity_details: bool,
    /// Whether completion is a capability of its own.
    pub completions_capability: bool,
    /// Whether extensions are declared among the capabilities.
    pub extensions: bool,
    /// What of `elicitation/create` exists.
    pub elicitation: Elicitation,
    /// Whether a model can be sampled with tools.
    pub sampling_tools: bool,
    /// Whether log messages are asked for request by request, not by session.
    pub level_by_request: bool,
    /// Which form of tasks.
    pub tasks: Tasks,
    /// Whether an event stream begins with an event without data and may be closed early (2025-11-25 basic/transports).
    pub polling: bool,
}

/// What of `elicitation/create` a revision has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elicitation {
    /// Nothing.
    None,
    /// Forms, without a `mode`.
    Form,
    /// Forms and addresses, named by `mode`; an address has an `elicitationId`.
    FormAndUrl,
    /// Forms and addresses, named by `mode`.
    Modern,
}

/// Which form of tasks a revision has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tasks {
    /// None.
    None,
    /// The experimental part of 2025-11-25.
    Experimental,
    /// The extension of 2026-07-28.
    Extension,
}

/// What every revision with a handshake has.
macro_rules! legacy_methods {
    ($($more:ident),*) => {
        &[
            Method::Initialize,
            Method::Ping,
            Method::ToolsList,
            Method::ToolsCall,
            Method::ResourcesList,
            Method::TemplatesList,
            Method::ResourcesRead,
            Method::Subscribe,
            Method::Unsubscribe,
            Method::PromptsList,
            Method::PromptsGet,
            Method::Complete,
            Method::SetLevel,
            $(Method::$more,)*
        ]
    };
}

static V2024_11_05: Rules = Rules {
    name: "2024-11-05",
    era: Era::Legacy,
    batches: true,
    result_type: false,
    cache_hints: false,
    identity_in_meta: false,
    identity_title: false,
    progress_message: false,
    bad_arguments: BadArguments::Fault,
    structured: Structured::Never,
    any_output_root: false,
    input_required: false,
    on_disconnect: OnDisconnect::Continue,
    methods: legacy_methods!(),
    resource_missing: ErrorCode::ResourceNotFound,
    audio_blocks: false,
    link_blocks: false,
    block_meta: false,
    last_modified: false,
    identity_details: false,
    completions_capability: false,
    extensions: false,
    elicitation: Elicitation::None,
    sampling_tools: false,
    level_by_request: false,
    tasks: Tasks::None,
    polling: false,
};

static V2025_03_26: Rules = Rules {
    name: "2025-03-26",
    era: Era::Legacy,
    batches: true,
    result_type: false,
    cache_hints: false,
    identity_in_meta: false,
    identity_title: false,
    progress_message: true,
    bad_arguments: BadArguments::Fault,
    structured: Structured::Never,
    any_output_root: false,
    input_required: false,
    on_disconnect: OnDisconnect::Continue,
    methods: legacy_methods!(),
    resource_missing: ErrorCode::ResourceNotFound,
    audio_blocks: true,
    link_blocks: false,
    block_meta: false,
    last_modified: false,
    identity_details: false,
    completions_capability: true,
    extensions: false,
    elicitation: Elicitation::None,
    sampling_tools: false,
    level_by_request: false,
    tasks: Tasks::None,
    polling: false,
};

static V2025_06_18: Rules = Rules {
    name: "2025-06-18",
    era: Era::Legacy,
    batches: false,
    result_type: false,
    cache_hints: false,
    identity_in_meta: false,
    identity_title: true,
    progress_message: true,
    bad_arguments: BadArguments::Fault,
    structured: Structured::Object,
    any_output_root: false,
    input_required: false,
    on_disconnect: OnDisconnect::Continue,
    methods: legacy_methods!(),
    resource_missing: ErrorCode::ResourceNotFound,
    audio_blocks: true,
    link_blocks: true,
    block_meta: true,
    last_modified: true,
    identity_details: false,
    completions_capability: true,
    extensions: false,
    elicitation: Elicitation::Form,
    sampling_tools: false,
    level_by_request: false,
    tasks: Tasks::None,
    polling: false,
};

static V2025_11_25: Rules = Rules {
    name: "2025-11-25",
    era: Era::Legacy,
    batches: false,
    result_type: false,
    cache_hints: false,
    identity_in_meta: false,
    identity_title: true,
    progress_message: true,
    bad_arguments: BadArguments::ToolError,
    structured: Structured::Object,
    any_output_root: false,
    input_required: false,
    on_disconnect: OnDisconnect::Continue,
    methods: legacy_methods!(TasksGet, TasksResult, TasksList, TasksCancel),
    resource_missing: ErrorCode::ResourceNotFound,
    audio_blocks: true,
    link_blocks: true,
    block_meta: true,
    last_modified: true,
    identity_details: true,
    completions_capability: true,
    extensions: false,
    elicitation: Elicitation::FormAndUrl,
    sampling_tools: true,
    level_by_request: false,
    tasks: Tasks::Experimental,
    polling: true,
};

static V2026_07_28: Rules = Rules {
    name: "2026-07-28",
    era: Era::Modern,
    batches: false,
    result_type: true,
    cache_hints: true,
    identity_in_meta: true,
    identity_title: true,
    progress_message: true,
    bad_arguments: BadArguments::ToolError,
    structured: Structured::Any,
    any_output_root: true,
    input_required: true,
    on_disconnect: OnDisconnect::Cancel,
    methods: &[
        Method::Discover,
        Method::ToolsList,
        Method::ToolsCall,
        Method::ResourcesList,
        Method::TemplatesList,
        Method::ResourcesRead,
        Method::PromptsList,
        Method::PromptsGet,
        Method::Complete,
        Method::Listen,
        Method::TasksGet,
        Method::TasksCancel,
        Method::TasksUpdate,
        Method::SkillsList,
        Method::SkillsGet,
        Method::DirectoryRead,
    ],
    resource_missing: ErrorCode::InvalidParams,
    audio_blocks: true,
    link_blocks: true,
    block_meta: true,
    last_modified: true,
    identity_details: true,
    completions_capability: true,
    extensions: true,
    elicitation: Elicitation::Modern,
    sampling_tools: true,
    level_by_request: true,
    tasks: Tasks::Extension,
    polling: false,
};

/// The text names no revision of this engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol revision")]
pub struct UnknownRevision;

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The newest legacy revision: the answer to an `initialize` that names none of ours.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;

    /// The modern revision.
    pub const MODERN: Self = Self::V2026_07_28;

    /// What a sessionless HTTP request without a version header is taken for (2025-06-18 basic/transports, Protocol Version Header).
    pub const ASSUMED_OVER_HTTP: Self = Self::V2025_03_26;

    /// The dates of the revisions that take an array of messages, for a text.
    pub fn with_batches() -> String {
        let dates: Vec<&str> = Self::ALL.into_iter().filter(|r| r.rules().batches).map(Self::name).collect();
        dates.join(" or ")
    }

    /// Reads a revision's date, exactly.
    pub fn parse(text: &str) -> Result<Self, UnknownRevision> {
        Self::ALL.into_iter().find(|r| r.name() == text).ok_or(UnknownRevision)
    }

    /// The rules of this revision.
    pub const fn rules(self) -> &'static Rules {
        match self {
            Self::V2024_11_05 => &V2024_11_05,
            Self::V2025_03_26 => &V2025_03_26,
            Self::V2025_06_18 => &V2025_06_18,
            Self::V2025_11_25 => &V2025_11_25,
            Self::V2026_07_28 => &V2026_07_28,
        }
    }

    /// The date on the wire.
    pub const fn name(self) -> &'static str {
        self.rules().name
    }

    /// How its peers open.
    pub const fn era(self) -> Era {
        self.rules().era
    }

    /// The answer to an `initialize` that names `wanted`: that legacy revision, else the newest legacy one.
    ///
    /// Never a modern revision, which no handshake can agree on (2025-11-25 basic/lifecycle, Version Negotiation).
    pub fn negotiate(wanted: &str) -> Self {
        match Self::parse(wanted) {
            Ok(revision) if revision.era() == Era::Legacy => revision,
            _ => Self::NEWEST_LEGACY,
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which eras a server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Offer {
    /// All five revisions.
    #[default]
    Both,
    /// The modern revision alone.
    ModernOnly,
}

impl Offer {
    /// The offered revisions' dates, newest first.
    pub fn supported(self) -> Vec<&'static str> {
        let every = Revision::ALL.into_iter().rev();
        every.filter(|r| self == Self::Both || r.era() == Era::Modern).map(Revision::name).collect()
    }

    /// The dates that a per-request claim may name, newest first.
    pub fn claimable() -> Vec<&'static str> {
        Self::ModernOnly.supported()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negotiation_answers_a_known_legacy_revision_with_itself_and_anything_else_with_the_newest() {
        for revision in Revision::ALL {
            let answer = Revision::negotiate(revision.name());
            assert_eq!(answer.era(), Era::Legacy);
            assert_eq!(answer == revision, revision.era() == Era::Legacy);
        }
        for wanted in ["", "1999-01-01", "2099-01-01", "2025-11-25 ", "2026-07-28", "DRAFT"] {
            assert_eq!(Revision::negotiate(wanted), Revision::NEWEST_LEGACY, "{wanted:?}");
        }
    }

    #[test]
    fn supported_lists_run_from_the_newest_to_the_oldest() {
        assert_eq!(Offer::Both.supported(), ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]);
        assert_eq!(Offer::ModernOnly.supported(), ["2026-07-28"]);
    }
}
