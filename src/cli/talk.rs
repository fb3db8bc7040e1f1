//! The caller of a command at the shell: what a running tool tells, on standard error.

use std::io::IsTerminal as _;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::json::{shortened, visible};
use twodoor::protocol::{Caller, Notice};

use super::show;

/// Characters of a progress bar.
const BAR: u8 = 20;

/// Characters of a progress message that fit beside the bar.
const MESSAGE: usize = 48;

/// Hears a call: logs become lines, progress is shown where standard error is a terminal.
pub(crate) struct Shell {
    terminal: bool,
    /// Whether the line that the cursor stands on shows progress.
    drawn: Mutex<bool>,
}

impl Shell {
    pub(crate) fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), drawn: Mutex::new(false) }
    }

    /// Removes what is shown of the progress.
    pub(crate) fn clear(&self) {
        self.write(None);
    }

    fn write(&self, line: Option<&str>) {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        let clear = if std::mem::take(&mut *drawn) { "\r\x1b[K" } else { "" };
        show::err(&format!("{clear}{}", line.unwrap_or_default()));
    }

    fn draw(&self, line: &str) {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        *drawn = true;
        show::err(&format!("\r\x1b[K{line}"));
    }
}

impl Caller for Shell {
    fn notify(&self, notice: Notice) {
        match notice {
            Notice::Progress { progress, total, message } if self.terminal => {
                self.draw(&bar(progress, total, message.as_deref()));
            }
            Notice::Log { level, logger, data } => {
                let logger = logger.map(|logger| format!("{logger}: ")).unwrap_or_default();
                self.write(Some(&format!("{}: {logger}{}\n", level.name(), lines(&data))));
            }
            Notice::Updated { uri } => self.write(Some(&format!("changed: {}\n", visible(uri.chars())))),
            Notice::Progress { .. } | Notice::Detach => {}
        }
    }
    fn is_gone(&self) -> bool {
        false
    }
    fn gone(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// A text as it stands but for what a terminal would obey or hide; any other value as JSON.
fn lines(data: &Value) -> String {
    match data {
        Value::String(text) => show::lines(text),
        other => visible(other.to_string().chars()),
    }
}

/// `[##########          ] 5/10 message`
fn bar(progress: f64, total: Option<f64>, message: Option<&str>) -> String {
    let message = message.map(|message| format!(" {}", shortened(message, MESSAGE))).unwrap_or_default();
    let Some(total) = total.filter(|total| *total > 0.0) else { return format!("{progress}{message}") };
    let share = (progress / total).clamp(0.0, 1.0);
    let steps = (1..=BAR).filter(|step| f64::from(*step) / f64::from(BAR) <= share).count();
    format!("[{:<width$}] {progress}/{total}{message}", "#".repeat(steps), width = usize::from(BAR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_drawn_with_what_is_known_of_it() {
        for (progress, total, message, line) in [
            (0.0, Some(4.0), None, "[                    ] 0/4"),
            (3.0, Some(4.0), Some("three"), "[###############     ] 3/4 three"),
            (9.0, Some(4.0), None, "[####################] 9/4"),
            (2.5, None, Some("a\x1b[2Jb"), "2.5 a\\u{1b}[2Jb"),
            (1.0, Some(0.0), None, "1"),
        ] {
            assert_eq!(bar(progress, total, message), line);
        }
    }

    #[test]
    fn a_log_message_cannot_command_the_terminal() {
        assert_eq!(lines(&Value::from("one\nt\x1b[1mwo\n")), "one\nt\\u{1b}[1mwo");
        assert_eq!(lines(&serde_json::json!({ "a": 1 })), r#"{"a":1}"#);
    }
}
