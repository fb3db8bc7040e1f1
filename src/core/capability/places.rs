//! How many runs of one capability go on at once, in the whole process.
//!
//! Promises: never more than its manifest allows, whichever surface they came by; who waits is served in the order of
//! arrival. A manifest that comes to allow another number counts anew. Starts nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::surface::manifest::Manifest;

/// By the folder of a capability and the number that its manifest allows. Surfaces of a process are reloaded one by one,
/// and what runs of a capability runs on the same machine whichever it was.
static KNOWN: Mutex<BTreeMap<(PathBuf, usize), Weak<Semaphore>>> = Mutex::new(BTreeMap::new());

/// Waits for the right to run once, which ends when it is dropped. It is there in the end: nothing closes a semaphore here.
pub async fn place(manifest: &Manifest) -> Option<OwnedSemaphorePermit> {
    places(manifest).acquire_owned().await.ok()
}

fn places(manifest: &Manifest) -> Arc<Semaphore> {
    let key = (manifest.folder.clone(), manifest.max_concurrent);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(places) = known.get(&key).and_then(Weak::upgrade) {
        return places;
    }
    known.retain(|_, places| places.strong_count() > 0);
    let places = Arc::new(Semaphore::new(manifest.max_concurrent));
    known.insert(key, Arc::downgrade(&places));
    places
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;
    use crate::core::capability::samples;

    /// Whether there is no place now.
    fn is_full(manifest: &Manifest) -> bool {
        pin!(place(manifest)).poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    #[tokio::test]
    async fn one_more_than_allowed_waits_until_one_has_ended() {
        let mut manifest = samples::xlsx();
        manifest.folder = "/places/one".into();
        manifest.max_concurrent = 2;
        let (first, _second) = (place(&manifest).await, place(&manifest).await);
        assert!(is_full(&manifest) && !is_full(&samples::xlsx()), "each capability has places of its own");
        drop(first);
        let third = place(&manifest).await;
        assert!(third.is_some() && is_full(&manifest));
        drop(third);
        assert!(!is_full(&manifest));
    }
}
