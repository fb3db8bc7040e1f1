//! The signals that stop a command: from a person, a terminal that closes, or a supervisor.
//!
//! Promises: once they are caught none of them ends the process by itself, so what the command started can
//! be ended with it; a hang-up that was ignored when the command started (`nohup`) stays ignored.

use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// TERM, INT and HUP, caught.
pub(crate) struct Signals(Vec<Signal>);

impl Signals {
    /// Catches them from now on.
    pub(crate) fn catch() -> Self {
        let hang_up = (!hang_ups_are_ignored()).then(SignalKind::hangup);
        let kinds = [SignalKind::terminate(), SignalKind::interrupt()].into_iter().chain(hang_up);
        let caught = |kind| {
            let warn = |error: &_| tracing::warn!(%error, ?kind, "cannot be caught: a stop will not be in order");
            signal(kind).inspect_err(warn).ok()
        };
        Self(kinds.filter_map(caught).collect())
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        std::future::poll_fn(|cx| {
            let told = self.0.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
            if told { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// Whether whoever started us ignored HUP. Where that cannot be told, nobody did.
fn hang_ups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Bit 0 is signal 1.
    mask.is_some_and(|mask| mask & 1 == 1)
}
