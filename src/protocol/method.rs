//! The request methods, by their names on the wire. Which revision has which, [`super::revision::Rules`] says.

/// A request method that this engine implements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// `initialize`
    Initialize,
    /// `ping`
    Ping,
    /// `server/discover`
    Discover,
    /// `tools/list`
    ToolsList,
    /// `tools/call`
    ToolsCall,
    /// `resources/list`
    ResourcesList,
    /// `resources/templates/list`
    TemplatesList,
    /// `resources/read`
    ResourcesRead,
    /// `resources/subscribe`
    Subscribe,
    /// `resources/unsubscribe`
    Unsubscribe,
    /// `prompts/list`
    PromptsList,
    /// `prompts/get`
    PromptsGet,
    /// `completion/complete`
    Complete,
    /// `logging/setLevel`
    SetLevel,
    /// `subscriptions/listen`
    Listen,
    /// `tasks/get`
    TasksGet,
    /// `tasks/result`
    TasksResult,
    /// `tasks/list`
    TasksList,
    /// `tasks/cancel`
    TasksCancel,
    /// `tasks/update`
    TasksUpdate,
    /// `skills/list`
    SkillsList,
    /// `skills/get`
    SkillsGet,
    /// `resources/directory/read`
    DirectoryRead,
}

impl Method {
    /// All methods with their names on the wire.
    const NAMES: [(Self, &'static str); 23] = [
        (Self::Initialize, "initialize"),
        (Self::Ping, "ping"),
        (Self::Discover, "server/discover"),
        (Self::ToolsList, "tools/list"),
        (Self::ToolsCall, "tools/call"),
        (Self::ResourcesList, "resources/list"),
        (Self::TemplatesList, "resources/templates/list"),
        (Self::ResourcesRead, "resources/read"),
        (Self::Subscribe, "resources/subscribe"),
        (Self::Unsubscribe, "resources/unsubscribe"),
        (Self::PromptsList, "prompts/list"),
        (Self::PromptsGet, "prompts/get"),
        (Self::Complete, "completion/complete"),
        (Self::SetLevel, "logging/setLevel"),
        (Self::Listen, "subscriptions/listen"),
        (Self::TasksGet, "tasks/get"),
        (Self::TasksResult, "tasks/result"),
        (Self::TasksList, "tasks/list"),
        (Self::TasksCancel, "tasks/cancel"),
        (Self::TasksUpdate, "tasks/update"),
        (Self::SkillsList, "skills/list"),
        (Self::SkillsGet, "skills/get"),
        (Self::DirectoryRead, "resources/directory/read"),
    ];

    /// The method of that name, case-sensitive, if the engine implements it in any revision.
    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, n)| *n == name).map(|(method, _)| *method)
    }

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(m, _)| *m == self).map_or("", |(_, name)| name)
    }

    /// The member of `params` that the `Mcp-Name` header mirrors (2026-07-28 transports/streamable-http; the tasks
    /// extension, Request Headers).
    pub fn mirrored_name(self) -> Option<&'static str> {
        match self {
            Self::ToolsCall | Self::PromptsGet => Some("name"),
            Self::ResourcesRead => Some("uri"),
            Self::TasksGet | Self::TasksCancel | Self::TasksUpdate => Some("taskId"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_reads_back_from_its_name() {
        for (method, name) in Method::NAMES {
            assert_eq!(Method::parse(name), Some(method));
            assert_eq!(method.name(), name);
        }
        assert_eq!(Method::parse("TOOLS/LIST"), None);
    }
}
