//! Logs: on standard error, never blocking the engine, never holding arguments or secrets.

use tracing_appender::non_blocking::WorkerGuard;
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

/// Starts logging until the guard is dropped. Lines that nobody takes are dropped, so that a full pipe stops nothing.
pub(crate) fn start(format: LogFormat) -> WorkerGuard {
    let (writer, guard) = tracing_appender::non_blocking(std::io::stderr());
    let filter = EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new("warn"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_target(false);
    let set = match format {
        LogFormat::Text => builder.with_ansi(super::show::colour_on_stderr()).try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    drop(set);
    guard
}
