//! Section 9 of the requirement sheet, a test for each of its numbered lines: it plays the transcripts that cite the
//! line in every way they can be played, or asserts what no line on the wire can show.
//!
//! Two lines have no test: 45 and 46 are about access tokens, and the product has no authorization yet. With it comes
//! the refusal of tokens, and a test of both.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

#[allow(dead_code, reason = "blessing and reports belong to the other program that plays transcripts")]
mod support;

use std::net::TcpListener;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Value, json};
use support::play::failures;
use support::transcript::{Transcript, read_all};
use twodoor::protocol::json::JsonLimits;
use twodoor::protocol::{Catalog, CatalogParts, Json, ToolParts};

static TRANSCRIPTS: LazyLock<Vec<Transcript>> =
    LazyLock::new(|| read_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire")));

/// Plays every transcript that cites a line of section 9.
fn plays(line: u32) {
    let row = format!("9.{line}");
    let cites: Vec<&Transcript> = TRANSCRIPTS.iter().filter(|t| t.rows.contains(&row)).collect();
    assert!(!cites.is_empty(), "no transcript cites {row}");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let ways = |t: &'static Transcript| t.ways.iter().map(move |way| (t, *way));
    let failed: Vec<String> =
        cites.into_iter().flat_map(ways).flat_map(|(t, way)| failures(t, way, runtime.handle())).collect();
    assert!(failed.is_empty(), "{} ways of playing differ\n\n{}\n", failed.len(), failed.join("\n\n"));
}

macro_rules! lines {
    ($($line:literal $name:ident)*) => {
        $(
            #[test]
            fn $name() {
                plays($line);
            }
        )*
    };
}

lines! {
    1 section_9_01_discovery_without_metadata_is_invalid_params_under_its_id
    2 section_9_02_a_claim_that_differs_from_the_header_is_a_mismatch
    3 section_9_03_an_unknown_version_is_answered_with_some_that_discovery_lists
    4 section_9_04_discovery_needs_no_client_info
    5 section_9_05_methods_of_the_legacy_era_do_not_exist_for_a_claim
    6 section_9_06_an_unknown_method_of_a_session_is_never_404
    7 section_9_07_a_handshake_for_the_modern_revision_agrees_on_the_newest_legacy_one
    8 section_9_08_a_handshake_for_an_unknown_revision_succeeds
    9 section_9_09_a_probe_and_then_a_handshake_succeed_on_one_stream
    10 section_9_10_what_a_session_declared_does_not_count_for_a_claim
    11 section_9_11_a_session_of_the_oldest_revision_keeps_it_without_a_header
    12 section_9_12_without_a_session_an_absent_header_means_the_second_revision
    13 section_9_13_an_unknown_version_header_is_400
    14 section_9_14_an_ended_session_is_404_and_an_absent_one_400
    15 section_9_15_a_stale_session_id_means_nothing_to_a_modern_request
    16 section_9_16_a_claim_without_the_version_header_is_a_mismatch
    17 section_9_17_the_mirrored_method_is_compared_exactly_and_its_header_found_in_any_case
    18 section_9_18_blanks_around_a_mirrored_name_are_nothing
    19 section_9_19_a_mirrored_name_may_be_base64_and_must_be_well_formed
    20 section_9_20_a_mirrored_argument_must_be_there_unless_it_is_null
    21 section_9_21_a_mirrored_integer_is_compared_as_a_number
    23 section_9_23_a_foreign_origin_is_403_before_anything_else
    24 section_9_24_a_tool_that_needs_sampling_names_it_as_missing
    25 section_9_25_a_page_is_never_asked_for_where_only_forms_are_declared
    26 section_9_26_a_request_without_a_log_level_hears_no_log
    27 section_9_27_an_unknown_log_level_is_invalid_params
    28 section_9_28_a_subscription_to_prompts_does_not_hear_of_tools
    29 section_9_29_a_subscription_is_acknowledged_first_and_named_by_its_id_as_it_was_sent
    30 section_9_30_what_cannot_be_told_of_is_not_acknowledged
    31 section_9_31_a_client_that_goes_away_cancels_a_modern_call_alone
    32 section_9_32_a_cancelled_call_on_a_stream_says_nothing_more
    33 section_9_33_the_six_cacheable_results_say_how_long_they_keep
    34 section_9_34_every_modern_result_names_its_kind_and_no_legacy_one_does
    35 section_9_35_lists_never_ask
    36 section_9_36_a_state_that_was_tampered_with_is_an_error
    37 section_9_37_a_missing_answer_is_asked_for_again_and_a_needless_one_passed_over
    38 section_9_38_an_unknown_resource_is_an_error_of_its_revision
    39 section_9_39_arguments_that_do_not_fit_are_for_the_model_and_a_missing_name_is_not
    40 section_9_40_a_result_that_is_no_object_is_text_for_older_clients
    41 section_9_41_an_array_is_answered_where_the_revision_has_arrays
    42 section_9_42_a_stream_opens_with_an_empty_event_in_the_newest_legacy_revision_alone
    43 section_9_43_a_notification_appears_on_one_stream_of_its_session
    47 section_9_47_tasks_are_hidden_from_whoever_does_not_declare_them
    48 section_9_48_a_task_is_known_as_soon_as_it_was_told
    49 section_9_49_an_error_about_an_unreadable_message_has_no_id
    50 section_9_50_every_line_of_the_output_is_one_message_and_none_asks_a_modern_client
}

fn catalog_with(input_schema: Value) -> Result<Catalog, Vec<String>> {
    let input_schema = Json::parse(input_schema.to_string().as_bytes(), &JsonLimits::default()).unwrap();
    let tools = vec![ToolParts { input_schema, ..ToolParts::new("t") }];
    let parts = CatalogParts { tools, ..CatalogParts::new("section-9", "1.0.0") };
    Catalog::build(parts).map_err(|problems| problems.iter().map(|problem| problem.rule.to_owned()).collect())
}

#[test]
fn section_9_22_only_texts_integers_and_booleans_at_known_places_can_be_mirrored() {
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    let mirrored = |kind: &str| json!({ "type": kind, "x-mcp-header": "Region" });
    for kind in ["string", "integer", "boolean"] {
        assert!(catalog_with(object(json!({ "a": mirrored(kind) }))).is_ok(), "{kind}");
        assert!(catalog_with(object(json!({ "a": object(json!({ "b": mirrored(kind) })) }))).is_ok(), "{kind}");
    }
    for schema in [
        object(json!({ "a": mirrored("number") })),
        object(json!({ "a": { "type": "array", "items": mirrored("string") } })),
        object(json!({ "a": { "anyOf": [mirrored("string")] } })),
    ] {
        assert!(catalog_with(schema.clone()).is_err(), "{schema}");
    }
}

#[test]
fn section_9_44_a_reference_to_another_host_is_refused_and_never_followed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    for reference in [format!("http://{address}/schema.json"), format!("http://{address}/schema.json#/$defs/a")] {
        let schema = json!({ "type": "object", "properties": { "a": { "$ref": reference } } });
        assert!(catalog_with(schema).is_err(), "{reference}");
    }
    let came = listener.accept().map(|_| ()).map_err(|error| error.kind());
    assert_eq!(came, Err(std::io::ErrorKind::WouldBlock));
}
