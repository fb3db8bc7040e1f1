//! A result that a program wrote whole: content blocks as the newest revisions have them.
//!
//! Promises: what is read here is one of the kinds that the protocol knows, and nothing is passed
//! through unread, so that each revision can be sent what it knows (2026-07-28 server/tools, Tool Result).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::protocol::{Audience, Block, Body, Content, Json, Piece, ResourceContents, ResourceLink, Role};

/// Reads `{"content": [...], "structuredContent": ..., "isError": ...}`; whether the tool failed stands beside it.
pub(super) fn read(value: &Json) -> Result<(Content, bool), String> {
    let Some(Json::Array(written)) = value.get("content") else {
        return Err("it has no array under \"content\"".to_owned());
    };
    let blocks = written
        .iter()
        .enumerate()
        .map(|(index, written)| block(written).map_err(|problem| format!("content block {index}: {problem}")));
    let blocks = blocks.collect::<Result<Vec<_>, _>>()?;
    let failed = match value.get("isError") {
        None => false,
        Some(Json::Bool(failed)) => *failed,
        Some(_) => return Err("\"isError\" is not true or false".to_owned()),
    };
    Ok((Content { blocks, structured: value.get("structuredContent").map(Json::to_value) }, failed))
}

/// Reads one block.
pub(in crate::core) fn block(written: &Json) -> Result<Block, String> {
    let piece = match written.get("type").and_then(Json::as_str) {
        Some("text") => Piece::Text(text(written, "text")?),
        Some("image") => Piece::Image { data: bytes(written, "data")?, mime_type: text(written, "mimeType")? },
        Some("audio") => Piece::Audio { data: bytes(written, "data")?, mime_type: text(written, "mimeType")? },
        Some("resource") => Piece::Resource(contents(written.get("resource").unwrap_or(&Json::Null))?),
        Some("resource_link") => Piece::Link(ResourceLink {
            uri: text(written, "uri")?,
            name: text(written, "name")?,
            title: said(written, "title")?,
            description: said(written, "description")?,
            mime_type: said(written, "mimeType")?,
            size: match written.get("size") {
                None => None,
                Some(Json::Number(size)) => Some(size.parse().map_err(|_| "\"size\" is no number of bytes")?),
                Some(_) => return Err("\"size\" is not a number".to_owned()),
            },
        }),
        Some(other) => {
            return Err(format!(
                "{other:?} is no kind of block: expected text, image, audio, resource or resource_link"
            ));
        }
        None => return Err("it has no \"type\"".to_owned()),
    };
    let audience = written.get("annotations").map(audience).transpose()?.unwrap_or_default();
    Ok(Block { piece, audience, meta: written.get("_meta").cloned() })
}

fn contents(written: &Json) -> Result<ResourceContents, String> {
    let body = match (written.get("text"), written.get("blob")) {
        (Some(_), None) => Body::Text(text(written, "text")?),
        (None, Some(_)) => Body::Blob(bytes(written, "blob")?),
        _ => return Err("a resource has either \"text\" or \"blob\"".to_owned()),
    };
    let mime_type = said(written, "mimeType")?;
    Ok(ResourceContents { uri: text(written, "uri")?, mime_type, body, meta: written.get("_meta").cloned() })
}

fn audience(written: &Json) -> Result<Audience, String> {
    let role = |role: &Json| match role.as_str() {
        Some("user") => Ok(Role::User),
        Some("assistant") => Ok(Role::Assistant),
        _ => Err("an audience is of \"user\" and \"assistant\"".to_owned()),
    };
    let audience = match written.get("audience") {
        None => Vec::new(),
        Some(Json::Array(roles)) => roles.iter().map(role).collect::<Result<_, _>>()?,
        Some(_) => return Err("\"audience\" is not an array".to_owned()),
    };
    let priority = match written.get("priority") {
        None => None,
        Some(Json::Number(priority)) => Some(priority.parse().map_err(|_| "\"priority\" is no number from 0 to 1")?),
        Some(_) => return Err("\"priority\" is not a number".to_owned()),
    };
    Ok(Audience { audience, priority, last_modified: said(written, "lastModified")? })
}

fn text(written: &Json, key: &str) -> Result<String, String> {
    said(written, key)?.ok_or_else(|| format!("it has no {key:?}"))
}

fn said(written: &Json, key: &str) -> Result<Option<String>, String> {
    match written.get(key) {
        None => Ok(None),
        Some(Json::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("{key:?} is not a text")),
    }
}

fn bytes(written: &Json, key: &str) -> Result<bytes::Bytes, String> {
    let encoded = text(written, key)?;
    STANDARD.decode(encoded).map(Into::into).map_err(|_| format!("{key:?} is not base64"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::json::JsonLimits;

    fn parsed(text: &str) -> Result<(Content, bool), String> {
        read(&Json::parse(text.as_bytes(), &JsonLimits::default()).unwrap())
    }

    #[test]
    fn every_kind_of_block_is_read() {
        let text = r#"{"content":[{"type":"text","text":"t","annotations":{"audience":["user"],"priority":0.5}},
            {"type":"image","data":"AQI=","mimeType":"image/png"},{"type":"audio","data":"AA==","mimeType":"audio/wav"},
            {"type":"resource","resource":{"uri":"a:b","blob":"AA=="}},{"type":"resource_link","uri":"a:b","name":"n","size":3}],
            "structuredContent":{"x":1},"isError":true}"#;
        let (content, failed) = parsed(text).unwrap();
        assert!(failed && content.structured.is_some());
        assert_eq!(content.blocks.len(), 5);
        assert_eq!(content.blocks[0].audience.priority, Some(0.5));
        assert_eq!(content.blocks[1].piece, Piece::Image { data: vec![1, 2].into(), mime_type: "image/png".into() });
    }

    #[test]
    fn what_is_no_block_is_refused_with_its_place() {
        for (text, why) in [
            ("[]", "no array under \"content\""),
            (r#"{"content":[{"type":"video"}]}"#, "content block 0: \"video\" is no kind of block"),
            (r#"{"content":[{"type":"text","text":"a"},{"type":"text"}]}"#, "content block 1: it has no \"text\""),
            (
                r#"{"content":[{"type":"image","data":"?","mimeType":"a/b"}]}"#,
                "content block 0: \"data\" is not base64",
            ),
            (r#"{"content":[{"type":"resource","resource":{"uri":"a:b"}}]}"#, "either \"text\" or \"blob\""),
            (r#"{"content":[],"isError":1}"#, "\"isError\" is not true or false"),
        ] {
            let refused = parsed(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
