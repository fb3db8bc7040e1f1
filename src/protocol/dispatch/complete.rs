//! `completion/complete` (2026-07-28 server/utilities/completion).

use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::{Map, Value};

use super::call::texts;
use super::{Context, Step, first_invocation};
use crate::protocol::admit::Admitted;
use crate::protocol::catalog::{Catalog, Completes, Found};
use crate::protocol::exchange::write_tail;
use crate::protocol::fault::Fault;
use crate::protocol::invoke::{Completing, Completion, Operation, Reference};
use crate::protocol::json::{Kind, RawJson, shortened};
use crate::protocol::limits::{COMPLETIONS_AT_MOST, ECHOED_CHARACTERS};
use crate::protocol::message::Params;
use crate::protocol::revision::Revision;

pub(super) fn complete(request: &Admitted, context: &Context<'_>, catalog: Arc<Catalog>) -> Result<Step, Fault> {
    let params = &request.request().params;
    let completing = read(params)?;
    let completes = match &completing.of {
        Reference::Prompt(name) => {
            let prompt = catalog.prompt(name).ok_or_else(|| unknown("prompt", name))?;
            let argument = prompt.arguments.iter().find(|argument| *argument.name == *completing.argument);
            argument.map(|argument| &argument.completes)
        }
        Reference::Template(uri) => match catalog.template(uri) {
            Some(template) => {
                let variable = template.completes.iter().find(|(name, _)| **name == *completing.argument);
                variable.map(|(_, completes)| completes)
            }
            // A resource has nothing to complete, but is a reference all the same.
            None if matches!(catalog.find(uri), Some(Found::Resource(_))) => None,
            None => return Err(unknown("resource template", uri)),
        },
    };
    let completion = match completes {
        None | Some(Completes::Nothing) => Completion::default(),
        Some(Completes::Of(values)) => beginning(values, &completing.typed),
        Some(Completes::Backend) => {
            let operation = Operation::Complete(completing);
            return Ok(Step::Invoke(Arc::new(first_invocation(operation, request, context, catalog))));
        }
    };
    Ok(Step::Reply(encode(completion, request.revision(), &catalog)))
}

fn unknown(what: &str, name: &str) -> Fault {
    Fault::InvalidParams(format!("Unknown {what}: {}", shortened(name, ECHOED_CHARACTERS)))
}

fn read(params: &Params) -> Result<Completing, Fault> {
    let invalid = |problem: &str| Fault::InvalidParams(problem.to_owned());
    let within = |name: &str| params.get(name).and_then(|raw| raw.members()).unwrap_or_default();
    let text = |members: &[(Box<str>, RawJson)], name: &str| {
        members.iter().find(|(key, _)| &**key == name).and_then(|(_, raw)| raw.as_text())
    };
    let (reference, argument) = (within("ref"), within("argument"));
    let of = match text(&reference, "type").as_deref() {
        Some("ref/prompt") => text(&reference, "name").map(|name| Reference::Prompt(name.into())),
        Some("ref/resource") => text(&reference, "uri").map(|uri| Reference::Template(uri.into())),
        _ => None,
    };
    let of = of.ok_or_else(|| invalid("params.ref must be {type: ref/prompt, name} or {type: ref/resource, uri}"))?;
    let (Some(name), Some(typed)) = (text(&argument, "name"), text(&argument, "value")) else {
        return Err(invalid("params.argument must be {name, value}, both texts"));
    };
    if params.get("context").is_some_and(|context| context.kind() != Kind::Object) {
        return Err(invalid("params.context must be an object"));
    }
    let known = within("context");
    let known = known.iter().find(|(key, _)| &**key == "arguments").map(|(_, raw)| raw);
    let context = texts(known, "params.context.arguments")?;
    Ok(Completing { of, argument: name.into(), typed, context })
}

/// The values that begin with what was typed, in any case of letters.
fn beginning(values: &[String], typed: &str) -> Completion {
    let typed = typed.to_lowercase();
    let fitting: Vec<&String> = values.iter().filter(|value| value.to_lowercase().starts_with(&typed)).collect();
    let total = u64::try_from(fitting.len()).ok();
    Completion { values: fitting.into_iter().cloned().collect(), total, more: false }
}

/// A `CompleteResult`: at most 100 values, and whether there are more.
pub(in crate::protocol) fn encode(completion: Completion, revision: Revision, catalog: &Catalog) -> Bytes {
    let Completion { mut values, total, more } = completion;
    let more = more || values.len() > COMPLETIONS_AT_MOST;
    values.truncate(COMPLETIONS_AT_MOST);
    let mut members = Map::from_iter([("values".to_owned(), Value::from(values)), ("hasMore".to_owned(), more.into())]);
    if let Some(total) = total {
        members.insert("total".to_owned(), total.into());
    }
    let mut out = BytesMut::new();
    out.put_slice(format!("{{\"completion\":{}", Value::Object(members)).as_bytes());
    write_tail(&mut out, revision, catalog);
    out.freeze()
}
