//! What may wait for a disk, or takes long, on a thread where nothing else waits for it.

/// Does it there; `None` if it panicked, which was logged.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}
