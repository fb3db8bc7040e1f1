//! The time of day, for what outlives the process.
//!
//! Promises: within one process it never goes back and never jumps, whatever is done to the system's clock.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Milliseconds since 1970.
#[derive(Clone)]
pub(super) struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// The system's time at this moment, going on by the monotonic clock.
    pub(super) fn system() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let began = Instant::now();
        Self(Arc::new(move || millis(since.saturating_add(began.elapsed()))))
    }

    #[cfg(test)]
    pub(super) fn of(millis: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(millis))
    }

    pub(super) fn now(&self) -> u64 {
        (self.0)()
    }
}

/// A duration in whole milliseconds.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// ISO 8601, UTC.
pub(super) fn iso(millis: u64) -> String {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis).saturating_mul(1_000_000));
    time.ok().and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_utc() {
        assert_eq!(iso(0), "1970-01-01T00:00:00Z");
        assert_eq!(iso(1_785_196_800_123), "2026-07-28T00:00:00.123Z");
        assert_eq!(iso(u64::MAX), "");
    }
}
