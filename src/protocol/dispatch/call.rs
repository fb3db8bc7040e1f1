//! `tools/call`, `prompts/get` and `resources/read`: what a backend is given.

use std::sync::Arc;

use super::{Context, Dispatcher, Step, needs, tasks};
use crate::protocol::admit::Admitted;
use crate::protocol::catalog::{Catalog, Tool};
use crate::protocol::content::Content;
use crate::protocol::exchange;
use crate::protocol::fault::Fault;
use crate::protocol::invoke::{Arguments, Operation};
use crate::protocol::json::{RawJson, shortened};
use crate::protocol::limits::ECHOED_CHARACTERS;
use crate::protocol::revision::{BadArguments, Revision};
use crate::protocol::schema;

impl Dispatcher {
    pub(super) fn call(&self, request: &Admitted, context: &Context<'_>, catalog: Arc<Catalog>) -> Result<Step, Fault> {
        let params = &request.request().params;
        let revision = request.revision();
        let name = params.text("name").ok_or_else(|| needs(request, "name"))?;
        let Some(arguments) = Arguments::of(params) else {
            return Err(Fault::InvalidParams("params.arguments must be an object".to_owned()));
        };
        let Some(tool) = catalog.tool(&name) else {
            return Err(Fault::unknown_tool(&name));
        };
        if let Some(mirror) = context.mirror.filter(|_| revision.rules().input_required) {
            mirror.check_arguments(&tool.headers, &arguments)?;
        }
        let task = tasks::wish(tool, request, &catalog)?;
        if let Some(refused) = misfit(tool, &arguments, revision, &catalog)? {
            return Ok(refused);
        }
        let operation = Operation::Call { tool: tool.name.clone(), arguments, task };
        Ok(Step::Invoke(self.invocation(operation, request, context, catalog)?))
    }

    pub(super) fn prompt(
        &self,
        request: &Admitted,
        context: &Context<'_>,
        catalog: Arc<Catalog>,
    ) -> Result<Step, Fault> {
        let params = &request.request().params;
        let name = params.text("name").ok_or_else(|| needs(request, "name"))?;
        let Some(prompt) = catalog.prompt(&name) else {
            return Err(Fault::InvalidParams(format!("Unknown prompt: {}", shortened(&name, ECHOED_CHARACTERS))));
        };
        let mut arguments = texts(params.get("arguments").as_ref(), "params.arguments")?;
        arguments.retain(|(key, _)| prompt.arguments.iter().any(|declared| *declared.name == **key));
        let missing = |name: &str| arguments.iter().all(|(key, _)| &**key != name);
        let missing: Vec<&str> =
            prompt.arguments.iter().filter(|a| a.required && missing(&a.name)).map(|a| a.name.as_str()).collect();
        if !missing.is_empty() {
            let problem = format!("prompt {} needs the arguments: {}", prompt.name, missing.join(", "));
            return Err(Fault::InvalidParams(problem));
        }
        let operation = Operation::Prompt { name: name.into(), arguments };
        Ok(Step::Invoke(self.invocation(operation, request, context, catalog)?))
    }

    pub(super) fn read(&self, request: &Admitted, context: &Context<'_>, catalog: Arc<Catalog>) -> Result<Step, Fault> {
        let uri = request.request().params.text("uri");
        let uri = uri.ok_or_else(|| needs(request, "uri"))?;
        if let Some(contents) = catalog.skill_file(&uri) {
            let contents = std::slice::from_ref(contents);
            return Ok(Step::Reply(exchange::encode_read(contents, true, request.revision(), &catalog)));
        }
        let Some(found) = catalog.find(&uri) else {
            return Err(Fault::ResourceNotFound { uri: uri.into(), code: request.revision().rules().resource_missing });
        };
        let operation = Operation::Read { uri: uri.into(), found };
        Ok(Step::Invoke(self.invocation(operation, request, context, catalog)?))
    }
}

/// An object of texts, as prompts and completion take it.
pub(super) fn texts(raw: Option<&RawJson>, what: &str) -> Result<Vec<(Box<str>, String)>, Fault> {
    let Some(raw) = raw else { return Ok(Vec::new()) };
    let members = raw.members().unwrap_or_default().into_iter().map(|(key, value)| Some((key, value.as_text()?)));
    let texts = members.collect::<Option<Vec<_>>>().filter(|_| raw.as_str().starts_with('{'));
    texts.ok_or_else(|| Fault::InvalidParams(format!("{what} must be an object whose values are texts")))
}

/// Answers arguments that do not fit, as the revision has it.
fn misfit(tool: &Tool, arguments: &Arguments, revision: Revision, catalog: &Catalog) -> Result<Option<Step>, Fault> {
    let violations = tool.input.refusals(arguments);
    if violations.is_empty() {
        return Ok(None);
    }
    let text = format!(
        "the arguments of {} do not fit its inputSchema:\n{}",
        tool.name,
        schema::explain("the arguments", &violations)
    );
    match revision.rules().bad_arguments {
        BadArguments::Fault => Err(Fault::InvalidParams(text)),
        BadArguments::ToolError => {
            Ok(Some(Step::Reply(exchange::encode_result(&Content::text(text), true, revision, catalog))))
        }
    }
}
