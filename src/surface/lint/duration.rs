//! How long a call may take, and how long a listing may be kept.

use std::time::Duration;

use crate::protocol::json::shortened;
use crate::protocol::limits::DEADLINE_AT_MOST;
use crate::surface::file::READ_AT_MOST;
use crate::surface::problem::{Findings, Rule};
use crate::surface::quantity;
use crate::surface::tree::{Entry, Value};

pub(crate) const RULE: Rule = Rule::error(
    "duration",
    "a duration is a whole number with ms, s, m or h; a timeout is above 0 and at most 1h (1m to read), a ttl at most 24h",
);

/// Longest hint on keeping a listing: clients that trust it miss changes that long.
const TTL_AT_MOST: Duration = Duration::from_secs(24 * 3600);

/// Reads `timeout`.
pub(crate) fn read_timeout(entry: &Entry, findings: &mut Findings) -> Option<Duration> {
    read(entry, Duration::from_millis(1), DEADLINE_AT_MOST, "between 1ms and 1h", findings)
}

/// Reads `ttl`.
pub(crate) fn read_ttl(entry: &Entry, findings: &mut Findings) -> Option<Duration> {
    read(entry, Duration::ZERO, TTL_AT_MOST, "at most 24h", findings)
}

/// Reports a time for reading that is longer than the engine waits for a read.
pub(crate) fn too_long_to_read(entry: &Entry, findings: &mut Findings) {
    let message = format!("reading may take at most {} s", READ_AT_MOST.as_secs());
    findings.report(&RULE, entry.node.span, message, "choose a shorter one, or make it a tool");
}

fn read(entry: &Entry, least: Duration, most: Duration, range: &str, findings: &mut Findings) -> Option<Duration> {
    let key = &entry.key.value;
    let text: &str = match &entry.node.value {
        Value::Text(text) => text,
        Value::Number(text) => text,
        _ => "",
    };
    match quantity::duration(text) {
        Some(duration) if (least..=most).contains(&duration) => return Some(duration),
        Some(_) => {
            let message = format!("{key} is {text}: expected {range}");
            findings.report(&RULE, entry.node.span, message, "choose one in that range");
        }
        None => {
            let written = shortened(text, 40);
            let message = format!("{key} is {written:?}: expected a whole number and a unit");
            let meant = Some(format!("{text}s")).filter(|_| text.parse::<u32>().is_ok());
            findings.suggest(&RULE, entry.node.span, message, "write it like 500ms, 10s, 2m or 1h", meant);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, tool};

    #[test]
    fn durations_have_a_unit_and_stay_in_range() {
        for bad in ["10", "0s", "61m", "3601s", "1d", "ten", "-1s", "1.5s", "[]"] {
            breaks(super::RULE, &tool(&format!("timeout: {bad}")));
        }
        for good in ["1ms", "500ms", "10s", "2m", "60m", "1h"] {
            keeps(super::RULE, &tool(&format!("timeout: {good}")));
        }
        breaks(super::RULE, &format!("ttl: 25h\n{}", tool("")));
        keeps(super::RULE, &format!("ttl: 0s\n{}", tool("")));
    }
}
