//! The client against the transports themselves: what one side sends, the other side takes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use twodoor::client::{Door, Ending, HttpTarget, Options, Target, Verdict, probe};
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::json::JsonLimits;
use twodoor::protocol::{
    Arguments, Caller, Catalog, CatalogParts, Content, Dispatcher, Era, Invocation, Invoke, Json, Limits, Offer,
    Outcome, RawJson, Revision, ToolParts,
};
use twodoor::transport::Engine;
use twodoor::transport::http::{self, LegacyMode};

struct Echo;

impl Invoke for Echo {
    fn invoke(&self, invocation: Arc<Invocation>, _: Arc<dyn Caller>) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            Outcome::Complete(Content::text(invocation.operation.arguments().unwrap().text().as_str().to_owned()))
        })
    }
}

async fn serve(offer: Offer, legacy: LegacyMode) -> Target {
    let schema = br#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#;
    let input_schema = Json::parse(schema, &JsonLimits::default()).unwrap();
    let catalog = Catalog::build(CatalogParts {
        instructions: Some("Says what it hears.".to_owned()),
        offer,
        tools: vec![ToolParts { input_schema, ..ToolParts::new("echo") }, ToolParts::new("other")],
        ..CatalogParts::new("echo", "1.0.0")
    });
    let dispatcher = Arc::new(Dispatcher::new(Arc::new(Arc::new(catalog.unwrap())), [1; 32]));
    let engine = Engine::new(dispatcher, Arc::new(Echo), Limits::default());
    let listener = http::listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let options = http::Options { legacy, ..http::Options::default() };
    tokio::spawn(async move { http::serve(engine, listener, options, std::future::pending()).await });
    Target::Http(HttpTarget::new(&url, &[]).unwrap())
}

fn arguments(text: &'static str) -> Arguments {
    Arguments::new(RawJson::new(Bytes::from_static(text.as_bytes()), &JsonLimits::default()).unwrap()).unwrap()
}

#[tokio::test]
async fn both_doors_over_http_deliver_one_list_whose_published_digest_holds() {
    for legacy in [LegacyMode::Sessions, LegacyMode::Stateless] {
        let report = probe(&serve(Offer::Both, legacy).await, &Options::default()).await;
        assert_eq!(report.verdict, Verdict::Same, "{report}");
        assert_eq!(report.modern.tools.as_deref(), Some(&["echo".to_owned(), "other".to_owned()][..]));
        assert!(report.legacy.published.iter().all(|published| published.holds == Some(true)), "{report}");
        assert_eq!(report.legacy.remarks, [""; 0]);
    }
}

#[tokio::test]
async fn a_server_of_the_modern_era_alone_has_one_door() {
    let report = probe(&serve(Offer::ModernOnly, LegacyMode::default()).await, &Options::default()).await;
    assert_eq!((report.verdict, report.legacy.refused), (Verdict::OneDoorOnly, true), "{report}");
}

#[tokio::test]
async fn a_call_through_either_door_carries_its_arguments_unchanged() {
    let target = serve(Offer::Both, LegacyMode::Sessions).await;
    for era in [Era::Modern, Era::Legacy] {
        let door = Door::open(&target, era, &Options::default()).await.unwrap();
        door.list_tools().await.unwrap();
        for sent in [r#"{"region":" é","n":1.50}"#, r#"{"region":"=?base64?eA==?="}"#, "{}"] {
            let called = door.call_tool("echo", &arguments(sent), Duration::from_secs(20)).await.unwrap();
            assert_eq!(called.ending, Ending::Complete);
            let result: serde_json::Value = called.result.parse().unwrap();
            assert_eq!(result["content"][0]["text"], sent);
        }
        door.close().await;
    }
    let either = Door::open_either(&target, &Options::default()).await.unwrap();
    assert_eq!(either.opening().revision, Revision::MODERN);
}
