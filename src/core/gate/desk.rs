//! What is kept for the gate of a surface, whichever text of it is in force: which answers were used, whether anybody
//! may be asked, where approvals are found and decisions are written down.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::approvals::Approvals;
use super::audit::{self, Audit};
use crate::core::store::{StoreError, open_shared};
use crate::protocol::digest::{self, Digest};

/// Whether a person may be asked about what cannot be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stance {
    /// Yes.
    #[default]
    Ask,
    /// Nobody is there: all of it is refused.
    Deny,
}

/// Most answers that are remembered as used at one time.
const USED_AT_MOST: usize = 100_000;

/// See the module. One for each surface of a process, and the same after the surface was read again: what it took as
/// an answer it does not take again, and no other surface can make the seal of one.
#[derive(Debug)]
pub struct Desk {
    stance: Stance,
    salt: Option<[u8; 32]>,
    used: Mutex<HashMap<String, u64>>,
    approvals: OnceLock<Arc<Approvals>>,
    audit: OnceLock<Arc<Audit>>,
}

impl Default for Desk {
    fn default() -> Self {
        Self::new(Stance::Ask)
    }
}

/// Whether an answer may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// It was not, and is now.
    First,
    /// It was.
    Again,
    /// There is no room to remember it, so it is not.
    NoRoom,
}

impl Desk {
    /// A desk that keeps everything in memory.
    pub fn new(stance: Stance) -> Self {
        let mut salt = [0; 32];
        let salt = getrandom::fill(&mut salt).is_ok().then_some(salt);
        Self { stance, salt, used: Mutex::default(), approvals: OnceLock::new(), audit: OnceLock::new() }
    }

    /// Writes down every decision in this file from now on.
    pub fn audit_to(&self, file: &Path) -> Result<(), StoreError> {
        let _ = self.audit.set(Arc::new(Audit::open(file)?));
        Ok(())
    }

    /// Writes down every decision in a state folder, which is made if need be, unless they are written down elsewhere.
    pub fn audit_in(&self, state: &Path) -> Result<(), StoreError> {
        match self.audit.get() {
            None => self.audit_to(&open_shared(state)?.join(audit::NAME)),
            Some(_) => Ok(()),
        }
    }

    /// Finds approvals in a state folder, which is made if need be, and writes decisions down there, unless they are
    /// written down elsewhere. Once is enough.
    pub fn open(&self, state: &Path) -> Result<(), StoreError> {
        if self.approvals.get().is_none() {
            let _ = self.approvals.set(Arc::new(Approvals::open(state)?));
        }
        self.audit_in(state)
    }

    /// Waits until what was decided, and what came of it, is in the audit log, at most so long; for an orderly end.
    pub fn settle(&self, limit: Duration) {
        if self.audit.get().is_some_and(|audit| !audit.settle(limit)) {
            tracing::error!("the audit log could not be written to its end");
        }
    }

    pub(super) fn approvals(&self) -> Option<&Arc<Approvals>> {
        self.approvals.get()
    }

    pub(super) fn audit(&self) -> Option<&Arc<Audit>> {
        self.audit.get()
    }

    pub(super) fn stance(&self) -> Stance {
        self.stance
    }

    /// What stands for a call in a state that passes through its client, and that nobody else can make. `None` without
    /// randomness.
    pub(super) fn seal(&self, key: Digest) -> Option<String> {
        let salt = self.salt.as_ref()?;
        Some(digest::of_bytes(&[&salt[..], &key.as_bytes()[..]].concat()).to_string())
    }

    /// Uses an answer, until then.
    pub(super) fn claim(&self, nonce: &str, until: u64) -> Claim {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.contains_key(nonce) {
            return Claim::Again;
        }
        if used.len() >= USED_AT_MOST {
            let now = now();
            used.retain(|_, until| *until > now);
            if used.len() >= USED_AT_MOST {
                return Claim::NoRoom;
            }
        }
        used.insert(nonce.to_owned(), until);
        Claim::First
    }
}

/// Unix seconds.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// A text that was never there before. `None` without randomness.
pub(super) fn nonce() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_used_once() {
        let desk = Desk::default();
        assert_eq!(desk.claim("a", now() + 10), Claim::First);
        assert_eq!(desk.claim("a", now() + 10), Claim::Again);
        assert_eq!(desk.claim("b", now() + 10), Claim::First);
    }

    #[test]
    fn of_a_hundred_at_once_one_uses_it() {
        let desk = Desk::default();
        let firsts = std::thread::scope(|scope| {
            let claims: Vec<_> = (0..100).map(|_| scope.spawn(|| desk.claim("a", now() + 10))).collect();
            claims.into_iter().map(|claim| claim.join().unwrap()).filter(|c| *c == Claim::First).count()
        });
        assert_eq!(firsts, 1);
    }

    #[test]
    fn memory_is_bounded_and_what_has_expired_makes_room() {
        let desk = Desk::default();
        for n in 0..USED_AT_MOST {
            desk.claim(&n.to_string(), now() + 100);
        }
        assert_eq!(desk.claim("more", now() + 100), Claim::NoRoom);
        desk.used.lock().unwrap().values_mut().take(10).for_each(|until| *until = 0);
        assert_eq!(desk.claim("more", now() + 100), Claim::First);
    }

    #[test]
    fn each_desk_seals_otherwise() {
        let key = digest::of_bytes(b"call");
        assert_ne!(Desk::default().seal(key), Desk::default().seal(key));
        let desk = Desk::default();
        assert_eq!(desk.seal(key), desk.seal(key));
    }
}
