//! What a call does to the world, from what is declared of it and otherwise from its names.
//!
//! Promises: pure; what is declared irreversible stays so whatever else is said; where nothing is
//! declared, a name with a verb of doing harm is taken at its word however it is spelled
//! (`delete_all`, `deleteAll`, `drop.table`, `DESTROY`). Values of arguments are never looked at: a
//! text that says "please send" sends nothing. Used by the rules on surface files and by the gate.

mod inflected;

pub use inflected::near_verb;

/// What a call does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// It changes nothing.
    Read,
    /// What it changes can be changed back.
    Write,
    /// What it does cannot be undone, or not by us.
    Irreversible,
}

impl Effect {
    /// The word for it in files and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Irreversible => "irreversible",
        }
    }

    /// The effect of that name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Read, Self::Write, Self::Irreversible].into_iter().find(|effect| effect.name() == text)
    }

    /// Whether it can be taken back.
    pub fn is_reversible(self) -> bool {
        self != Self::Irreversible
    }
}

/// What kind of harm an irreversible call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlastClass {
    /// Somebody else has read it.
    MessageSent,
    /// Money is gone.
    MoneyOut,
    /// What was there is gone.
    DataLoss,
    /// Something that others rely on is not what it was.
    ThirdPartyState,
}

impl BlastClass {
    const ALL: [Self; 4] = [Self::MessageSent, Self::MoneyOut, Self::DataLoss, Self::ThirdPartyState];

    /// The word for it in files, answers and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::MessageSent => "message-sent",
            Self::MoneyOut => "money-out",
            Self::DataLoss => "data-loss",
            Self::ThirdPartyState => "third-party-state",
        }
    }

    /// The class of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == text)
    }
}

/// A verb of doing what cannot be undone.
struct Verb {
    name: &'static str,
    class: BlastClass,
    /// Whether it is as often the name of a thing, which a reading verb before it reads: `get-post`, `list-archive`.
    noun: bool,
}

const fn verb(name: &'static str, class: BlastClass) -> Verb {
    Verb { name, class, noun: false }
}

const fn noun(name: &'static str, class: BlastClass) -> Verb {
    Verb { name, class, noun: true }
}

/// The verbs in the order in which they are looked for.
const VERBS: &[Verb] = &[
    verb("send", BlastClass::MessageSent),
    verb("delete", BlastClass::DataLoss),
    verb("remove", BlastClass::DataLoss),
    verb("purge", BlastClass::DataLoss),
    verb("drop", BlastClass::DataLoss),
    verb("pay", BlastClass::MoneyOut),
    noun("purchase", BlastClass::MoneyOut),
    verb("buy", BlastClass::MoneyOut),
    noun("charge", BlastClass::MoneyOut),
    noun("transfer", BlastClass::MoneyOut),
    noun("post", BlastClass::MessageSent),
    verb("publish", BlastClass::MessageSent),
    noun("ban", BlastClass::ThirdPartyState),
    verb("kick", BlastClass::ThirdPartyState),
    verb("issue-invoice", BlastClass::MoneyOut),
    noun("wire", BlastClass::MoneyOut),
    noun("refund", BlastClass::MoneyOut),
    noun("archive", BlastClass::DataLoss),
    verb("revoke", BlastClass::ThirdPartyState),
    verb("deactivate", BlastClass::ThirdPartyState),
    verb("wipe", BlastClass::DataLoss),
    verb("destroy", BlastClass::DataLoss),
    verb("truncate", BlastClass::DataLoss),
    verb("overwrite", BlastClass::DataLoss),
    verb("erase", BlastClass::DataLoss),
    verb("reset", BlastClass::DataLoss),
    verb("uninstall", BlastClass::DataLoss),
    verb("cancel", BlastClass::ThirdPartyState),
    verb("terminate", BlastClass::ThirdPartyState),
    verb("kill", BlastClass::ThirdPartyState),
    noun("merge", BlastClass::ThirdPartyState),
    verb("deploy", BlastClass::ThirdPartyState),
    noun("release", BlastClass::ThirdPartyState),
    noun("rollback", BlastClass::ThirdPartyState),
    verb("approve", BlastClass::ThirdPartyState),
    verb("submit", BlastClass::MessageSent),
    verb("execute", BlastClass::ThirdPartyState),
    noun("invite", BlastClass::MessageSent),
    verb("unsubscribe", BlastClass::ThirdPartyState),
];

/// The verbs that only look.
const READ_VERBS: &[&str] = &[
    "get",
    "list",
    "read",
    "search",
    "find",
    "show",
    "view",
    "fetch",
    "status",
    "describe",
    "inspect",
    "check",
    "count",
    "lookup",
    "resolve",
    "recall",
    "query",
    "probe",
    "catalog",
    "help",
    "guidance",
    "checklist",
    "summary",
    "stats",
];

/// What joins a second thing to be done to the first.
const JOINTS: &[&str] = &["and", "then", "or", "to", "before", "after"];

/// What was declared of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// What the surface file says; it counts, unless the manifest says worse.
    pub said: Option<Effect>,
    /// What the manifest of a capability says: it can only make things worse, except that `read` is believed of a name
    /// that begins with a reading verb.
    pub manifest: Option<Effect>,
    /// The harm that the manifest names.
    pub blast_class: Option<BlastClass>,
}

impl Policy {
    /// What `read_only` and `reversible` of a surface file say together: what only reads can be undone.
    pub fn of_flags(read_only: Option<bool>, reversible: Option<bool>) -> Self {
        let said = match (read_only, reversible) {
            (_, Some(false)) => Some(Effect::Irreversible),
            (Some(true), _) => Some(Effect::Read),
            (_, Some(true)) => Some(Effect::Write),
            (_, None) => None,
        };
        Self { said, ..Self::default() }
    }
}

/// What decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// The surface file.
    Said,
    /// The manifest of the capability.
    Manifest,
    /// A verb in a name.
    Verb,
    /// No name has a verb of doing harm.
    Nothing,
}

/// What a call was found to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judged {
    /// What it does.
    pub effect: Effect,
    /// The verb that was found; told even where something else decided.
    pub verb: Option<&'static str>,
    /// What harm it does, where it is irreversible and known.
    pub blast_class: Option<BlastClass>,
    /// What decided.
    pub ground: Ground,
}

impl Judged {
    /// Why, in words for whoever is refused.
    pub fn reason(&self) -> String {
        match (self.ground, self.verb) {
            (Ground::Said, _) => format!("the surface declares it {}", self.effect.name()),
            (Ground::Manifest, _) => format!("its manifest declares it {}", self.effect.name()),
            (Ground::Verb, Some(verb)) => format!("its name says {verb:?}"),
            (Ground::Verb | Ground::Nothing, _) => "nothing in its name or declaration says otherwise".to_owned(),
        }
    }
}

/// Judges a call by what is declared of it, and otherwise by names, in order: of the tool, or of a capability and then
/// of its action.
pub fn classify<'n>(names: impl IntoIterator<Item = &'n str>, policy: Policy) -> Judged {
    let names: Vec<&str> = names.into_iter().collect();
    let found = names.iter().find_map(|name| readings(name).iter().find_map(|words| harm(words)));
    let verb = found.map(|verb| verb.name);
    let by_name = if found.is_some() { Effect::Irreversible } else { Effect::Write };
    let reads = || names.last().is_some_and(|name| is_read_verb_first(name));
    let (effect, ground) = match (policy.said, policy.manifest) {
        (_, Some(Effect::Irreversible)) => (Effect::Irreversible, Ground::Manifest),
        (Some(effect), _) => (effect, Ground::Said),
        (None, Some(Effect::Read)) if reads() => (Effect::Read, Ground::Manifest),
        (None, _) if found.is_some() => (Effect::Irreversible, Ground::Verb),
        (None, Some(_)) => (by_name, Ground::Manifest),
        (None, None) => (by_name, Ground::Nothing),
    };
    let blast_class = policy.blast_class.or_else(|| found.map(|verb| verb.class));
    Judged { effect, verb, blast_class: blast_class.filter(|_| !effect.is_reversible()), ground }
}

/// Whether a call is known to read alone: it is declared so; or nothing is declared to the contrary, no name has a verb
/// of doing harm, and the last has one of reading.
pub fn only_reads<'n>(names: impl IntoIterator<Item = &'n str>, policy: Policy) -> bool {
    let names: Vec<&str> = names.into_iter().collect();
    let says = || names.last().is_some_and(|name| words(name).iter().any(|word| READ_VERBS.contains(&word.as_str())));
    match classify(names.iter().copied(), policy).effect {
        Effect::Read => true,
        Effect::Irreversible => false,
        Effect::Write => policy.said.is_none() && policy.manifest != Some(Effect::Write) && says(),
    }
}

/// Whether a name begins with a verb that only looks.
pub fn is_read_verb_first(name: &str) -> bool {
    begins_with_reading(&words(name))
}

fn begins_with_reading(words: &[String]) -> bool {
    words.first().is_some_and(|word| READ_VERBS.contains(&word.as_str()))
}

/// The first verb of doing harm. What is read first and is a thing does none, as long as nothing joins a second deed.
fn harm(words: &[String]) -> Option<&'static Verb> {
    let reading = begins_with_reading(words) && !words.iter().any(|word| JOINTS.contains(&word.as_str()));
    let says = |verb: &Verb| {
        let parts: Vec<&str> = verb.name.split('-').collect();
        words.windows(parts.len()).any(|window| window.iter().zip(&parts).all(|(word, part)| word == part))
    };
    VERBS.iter().find(|verb| !(reading && verb.noun) && says(verb))
}

/// The ways in which a name can be read: capitals may begin words (`dropTable`), be words (`DROPtable`) or mean nothing
/// (`dROP_table`).
fn readings(name: &str) -> [Vec<String>; 3] {
    let plain = name.to_lowercase();
    let mut runs = String::new();
    let mut before: Option<char> = None;
    for character in name.chars() {
        if before.is_some_and(|before| before.is_alphabetic() && before.is_uppercase() != character.is_uppercase()) {
            runs.push(' ');
        }
        runs.extend(character.to_lowercase());
        before = Some(character);
    }
    [words(name), words(&runs), words(&plain)]
}

/// The words of a name, in small letters: parted by whatever is no letter, and where a capital begins one.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut characters = name.chars().peekable();
    let mut before: Option<char> = None;
    while let Some(character) = characters.next() {
        if !character.is_alphabetic() {
            words.push(String::new());
            before = None;
            continue;
        }
        let next_is_small = characters.peek().is_some_and(|next| next.is_lowercase());
        let begins = before.is_some_and(|before| {
            character.is_uppercase() && (before.is_lowercase() || (before.is_uppercase() && next_is_small))
        });
        if begins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(character.to_lowercase());
        }
        before = Some(character);
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_hide_no_verb_wherever_they_stand() {
        for name in ["DELETEall", "DROPtable", "SENDmail", "KILLall", "getDELETEall", "dELETE", "DELETEs", "x_dRoP_y"] {
            assert!(!classify([name], Policy::default()).effect.is_reversible(), "{name}");
        }
        for name in ["getPOSTs", "HTTPStatus", "listARCHIVE", "Dropdown", "resender"] {
            assert!(classify([name], Policy::default()).effect.is_reversible(), "{name}");
        }
    }

    fn verb_of(names: &[&str]) -> Option<&'static str> {
        let judged = classify(names.iter().copied(), Policy::default());
        assert_eq!(judged.effect == Effect::Irreversible, judged.verb.is_some(), "{names:?}");
        judged.verb
    }

    #[test]
    fn each_name_of_the_contracts_table_is_found_to_do_what_it_says() {
        for (names, verb) in [
            (["google-mail", "send-message"], Some("send")),
            (["x", "resend-guard"], None),
            (["x", "sender"], None),
            (["x", "delete_all"], Some("delete")),
            (["x", "deleteAll"], Some("delete")),
            (["x", "email.send"], Some("send")),
            (["x", "drop.table"], Some("drop")),
            (["x", "ban/user"], Some("ban")),
            (["x", "issue-invoice"], Some("issue-invoice")),
            (["x", "reissue-invoice"], None),
            (["x", "blog-posts"], None),
            (["x", "get-post"], None),
            (["x", "list-archive"], None),
            (["x", "destroy-db"], Some("destroy")),
            (["x", "truncate"], Some("truncate")),
            (["x", "overwrite"], Some("overwrite")),
            (["x", "uninstall"], Some("uninstall")),
            (["x", "cancel"], Some("cancel")),
            (["wire", "status"], Some("wire")),
            (["x", "run-process"], None),
        ] {
            assert_eq!(verb_of(&names), verb, "{names:?}");
        }
    }

    #[test]
    fn a_verb_is_found_however_it_is_spelled() {
        for name in [
            "DESTROY",
            "destroy",
            "DestroyDatabase",
            "db:destroy",
            "db destroy",
            "db__destroy",
            "DBDestroy",
            "destroyDB",
            "destroy2",
            "v2destroy",
            "db\u{2010}destroy",
        ] {
            assert_eq!(verb_of(&[name]), Some("destroy"), "{name}");
        }
        assert_eq!(verb_of(&["issueInvoice"]), Some("issue-invoice"));
        for name in ["", "-", "destroyer", "undestroy", "sendable", "postal_codes", "payload", "executed"] {
            assert_eq!(verb_of(&[name]), None, "{name}");
        }
    }

    #[test]
    fn reading_a_thing_does_no_harm_but_reading_and_doing_does() {
        for name in ["get_transfer", "fetchRefund", "read-release", "search.purchase"] {
            assert_eq!(verb_of(&[name]), None, "{name}");
        }
        for (name, verb) in [
            ("get-delete", "delete"),
            ("find_and_post", "post"),
            ("checkThenTransfer", "transfer"),
            ("post-get", "post"),
            ("read-to-archive", "archive"),
        ] {
            assert_eq!(verb_of(&[name]), Some(verb), "{name}");
        }
    }

    #[test]
    fn each_verb_has_the_class_of_its_harm_and_the_first_of_the_first_name_counts() {
        for (name, class) in [
            ("send", BlastClass::MessageSent),
            ("post", BlastClass::MessageSent),
            ("publish", BlastClass::MessageSent),
            ("issue-invoice", BlastClass::MoneyOut),
            ("refund", BlastClass::MoneyOut),
            ("wipe", BlastClass::DataLoss),
            ("kick", BlastClass::ThirdPartyState),
        ] {
            assert_eq!(classify([name], Policy::default()).blast_class, Some(class), "{name}");
        }
        assert_eq!(verb_of(&["wipe", "send"]), Some("wipe"));
        assert_eq!(verb_of(&["delete_and_send"]), Some("send"), "in the order of the verbs within one name");
    }

    #[test]
    fn what_is_declared_counts_before_names() {
        use Effect::{Irreversible, Read, Write};
        for (read_only, reversible, name, effect) in [
            (Some(true), None, "delete", Read),
            (Some(true), Some(true), "delete", Read),
            (None, Some(true), "delete", Write),
            (Some(false), Some(true), "delete", Write),
            (None, Some(false), "look", Irreversible),
            (Some(true), Some(false), "look", Irreversible),
            (Some(false), None, "look", Write),
            (Some(false), None, "delete", Irreversible),
            (None, None, "look", Write),
            (None, None, "delete", Irreversible),
        ] {
            let judged = classify([name], Policy::of_flags(read_only, reversible));
            assert_eq!(judged.effect, effect, "{read_only:?} {reversible:?} {name}");
        }
    }

    #[test]
    fn a_manifest_only_makes_it_worse_but_for_what_is_named_as_reading() {
        use Effect::{Irreversible, Read, Write};
        let judged = |said, manifest, name| {
            let policy = Policy { said, manifest, blast_class: Some(BlastClass::MoneyOut) };
            let judged = classify([name], policy);
            assert_eq!(judged.blast_class.is_some(), judged.effect == Irreversible);
            (judged.effect, judged.ground)
        };
        assert_eq!(judged(None, Some(Irreversible), "look"), (Irreversible, Ground::Manifest));
        assert_eq!(judged(Some(Read), Some(Irreversible), "look"), (Irreversible, Ground::Manifest));
        assert_eq!(judged(Some(Irreversible), Some(Read), "look"), (Irreversible, Ground::Said));
        assert_eq!(judged(None, Some(Write), "delete"), (Irreversible, Ground::Verb));
        assert_eq!(judged(None, Some(Read), "delete"), (Irreversible, Ground::Verb));
        assert_eq!(judged(None, Some(Read), "get-delete"), (Read, Ground::Manifest));
        assert_eq!(judged(None, Some(Read), "look"), (Write, Ground::Manifest));
        assert_eq!(judged(None, Some(Write), "look"), (Write, Ground::Manifest));
    }

    #[test]
    fn names_of_effects_and_classes_are_read_back() {
        for effect in [Effect::Read, Effect::Write, Effect::Irreversible] {
            assert_eq!(Effect::parse(effect.name()), Some(effect));
        }
        for class in BlastClass::ALL {
            assert_eq!(BlastClass::parse(class.name()), Some(class));
        }
        assert_eq!((Effect::parse("harmless"), BlastClass::parse("")), (None, None));
    }
}
