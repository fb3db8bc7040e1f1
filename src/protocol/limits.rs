//! Every limit on input, with its default, its unit and its reason.
//!
//! Promises: a limit that a peer can meet stands here and nowhere else.

use std::time::Duration;

use super::json::JsonLimits;

/// Longest text id of a request, bytes: enough for any UUID or URI in use, small enough to echo.
pub const REQUEST_ID_BYTES: usize = 256;

/// Most messages in one batch (2025-03-26 basic, Batching).
pub const BATCH_MESSAGES: usize = 64;

/// Most characters of a peer's own text that an error repeats.
pub const ECHOED_CHARACTERS: usize = 64;

/// Longest sealed state accepted, bytes of text.
pub const SEALED_STATE_BYTES: usize = 8 * 1024;

/// How long sealed state stays valid.
pub const SEALED_STATE_LIFE: Duration = Duration::from_secs(600);

/// Most schema violations listed for a model.
pub const VIOLATIONS_LISTED: usize = 10;

/// Progress notices an exchange may send at once, and the rate per second at which that allowance returns.
pub const NOTICE_BURST: u32 = 10;

/// Lines in a row that are no message: all answered up to here.
pub const BAD_LINES_ANSWERED: u32 = 100;

/// Answers a second to lines that are no message, beyond [`BAD_LINES_ANSWERED`] in a row.
pub const BAD_LINES_PER_SECOND: u32 = 10;

/// Lines in a row that are no message: the connection ends here.
pub const BAD_LINES_AT_MOST: u32 = 1000;

/// Longest deadline a tool may declare, whatever progress it makes.
pub const DEADLINE_AT_MOST: Duration = Duration::from_secs(3600);

/// Most listen streams of one connection.
pub const SUBSCRIPTIONS_AT_MOST: usize = 16;

/// Most entries of one kind in a subscription, and most resources that a legacy session is subscribed to.
pub const SUBSCRIBED_URIS: usize = 256;

/// Longest URI that can be subscribed to, bytes: it is kept as long as the subscription.
pub const SUBSCRIBED_URI_BYTES: usize = 2048;

/// Most bytes of all entries of one subscription, or of all that one session subscribed to, together: each may be kept for as
/// long as its connection, and what acknowledges them must fit into [`WAITING_BYTES`] however it is escaped.
pub const SUBSCRIBED_BYTES: usize = 64 * 1024;

/// How often one call may ask its legacy client (questions that are asked together count once).
pub const ASKED_AT_MOST: u32 = 8;

/// How long a legacy client, and the person before it, may take to answer.
pub const ANSWER_TIME: Duration = Duration::from_secs(600);

/// Log messages a call may send at once, and the rate per second at which that allowance returns.
pub const LOG_BURST: u32 = 50;

/// Definitions on one page of a list: clients that ask for no second page are common, and no list that a model can
/// use is longer.
pub const LISTING_PAGE: usize = 500;

/// Most files of a skill, and most bytes of them together: what every host must take (the skills extension, Limits).
pub const SKILL_FILES: usize = 512;
/// See [`SKILL_FILES`].
pub const SKILL_BYTES: usize = 16 * 1024 * 1024;

/// Most values that complete an argument (2026-07-28 schema, `CompleteResult`).
pub const COMPLETIONS_AT_MOST: usize = 100;

/// Longest single answer a client takes, bytes; long listings come in pages.
pub const ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// Longest list of tools a client joins from its pages, bytes.
pub const LISTING_BYTES: usize = 64 * 1024 * 1024;

/// Most pages of one listing a client asks for.
pub const LISTING_PAGES: usize = 1000;

/// Most tools a client takes from all pages of one listing.
pub const LISTING_TOOLS: usize = 100_000;

/// Stray lines and messages a client passes over before it gives a server up.
pub const STRAYS_AT_MOST: u32 = 1000;

/// Longest session id a client takes, bytes.
pub const SESSION_ID_BYTES: usize = 1024;

/// Bytes a client reads of the body of an HTTP error.
pub const ERROR_BODY_BYTES: usize = 64 * 1024;

/// Most messages that wait for one reader who is slow or not there yet: a burst of a second or two from every call of a session.
pub const WAITING_EVENTS: usize = 256;

/// Bytes of such messages, answers aside: a peer that does not read must not fill our memory.
pub const WAITING_BYTES: usize = 1024 * 1024;

/// Events of one session that are kept for a client that lost its connection: it comes back within seconds or not at all.
pub const REPLAYED_EVENTS: usize = 256;

/// Bytes of such events. An answer beyond it reaches a client that is there, and cannot be fetched later.
pub const REPLAYED_BYTES: usize = 1024 * 1024;

/// How long a client is asked to wait before it fetches the answer of a stream that was closed early: short to a person, long to a server.
pub const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Bounds on a tool's schema: nesting, subschemas, bytes of text (2026-07-28 basic, JSON Schema Usage).
pub const SCHEMA_DEPTH: usize = 64;
/// See [`SCHEMA_DEPTH`].
pub const SCHEMA_SUBSCHEMAS: usize = 4096;
/// Most subschemas that a schema may come to when each of its references is followed: references can double at each step.
pub const SCHEMA_EXPANDED: usize = 16 * SCHEMA_SUBSCHEMAS;
/// See [`SCHEMA_DEPTH`].
pub const SCHEMA_BYTES: usize = 256 * 1024;

/// How long a client should wait between two looks at a task: a person does not notice, and a poll costs little.
pub const TASK_POLL: Duration = Duration::from_secs(1);

/// Tasks on one page of a list.
pub const TASK_PAGE: usize = 100;

/// Longest message of a task's status, bytes: a line for a person.
pub const TASK_MESSAGE_BYTES: usize = 512;

/// Limits on tasks.
#[derive(Debug, Clone)]
pub struct TaskLimits {
    /// Tasks kept for one principal, ended ones included: 16 a minute for an hour.
    pub kept: usize,
    /// Tasks that run at once in the process: as many as one connection may have calls in flight.
    pub running: usize,
    /// Bytes of one task as kept, its result included: as long as the longest answer a client takes.
    pub bytes: usize,
    /// Bytes of all tasks together, beyond which none is made: what a state folder may cost on a small machine.
    pub all_bytes: u64,
    /// How long a task is kept from its creation, milliseconds, where its client says nothing: an hour.
    pub ttl_ms: u64,
    /// Shortest such time: a client must be able to look at least a few times.
    pub ttl_at_least_ms: u64,
    /// Longest such time: a day, as results may be secret and nobody else deletes them.
    pub ttl_at_most_ms: u64,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            kept: 1000,
            running: 64,
            bytes: ANSWER_BYTES,
            all_bytes: 256 * 1024 * 1024,
            ttl_ms: 3_600_000,
            ttl_at_least_ms: 60_000,
            ttl_at_most_ms: 24 * 3_600_000,
        }
    }
}

/// Limits that an operator may change, and those that depend on them.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Longest incoming message, bytes. The peers' default; clients do send arguments of 1 MiB.
    pub message: usize,
    /// Nesting, keys and items of an incoming message.
    pub json: JsonLimits,
    /// Calls in flight on one connection.
    pub calls_per_connection: usize,
    /// Calls in flight in the process.
    pub calls: usize,
    /// Deadline of a call whose tool declares none.
    pub deadline: Duration,
    /// How long calls in flight may go on after the end of input or a request to stop.
    pub drain: Duration,
    /// How long they may take to end once they are cancelled after that: longer than stopping a child process takes.
    pub stop: Duration,
    /// Bytes of HTTP bodies in memory, all together.
    pub bodies: usize,
    /// Bytes of sent events kept for resuming, all sessions together; 0 keeps none, and no stream can be resumed.
    pub replay: usize,
    /// How long an HTTP request's header may take to arrive.
    pub header_time: Duration,
    /// How long an HTTP connection may stay open between two requests.
    pub socket_idle: Duration,
    /// How long an HTTP body may take to arrive.
    pub body_time: Duration,
    /// How long a write may be blocked by a peer that does not read.
    pub stalled_write: Duration,
    /// Interval of keep-alive comments on event streams.
    pub keep_alive: Duration,
    /// Legacy HTTP sessions held.
    pub sessions: usize,
    /// How long a legacy HTTP session may stay unused.
    pub session_idle: Duration,
    /// HTTP connections held.
    pub sockets: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: 4 * 1024 * 1024,
            json: JsonLimits::default(),
            calls_per_connection: 64,
            calls: 1024,
            deadline: Duration::from_secs(60),
            drain: Duration::from_secs(2),
            stop: Duration::from_secs(6),
            bodies: 64 * 1024 * 1024,
            replay: 64 * 1024 * 1024,
            header_time: Duration::from_secs(10),
            socket_idle: Duration::from_secs(60),
            body_time: Duration::from_secs(30),
            stalled_write: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
            sessions: 10_000,
            session_idle: Duration::from_secs(30 * 60),
            sockets: 12_000,
        }
    }
}
