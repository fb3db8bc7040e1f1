//! An answer that is too large for a model, cut so that the next call can be narrower.
//!
//! Promises: what leaves is within the limit, in bytes as sent; whole items and whole characters; an answer that fits is
//! not touched.

use super::words::{Object, beginning};
use crate::protocol::Json;

/// Most bytes of an answer where nothing is said.
pub const RESPONSE_BYTES: usize = 60_000;

const PREVIEW_CHARACTERS: usize = 2000;
/// The least that an answer about a cut one takes, whatever the limit.
const SHORTEST: usize = 200;

/// Arguments that commonly narrow what comes back.
const NARROWING: [&str; 16] = [
    "search",
    "page",
    "page_size",
    "page-size",
    "actions",
    "limit",
    "max-results",
    "max_results",
    "max-rows",
    "max",
    "count",
    "offset",
    "filter",
    "query",
    "fields",
    "sheet",
];

/// The answer, or its beginning with what is known of the rest. `args` are those that its call takes.
pub fn within(value: Json, limit: usize, args: &[&str]) -> Json {
    let narrowing: Vec<&str> = args.iter().copied().filter(|arg| NARROWING.contains(arg)).collect();
    narrowed_by(value, limit, &narrowing)
}

/// The same where the arguments that narrow the call are known.
pub fn narrowed_by(value: Json, limit: usize, narrowing: &[&str]) -> Json {
    let text = value.to_text();
    if text.len() <= limit {
        return value;
    }
    let hint = if narrowing.is_empty() {
        "The answer is too large. Ask for one item by its id, or for less.".to_owned()
    } else {
        format!("The answer is too large. Narrow it with {}.", narrowing.join(", "))
    };
    let told = Object::new()
        .with("truncated", true)
        .with("bytes", text.len())
        .with("max_response_bytes", limit)
        .with("hint", hint);
    // A preview is text within text: each character may come to be six bytes.
    let room = limit.saturating_sub(told.clone().into_json().to_text().len() + SHORTEST);
    let mut preview = beginning(&text, PREVIEW_CHARACTERS);
    while !preview.is_empty() && escaped_bytes(preview) > room {
        preview = beginning(preview, preview.chars().count() / 2);
    }
    let told = told.with("preview", preview);
    let Some(items) = largest_list(&value) else { return told.into_json() };
    let told = told.with("item_count", items.len());
    // As much again as the answer is allowed to be is what a model can read at most: a half, to leave room for others.
    let mut room = (limit / 2).saturating_sub(told.clone().into_json().to_text().len() + SHORTEST);
    let fitting = items.iter().take_while(|item| {
        let bytes = item.to_text().len() + 1;
        let fits = bytes <= room;
        room = room.saturating_sub(bytes);
        fits
    });
    let first: Vec<Json> = fitting.cloned().collect();
    if first.is_empty() { told.into_json() } else { told.with("items", first).into_json() }
}

fn escaped_bytes(text: &str) -> usize {
    serde_json::to_string(text).map_or(usize::MAX, |text| text.len())
}

/// The list that takes most bytes, wherever it is.
fn largest_list(value: &Json) -> Option<&[Json]> {
    fn walk<'v>(value: &'v Json, best: &mut Option<(usize, &'v [Json])>) {
        match value {
            Json::Array(items) => {
                let bytes = value.to_text().len();
                if best.is_none_or(|(most, _)| bytes > most) {
                    *best = Some((bytes, items));
                }
            }
            Json::Object(members) => members.iter().for_each(|(_, value)| walk(value, best)),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
        }
    }
    let mut best = None;
    walk(value, &mut best);
    best.map(|(_, items)| items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: serde_json::Value) -> Json {
        Json::from(&value)
    }

    #[test]
    fn what_fits_is_not_touched_and_one_byte_more_is_cut() {
        let value = text(serde_json::json!({ "a": "é".repeat(1000) }));
        let bytes = value.to_text().len();
        assert_eq!(within(value.clone(), bytes, &[]), value);
        let cut = within(value, bytes - 1, &[]);
        assert_eq!(cut.get("truncated"), Some(&Json::Bool(true)));
        assert_eq!(cut.get("bytes"), Some(&Json::Number(bytes.to_string().into())));
        assert_eq!(cut.get("max_response_bytes"), Some(&Json::Number((bytes - 1).to_string().into())));
    }

    #[test]
    fn the_preview_is_two_thousand_whole_characters() {
        let cut = within(text(serde_json::json!("€".repeat(100_000))), RESPONSE_BYTES, &[]);
        assert_eq!(cut.get("preview").unwrap().as_str().unwrap().chars().count(), 2000);
        assert!(cut.get("items").is_none());
    }

    #[test]
    fn whole_items_of_the_largest_list_are_shown_and_all_are_counted() {
        let rows: Vec<_> = (0..10_000).map(|n| serde_json::json!({ "n": n, "text": "row" })).collect();
        let cut =
            within(text(serde_json::json!({ "ok": true, "data": { "few": [1], "rows": rows } })), RESPONSE_BYTES, &[]);
        assert_eq!(cut.get("item_count"), Some(&Json::Number("10000".into())));
        let Some(Json::Array(items)) = cut.get("items") else { panic!("{cut:?}") };
        assert!(items.len() > 500 && items[0].to_text() == r#"{"n":0,"text":"row"}"#, "{}", items.len());
        assert!(cut.to_text().len() <= RESPONSE_BYTES);
    }

    #[test]
    fn the_hint_names_the_arguments_that_narrow_this_call() {
        let hint = |args: &[&str]| {
            let cut = within(text(serde_json::json!("x".repeat(1000))), 500, args);
            cut.get("hint").unwrap().as_str().unwrap().to_owned()
        };
        assert!(hint(&["path", "max-results", "page"]).ends_with("Narrow it with max-results, page."));
        assert!(hint(&["path"]).contains("one item by its id"));
    }

    #[test]
    fn a_small_limit_is_kept_too_whatever_has_to_be_escaped() {
        let value = text(serde_json::json!({ "rows": ["\u{1}".repeat(5000), "\"\\".repeat(5000)] }));
        for limit in [600, 1000, 5000] {
            let bytes = within(value.clone(), limit, &["page"]).to_text().len();
            assert!(bytes <= limit, "{bytes} for {limit}");
        }
    }
}
