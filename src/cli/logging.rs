//! Logs: on standard error, never blocking the engine, never holding arguments or secrets.

use std::io::Write as _;

use tracing_appender::non_blocking::{NonBlocking, WorkerGuard};
use tracing_subscriber::EnvFilter;

/// Names what is logged, as `tracing` filters do.
const VARIABLE: &str = "TWODOOR_LOG";

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object a line
    Json,
}

/// Standard error while something is served, until it is dropped. What nobody takes is dropped, so that a full pipe
/// stops nothing.
pub(crate) struct Logging {
    writer: NonBlocking,
    _guard: WorkerGuard,
}

impl Logging {
    /// What says things there beside the logs.
    pub(crate) fn voice(&self) -> Voice {
        Voice(self.writer.clone())
    }
}

/// Says what people and programs wait to hear.
pub(crate) struct Voice(NonBlocking);

impl Voice {
    pub(crate) fn say(&mut self, text: &str) {
        let _ = self.0.write_all(text.as_bytes());
    }
}

/// Starts logging.
pub(crate) fn start(format: LogFormat) -> Logging {
    let (writer, guard) = tracing_appender::non_blocking(std::io::stderr());
    let voice = writer.clone();
    let filter = EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new("warn"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_target(false);
    let set = match format {
        LogFormat::Text => builder.with_ansi(super::show::colour_on_stderr()).try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    drop(set);
    Logging { writer: voice, _guard: guard }
}
