//! What an upstream's tool returned, made into a result of ours.
//!
//! Promises: blocks of the kinds that the protocol knows, cleaned of hidden characters, within the tool's
//! cap, without a secret that was sent; what was left out is said in a last block. Nothing is passed through unread, no `_meta` goes on.

use crate::core::command::blocks;
use crate::core::command::report::clean;
use crate::core::outgoing::notes;
use crate::core::redact::Secrets;
use crate::protocol::json::JsonLimits;
use crate::protocol::{Block, Body, Content, Json, Piece};

/// Most blocks of one result.
const BLOCKS: usize = 1000;

/// What the results of a tool are read with.
#[derive(Debug)]
pub(super) struct Reading {
    /// The upstream, by the name that the surface gives it.
    pub(super) upstream: String,
    /// Most bytes of text.
    pub(super) cap: usize,
    /// What to do about a cut.
    pub(super) narrow: String,
}

/// Reads a result; an error is a text for the model.
pub(super) fn read(result: &[u8], reading: &Reading, secrets: &Secrets) -> Result<Content, String> {
    let Reading { upstream, cap, narrow } = reading;
    let cap = *cap;
    let value = Json::parse(result, &JsonLimits::default()).map_err(|error| {
        let error = secrets.clean(&error.to_string());
        format!("{upstream} answered with a result that cannot be read strictly: {error}")
    })?;
    let structured = match value.get("structuredContent") {
        Some(Json::Object(members)) => {
            let mut object = Json::Object(members.clone());
            if !clean(&mut object) {
                return Err(format!(
                    "{upstream} answered with data that has invisible characters in a key, which is refused"
                ));
            }
            secrets.clean_json(&mut object);
            let bytes = object.to_text().len();
            if bytes > cap {
                return Err(format!(
                    "{upstream} answered with {bytes} bytes of data, more than the {cap} that fit into a result: {narrow}"
                ));
            }
            Some(object.to_value())
        }
        _ => None,
    };
    let written: &[Json] = match value.get("content") {
        Some(Json::Array(blocks)) => blocks,
        None if structured.is_some() => &[],
        _ => return Err(format!("{upstream} answered with a result that has no content")),
    };
    let mut gathered = Gathered::new(secrets, cap);
    written.iter().take(BLOCKS).for_each(|written| gathered.add(written));
    gathered.left_out += written.len().saturating_sub(BLOCKS);
    let mut blocks = gathered.blocks;
    let all = gathered.text_bytes.to_string();
    let cut = gathered.cut.then(|| (cap.saturating_sub(gathered.text_left), all.as_str()));
    let left_out = (gathered.left_out > 0).then(|| {
        let count = gathered.left_out;
        format!("[left out: {count} blocks that are too many, hold a credential or are of no kind that is known]")
    });
    let notes: Vec<String> = notes(gathered.removed, cut, narrow).chain(left_out).collect();
    if !notes.is_empty() {
        blocks.push(Block::text(notes.join("\n")));
    }
    Ok(Content { blocks, structured })
}

struct Gathered<'s> {
    secrets: &'s Secrets,
    blocks: Vec<Block>,
    text_left: usize,
    text_bytes: usize,
    removed: usize,
    left_out: usize,
    cut: bool,
}

impl<'s> Gathered<'s> {
    fn new(secrets: &'s Secrets, text_left: usize) -> Self {
        Self { secrets, blocks: Vec::new(), text_left, text_bytes: 0, removed: 0, left_out: 0, cut: false }
    }

    fn add(&mut self, written: &Json) {
        let Ok(mut block) = blocks::block(written) else {
            self.left_out += 1;
            return;
        };
        block.meta = None;
        block.audience.last_modified = block.audience.last_modified.map(|time| self.short(&time));
        let fits = match &mut block.piece {
            Piece::Text(text) => self.text(text),
            Piece::Image { data, mime_type } | Piece::Audio { data, mime_type } => {
                *mime_type = self.short(mime_type);
                self.binary(data)
            }
            Piece::Resource(contents) => {
                contents.meta = None;
                contents.uri = self.short(&contents.uri);
                contents.mime_type = contents.mime_type.as_deref().map(|text| self.short(text));
                match &mut contents.body {
                    Body::Text(text) => self.text(text),
                    Body::Blob(bytes) => self.binary(bytes),
                }
            }
            Piece::Link(link) => {
                link.uri = self.short(&link.uri);
                link.name = self.short(&link.name);
                link.title = link.title.as_deref().map(|text| self.short(text));
                link.mime_type = link.mime_type.as_deref().map(|text| self.short(text));
                link.description.as_mut().is_none_or(|text| self.text(text))
            }
        };
        if fits {
            self.blocks.push(block);
        }
    }

    /// Cleans a text and takes it out of what is left; `false` if nothing of it fits.
    fn text(&mut self, text: &mut String) -> bool {
        self.text_bytes = self.text_bytes.saturating_add(text.len());
        let shown = self.secrets.outgoing(text.as_bytes(), self.text_left);
        self.removed += shown.removed;
        self.cut |= shown.cut;
        self.text_left = self.text_left.saturating_sub(shown.text.len());
        let nothing = shown.cut && shown.text.is_empty();
        *text = shown.text;
        !nothing
    }

    /// A word of the protocol, which is never long.
    fn short(&mut self, text: &str) -> String {
        let shown = self.secrets.outgoing(text.as_bytes(), 2048);
        self.removed += shown.removed;
        shown.text
    }

    /// Whether bytes that are no text may go on: nothing can be taken out of them.
    fn binary(&mut self, bytes: &[u8]) -> bool {
        let clean = !self.secrets.are_in(bytes);
        self.left_out += usize::from(!clean);
        clean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str, cap: usize) -> Result<Content, String> {
        let reading = Reading { upstream: "up".to_owned(), cap, narrow: "narrow t with a".to_owned() };
        read(text.as_bytes(), &reading, &Secrets::new(["t0p/secret"]))
    }

    #[test]
    fn blocks_of_every_kind_go_on_without_what_nobody_reviewed() {
        let content = result(
            r#"{"content":[{"type":"text","text":"t","_meta":{"x":1}},{"type":"image","data":"AQI=","mimeType":"image/png"},
            {"type":"resource","resource":{"uri":"a:b","text":"r","_meta":{"y":1}}},{"type":"resource_link","uri":"a:b","name":"n"}],
            "structuredContent":{"a":1.50},"_meta":{"z":1}}"#,
            100,
        )
        .unwrap();
        assert_eq!(content.blocks.len(), 4);
        assert!(content.blocks.iter().all(|block| block.meta.is_none()));
        assert_eq!(content.structured, Some(serde_json::json!({ "a": 1.5 })));
    }

    #[test]
    fn text_is_cleaned_and_cut_over_all_blocks_together() {
        let content = result(r#"{"content":[{"type":"text","text":"a\u001b[2Jb"},{"type":"text","text":"123456789"},{"type":"text","text":"x"}]}"#, 10)
            .unwrap();
        let texts: Vec<&str> = content
            .blocks
            .iter()
            .map(|block| match &block.piece {
                Piece::Text(text) => text.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(texts[..2], ["a[2Jb", "12345"]);
        assert_eq!(texts[2], "[removed: 1 invisible characters]\n[cut: 10 of 16 bytes shown; narrow t with a]");
    }

    #[test]
    fn what_cannot_be_read_or_is_too_much_is_left_out_and_said() {
        let odd = result(r#"{"content":[{"type":"video"},7,{"type":"image","data":"?","mimeType":"a/b"},{"type":"text","text":"t"}]}"#, 100).unwrap();
        assert!(odd.plain_text().contains("[left out: 3 blocks"), "{}", odd.plain_text());
        let many = format!("{{\"content\":[{}]}}", vec![r#"{"type":"text","text":""}"#; BLOCKS + 5].join(","));
        assert!(result(&many, 100).unwrap().plain_text().contains("[left out: 5 blocks"));
    }

    #[test]
    fn a_secret_that_was_sent_back_in_whatever_form_is_not_passed_on() {
        for (text, cap) in [
            (r#"{"content":[{"type":"text","text":"t0p/secret t0p%2Fsecret dDBwL3NlY3JldA"}]}"#, 100),
            // Of the cap, a part of it would be left.
            (r#"{"content":[{"type":"text","text":"01234567t0p/secret"}]}"#, 20),
            (r#"{"content":[{"type":"text","text":"t0\u001bp/secret"}]}"#, 100),
            (r#"{"content":[{"type":"resource_link","uri":"a:t0p/secret","name":"t0p/secret"}]}"#, 100),
            (r#"{"content":[{"type":"resource","resource":{"uri":"a:b","text":"t0p/secret"}}]}"#, 100),
            (r#"{"content":[],"structuredContent":{"t0p\/secret":["t0\u0070/secret"]}}"#, 100),
            (r#"{"content":[],"t0p/secret":1,"t0p/secret":2}"#, 100),
        ] {
            let told = match result(text, cap) {
                Ok(content) => format!("{content:?}"),
                Err(why) => why,
            };
            assert!(told.contains("[redacted]"), "{text} became {told}");
            assert!(!told.contains("t0p") && !told.contains("dDBw"), "{text} became {told}");
        }
        let picture = r#"{"content":[{"type":"image","data":"AHQwcC9zZWNyZXQA","mimeType":"a/b"}]}"#;
        let content = result(picture, 100).unwrap();
        assert!(content.plain_text().contains("[left out: 1 blocks"), "{content:?}");
        assert_eq!(content.blocks.len(), 1);
    }

    #[test]
    fn what_is_no_result_is_said() {
        for (text, why) in [
            ("{}", "has no content"),
            ("[]", "has no content"),
            (r#"{"content":{}}"#, "has no content"),
            (r#"{"content":[],"structuredContent":{"a\u0007":1}}"#, "invisible characters in a key"),
            (r#"{"content":[],"structuredContent":{"a":"0123456789"}}"#, "more than the 10 that fit"),
        ] {
            assert!(result(text, 10).unwrap_err().contains(why), "{text}");
        }
        assert_eq!(result(r#"{"structuredContent":{"a":1}}"#, 10).unwrap().blocks, []);
    }
}
