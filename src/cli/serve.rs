//! `twodoor serve`: a surface for every client, over stdio, HTTP or both.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use tokio::sync::watch;
use twodoor::core::gate::Stance;
use twodoor::core::{process, upstream};
use twodoor::protocol::{Limits, Offer, Principal};
use twodoor::surface::callers::{CallerToken, Callers};
use twodoor::surface::{Problems, lock};
use twodoor::transport::http::auth::{Auth, KnownToken, KnownTokens};
use twodoor::transport::http::{LegacyMode, Options};
use twodoor::transport::{ServeError, http, stdio};

use super::logging::{self, LogFormat};
use super::mounts::{Mounted, Wanted};
use super::signals::Signals;
use super::{exit, show};

/// Serves surfaces to legacy and modern clients alike
#[derive(clap::Args)]
#[command(
    after_help = "Over stdio (the default) the server ends when its input ends. With --http alone, standard input plays no part.\n\n\
    A surface is read again when its file, its lock or a folder that it lists changes, and on SIGHUP: a good one takes the \
    place of the one before, its clients are told which lists differ, and calls in flight end as they began; a bad one is shown \
    here and changes nothing.\n\n\
    Where NAME.lock stands beside NAME.yaml, only tools of its digest are served (twodoor lock writes it). With --locked there \
    must be one. NAME@LABEL.yaml is a frozen version of NAME.yaml (twodoor freeze makes it): it is served beside it, and never \
    without its lock.\n\n\
    Examples:\n  twodoor serve examples/git.yaml\n  twodoor serve examples/git.yaml --http 127.0.0.1:8484\n  \
    twodoor serve examples/git.yaml examples/disk.yaml --http 127.0.0.1:8484\n  \
    twodoor serve examples/git.yaml --http 127.0.0.1:8484 --auth callers.yaml\n\n\
    Over HTTP each surface is at /mcp/NAME, NAME being the one under `surface:`, a frozen version at /mcp/NAME@LABEL, and the \
    first file at /mcp too. Over stdio the first file is served. GET /healthz says whether the server lives."
)]
pub(crate) struct Serve {
    /// The surface files
    #[arg(value_name = "SURFACE", default_value = super::DEFAULT_SURFACE)]
    surfaces: Vec<PathBuf>,
    /// Serve HTTP on this loopback address; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
    /// Serve stdio too, beside --http
    #[arg(long)]
    stdio: bool,
    /// How legacy clients are served over HTTP; off serves them nowhere
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    legacy: Legacy,
    /// Serve the transport before Streamable HTTP too, at /sse (HTTP+SSE, deprecated), for clients that know no other
    #[arg(long, requires = "http")]
    sse: bool,
    /// How long an unused legacy session is kept: 90s, 30m, 2h
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = read_idle)]
    session_idle: Duration,
    /// A Host header to accept beyond the listener's own, with its port (repeatable)
    #[arg(long, value_name = "HOST:PORT")]
    allow_host: Vec<String>,
    /// An Origin to accept beyond the listener's own; it gets cross-origin headers (repeatable)
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Serve HTTP to callers of this file alone, each with a token of its own; `twodoor token` makes one
    #[arg(long, value_name = "FILE", requires = "http")]
    auth: Option<PathBuf>,
    /// Refuse a surface that has no lock, too
    #[arg(long, conflicts_with = "unlocked")]
    locked: bool,
    /// Serve a surface even if its lock does not allow it; a frozen one never
    #[arg(long)]
    unlocked: bool,
    /// Leave out the frozen versions that stand beside the surface files
    #[arg(long)]
    no_frozen: bool,
    /// Where tasks, approvals and the audit log of the first surface are kept, if its tools need them; another's in
    /// DIR.NAME beside it. By default $XDG_STATE_HOME/twodoor/ and the surface's name
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Refuse whatever a person would be asked about, and ask nobody: there is no person here
    #[arg(long)]
    deny_irreversible: bool,
    /// Write every decision about a call into this file, a JSON object a line, and not into the state folder
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// Do not read surfaces again when their files change; SIGHUP still does
    #[arg(long)]
    no_watch: bool,
    /// Say on standard error what is served as JSON, one object a surface, and so what comes of each reload
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
        if self.sse && self.legacy == Legacy::Off {
            let remedy = "leave out --sse, or choose --legacy sessions";
            show::error("--sse serves legacy clients, whom --legacy off refuses", remedy);
            return exit::usage();
        }
        let logging = logging::start(self.log_format);
        let offer = if self.legacy == Legacy::Off { Offer::ModernOnly } else { Offer::Both };
        let mut limits = Limits { session_idle: self.session_idle, ..Limits::default() };
        if address.is_some() {
            limits.sockets = sockets(limits.sockets);
        }
        let auth = match self.auth.as_deref().map(read_callers).transpose() {
            Ok(auth) => auth,
            Err(problems) => {
                show::problems_on_stderr(&problems);
                return exit::surface();
            }
        };
        let mut mounted = match self.wanted(offer, limits).build(&logging) {
            Ok(mounted) => mounted,
            Err(code) => return code,
        };
        if address.is_none() {
            if self.surfaces.len() > 1 {
                tracing::warn!("over stdio the first surface alone is served: the others are reached with --http");
            }
            mounted.truncate(1);
        } else if auth.is_none() && mounted.iter().any(|mounted| mounted.reload.has_scopes()) {
            tracing::warn!("tools have scopes, but without --auth nobody is asked for them");
        }
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
        let options = Options {
            legacy: self.legacy.into(),
            sse: self.sse,
            allow_hosts: self.allow_host,
            allow_origins: self.allow_origin,
            auth,
        };
        let over_stdio = self.stdio || address.is_none();
        let desks: Vec<_> = mounted.iter().map(|mounted| Arc::clone(&mounted.reload.reading.desk)).collect();
        let served = runtime.block_on(serve(mounted, address, options, over_stdio));
        // A read of standard input may block for ever; it holds nothing that matters now.
        runtime.shutdown_background();
        desks.iter().for_each(|desk| desk.settle(super::LOG_AT_MOST));
        match served {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                let remedy = match error {
                    ServeError::Listen { .. } => "choose another address, or port 0 for a free one",
                    ServeError::Resource { .. } => "correct `resource` in the file of --auth",
                    ServeError::SharedCache | ServeError::Path { .. } | ServeError::Streams { .. } => "start again",
                };
                show::error(&error.to_string(), remedy);
                exit::listen()
            }
        }
    }
}

/// Longest time for which an unused session may be kept.
const IDLE_AT_MOST: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads how long a session may be unused.
fn read_idle(text: &str) -> Result<Duration, &'static str> {
    let wanted = "expected a whole number with s, m or h, from 1s to 24h";
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        _ => return Err(wanted),
    };
    let time = number.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds)).map(Duration::from_secs);
    time.filter(|time| (Duration::from_secs(1)..=IDLE_AT_MOST).contains(time)).ok_or(wanted)
}

impl Serve {
    /// The surfaces that are to be served, and how.
    fn wanted(&self, offer: Offer, limits: Limits) -> Wanted {
        let mode = match (self.locked, self.unlocked) {
            (true, _) => lock::Mode::Required,
            (_, true) => lock::Mode::Ignored,
            _ => lock::Mode::IfThere,
        };
        Wanted {
            paths: self.surfaces.clone(),
            frozen: !self.no_frozen,
            mode,
            offer,
            // Over HTTP callers cannot be told apart without tokens, so none may list what another made.
            task_list: self.http.is_none() || self.auth.is_some(),
            limits,
            state: self.state.clone(),
            stance: if self.deny_irreversible { Stance::Deny } else { Stance::Ask },
            audit: self.audit.clone(),
            watch: !self.no_watch,
            json: self.json,
        }
    }
}

/// Reads who may call.
fn read_callers(path: &Path) -> Result<Auth, Problems> {
    let Callers { resource, authorization_servers, scopes_supported, tokens } = Callers::load(path)?;
    let tokens = tokens.into_iter().map(|CallerToken { name, sha256, scopes }| {
        // A prefix of its own, so that no name is that of a caller who was proven otherwise.
        KnownToken { principal: Principal::named(format!("token:{name}")), sha256, scopes }
    });
    let authorize = Arc::new(KnownTokens::new(tokens.collect()));
    Ok(Auth { authorize, resource, authorization_servers, scopes_supported })
}

/// Reads an address and insists that only this machine can reach it.
fn read_address(text: &str) -> Result<SocketAddr, (String, &'static str)> {
    let with_host = if text.parse::<u16>().is_ok() { format!("127.0.0.1:{text}") } else { text.to_owned() };
    let found =
        with_host.to_socket_addrs().map(|mut all| all.find(|a| a.ip().is_loopback()).or(with_host.parse().ok()));
    match found {
        Ok(Some(address)) if address.ip().is_loopback() => Ok(address),
        Ok(_) => Err((
            format!("{text} can be reached from other machines, and this server does not speak TLS"),
            "listen on 127.0.0.1 or [::1], and let a proxy with TLS stand in front; tokens are checked here with --auth",
        )),
        Err(_) => Err((
            format!("{text:?} is no address to listen on"),
            "give HOST:PORT, such as 127.0.0.1:8484, or a port alone",
        )),
    }
}

/// What standard error says once at the start.
fn opening(mounted: &[Mounted], bound: Option<SocketAddr>, sse: bool) -> String {
    let mut text = String::new();
    for (index, Mounted { mount, reload }) in mounted.iter().enumerate() {
        let beneath = |start: &str| {
            let first = (index == 0).then(|| start.to_owned());
            first.into_iter().chain(mount.name.as_ref().map(|name| format!("{start}/{name}"))).collect::<Vec<_>>()
        };
        let paths = if bound.is_some() { beneath("/mcp") } else { Vec::new() };
        let url = |paths: &[String]| bound.zip(paths.first()).map(|(bound, path)| format!("http://{bound}{path}"));
        if reload.json {
            let mut line = reload.shown.json();
            line.insert("url".to_owned(), url(&paths).into());
            line.insert("sse".to_owned(), url(&beneath("/sse")).filter(|_| sse).into());
            line.insert("paths".to_owned(), paths.into());
            text.push_str(&format!("{}\n", Value::Object(line)));
        } else {
            let paths = if paths.is_empty() { String::new() } else { format!(", at {}", paths.join(" and ")) };
            text.push_str(&format!("{}{paths}\n", reload.shown.text()));
        }
    }
    if let Some(bound) = bound.filter(|_| mounted.iter().all(|mounted| !mounted.reload.json)) {
        let ways = if sse { &["mcp", "sse"][..] } else { &["mcp"] };
        ways.iter().for_each(|way| text.push_str(&format!("listening on http://{bound}/{way}\n")));
    }
    text
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
    mounted: Vec<Mounted>,
    address: Option<SocketAddr>,
    options: Options,
    over_stdio: bool,
) -> Result<(), ServeError> {
    // So that whatever a tool's program leaves behind comes to us to be ended.
    if let Err(error) = process::become_subreaper() {
        tracing::warn!(%error, "programs that leave their group cannot be found again");
    }
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(stop_on_signals(Signals::stops(), stop.clone()));
    match process::reap_orphans() {
        Ok(reaping) => drop(tokio::spawn(reaping)),
        Err(error) => tracing::warn!(%error, "orphans are reaped only when their call ends"),
    }
    let listener = match address {
        Some(address) => Some(http::listen(address).await?),
        None => None,
    };
    let bound = listener.as_ref().and_then(|listener| listener.local_addr().ok());
    show::err(&opening(&mounted, bound, options.sse));
    let mut states = Vec::new();
    let mut mounts = Vec::new();
    for Mounted { mount, reload } in mounted {
        states.push(Arc::clone(&reload.state));
        mounts.push(mount);
        reload.state.sweep();
        tokio::spawn(reload.run(Signals::hang_ups()));
    }
    let mut mounts = mounts.into_iter();
    let Some(first) = mounts.next() else { return Ok(()) };
    let engine = first.engine.clone();
    let over_http = async {
        match listener {
            Some(listener) => http::serve_all(first, mounts.collect(), listener, options, told(stopped.clone())).await,
            None => Ok(()),
        }
    };
    let over_streams = async {
        if !over_stdio {
            return Ok(());
        }
        let streams = stdio::Streams::take_standard()?;
        let served = stdio::serve(engine, streams, told(stopped.clone())).await;
        // The end of input ends the whole server, its HTTP side too.
        let _ = stop.send(true);
        served
    };
    let (http, streams) = tokio::join!(over_http, over_streams);
    for state in states {
        state.stop().await;
    }
    upstream::close_all().await;
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
