//! A server of one typed tool: over stdio, or `cargo run --example embed -- 127.0.0.1:8484` for HTTP.

use serde::Deserialize;
use twodoor::embed::{Call, Elicited, JsonSchema, Server, Tool, ToolError};

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Whom to greet; asked for if left out.
    name: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Person {
    /// Your name.
    name: String,
}

async fn greet(args: Greet, call: Call) -> Result<String, ToolError> {
    let name = match args.name {
        Some(name) => name,
        None => match call.elicit::<Person>("person", "Who are you?")? {
            Elicited::Accepted(person) => person.name,
            Elicited::Declined | Elicited::Cancelled => return Ok("Hello, whoever you are!".to_owned()),
        },
    };
    Ok(format!("Hello, {name}!"))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Server::new("hello", "1.0.0").tool(Tool::new("greet", "Greets somebody.", greet).read_only());
    match std::env::args().nth(1) {
        Some(address) => Ok(server.serve_http(address.parse()?).await?),
        None => Ok(server.serve_stdio().await?),
    }
}
