//! What a running call tells its client: progress and log messages, at a bounded rate.

use std::time::Instant;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::json::RawJson;
use super::limits::{LOG_BURST, NOTICE_BURST};
use super::log::LogLevel;
use super::message::encode_notification;
use super::revision::Revision;

/// So many at once, and as many again a second.
#[derive(Debug, Clone)]
struct Allowance {
    rate: f64,
    left: f64,
    counted: Instant,
}

impl Allowance {
    fn new(rate: u32, now: Instant) -> Self {
        Self { rate: f64::from(rate), left: f64::from(rate), counted: now }
    }

    /// Whether one more may be sent.
    fn take(&mut self, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(self.counted).as_secs_f64();
        self.left = (self.left + elapsed * self.rate).min(self.rate);
        self.counted = now;
        let may = self.left >= 1.0;
        if may {
            self.left -= 1.0;
        }
        may
    }
}

/// What a call's client hears of its log; what comes too fast is lost.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Logs(Allowance);

impl Logs {
    pub(super) fn new(now: Instant) -> Self {
        Self(Allowance::new(LOG_BURST, now))
    }

    /// What to send for a message that is wanted (server/utilities/logging, Log Message Notifications).
    pub(super) fn tell(&mut self, level: LogLevel, logger: Option<&str>, data: Value, now: Instant) -> Option<Bytes> {
        if !self.0.take(now) {
            return None;
        }
        let mut params = Map::new();
        params.insert("level".to_owned(), level.name().into());
        if let Some(logger) = logger {
            params.insert("logger".to_owned(), logger.into());
        }
        params.insert("data".to_owned(), data);
        Some(encode_notification("notifications/message", &Value::Object(params).to_string()))
    }
}

/// What a request that gave a token hears: growing values only, at most ten at once and ten a
/// second, the newest kept (2026-07-28 basic/patterns/progress).
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Progress {
    token: RawJson,
    last: Option<f64>,
    allowance: Allowance,
    /// The newest notice's params that were not told.
    held: Option<String>,
}

impl Progress {
    pub(super) fn new(token: RawJson, now: Instant) -> Self {
        Self { token, last: None, allowance: Allowance::new(NOTICE_BURST, now), held: None }
    }

    /// What to send for a notice now, if anything.
    pub(super) fn tell(
        &mut self,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
        revision: Revision,
        now: Instant,
    ) -> Option<Bytes> {
        if !progress.is_finite() || self.last.is_some_and(|last| progress <= last) {
            return None;
        }
        self.last = Some(progress);
        let mut params = format!("{{\"progressToken\":{},\"progress\":{}", self.token.as_str(), number(progress));
        if let Some(total) = total.filter(|total| total.is_finite()) {
            params.push_str(&format!(",\"total\":{}", number(total)));
        }
        if let Some(message) = message.filter(|_| revision.rules().progress_message) {
            params.push_str(&format!(",\"message\":{}", RawJson::encode(&message).as_str()));
        }
        params.push('}');
        if !self.allowance.take(now) {
            self.held = Some(params);
            return None;
        }
        self.held = None;
        Some(encode_notification("notifications/progress", &params))
    }

    /// The newest notice that was held back, to be sent before the answer.
    pub(super) fn last_held(&mut self) -> Option<Bytes> {
        self.held.take().map(|params| encode_notification("notifications/progress", &params))
    }
}

/// Whole numbers are written without a fraction, which some clients' integer types need.
fn number(value: f64) -> Value {
    let text = format!("{value}");
    text.parse::<i64>().map_or_else(|_| json!(value), Value::from)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn progress(now: Instant) -> Progress {
        Progress::new(RawJson::encode(&"t"), now)
    }

    fn tell(progress: &mut Progress, value: f64, revision: Revision, now: Instant) -> Option<Bytes> {
        progress.tell(value, Some(100.0), Some("m".to_owned()), revision, now)
    }

    #[test]
    fn progress_that_does_not_grow_is_not_told() {
        let now = Instant::now();
        let mut progress = progress(now);
        let told: Vec<bool> = [0.0, 1.5, 1.5, 1.0, f64::NAN, f64::INFINITY, 2.0]
            .into_iter()
            .map(|v| tell(&mut progress, v, Revision::MODERN, now).is_some())
            .collect();
        assert_eq!(told, [true, true, false, false, false, false, true]);
    }

    #[test]
    fn a_flood_is_thinned_and_its_newest_notice_is_kept_for_the_end() {
        let now = Instant::now();
        let mut progress = progress(now);
        let told = (0..1000).filter(|i| tell(&mut progress, f64::from(*i), Revision::MODERN, now).is_some()).count();
        assert_eq!(told, 10);
        let last = String::from_utf8(progress.last_held().unwrap().to_vec()).unwrap();
        assert!(last.contains("\"progress\":999,"), "{last}");
        assert!(progress.last_held().is_none());
        assert!(tell(&mut progress, 2000.0, Revision::MODERN, now + Duration::from_millis(100)).is_some());
    }

    #[test]
    fn the_oldest_revision_hears_no_message() {
        let now = Instant::now();
        let text =
            |revision| String::from_utf8(tell(&mut progress(now), 1.0, revision, now).unwrap().to_vec()).unwrap();
        assert!(!text(Revision::ALL[0]).contains("\"message\""));
        assert!(text(Revision::ALL[1]).contains("\"message\":\"m\""));
    }
}
