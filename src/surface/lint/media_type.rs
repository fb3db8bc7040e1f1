//! A client shows a picture by its type, which only the file's name tells.

use crate::surface::file::{SaidEntry, SurfaceFile};
use crate::surface::media;
use crate::surface::problem::{Findings, Rule};

pub(crate) const RULE: Rule = Rule::error("media-type", "the name of an image or a sound tells its type");

pub(crate) fn check(file: &SurfaceFile<'_>, findings: &mut Findings) {
    for said in file.prompts.iter().filter_map(|prompt| prompt.messages.as_ref()).flatten().map(|message| &message.said)
    {
        let (path, kind, example) = match said {
            SaidEntry::Image(path) => (path, "image", "plan.png"),
            SaidEntry::Audio(path) => (path, "audio", "call.wav"),
            SaidEntry::Text(_) | SaidEntry::File(_) | SaidEntry::Resource(_) | SaidEntry::Link(_) => continue,
        };
        let told = media::type_of(&path.value);
        if !told.as_ref().is_some_and(|told| told.starts_with(&format!("{kind}/"))) {
            let told = told.map_or_else(|| "no type".to_owned(), |told| format!("the type {told}"));
            let message = format!("the name {:?} tells {told}", path.value);
            findings.report(
                &RULE,
                path.span,
                message,
                format!("name an {kind} file by its extension, such as {example}"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{breaks, keeps, prompt};

    #[test]
    fn a_picture_is_named_as_one() {
        for bad in ["image: a.txt", "image: a", "image: a.mp3", "audio: a.png", "audio: a.unheard-of"] {
            breaks(super::RULE, &prompt(&format!("messages: [{{{bad}}}]")));
        }
        for good in ["image: a.png", "image: a.JPEG", "audio: a.wav", "audio: a.mp3"] {
            keeps(super::RULE, &prompt(&format!("messages: [{{{good}}}]")));
        }
    }
}
