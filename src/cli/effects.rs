//! What the tools of a surface do, and what the gate does about it, for people and programs.

use serde_json::{Value, json};
use twodoor::core::Router;
use twodoor::core::gate::{Manner, Subject};
use twodoor::protocol::json::visible;
use twodoor::surface::LoadedSurface;
use twodoor::surface::level::{Latitude, Level};
use twodoor::surface::rules::Ruling;

/// A tool, as the gate sees it.
pub(crate) struct Effects {
    surface: String,
    tool: String,
    /// `None` if it depends on the arguments.
    subject: Option<Subject>,
    /// What some rule may say of it.
    rules: Option<Vec<Ruling>>,
    latitude: Latitude,
}

/// The tools of a surface, in its order.
pub(crate) fn of(loaded: &LoadedSurface) -> Vec<Effects> {
    let router = Router::of(loaded);
    let each = loaded.tools.iter().map(|tool| Effects {
        surface: loaded.name.clone(),
        tool: tool.name.clone(),
        subject: router.subject(&tool.name),
        rules: loaded.rules.as_ref().map(|rules| rules.may_say(&tool.name)),
        latitude: loaded.latitude.clone(),
    });
    each.collect()
}

/// A line for each tool that may be asked about or denied, or for each tool; and one for the rules.
pub(crate) fn lines(loaded: &LoadedSurface, all: bool) -> String {
    let mut text = String::new();
    for tool in of(loaded).iter().filter(|tool| all || tool.is_gated()) {
        let from = tool.unasked_from().filter(|_| all).map(|level| format!(", unasked from {} on", level.name()));
        text.push_str(&format!("  {}: {}{}\n", tool.tool, tool.said(), from.unwrap_or_default()));
    }
    match loaded.latitude.level {
        Level::L0 => text.push_str("  L0: what is not known to read alone is denied\n"),
        Level::L1 => {}
        Level::L2 => {
            let allow: Vec<String> = loaded.latitude.allow.iter().map(|name| visible(name.chars())).collect();
            text.push_str(&format!("  L2: nobody is asked about {}\n", allow.join(", ")));
        }
        Level::L3 => text.push_str("  L3: nobody is asked about what cannot be undone\n"),
    }
    if let Some(rules) = &loaded.rules {
        let count = rules.list().len();
        let some = if count == 1 { "1 rule".to_owned() } else { format!("{count} rules") };
        text.push_str(&format!("  {some}: what none of them allows is denied\n"));
    }
    text
}

impl Effects {
    /// What the gate does about a call that no rule denies.
    fn gate(&self) -> &'static str {
        let Some(subject) = &self.subject else { return "by its arguments" };
        if self.rules.as_ref().is_some_and(|said| said.iter().all(|ruling| *ruling == Ruling::Deny)) {
            return "denies";
        }
        let unasked = subject.unasked_from(&self.latitude);
        if self.latitude.level == Level::L0 && unasked != Some(Level::L0) {
            return "denies";
        }
        if unasked.is_some_and(|level| level <= self.latitude.level) {
            let may_ask = self.rules.iter().flatten().any(|ruling| *ruling == Ruling::Ask);
            return if may_ask { "may ask" } else { "lets through" };
        }
        match subject.manner() {
            Manner::Asks => "asks",
            Manner::Itself => "leaves it to the tool to ask",
            Manner::Refers(_) => "refers to the tool that asks",
            Manner::Never => "denies",
        }
    }

    /// The lowest level at which it runs unasked, where no rule says otherwise.
    fn unasked_from(&self) -> Option<Level> {
        self.subject.as_ref().and_then(|subject| subject.unasked_from(&self.latitude))
    }

    fn is_gated(&self) -> bool {
        self.gate() != "lets through"
    }

    fn said(&self) -> String {
        let Some(judged) = self.subject.as_ref().map(Subject::judged) else {
            return "what it does depends on its arguments".to_owned();
        };
        let class = judged.blast_class.map(|class| format!(", {}", class.name())).unwrap_or_default();
        format!("{}{class} ({}); the gate {}", judged.effect.name(), judged.reason(), self.gate())
    }

    pub(crate) fn json(&self) -> Value {
        let judged = self.subject.as_ref().map(Subject::judged);
        json!({
            "surface": self.surface,
            "tool": self.tool,
            "effect": judged.map(|judged| judged.effect.name()),
            "verb": judged.and_then(|judged| judged.verb),
            "blast_class": judged.and_then(|judged| judged.blast_class).map(|class| class.name()),
            "reason": judged.map(|judged| judged.reason()),
            "gate": self.gate(),
            "level": self.latitude.level.name(),
            "unasked_from": self.unasked_from().map(Level::name),
            "rules": self.rules.as_ref().map(|rules| rules.iter().map(|ruling| ruling.name()).collect::<Vec<_>>()),
        })
    }
}
