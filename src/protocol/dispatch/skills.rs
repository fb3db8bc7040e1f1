//! `skills/get` and `resources/directory/read` (the skills extension, SEP-2640).

use bytes::{BufMut as _, BytesMut};

use super::{Context, Dispatcher, Step, needs};
use crate::protocol::admit::Admitted;
use crate::protocol::catalog::Catalog;
use crate::protocol::digest;
use crate::protocol::exchange::write_tail;
use crate::protocol::fault::Fault;
use crate::protocol::json::{Json, RawJson, shortened};
use crate::protocol::limits::ECHOED_CHARACTERS;
use crate::protocol::members::Text;

fn uri(request: &Admitted) -> Result<Text, Fault> {
    request.request().params.text("uri").ok_or_else(|| needs(request, "uri"))
}

pub(super) fn entry(request: &Admitted, catalog: &Catalog) -> Result<Step, Fault> {
    let uri = uri(request)?;
    let Some(entry) = catalog.skill(&uri) else {
        let uri = shortened(&uri, ECHOED_CHARACTERS);
        return Err(Fault::InvalidParams(format!("{uri:?} is not the SKILL.md of a skill of this server")));
    };
    let mut out = BytesMut::from(format!("{{\"skill\":{},", entry.to_text()).as_bytes());
    out.put_slice(catalog.cache_hints());
    write_tail(&mut out, request.revision(), catalog);
    Ok(Step::Reply(out.freeze()))
}

impl Dispatcher {
    pub(super) fn folder(&self, request: &Admitted, context: &Context<'_>, catalog: &Catalog) -> Result<Step, Fault> {
        let uri = uri(request)?;
        let Some(children) = catalog.skill_folder(&uri) else {
            let uri = shortened(&uri, ECHOED_CHARACTERS);
            return Err(Fault::InvalidParams(format!("{uri:?} is not a folder of a skill of this server")));
        };
        let texts: Vec<String> = children.into_iter().map(Json::to_text).collect();
        let whole = digest::of_bytes([&*uri, &texts.join(",")].join("\n").as_bytes());
        let method = request.method();
        let from = self.position(&request.request().params, method, whole, context)?;
        let end = from.saturating_add(catalog.page_size());
        let page = texts.get(from..end.min(texts.len())).unwrap_or_default();
        let mut out = BytesMut::from(format!("{{\"resources\":[{}]", page.join(",")).as_bytes());
        if end < texts.len() {
            let cursor = self.cursor(context.principal.name(), method, whole, end, context.now);
            out.put_slice(format!(",\"nextCursor\":{}", RawJson::encode(&cursor).as_str()).as_bytes());
        }
        write_tail(&mut out, request.revision(), catalog);
        Ok(Step::Reply(out.freeze()))
    }
}
