//! The tools that every server publishes.

/// Tools in a listing unless the environment says otherwise.
pub const TOOLS: usize = 100;

/// What `progress` tells before it answers.
pub const PROGRESS_NOTICES: usize = 10;

/// A tool as every server defines it.
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// JSON text of its `inputSchema`.
    pub input_schema: &'static str,
}

const ECHO_SCHEMA: &str = r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
const FILLER_SCHEMA: &str = r#"{"type":"object","properties":{"query":{"type":"string","description":"Free text query"},"limit":{"type":"integer","minimum":1,"maximum":100},"verbose":{"type":"boolean"}},"required":["query"]}"#;

/// How many tools this process is to publish: `TOOLS` of its environment.
pub fn tools_wanted() -> usize {
    std::env::var("TOOLS").ok().and_then(|count| count.parse().ok()).unwrap_or(TOOLS)
}

/// `echo`, `progress` and `slow`, which take a text and answer it, and fillers of realistic size.
pub fn tools(count: usize) -> Vec<Tool> {
    let text = |name: &str, description: &str| Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: ECHO_SCHEMA,
    };
    let called = [
        text("echo", "Echo the text back"),
        text("progress", "Echo the text back after ten notices of progress"),
        text("slow", "Echo the text back after a while"),
    ];
    let filler = |i| Tool {
        name: format!("tool_{i:04}"),
        description: format!("Synthetic tool number {i}, here to give tools/list a realistic size."),
        input_schema: FILLER_SCHEMA,
    };
    let fillers = (called.len()..count).map(filler);
    called.into_iter().chain(fillers).collect()
}
