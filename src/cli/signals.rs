//! The signals that stop a command, from a person, a terminal that closes, or a supervisor; and the one by which a
//! server reads its files again.
//!
//! Promises: once they are caught none of them ends the process by itself, so what the command started can
//! be ended with it; a hang-up that was ignored when the command started (`nohup`) stays ignored.

use std::task::Poll;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that were caught.
pub(crate) struct Signals(Vec<Signal>);

impl Signals {
    /// Catches TERM, INT and HUP from now on.
    pub(crate) fn catch() -> Self {
        let Self(mut caught) = Self::stops();
        caught.append(&mut Self::hang_ups().0);
        Self(caught)
    }

    /// Catches TERM and INT from now on.
    pub(crate) fn stops() -> Self {
        Self([SignalKind::terminate(), SignalKind::interrupt()].into_iter().filter_map(caught).collect())
    }

    /// Catches HUP from now on.
    pub(crate) fn hang_ups() -> Self {
        let kind = (!hang_ups_are_ignored()).then(SignalKind::hangup);
        Self(kind.into_iter().filter_map(caught).collect())
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

fn caught(kind: SignalKind) -> Option<Signal> {
    let warn = |error: &_| tracing::warn!(%error, ?kind, "cannot be caught: it ends the server out of order");
    signal(kind).inspect_err(warn).ok()
}

/// Whether whoever started us ignored HUP. Where that cannot be told, nobody did.
fn hang_ups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Bit 0 is signal 1.
    mask.is_some_and(|mask| mask & 1 == 1)
}
