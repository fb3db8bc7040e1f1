//! When an upstream is asked again after it failed: pure, over times that are handed in.
//!
//! Promises: five failures in a row pause it, longer each time, with some jitter; a program is started at
//! most five times in a minute, with a pause that grows while it does not come up.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Failures in a row that pause an upstream.
const FAILURES: u32 = 5;
/// The first pause, which doubles each time.
const PAUSE: Duration = Duration::from_secs(2);
/// The longest pause, without its jitter.
const PAUSE_AT_MOST: Duration = Duration::from_secs(60);
/// Starts of a program in [`WINDOW`].
const STARTS: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);
/// The pause after a start that failed, which doubles with each.
const RESTART: Duration = Duration::from_millis(250);

/// Pauses an upstream that fails.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    failures: u32,
    pauses: u32,
    until: Option<Instant>,
}

impl Breaker {
    /// How long it is paused still; `None` if it may be asked.
    pub(super) fn paused(&self, now: Instant) -> Option<Duration> {
        Some(self.until?.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }

    /// It answered, whatever it said.
    pub(super) fn answered(&mut self) {
        *self = Self::default();
    }

    /// It did not answer; whether that pauses it. `jitter` is from 0 to 255.
    pub(super) fn failed(&mut self, now: Instant, jitter: u8) -> bool {
        self.failures = self.failures.saturating_add(1);
        // After a pause one failure is enough: it was given its chance.
        if self.failures < FAILURES {
            return false;
        }
        let pause = doubled(PAUSE, self.pauses, PAUSE_AT_MOST);
        self.pauses = self.pauses.saturating_add(1);
        self.until = Some(now + pause + pause.mul_f64(f64::from(jitter) / 512.0));
        true
    }
}

/// Counts the starts of a program.
#[derive(Debug, Default)]
pub(super) struct Starts {
    at: VecDeque<Instant>,
    failed: u32,
    until: Option<Instant>,
}

impl Starts {
    /// Counts a start, or says how long it has to wait.
    pub(super) fn begin(&mut self, now: Instant) -> Result<(), Duration> {
        self.at.retain(|at| now.saturating_duration_since(*at) < WINDOW);
        if let Some(left) = self.until.map(|until| until.saturating_duration_since(now)).filter(|left| !left.is_zero())
        {
            return Err(left);
        }
        if self.at.len() >= STARTS {
            let first = self.at.front().copied().unwrap_or(now);
            return Err(WINDOW.saturating_sub(now.saturating_duration_since(first)));
        }
        self.at.push_back(now);
        Ok(())
    }

    /// It came up.
    pub(super) fn succeeded(&mut self) {
        (self.failed, self.until) = (0, None);
    }

    /// It did not come up.
    pub(super) fn failed(&mut self, now: Instant) {
        self.until = Some(now + doubled(RESTART, self.failed, PAUSE_AT_MOST));
        self.failed = self.failed.saturating_add(1);
    }
}

fn doubled(first: Duration, times: u32, most: Duration) -> Duration {
    first.saturating_mul(1_u32.checked_shl(times.min(16)).unwrap_or(u32::MAX)).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn five_failures_in_a_row_pause_longer_each_time_and_an_answer_ends_it() {
        let start = Instant::now();
        let mut breaker = Breaker::default();
        for _ in 0..4 {
            assert!(!breaker.failed(start, 0));
            assert_eq!(breaker.paused(start), None);
        }
        breaker.answered();
        for _ in 0..4 {
            assert!(!breaker.failed(start, 0));
        }
        assert!(breaker.failed(start, 0));
        assert_eq!(breaker.paused(start), Some(2 * SECOND));
        assert_eq!(breaker.paused(start + 2 * SECOND), None);
        assert!(breaker.failed(start + 2 * SECOND, 0), "one failure is enough after a pause");
        assert_eq!(breaker.paused(start + 2 * SECOND), Some(4 * SECOND));
        for _ in 0..100 {
            assert!(breaker.failed(start, 255));
        }
        let longest = breaker.paused(start).unwrap();
        assert!(longest > PAUSE_AT_MOST && longest < 2 * PAUSE_AT_MOST, "{longest:?}");
        breaker.answered();
        assert_eq!(breaker.paused(start), None);
    }

    #[test]
    fn a_program_is_started_at_most_five_times_in_a_minute() {
        let start = Instant::now();
        let mut starts = Starts::default();
        for _ in 0..5 {
            starts.begin(start).unwrap();
            starts.succeeded();
        }
        assert_eq!(starts.begin(start + 10 * SECOND), Err(50 * SECOND));
        assert_eq!(starts.begin(start + 60 * SECOND), Ok(()));
    }

    #[test]
    fn a_program_that_does_not_come_up_is_left_alone_longer_each_time() {
        let start = Instant::now();
        let mut starts = Starts::default();
        starts.begin(start).unwrap();
        starts.failed(start);
        assert_eq!(starts.begin(start), Err(RESTART));
        starts.begin(start + RESTART).unwrap();
        starts.failed(start + RESTART);
        assert_eq!(starts.begin(start + RESTART), Err(2 * RESTART));
    }
}
