//! Long answers are read on a thread where nothing else waits for it.

/// Most bytes of an answer that are read where they arrived.
const SMALL: usize = 64 * 1024;

/// Reads an answer of so many bytes: on another thread if there are many, so that no other call waits meanwhile, else here.
/// `None` if the other thread panicked, which was logged.
pub(crate) async fn reading<T: Send + 'static>(bytes: usize, read: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    if bytes <= SMALL { Some(read()) } else { tokio::task::spawn_blocking(read).await.ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn much_is_read_on_another_thread_and_little_on_this_one() {
        let here = std::thread::current().id();
        for (bytes, is_here) in [(0, true), (SMALL, true), (SMALL + 1, false)] {
            let read = reading(bytes, || std::thread::current().id()).await;
            assert_eq!(read == Some(here), is_here, "{bytes}");
        }
    }
}
