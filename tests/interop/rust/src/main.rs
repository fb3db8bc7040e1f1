//! The official Rust client (rmcp 3.x) against one server.
//!
//! `interop-rmcp auto|legacy TOOL JSON-ARGUMENTS TARGET...`    TARGET: a URL, or a command with its arguments
//!
//! Prints one JSON line. Exit 0: the call succeeded, every tool arrived, and the digest recomputed
//! from the list as delivered is the one that the server publishes.
//!
//! `interop-rmcp features auto|legacy TARGET...` prints what works of each feature of interop-server.

mod features;
mod tap;

use std::{process::ExitCode, process::Stdio, time::Duration};

use rmcp::{
    RoleClient,
    model::{CallToolRequestParams, ClientConfig, MetaObject, PaginatedRequestParams, ProtocolVersion},
    service::{ClientLifecycleMode, ClientServiceExt, RunningService},
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tap::Tap;

const KEY: &str = "dev.twodoor/toolsDigest";
type Error = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [features, mode, target @ ..] = &arguments[..]
        && features == "features"
    {
        println!("{}", features::row(mode, target).await);
        return ExitCode::SUCCESS;
    }
    let [mode, tool, arguments, target @ ..] = &arguments[..] else {
        eprintln!(
            "usage: interop-rmcp auto|legacy TOOL JSON-ARGUMENTS TARGET...
       interop-rmcp features auto|legacy TARGET..."
        );
        return ExitCode::from(2);
    };
    let run = async {
        match target {
            [url] if url.starts_with("http") => over_http(mode, tool, arguments, url).await,
            _ => over_stdio(mode, tool, arguments, target).await,
        }
    };
    let ended = match tokio::time::timeout(Duration::from_secs(60), run).await {
        Ok(ended) => ended,
        Err(_) => Err("no end after 60 s".into()),
    };
    match ended {
        Ok((row, good)) => {
            println!("{row}");
            if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            println!("{}", json!({"client": "rust", "mode": mode, "error": error.to_string()}));
            ExitCode::FAILURE
        }
    }
}

async fn over_http(mode: &str, tool: &str, arguments: &str, url: &str) -> Result<(Value, bool), Error> {
    let tap = Tap::default();
    let relay = tap::relay(tap.clone()).await?;
    let http = reqwest::Client::builder().proxy(reqwest::Proxy::http(format!("http://{relay}"))?).build()?;
    let transport =
        StreamableHttpClientTransport::with_client(http, StreamableHttpClientTransportConfig::with_uri(url));
    let client = ClientConfig::default().serve_with_lifecycle(transport, lifecycle(mode)).await?;
    examine(client, &tap, mode, "http", tool, arguments).await
}

async fn over_stdio(mode: &str, tool: &str, arguments: &str, target: &[String]) -> Result<(Value, bool), Error> {
    let (command, rest) = target.split_first().ok_or("no target")?;
    let mut server = tokio::process::Command::new(command)
        .args(rest)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (Some(stdin), Some(stdout)) = (server.stdin.take(), server.stdout.take()) else {
        return Err("no pipes".into());
    };
    let tap = Tap::default();
    let client = ClientConfig::default().serve_with_lifecycle((tap.lines(stdout), stdin), lifecycle(mode)).await?;
    let examined = examine(client, &tap, mode, "stdio", tool, arguments).await?;
    match tokio::time::timeout(Duration::from_secs(5), server.wait()).await {
        Ok(status) => match status? {
            status if status.success() => Ok(examined),
            status => Err(format!("the server ended with {status} after its input ended").into()),
        },
        Err(_) => Err("the server did not end within 5 s after its input did".into()),
    }
}

fn lifecycle(mode: &str) -> ClientLifecycleMode {
    if mode == "auto" {
        ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::LATEST], legacy_version: None }
    } else {
        ClientLifecycleMode::Initialize
    }
}

async fn examine(
    client: RunningService<RoleClient, ClientConfig>,
    tap: &Tap,
    mode: &str,
    transport: &str,
    tool: &str,
    arguments: &str,
) -> Result<(Value, bool), Error> {
    let opened = client.peer_info().ok_or("no answer to the opening")?;
    let mut published = vec![digest_in(opened.meta.as_ref())];
    let mut names = Vec::new();
    let mut cursor = None;
    let before = tap.results().len();
    loop {
        let parameters = cursor.take().map(|c| PaginatedRequestParams::default().with_cursor(Some(c)));
        let page = client.list_tools(parameters).await?;
        published.push(digest_in(page.meta.as_ref()));
        names.extend(page.tools.into_iter().map(|t| t.name.into_owned()));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let mut delivered = Vec::new();
    for mut result in tap.results().split_off(before) {
        if let Some(Value::Array(tools)) = result.get_mut("tools").map(Value::take) {
            delivered.extend(tools);
        }
    }
    let mut call = CallToolRequestParams::new(tool.to_owned());
    if let Value::Object(arguments) = serde_json::from_str(arguments)? {
        call = call.with_arguments(arguments);
    }
    let called = client.call_tool(call).await?;
    client.cancel().await?;

    published.dedup();
    let published = if published.len() == 1 { published.remove(0) } else { Value::Array(published) };
    let whole = delivered.iter().map(|t| t["name"].as_str()).eq(names.iter().map(|n| Some(n.as_str())));
    let recomputed = digest(&Value::Array(delivered));
    let failed = called.is_error == Some(true);
    let text = called.content.iter().find_map(|c| c.as_text()).map(|t| t.text.clone());
    let good = published == recomputed && !failed && whole;
    let row = json!({
        "client": "rust",
        "mode": mode,
        "transport": transport,
        "revision": opened.protocol_version.as_str(),
        "tools": names.len(),
        "digest_published": published,
        "digest_recomputed": recomputed,
        "call": {"isError": failed, "text": text},
    });
    Ok((row, good))
}

fn digest_in(meta: Option<&MetaObject>) -> Value {
    meta.and_then(|m| m.get(KEY)).cloned().unwrap_or_default()
}

fn digest(tools: &Value) -> String {
    let mut text = String::new();
    canonical(tools, &mut text);
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().fold(String::from("sha256:"), |all, byte| format!("{all}{byte:02x}"))
}

/// Sorts by itself: another crate may have switched serde_json's maps to insertion order.
fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                out.push(if i == 0 { '[' } else { ',' });
                canonical(item, out);
            }
            out.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| key.as_str());
            for (i, (key, member)) in members.iter().enumerate() {
                out.push(if i == 0 { '{' } else { ',' });
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                canonical(member, out);
            }
            out.push_str(if members.is_empty() { "{}" } else { "}" });
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}
