//! `twodoor serve`: a surface for every client, over stdio, HTTP or both.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::sync::watch;
use twodoor::core::backend::Router;
use twodoor::core::process;
use twodoor::protocol::{Catalog, Dispatcher, Limits, Offer, Revision};
use twodoor::surface::Surface;
use twodoor::transport::http::{LegacyMode, Options};
use twodoor::transport::{Engine, ServeError, http, stdio};

use super::logging::{self, LogFormat};
use super::signals::Signals;
use super::{SurfaceFile, exit, show};

/// Serves a surface to legacy and modern clients alike
#[derive(clap::Args)]
#[command(
    after_help = "Over stdio (the default) the server ends when its input ends. With --http alone, standard input plays no part.\n\n\
    Examples:\n  twodoor serve examples/git.yaml\n  twodoor serve examples/git.yaml --http 127.0.0.1:8484\n\n\
    The HTTP endpoint is /mcp; GET /healthz says whether the server lives."
)]
pub(crate) struct Serve {
    #[command(flatten)]
    surface: SurfaceFile,
    /// Serve HTTP on this loopback address; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
    /// Serve stdio too, beside --http
    #[arg(long)]
    stdio: bool,
    /// How legacy clients are served over HTTP; off serves them nowhere
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    legacy: Legacy,
    /// A Host header to accept beyond the listener's own, with its port (repeatable)
    #[arg(long, value_name = "HOST:PORT")]
    allow_host: Vec<String>,
    /// An Origin to accept beyond the listener's own; it gets cross-origin headers (repeatable)
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Say on standard error what is served as one JSON object
    #[arg(long)]
    json: bool,
    /// How logs are written to standard error
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum Legacy {
    /// initialize opens a session
    #[default]
    Sessions,
    /// every request stands alone
    Stateless,
    /// modern clients only
    Off,
}

impl From<Legacy> for LegacyMode {
    fn from(legacy: Legacy) -> Self {
        match legacy {
            // Off is what the catalog offers.
            Legacy::Sessions | Legacy::Off => Self::Sessions,
            Legacy::Stateless => Self::Stateless,
        }
    }
}

impl Serve {
    pub(crate) fn run(self) -> ExitCode {
        let address = match self.http.as_deref().map(read_address).transpose() {
            Ok(address) => address,
            Err((problem, remedy)) => {
                show::error(&problem, remedy);
                return exit::usage();
            }
        };
        let _logging = logging::start(self.log_format);
        let offer = if self.legacy == Legacy::Off { Offer::ModernOnly } else { Offer::Both };
        let mut limits = Limits::default();
        if address.is_some() {
            limits.sockets = sockets(limits.sockets);
        }
        let (engine, mut shown) = match build(&self.surface.path, offer, limits) {
            Ok(built) => built,
            Err(code) => return code,
        };
        let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                show::error(
                    &format!("the runtime cannot start: {error}"),
                    "check the limits on threads and descriptors",
                );
                return exit::listen();
            }
        };
        let options =
            Options { legacy: self.legacy.into(), allow_hosts: self.allow_host, allow_origins: self.allow_origin };
        let over_stdio = self.stdio || address.is_none();
        shown.json = self.json;
        let served = runtime.block_on(serve(engine, &shown, address, options, over_stdio));
        // A read of standard input may block for ever; it holds nothing that matters now.
        runtime.shutdown_background();
        match served {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                let remedy = "choose another address, or port 0 for a free one";
                show::error(&error.to_string(), remedy);
                exit::listen()
            }
        }
    }
}

/// Reads an address and insists that only this machine can reach it.
fn read_address(text: &str) -> Result<SocketAddr, (String, &'static str)> {
    let with_host = if text.parse::<u16>().is_ok() { format!("127.0.0.1:{text}") } else { text.to_owned() };
    let found =
        with_host.to_socket_addrs().map(|mut all| all.find(|a| a.ip().is_loopback()).or(with_host.parse().ok()));
    match found {
        Ok(Some(address)) if address.ip().is_loopback() => Ok(address),
        Ok(_) => Err((
            format!("{text} can be reached from other machines, and this server has no authentication yet"),
            "listen on 127.0.0.1 or [::1], and let a proxy with authentication stand in front",
        )),
        Err(_) => Err((
            format!("{text:?} is no address to listen on"),
            "give HOST:PORT, such as 127.0.0.1:8484, or a port alone",
        )),
    }
}

/// What is served, as standard error says it once at the start.
struct Shown {
    name: String,
    version: String,
    tools: usize,
    declared: String,
    digest: String,
    json: bool,
}

impl Shown {
    fn line(&self, bound: Option<SocketAddr>) -> String {
        let Self { name, version, tools, declared, digest, json } = self;
        let url = bound.map(|bound| format!("http://{bound}/mcp"));
        if *json {
            let line = json!({ "surface": name, "version": version, "tools": tools, "digest": digest, "url": url });
            return format!("{line}\n");
        }
        let listening = url.map(|url| format!("listening on {url}\n")).unwrap_or_default();
        format!("{name} {version}, {declared}, {digest}\n{listening}")
    }
}

/// Builds the engine of a surface, and what is said of it.
fn build(path: &Path, offer: Offer, limits: Limits) -> Result<(Engine, Shown), ExitCode> {
    let mut loaded = show::load(path)?;
    loaded.parts.offer = offer;
    let (name, version) = (loaded.name, loaded.version);
    let declared = show::declared(&loaded.parts);
    let catalog = Catalog::build(loaded.parts).map_err(|_| exit::surface())?;
    let digest = catalog.digest(Revision::MODERN);
    let shown = Shown {
        name,
        version: version.to_string(),
        tools: catalog.tools().len(),
        declared,
        digest: digest.to_string(),
        json: false,
    };
    let mut key = [0; 32];
    if getrandom::fill(&mut key).is_err() {
        show::error("the system gives no randomness", "start again once it does: sealed state needs a secret key");
        return Err(exit::listen());
    }
    let dispatcher = Arc::new(Dispatcher::new(Arc::new(Surface::new(catalog)), key));
    let router =
        Router::new(loaded.tools).with_resources(loaded.resources, loaded.templates).with_prompts(loaded.prompts);
    Ok((Engine::new(dispatcher, Arc::new(router), limits), shown))
}

/// Descriptors kept for everything that is not a client's socket: programs and their pipes above all.
const DESCRIPTORS_KEPT: u64 = 512;

/// Descriptors we ask for at most: programs inherit the limit, and some look at every number below it.
const DESCRIPTORS_ASKED: u64 = 16 * 1024;

/// Raises the limit on descriptors and takes only as many sockets as it has room for.
fn sockets(wanted: usize) -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(DESCRIPTORS_ASKED).min(DESCRIPTORS_ASKED);
    if limit.current.is_some_and(|current| current < most) {
        let raised = Rlimit { current: Some(most), maximum: limit.maximum };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            tracing::info!(descriptors = most, "the limit on descriptors was raised");
            limit = raised;
        }
    }
    let current = limit.current.unwrap_or(DESCRIPTORS_ASKED);
    let room = current.saturating_sub(DESCRIPTORS_KEPT).max(current / 2);
    wanted.min(usize::try_from(room).unwrap_or(wanted))
}

async fn serve(
    engine: Engine,
    shown: &Shown,
    address: Option<SocketAddr>,
    options: Options,
    over_stdio: bool,
) -> Result<(), ServeError> {
    // So that whatever a tool's program leaves behind comes to us to be ended.
    if let Err(error) = process::become_subreaper() {
        tracing::warn!(%error, "programs that leave their group cannot be found again");
    }
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(stop_on_signals(Signals::catch(), stop.clone()));
    match process::reap_orphans() {
        Ok(reaping) => drop(tokio::spawn(reaping)),
        Err(error) => tracing::warn!(%error, "orphans are reaped only when their call ends"),
    }
    let listener = match address {
        Some(address) => Some(http::listen(address).await?),
        None => None,
    };
    let bound = listener.as_ref().and_then(|listener| listener.local_addr().ok());
    show::err(&shown.line(bound));
    let over_http = async {
        match listener {
            Some(listener) => http::serve(engine.clone(), listener, options, told(stopped.clone())).await,
            None => Ok(()),
        }
    };
    let over_streams = async {
        if !over_stdio {
            return Ok(());
        }
        let streams = stdio::Streams::take_standard()?;
        let served = stdio::serve(engine.clone(), streams, told(stopped.clone())).await;
        // The end of input ends the whole server, its HTTP side too.
        let _ = stop.send(true);
        served
    };
    let (http, streams) = tokio::join!(over_http, over_streams);
    let _ = process::settle(process::GRACE).await;
    http.and(streams)
}

/// Ends once a stop was asked for.
async fn told(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stop| *stop).await;
}

/// The first signal stops in order, the second at once.
async fn stop_on_signals(mut signals: Signals, stop: watch::Sender<bool>) {
    signals.next().await;
    let _ = stop.send(true);
    signals.next().await;
    process::kill_all();
    std::process::exit(1);
}
