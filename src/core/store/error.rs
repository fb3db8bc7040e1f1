//! Why a store cannot be opened, for the operator; and why a write failed.

use std::io;
use std::path::PathBuf;

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder itself cannot be trusted.
    #[error("the state folder {} {problem}", path.display())]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Something is there that we did not put there.
    #[error("{} is not a file of twodoor's, but stands in its state folder", path.display())]
    Foreign {
        /// What is there.
        path: PathBuf,
    },
    /// A newer twodoor wrote it.
    #[error("{} was written by a newer twodoor: its format is {found}, this one knows {known}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The newest that is known.
        known: u64,
    },
    /// It cannot be what we wrote.
    #[error("{} is damaged: {problem}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        problem: String,
    },
    /// The system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl StoreError {
    /// How to mend it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Unusable { .. } => {
                "give --state a folder of this user's own that nobody else can write to (chmod 700), or one that does not exist yet"
            }
            Self::Foreign { .. } => "move it elsewhere, or give --state another folder",
            Self::Newer { .. } => "start the newer twodoor, or give --state another folder",
            Self::Corrupt { .. } => "move the file elsewhere to go on without what it holds; nothing was changed",
            Self::Io { .. } => "mend what the system says, or give --state another folder",
        }
    }
}

/// Why a record was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// There is no room; the next write may find some.
    #[error("there is no room left on the disk")]
    Full(#[source] io::Error),
    /// The system refused; the next write may do.
    #[error("the disk cannot be written: {0}")]
    Failed(#[source] io::Error),
    /// It is not known what of an earlier write is on the disk, so there is no next one.
    #[error("an earlier write could not be made safe, so nothing is written any more")]
    Distrusted,
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(error),
            _ => Self::Failed(error),
        }
    }
}
