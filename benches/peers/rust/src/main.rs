//! rmcp at its best: one list built once and shared, a handler written by hand, JSON answers where it has them.
//!
//! `peer http` serves modern requests, `peer sessions` legacy sessions; both print their URL. `peer stdio` serves its
//! standard streams without blocking reads.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::io::stdio_pipes;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use tokio::net::TcpListener;
use twodoor_benches::{tools, tools_wanted};

#[derive(Clone)]
struct Peer {
    tools: Arc<[Tool]>,
}

impl Peer {
    fn new() -> Result<Self> {
        let tool = |tool: twodoor_benches::Tool| -> Result<Tool> {
            let schema: JsonObject = serde_json::from_str(tool.input_schema)?;
            Ok(Tool::new(tool.name, tool.description, Arc::new(schema)))
        };
        Ok(Self { tools: tools(tools_wanted()).into_iter().map(tool).collect::<Result<_>>()? })
    }
}

impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("rmcp", "0"))
    }

    /// Asked about the called tool on each call over HTTP. `echo` is the first.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult { tools: self.tools.to_vec(), ..Default::default() })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text =
            request.arguments.as_ref().and_then(|arguments| arguments.get("text")).and_then(|text| text.as_str());
        let text = text.ok_or_else(|| ErrorData::invalid_params("no text", None))?;
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

async fn serve_http(sessions: bool) -> Result<()> {
    let config = StreamableHttpServerConfig::default().with_legacy_session_mode(sessions).with_json_response(!sessions);
    let peer = Peer::new()?;
    let service =
        StreamableHttpService::new(move || Ok(peer.clone()), Arc::new(LocalSessionManager::default()), config);
    let service = TowerToHyperService::new(service);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let service = service.clone();
        tokio::spawn(async move {
            // A connection ends with an error whenever the load program drops it.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
        });
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    const USAGE: &str = "peer http | sessions | stdio";
    match std::env::args().nth(1).context(USAGE)?.as_str() {
        "http" => serve_http(false).await,
        "sessions" => serve_http(true).await,
        "stdio" => {
            Peer::new()?.serve(stdio_pipes()).await?.waiting().await?;
            Ok(())
        }
        _ => bail!(USAGE),
    }
}
