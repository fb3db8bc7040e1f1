//! Media types as headers name them: compared as types, never as substrings.

/// What kinds of answer a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// `application/json`
    pub json: bool,
    /// `text/event-stream`
    pub events: bool,
}

/// Whether a `Content-Type` is JSON in UTF-8.
pub(super) fn is_json(value: &str) -> bool {
    let mut parts = value.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    let charset_fits = parts.all(|parameter| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        !name.eq_ignore_ascii_case("charset") || value.trim_matches('"').eq_ignore_ascii_case("utf-8")
    });
    essence.eq_ignore_ascii_case("application/json") && charset_fits
}

/// Reads `Accept` by RFC 9110 12.5.1; a request without one takes anything.
pub(super) fn accepted<'v>(values: impl Iterator<Item = &'v [u8]>) -> Accepted {
    let mut ranges = Vec::new();
    let mut present = false;
    for value in values {
        present = true;
        let value = String::from_utf8_lossy(value).to_ascii_lowercase();
        ranges.extend(value.split(',').filter_map(range));
    }
    if !present {
        return Accepted { json: true, events: true };
    }
    let takes = |kind: &str, whole: &str| {
        // The most specific range that matches decides.
        let order = [whole, kind, "*/*"];
        let best = order.iter().find_map(|wanted| ranges.iter().find(|(range, _)| range == wanted));
        best.is_some_and(|(_, weighed)| *weighed)
    };
    Accepted { json: takes("application/*", "application/json"), events: takes("text/*", "text/event-stream") }
}

/// One media range, and whether its weight is above zero.
fn range(text: &str) -> Option<(String, bool)> {
    let mut parts = text.split(';').map(str::trim);
    let range = parts.next().filter(|r| r.contains('/'))?.to_owned();
    let weight = parts.find_map(|p| p.strip_prefix("q=")).map_or(Some(1.0), |q| q.trim().parse::<f32>().ok())?;
    Some((range, weight > 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_is_read_by_its_grammar() {
        let table = [
            ("*/*", true, true),
            ("application/json", true, false),
            ("text/event-stream", false, true),
            ("application/json, text/event-stream", true, true),
            ("APPLICATION/JSON, TEXT/EVENT-STREAM", true, true),
            ("application/*, text/*", true, true),
            ("application/json;q=0.9, text/event-stream;q=0.8", true, true),
            ("application/json;q=0, */*", false, true),
            ("*/*;q=0", false, false),
            ("text/event-stream;q=0, application/json", true, false),
            ("text/html", false, false),
            ("application/jsonp, text/event-streams", false, false),
            ("", false, false),
        ];
        for (value, json, events) in table {
            assert_eq!(accepted([value.as_bytes()].into_iter()), Accepted { json, events }, "{value:?}");
        }
        assert_eq!(accepted(std::iter::empty()), Accepted { json: true, events: true });
        let two = [&b"application/json"[..], b"text/event-stream"];
        assert_eq!(accepted(two.into_iter()), Accepted { json: true, events: true });
        let long = "text/html,".repeat(1000);
        assert_eq!(accepted([long.as_bytes()].into_iter()), Accepted { json: false, events: false });
    }
}
