//! Reading one file beneath a root.
//!
//! Promises: a file that is seen to change while it is read is read anew, and given up if it never
//! holds still; never more than the cap in memory; what is no regular file is not opened. Blocks on
//! the disk, so it is called where that may be.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::path::Path;
use std::time::SystemTime;

use bytes::Bytes;

use crate::core::confine::{PathRefusal, Root};
use crate::protocol::{Content, Outcome};

/// How often a file that changes meanwhile is read anew.
const ATTEMPTS: usize = 3;

/// Why a file is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::core) enum Unreadable {
    /// There is none, or it may not be known of.
    #[error("there is nothing to read")]
    Absent,
    /// It lies outside, or is no file.
    #[error("the path {0}")]
    Refused(PathRefusal),
    /// It is larger than is read.
    #[error("the file has {bytes} bytes, more than the {cap} that are read: the operator can raise its `cap`")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// What is read at most.
        cap: usize,
    },
    /// It did not hold still.
    #[error("the file changed while it was read: try again")]
    Changed,
    /// The system does not let us, now or at all.
    #[error("the file cannot be read by this server: the operator's log has the cause")]
    Closed(String),
}

impl Unreadable {
    /// What the peer is told; the operator's log names the path.
    pub(in crate::core) fn outcome(&self, path: &str) -> Outcome {
        match self {
            Self::Absent => Outcome::NotFound,
            Self::Refused(PathRefusal::NoRoom) => Outcome::Failed(Content::text(
                "the file cannot be looked up now, the machine has no room left: try again later",
            )),
            Self::Refused(PathRefusal::Closed) => {
                Self::Closed("a folder on the way is closed to this server".to_owned()).outcome(path)
            }
            Self::Refused(why) => {
                // A peer can ask for any number of these: not for the log as it is by default.
                tracing::debug!(path, "not read: the path {why}");
                Outcome::NotFound
            }
            Self::Closed(cause) => {
                tracing::warn!(path, %cause, "not read");
                Outcome::Failed(Content::text(self.to_string()))
            }
            Self::TooLarge { .. } | Self::Changed => Outcome::Failed(Content::text(self.to_string())),
        }
    }
}

/// Reads a regular file beneath a root.
pub(in crate::core) fn open_and_read(root: &Path, path: &str, cap: usize) -> Result<Bytes, Unreadable> {
    let closed = |error: std::io::Error| Unreadable::Closed(error.to_string());
    let root = Root::open(root).map_err(closed)?;
    for _ in 0..ATTEMPTS {
        let Some(mut file) = root.open_file(path).map_err(Unreadable::Refused)? else { return Err(Unreadable::Absent) };
        let before = file.metadata().map_err(closed)?;
        let bytes = read(&mut file, &before, cap)?;
        let after = file.metadata().map_err(closed)?;
        let whole = u64::try_from(bytes.len()).is_ok_and(|length| length == after.len());
        if whole && state(&before) == state(&after) {
            return Ok(bytes.into());
        }
    }
    Err(Unreadable::Changed)
}

fn read(file: &mut File, before: &Metadata, cap: usize) -> Result<Vec<u8>, Unreadable> {
    let most = u64::try_from(cap).unwrap_or(u64::MAX);
    if before.len() > most {
        return Err(Unreadable::TooLarge { bytes: before.len(), cap });
    }
    let mut bytes = Vec::new();
    // One byte more than there may be, so that a file which grows is seen to.
    let read = file.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| Unreadable::Closed(error.to_string()))?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length > most => Err(Unreadable::TooLarge { bytes: length, cap }),
        _ => Ok(bytes),
    }
}

/// What changes when a file is written to.
fn state(metadata: &Metadata) -> (u64, Option<SystemTime>) {
    (metadata.len(), metadata.modified().ok())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("root");
        fs::create_dir_all(root.join("folder")).unwrap();
        fs::write(base.path().join("secret"), "s").unwrap();
        fs::write(root.join("ten"), "0123456789").unwrap();
        fs::write(root.join("empty"), "").unwrap();
        File::create(root.join("huge")).unwrap().set_len(1 << 40).unwrap();
        symlink("../secret", root.join("out")).unwrap();
        symlink("/dev/zero", root.join("zero")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(root.join("pipe")).status().unwrap().success());
        let read = |path: &str, cap: usize| open_and_read(&root, path, cap).map(|bytes| bytes.to_vec());
        assert_eq!(read("ten", 10).unwrap(), b"0123456789");
        assert_eq!(read("empty", 1).unwrap(), b"");
        assert_eq!(read("ten", 9), Err(Unreadable::TooLarge { bytes: 10, cap: 9 }));
        assert!(matches!(read("huge", 1 << 20), Err(Unreadable::TooLarge { .. })));
        for absent in ["gone", "folder", "ten/below", "."] {
            assert_eq!(read(absent, 10), Err(Unreadable::Absent), "{absent}");
        }
        for (path, why) in [
            ("out", PathRefusal::Link),
            ("zero", PathRefusal::Link),
            ("pipe", PathRefusal::Special),
            ("../secret", PathRefusal::Parent),
            ("/etc/passwd", PathRefusal::Absolute),
        ] {
            assert_eq!(read(path, 10), Err(Unreadable::Refused(why)), "{path}");
        }
        assert!(matches!(open_and_read(&base.path().join("none"), "ten", 10), Err(Unreadable::Closed(_))));
    }

    #[test]
    fn a_special_file_of_the_system_is_not_read() {
        assert_eq!(open_and_read(Path::new("/dev"), "zero", 10), Err(Unreadable::Refused(PathRefusal::Special)));
        // A file whose size is not told until it is read: not the whole, so nothing.
        assert!(open_and_read(Path::new("/proc/self"), "stat", 1 << 20).is_err());
    }
}
