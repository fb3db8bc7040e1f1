//! The engine under measurement: `echo` and 99 fillers, called in this process.
//!
//! `engine stdio` serves its standard streams; `engine http` prints its URL, then serves until it is killed.

use std::future::pending;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use tokio::net::TcpListener;
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::json::JsonLimits;
use twodoor::protocol::{
    Caller, Catalog, CatalogParts, Content, Dispatcher, Invocation, Invoke, Json, Limits,
    Outcome, ToolParts,
};
use twodoor::transport::{self, Engine, stdio::Streams};
use twodoor_benches::tools;

/// Answers every tool with the `text` of its arguments.
struct Echo;

impl Invoke for Echo {
    fn invoke(&self, invocation: Arc<Invocation>, _: Arc<dyn Caller>) -> BoxFuture<'_, Outcome> {
        let text = invocation.operation.arguments().and_then(|arguments| arguments.get("text")).and_then(|text| text.as_text());
        Box::pin(async { Outcome::Complete(Content::text(text.unwrap_or_default())) })
    }
}

fn catalog() -> Result<Catalog> {
    let tool = |tool: twodoor_benches::Tool| -> Result<ToolParts> {
        let mut parts = ToolParts::new(tool.name);
        parts.description = Some(tool.description);
        parts.input_schema = Json::parse(tool.input_schema.as_bytes(), &JsonLimits::default())?;
        Ok(parts)
    };
    let parts = CatalogParts {
        tools: tools().into_iter().map(tool).collect::<Result<_>>()?,
 ..CatalogParts::new("bench", "0.0.0") };
    Catalog::build(parts).map_err(|problems| anyhow!("{problems:?}"))
}

fn engine() -> Result<Engine> {
    // Nothing is sealed here, so any key will do.
    let dispatcher = Dispatcher::new(Arc::new(Arc::new(catalog()?)), [0; 32]);
    Ok(Engine::new(Arc::new(dispatcher), Arc::new(Echo), Limits::default()))
}

#[tokio::main]
async fn main() -> Result<()> {
    let door = std::env::args().nth(1).context("engine http | stdio")?;
    match door.as_str() {
        "stdio" => transport::stdio::serve(engine()?, Streams::take_standard()?, pending()).await?,
        "http" => {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            println!("http://{}/mcp", listener.local_addr()?);
            transport::http::serve(engine()?, listener, Default::default(), pending()).await?;
        }
        _ => bail!("engine http | stdio"),
    }
    Ok(())
}
