//! What the engine under measurement publishes, and how its tools are carried out.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use twodoor::core::Router;
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::json::JsonLimits;
use twodoor::protocol::{Caller, Catalog, CatalogParts, Content, Invocation, Invoke, Json, Notice, Outcome, ToolParts};
use twodoor::surface::Surface;
use twodoor_benches::{PROGRESS_NOTICES, tools, tools_wanted};

/// How long `slow` takes: far longer than an echo, so that many of them wait at once.
const SLOW: Duration = Duration::from_millis(20);

/// What is published, and what carries out its calls.
pub struct Served {
    pub catalog: Catalog,
    pub invoke: Arc<dyn Invoke>,
}

impl Served {
    /// `echo`, `progress`, `slow` and fillers, called in this process.
    pub fn inside() -> Result<Self> {
        let tool = |tool: twodoor_benches::Tool| -> Result<ToolParts> {
            let mut parts = ToolParts::new(tool.name);
            parts.description = Some(tool.description);
            parts.input_schema = Json::parse(tool.input_schema.as_bytes(), &JsonLimits::default())?;
            Ok(parts)
        };
        let count = tools_wanted();
        let tools = tools(count).into_iter().map(tool).collect::<Result<_>>()?;
        // One page, or a list of 1000 would not be compared with a list of 1000.
        Ok(Self {
            catalog: built(CatalogParts { tools, page: count, ..CatalogParts::new("bench", "0.0.0") })?,
            invoke: Arc::new(Inside),
        })
    }

    /// `echo` as a program, declared in a surface file.
    pub fn command() -> Result<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("command.yaml");
        let loaded = Surface::load(&path).map_err(|problems| anyhow!("{problems:?}"))?;
        let invoke = Arc::new(Router::of(&loaded));
        Ok(Self { catalog: built(loaded.parts)?, invoke })
    }
}

fn built(parts: CatalogParts) -> Result<Catalog> {
    Catalog::build(parts).map_err(|problems| anyhow!("{problems:?}"))
}

/// Answers every tool with the `text` of its arguments.
struct Inside;

impl Invoke for Inside {
    fn invoke(&self, invocation: Arc<Invocation>, caller: Arc<dyn Caller>) -> BoxFuture<'_, Outcome> {
        let text = invocation
            .operation
            .arguments()
            .and_then(|arguments| arguments.get("text"))
            .and_then(|text| text.as_text());
        let answer = Outcome::Complete(Content::text(text.unwrap_or_default()));
        match invocation.operation.tool().map(|tool| tool.as_str()) {
            Some("progress") => {
                for step in 1..=PROGRESS_NOTICES {
                    let (progress, total) = (step as f64, Some(PROGRESS_NOTICES as f64));
                    caller.notify(Notice::Progress { progress, total, message: None });
                }
                Box::pin(async { answer })
            }
            Some("slow") => Box::pin(async {
                tokio::time::sleep(SLOW).await;
                answer
            }),
            _ => Box::pin(async { answer }),
        }
    }
}
