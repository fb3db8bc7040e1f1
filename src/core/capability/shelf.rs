//! The registry of a project as an operator surface reads it.

use std::path::Path;

use super::answer::{Answer, Manner};
use super::listing::{Listed, Runs};
use super::operator::Shelf;
use super::registry::{Registered, Registry};
use super::words::Object;
use super::{skill, suggest};
use crate::protocol::json::shortened;
use crate::surface::manifest::Manifest;

impl Shelf for Registry {
    fn folder(&self) -> &Path {
        self.root()
    }

    fn listed(&self) -> Vec<Listed> {
        let listed = self.all().into_iter().filter_map(|registered| match registered {
            Registered::Capability(found) => {
                Some(Listed::Runs(Runs { manifest: found.manifest, readiness: found.readiness }))
            }
            Registered::Skill(skill) => Some(Listed::Skill(skill)),
            Registered::Broken { kind, folder, problems } => {
                tracing::warn!(kind = kind.name(), %folder, "not listed: {problems}");
                None
            }
        });
        listed.collect()
    }

    fn secrets(&self, manifest: &Manifest) -> Vec<(String, String)> {
        Registry::secrets(self, manifest)
    }

    fn skill(&self, name: &str, resource: Option<&str>, manner: &Manner) -> Answer {
        let Some(found) = Registry::skill(self, name) else {
            let listed = self.listed();
            let names = listed.iter().filter_map(|listed| match listed {
                Listed::Skill(skill) => Some(skill.name.as_str()),
                Listed::Runs(_) => None,
            });
            let near: Vec<&str> = suggest::near(name, names).into_iter().map(|near| near.name).collect();
            let error = Object::new()
                .with("code", "unknown_skill")
                .with("message", format!("no skill has the name {:?}", shortened(name, 100)));
            let ask = Object::new().with("kind", "skill").into_json().to_text();
            let hint = format!("All skills: {} {ask}.", manner.capabilities);
            return Answer::wrong(Object::new().with("error", error).with("did_you_mean", near).with("hint", hint));
        };
        match skill::read(&found, resource) {
            Ok(value) => Answer { value, is_error: false },
            Err(error) => {
                let told = Object::new().with("code", error.code()).with("message", error.to_string());
                Answer::wrong(Object::new().with("error", told))
            }
        }
    }
}
