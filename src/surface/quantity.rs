//! Durations and sizes as a surface file writes them: a whole number and a unit.

use std::time::Duration;

/// Reads `500ms`, `10s`, `2m`, `1h`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(millis).map(Duration::from_millis)
}

/// Reads `16KiB`, `1MiB`, `60000B` and `60000`, in bytes.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let unit = match unit {
        "" | "B" => 1,
        "KiB" => 1024,
        "MiB" => 1024 * 1024,
        _ => return None,
    };
    number.checked_mul(unit)
}

fn split(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_a_whole_number_and_a_known_unit() {
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(duration("10s"), Some(Duration::from_secs(10)));
        assert_eq!(duration("2m"), Some(Duration::from_secs(120)));
        assert_eq!(duration("1h"), Some(Duration::from_secs(3600)));
        for bad in ["", "10", "s", "1.5s", "-1s", "10 s", "10S", "1d", "99999999999999999999s", "18446744073709551615h"]
        {
            assert_eq!(duration(bad), None, "{bad}");
        }
        assert_eq!(bytes("60000"), Some(60_000));
        assert_eq!(bytes("16KiB"), Some(16 * 1024));
        assert_eq!(bytes("1MiB"), Some(1024 * 1024));
        for bad in ["", "KiB", "16KB", "16kib", "1GiB", "1.5MiB", "-1", "18446744073709551615MiB"] {
            assert_eq!(bytes(bad), None, "{bad}");
        }
    }
}
