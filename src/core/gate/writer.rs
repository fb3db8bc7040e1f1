//! The thread that writes the audit log of a surface, so that nothing that serves calls waits for its disk.
//!
//! Promises: lines reach the file in the order in which they were handed over; whoever waits for one learns whether it
//! is there; all that was handed over before [`Writer::settle`] is written when that returns, unless it took too long.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use tokio::sync::oneshot;

use super::audit::{Durable, Line};

/// Room for the thread's calls: it writes one line of bounded length after the other.
const STACK: usize = 256 * 1024;

/// What the thread is told.
enum Job {
    Add(Box<Line>, Durable, Option<oneshot::Sender<io::Result<()>>>),
    Settle(Sender<()>),
}

/// See the module. The thread ends with the last line after this is dropped.
#[derive(Debug)]
pub(super) struct Writer {
    jobs: Sender<Job>,
}

impl Writer {
    /// Starts the thread, which adds lines so.
    pub(super) fn start(add: impl Fn(&Line, Durable) -> io::Result<()> + Send + 'static) -> io::Result<Self> {
        let (jobs, waiting) = mpsc::channel();
        std::thread::Builder::new()
            .name("audit".to_owned())
            .stack_size(STACK)
            .spawn(move || work(&waiting, add))
            .map(|_| Self { jobs })
    }

    /// Adds a line, and waits until it is there. If this is given up, the line is added all the same.
    pub(super) async fn add(&self, line: Line, durable: Durable) -> io::Result<()> {
        let (done, told) = oneshot::channel();
        let gone = |_| io::Error::other("the thread that writes the audit log has ended");
        self.jobs.send(Job::Add(Box::new(line), durable, Some(done))).map_err(|_| gone(()))?;
        told.await.map_err(|_| gone(())).flatten()
    }

    /// Hands a line over without waiting for it: nothing depends on it, and a failure is logged.
    pub(super) fn hand_over(&self, line: Line) {
        if self.jobs.send(Job::Add(Box::new(line), Durable::No, None)).is_err() {
            tracing::error!("what came of a call cannot be written to the audit log: its thread has ended");
        }
    }

    /// Waits until all that was handed over is written, at most so long. Whether it is.
    pub(super) fn settle(&self, limit: Duration) -> bool {
        let (done, told) = mpsc::channel();
        self.jobs.send(Job::Settle(done)).is_ok() && told.recv_timeout(limit).is_ok()
    }
}

fn work(waiting: &Receiver<Job>, add: impl Fn(&Line, Durable) -> io::Result<()>) {
    for job in waiting {
        match job {
            Job::Settle(done) => drop(done.send(())),
            Job::Add(line, durable, told) => {
                let added = add(&line, durable);
                if let (Err(error), None) = (&added, &told) {
                    tracing::error!(%error, "what came of a call cannot be written to the audit log");
                }
                // Whoever waited may have gone.
                let _ = told.map(|told| told.send(added));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::super::audit::testing::line;
    use super::*;

    /// A writer whose disk waits for leave before each line, and what it wrote.
    fn slow() -> (Writer, Sender<()>, Arc<Mutex<Vec<String>>>) {
        let written = Arc::new(Mutex::new(Vec::new()));
        let (leave, waits) = mpsc::channel();
        let list = Arc::clone(&written);
        let add = move |line: &Line, _| {
            waits.recv().map_err(io::Error::other)?;
            list.lock().unwrap().push(line.tool().to_owned());
            Ok(())
        };
        (Writer::start(add).unwrap(), leave, written)
    }

    #[test]
    fn handing_over_waits_for_no_disk_and_the_order_stays() {
        let (writer, leave, written) = slow();
        for name in ["a", "b", "c"] {
            writer.hand_over(line(name));
        }
        assert!(written.lock().unwrap().is_empty(), "the disk has not begun");
        assert!(!writer.settle(Duration::ZERO));
        (0..3).for_each(|_| leave.send(()).unwrap());
        assert!(writer.settle(Duration::from_secs(60)));
        assert_eq!(*written.lock().unwrap(), ["a", "b", "c"]);
    }

    #[test]
    fn what_nobody_waits_for_any_more_is_written_before_what_comes_after_it() {
        let (writer, leave, written) = slow();
        let mut given_up = Box::pin(writer.add(line("decision"), Durable::Yes));
        let waker = std::task::Waker::noop();
        assert!(given_up.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending());
        drop(given_up);
        writer.hand_over(line("outcome"));
        (0..2).for_each(|_| leave.send(()).unwrap());
        assert!(writer.settle(Duration::from_secs(60)));
        assert_eq!(*written.lock().unwrap(), ["decision", "outcome"]);
    }

    #[tokio::test]
    async fn whoever_waits_learns_that_it_failed() {
        let writer = Writer::start(|_, _| Err(io::Error::other("full"))).unwrap();
        assert_eq!(writer.add(line("a"), Durable::Yes).await.unwrap_err().to_string(), "full");
        writer.hand_over(line("b"));
        assert!(writer.settle(Duration::from_secs(60)), "one that failed stops no other");
    }
}
