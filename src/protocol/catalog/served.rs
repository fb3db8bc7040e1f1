//! What a catalog has to serve, decided once: what is promised when a peer opens is what is then done.

use super::parts::{CatalogParts, Completes, TaskSupport};

/// See the module.
#[derive(Debug, Clone, Copy)]
pub(super) struct Served {
    pub(super) tools: bool,
    /// Resources, templates or skills.
    pub(super) resources: bool,
    pub(super) prompts: bool,
    pub(super) skills: bool,
    /// Any argument of a prompt or variable of a template can be completed.
    pub(super) completions: bool,
    /// Calls may log to their client.
    pub(super) logs: bool,
    /// Any tool's call may become a task.
    pub(super) tasks: bool,
    /// A client may list its tasks.
    pub(super) task_list: bool,
}

impl Served {
    pub(super) fn of(parts: &CatalogParts) -> Self {
        let arguments = parts.prompts.iter().flat_map(|prompt| &prompt.arguments).map(|argument| &argument.completes);
        let variables = parts.templates.iter().flat_map(|template| &template.completes).map(|(_, completes)| completes);
        let skills = !parts.skills.is_empty();
        let tasks = parts.tools.iter().any(|tool| tool.task != TaskSupport::Forbidden);
        Self {
            tools: !parts.tools.is_empty(),
            resources: !parts.resources.is_empty() || !parts.templates.is_empty() || skills,
            prompts: !parts.prompts.is_empty(),
            skills,
            completions: arguments.chain(variables).any(|completes| *completes != Completes::Nothing),
            logs: parts.logging,
            tasks,
            task_list: tasks && parts.task_list,
        }
    }
}
