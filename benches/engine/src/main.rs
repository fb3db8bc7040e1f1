//! The engine under measurement.
//!
//! `engine stdio` serves its standard streams; `engine http` prints its URL, then serves until it is killed, and so does
//! `engine command`, whose tool is a program. `TOOLS` says how many tools there are, `ANNOUNCE` every how many
//! milliseconds all who listen are told that the list has changed.

mod tools;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::net::TcpListener;
use twodoor::protocol::{Changed, Dispatcher, Limits};
use twodoor::transport::{self, Engine, Hub, stdio::Streams};

use tools::Served;

/// As by default, but for arguments of 16 MiB and 10 000 sessions and streams at once.
fn limits() -> Limits {
    const MIB: usize = 1024 * 1024;
    Limits { message: 32 * MIB, bodies: 256 * MIB, sessions: 20_000, sockets: 20_000, ..Limits::default() }
}

fn engine(Served { catalog, invoke }: Served, hub: Hub) -> Engine {
    // Nothing is sealed here, so any key will do.
    let dispatcher = Dispatcher::new(Arc::new(Arc::new(catalog)), [0; 32]);
    Engine::new(Arc::new(dispatcher), invoke, limits()).with_hub(hub)
}

async fn announce(hub: Hub, every: Duration) {
    let mut ticks = tokio::time::interval(every);
    loop {
        ticks.tick().await;
        hub.published(Changed { tools: true, ..Changed::default() });
    }
}

async fn serve_http(served: Served) -> Result<()> {
    let hub = Hub::new();
    if let Ok(every) = std::env::var("ANNOUNCE") {
        tokio::spawn(announce(hub.clone(), Duration::from_millis(every.parse()?)));
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    Ok(transport::http::serve(engine(served, hub), listener, Default::default(), pending()).await?)
}

#[tokio::main]
async fn main() -> Result<()> {
    const USAGE: &str = "engine stdio | http | command";
    match std::env::args().nth(1).context(USAGE)?.as_str() {
        "stdio" => {
            let engine = engine(Served::inside()?, Hub::new());
            transport::stdio::serve(engine, Streams::take_standard()?, pending()).await?;
        }
        "http" => serve_http(Served::inside()?).await?,
        "command" => serve_http(Served::command()?).await?,
        _ => bail!(USAGE),
    }
    Ok(())
}
