//! A declared HTTP request as a tool.
//!
//! Promises: [`HttpTool::prepare`] says exactly what would be sent, and [`HttpTool::run`] sends exactly
//! that, once, to the declared origin: no redirect, no proxy, no cookie, nothing of the caller's own
//! headers. What comes back is bounded and cleaned; a failure is told so that a model can act on it,
//! while addresses and system errors go to the operator's log.

pub(super) mod render;
mod report;

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, LOCATION};
use tokio::time::timeout;

pub use render::{Prepared, Refusal};

use super::backend::defect;
use crate::client::outbound::{Origin, Pool, Reach, Unanswered};
use crate::client::reading;
use crate::protocol::{Arguments, Caller, Outcome};
use crate::surface::outward::{HttpOrigin, HttpRequest, HttpVerb};
use report::{Answer, Reporter, failed};

/// Most bytes of an answer of another server that are read.
pub(super) const READ_BYTES: usize = 4 * 1024 * 1024;

/// How long a call may take where nothing is said: as long as the engine waits.
const WITHIN: Duration = Duration::from_secs(60);

/// A request that carries out one tool.
#[derive(Debug)]
pub struct HttpTool {
    name: String,
    request: HttpRequest,
    pool: Pool,
    reporter: Arc<Reporter>,
}

impl HttpTool {
    /// Takes a checked declaration. Connects to nothing.
    pub fn new(name: String, request: HttpRequest) -> Self {
        let reach = Reach::new(request.allow_private);
        Self::reaching(name, request, reach)
    }

    /// The same, reached as that says: with roots or a resolver of its own.
    pub fn reaching(name: String, request: HttpRequest, reach: Reach) -> Self {
        let reporter = Reporter {
            tool: name.clone(),
            host: request.origin.authority(),
            narrowing: request.arguments.iter().map(|argument| argument.name.clone()).collect(),
            cap: request.cap,
            output: request.output,
        };
        Self { name, pool: Pool::new(origin(&request.origin), reach), request, reporter: Arc::new(reporter) }
    }

    /// The words that its method stands for, by which the gate judges it.
    pub(super) fn probed(&self) -> Option<&'static str> {
        (self.request.verb == HttpVerb::Delete).then_some("delete")
    }

    /// Renders a call without sending it.
    pub fn prepare(&self, arguments: &Arguments) -> Result<Prepared, Refusal> {
        render::prepare(&self.request, arguments)
    }

    /// Sends a call and reads the answer, until its caller is gone. Dropping the future closes the connection.
    pub async fn run(&self, arguments: &Arguments, caller: &dyn Caller) -> Outcome {
        let authority = self.request.origin.authority();
        let (request, secrets) = match self.prepare(arguments).and_then(|prepared| prepared.into_request(&authority)) {
            Ok(request) => request,
            Err(refusal) => return self.refused(&refusal),
        };
        let exchange = async {
            let (response, sender) = self.pool.send(request).await?;
            let answer = read(response).await?;
            if !answer.cut {
                self.pool.keep(sender);
            }
            Ok(answer)
        };
        // Before the engine gives it up, so that the model is told who did not answer.
        let within = self.request.timeout.unwrap_or(WITHIN).mul_f64(0.95);
        let answered = tokio::select! {
            answered = timeout(within, exchange) => answered,
            () = caller.gone() => return failed("stopped before it was done".to_owned()),
        };
        let host = &self.reporter.host;
        match answered {
            Ok(Ok(answer)) => {
                let reporter = Arc::clone(&self.reporter);
                let told = reading(answer.body.len(), move || reporter.report(&answer, &secrets)).await;
                told.unwrap_or_else(|| defect(&format!("tool {}: its answer could not be read", self.name)))
            }
            Ok(Err(why)) => self.unanswered(&why),
            Err(_) => failed(format!("{host} did not answer within {within:?}: try again, or ask for less")),
        }
    }

    fn refused(&self, refusal: &Refusal) -> Outcome {
        match refusal {
            Refusal::Declaration => return defect(&format!("tool {}: {refusal}", self.name)),
            Refusal::Secret(variable) => {
                tracing::warn!(tool = %self.name, "the variable {variable} is not set, or can be no header: set it and start again");
            }
            _ => {}
        }
        failed(refusal.to_string())
    }

    fn unanswered(&self, why: &Unanswered) -> Outcome {
        let mut text = why.to_string();
        let mut cause = std::error::Error::source(why);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        tracing::warn!(tool = %self.name, origin = %self.request.origin, "no answer: {text}");
        let host = &self.reporter.host;
        failed(match why {
            Unanswered::Unreachable(why) => format!("{host} cannot be reached: {why}"),
            Unanswered::Closed(_) => {
                format!("{host} did not answer: {why}. Whether it did what was asked is not known")
            }
        })
    }
}

/// The declared origin, as the client has it.
pub(super) fn origin(declared: &HttpOrigin) -> Origin {
    Origin { tls: declared.tls, host: declared.host.clone(), port: declared.port }
}

async fn read(response: Response<Incoming>) -> Result<Answer, Unanswered> {
    let (head, mut body) = response.into_parts();
    let text =
        |name: HeaderName| head.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let encoded = text(CONTENT_ENCODING).is_some_and(|coding| !coding.trim().eq_ignore_ascii_case("identity"));
    let media_type = text(CONTENT_TYPE).unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let mut bytes = bytes::BytesMut::new();
    let mut cut = false;
    while let Some(frame) = body.frame().await {
        let Ok(part) = frame.map_err(Unanswered::Closed)?.into_data() else { continue };
        let room = READ_BYTES.saturating_sub(bytes.len());
        bytes.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
        if part.len() > room {
            cut = true;
            break;
        }
    }
    Ok(Answer {
        status: head.status.as_u16(),
        reason: head.status.canonical_reason().unwrap_or_default(),
        media_type: essence,
        location: text(LOCATION),
        encoded,
        body: bytes.freeze(),
        cut,
    })
}
