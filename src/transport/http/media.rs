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
    // Of each range the first that says something of it.
    let (mut any, mut application, mut json, mut text, mut events) = (None, None, None, None, None);
    let mut present = false;
    for value in values {
        present = true;
        for (range, taken) in value.split(|byte| *byte == b',').filter_map(range) {
            let named = |name: &str| range.eq_ignore_ascii_case(name);
            let said = match () {
                () if named("application/json") => &mut json,
                () if named("text/event-stream") => &mut events,
                () if named("*/*") => &mut any,
                () if named("application/*") => &mut application,
                () if named("text/*") => &mut text,
                () => continue,
            };
            said.get_or_insert(taken);
        }
    }
    if !present {
        return Accepted { json: true, events: true };
    }
    // The most specific range that matches decides.
    let decided = |whole: Option<bool>, kind: Option<bool>| whole.or(kind).or(any).unwrap_or_default();
    Accepted { json: decided(json, application), events: decided(events, text) }
}

/// One media range, and whether its weight is above zero.
fn range(text: &[u8]) -> Option<(&str, bool)> {
    let mut parts = std::str::from_utf8(text).ok()?.split(';').map(str::trim);
    let range = parts.next().filter(|r| r.contains('/'))?;
    let weighed = parts.find_map(|part| part.strip_prefix(['q', 'Q'])?.strip_prefix('='));
    let weight = weighed.map_or(Some(1.0), |q| q.trim().parse::<f32>().ok())?;
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
            ("application/json;Q=0, */*;q=0.1", false, true),
            ("application/json;q=x", false, false),
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
