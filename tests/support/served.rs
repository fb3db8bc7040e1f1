//! A server over the small world, in this process, on a loopback port.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use twodoor::protocol::{Catalog, Limits};
use twodoor::transport::ServeError;
use twodoor::transport::http::{self, LegacyMode, Options};

use super::transcript::{Legacy, Transcript};
use super::world::{PATIENCE, World};

pub(super) struct Served {
    pub(super) address: SocketAddr,
    pub(super) world: Arc<World>,
    pub(super) catalog: Arc<Catalog>,
    runtime: Handle,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Served {
    pub(super) fn start(transcript: &Transcript, legacy: Legacy, runtime: &Handle) -> Self {
        let world = World::new(legacy, transcript.shows);
        // Calls that a transcript leaves behind are not waited for.
        let limits = Limits { drain: Duration::from_millis(200), ..Limits::default() };
        let (engine, catalog) = (world.engine(limits), world.catalog());
        let legacy = match legacy {
            Legacy::Sessions | Legacy::Off => LegacyMode::Sessions,
            Legacy::Stateless => LegacyMode::Stateless,
        };
        let listener = runtime.block_on(http::listen(SocketAddr::from(([127, 0, 0, 1], 0)))).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let options = Options { legacy, sse: true, ..Options::default() };
        let stopped = async move {
            let _ = stopped.await;
        };
        let serving = Some(runtime.spawn(http::serve(engine, listener, options, stopped)));
        Self { address, world, catalog, runtime: runtime.clone(), stop: Some(stop), serving }
    }

    /// Asks it to stop.
    pub(super) fn begin_stop(&mut self) -> Result<(), String> {
        self.stop.take().map(drop).ok_or_else(|| "stopped twice".to_owned())
    }

    /// Stops it, and waits until it has.
    pub(super) fn stop(&mut self) -> Result<(), String> {
        drop(self.stop.take());
        let serving = self.serving.take().ok_or("stopped twice")?;
        match self.runtime.block_on(async { tokio::time::timeout(PATIENCE, serving).await }) {
            Ok(Ok(Ok(()))) => Ok(()),
            other => Err(format!("serving ended with {other:?}")),
        }
    }
}
