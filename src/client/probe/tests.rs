//! Reports on servers whose doors are alike, differ, or do not open.

use serde_json::Value;

use super::super::fake::{
    engine, hasty, is_modern, json_answer, line, listener, lists, opening, program, refusal, response,
};
use super::*;
use crate::protocol::{Revision, ToolParts};

async fn of(target: &Target) -> Report {
    probe(target, &Options::default()).await
}

/// A server whose doors list what is given.
async fn doors(modern: &'static str, legacy: &'static str) -> Report {
    of(&lists(move |message| format!(r#"{{"tools":{}}}"#, if is_modern(message) { modern } else { legacy }))).await
}

#[tokio::test]
async fn the_engines_doors_are_the_same_and_the_report_shows_it_in_two_columns() {
    let report = of(&engine(vec![ToolParts::new("log"), ToolParts::new("show")])).await;
    assert_eq!((report.verdict, report.verdict.exit_code()), (Verdict::Same, 0));
    let digest = report.modern.digest.clone().unwrap().rfc8785.unwrap();
    let short: String = digest.chars().take(19).collect();
    let (modern, legacy) = (Revision::MODERN, Revision::NEWEST_LEGACY);
    let expected = format!(
        "probe of engine\n\
         \n              modern door                           legacy door\
         \nrevision      {modern}                            {legacy}\
         \nserver        engine 1.2.3                          engine 1.2.3\
         \ninstructions  9 characters                          9 characters\
         \ntools         2                                     2\
         \n              log                                   log\
         \n              show                                  show\
         \ndigest        {short}…                  {short}…\
         \npublished     the same digest                       the same digest\
         \n\
         \nmodern door   {digest}\
         \nlegacy door   {digest}\
         \n\
         \nsame: both doors deliver the same tools in the same order\n"
    );
    assert_eq!(report.to_string(), expected);
    let json: Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(json["verdict"], "same");
    assert_eq!(json["modern"]["digest"]["sortedKeys"], digest.as_str());
    assert_eq!(json["legacy"]["tools"], serde_json::json!(["log", "show"]));
    assert_eq!(json["legacy"]["published"][0]["holds"], true);
}

#[tokio::test]
async fn a_list_that_depends_on_the_era_is_different_and_the_tools_are_named() {
    let report = doors(
        r#"[{"name":"a","description":"x"},{"name":"b"},{"name":"new","inputSchema":{}}]"#,
        r#"[{"name":"old"},{"name":"a","description":"y","title":"A"},{"name":"b"}]"#,
    )
    .await;
    assert_eq!((report.verdict, report.verdict.exit_code()), (Verdict::Differ, 1));
    let differences = report.differences.clone().unwrap();
    assert_eq!(differences.only_modern, ["new"]);
    assert_eq!(differences.only_legacy, ["old"]);
    let changed = Changed { name: "a".to_owned(), members: vec!["description".to_owned(), "title".to_owned()] };
    assert_eq!(differences.changed, [changed]);
    assert!(!differences.reordered);
    let text = report.to_string();
    for line in [
        "only through the modern door: new\n",
        "only through the legacy door: old\n",
        "defined differently: a (description, title)\n",
        "\ndifferent: the two doors do not deliver the same tools\n",
        "published     nothing                               nothing\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

#[tokio::test]
async fn instructions_that_depend_on_the_era_are_noted() {
    let (target, _) = program(|message| match opening(message) {
        Some(result) if is_modern(message) => vec![line(message, &result.replace("kind", "bold"))],
        Some(result) => vec![line(message, &result)],
        None => vec![line(message, r#"{"tools":[]}"#)],
    });
    let report = of(&target).await;
    assert_eq!(report.verdict, Verdict::Same);
    assert!(report.to_string().contains("note: the two doors give different instructions\n"));
}

#[tokio::test]
async fn another_order_is_a_difference_and_another_spelling_is_not() {
    let report = doors(r#"[{"name":"a"},{"name":"b"}]"#, r#"[{"name":"b"},{"name":"a"}]"#).await;
    assert_eq!(report.verdict, Verdict::Differ);
    assert!(report.differences.as_ref().unwrap().reordered);
    assert!(report.to_string().contains("listed in another order\n"));
    let spelled = doors(r#"[{"name":"a","x":1}]"#, r#"[ { "x" : 1, "name" : "\u0061" } ]"#).await;
    assert_eq!(spelled.verdict, Verdict::Same);
}

#[tokio::test]
async fn tools_of_one_name_are_compared_one_by_one() {
    let report =
        doors(r#"[{"name":"a","x":1},{"name":"a","x":2}]"#, r#"[{"name":"a","x":1},{"name":"a","x":3}]"#).await;
    assert_eq!(report.differences.unwrap().changed.len(), 1);
    assert_eq!(report.modern.remarks, ["names that more than one tool has: a"]);
}

#[tokio::test]
async fn lists_that_agree_in_one_canonical_form_are_the_same_and_the_report_says_which() {
    let report = doors(r#"[{"name":"a","x":1.0}]"#, r#"[{"name":"a","x":1}]"#).await;
    assert_eq!(report.verdict, Verdict::Same);
    assert!(report.differences.as_ref().unwrap().one_form_only);
    let text = report.to_string();
    assert!(text.contains("(RFC 8785)\n") && text.contains("in one canonical form only"), "{text}");
}

#[tokio::test]
async fn a_published_digest_that_is_not_the_lists_is_no_success() {
    let claim = r#"{"tools":[],"_meta":{"a.b/toolsDigest":"sha256:00"}}"#;
    let report = of(&lists(move |_| claim.to_owned())).await;
    assert_eq!((report.verdict, report.verdict.exit_code()), (Verdict::PublishedDiffers, 1));
    let text = report.to_string();
    assert!(text.contains("published     another digest                        another digest\n"), "{text}");
    assert!(text.contains("modern door   tools/list publishes a.b/toolsDigest = sha256:00\n"), "{text}");
}

#[tokio::test]
async fn a_list_that_cannot_be_read_strictly_cannot_be_told() {
    let report = doors(r#"[{"name":"a"}]"#, r#"[{"name":"a","name":"b"}]"#).await;
    assert_eq!((report.verdict, report.verdict.exit_code()), (Verdict::CannotTell, 2));
    assert!(report.legacy.opens && report.legacy.tools.is_none());
    let text = report.to_string();
    assert!(text.contains("digest        sha256:"), "{text}");
    assert!(text.contains("its tools cannot be listed: the answer to tools/list cannot be read strictly"), "{text}");
    assert!(text.contains("duplicate key \"name\""), "{text}");
}

#[tokio::test]
async fn one_door_alone_is_reported_and_the_other_says_why() {
    let (target, _) = program(|message| match message["method"].as_str() {
        Some("server/discover") => vec![refusal(message, -32601)],
        Some("tools/list") => vec![line(message, r#"{"tools":[{"name":"a"}]}"#)],
        _ => opening(message).map(|result| line(message, &result)).into_iter().collect(),
    });
    let report = of(&target).await;
    assert_eq!((report.verdict, report.verdict.exit_code()), (Verdict::OneDoorOnly, 2));
    assert!(report.modern.refused && !report.modern.opens);
    let text = report.to_string();
    assert!(text.contains("revision      does not open  "), "{text}");
    assert!(
        text.contains("modern door   does not open: server/discover was answered with error -32601: no\n"),
        "{text}"
    );
    assert!(text.ends_with("one door only: the legacy door opens, the modern door does not\n"), "{text}");
}

#[tokio::test]
async fn no_door_is_said_to_be_none() {
    let (silent, _) = program(|_| Vec::new());
    let report = probe(&silent, &hasty()).await;
    assert_eq!((report.verdict, report.verdict.exit_code()), (Verdict::NoDoor, 2));
    assert!(!report.modern.refused);
    let (html, _) = listener(|_| response("500 Internal Server Error", "content-type: text/html\r\n", "<p>oops")).await;
    let text = of(&html).await.to_string();
    assert!(text.contains("server/discover was answered with HTTP status 500: <p>oops\n"), "{text}");
    assert!(!text.contains("secret"), "the query of the URL is not shown: {text}");
}

#[tokio::test]
async fn a_server_behind_a_url_is_probed_alike() {
    let (target, log) = listener(|asked| match asked.body["method"].as_str() {
        Some("tools/list") => json_answer(asked, r#"{"tools":[{"name":"a"}]}"#),
        Some("notifications/initialized") => response("202 Accepted", "", ""),
        _ => json_answer(asked, &opening(&asked.body).unwrap()),
    })
    .await;
    assert_eq!(of(&target).await.verdict, Verdict::Same);
    assert_eq!(log.lock().unwrap().len(), 5);
}

#[tokio::test]
async fn what_a_server_says_cannot_paint_the_screen() {
    let report = doors("[{\"name\":\"\\u001b[2J\u{202e}\"}]", "[]").await;
    let text = report.to_string();
    assert!(text.contains("\\u{1b}[2J\\u{202e}") && !text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
}
