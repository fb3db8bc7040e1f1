//! One descriptor more for a program that talks while it runs.
//!
//! Promises: a socket pair whose ends no other program inherits; the program finds its end under the number
//! [`TALK_DESCRIPTOR`], open for reading and writing, and blocking, as a shell expects.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Pair;

use tokio::net::UnixStream;

/// The number under which a program finds its end.
pub const TALK_DESCRIPTOR: i32 = 3;

/// The variable that tells a program the number.
pub const TALK_VARIABLE: &str = "TWODOOR_FD";

/// What a program that is about to start needs of the pair.
#[derive(Debug)]
pub struct Line {
    theirs: OwnedFd,
    /// Kept until the program has ended: closed before, it would end the program by SIGPIPE while it cleans up.
    ours: OwnedFd,
}

impl Line {
    /// A new pair: our end, and what is handed to the program. Must be called within a tokio runtime.
    pub fn open() -> io::Result<(UnixStream, Self)> {
        let (ours, theirs) = Pair::pair()?;
        let kept = ours.try_clone()?;
        ours.set_nonblocking(true)?;
        Ok((UnixStream::from_std(ours)?, Self { theirs: theirs.into(), ours: kept.into() }))
    }

    /// The program's end, and ours.
    pub(super) fn split(self) -> (OwnedFd, OwnedFd) {
        (self.theirs, self.ours)
    }
}
