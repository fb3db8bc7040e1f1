//! Everything that can happen to a task, in every order.

use std::collections::HashSet;

use proptest::prelude::*;

use super::record::Parked;
use super::*;

#[derive(Debug, Clone)]
enum Event {
    Ask(usize),
    /// Answers to these positions of all keys that were ever asked, and to one that never was.
    Answer(Vec<usize>),
    Cancel,
    Return(bool),
    Fail,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0usize..4).prop_map(Event::Ask),
        6 => proptest::collection::vec(0usize..12, 0..4).prop_map(Event::Answer),
        1 => Just(Event::Cancel),
        1 => any::<bool>().prop_map(Event::Return),
        1 => Just(Event::Fail),
    ]
}

proptest! {
    #[test]
    fn in_every_order_an_end_is_final_keys_are_unique_and_an_answer_counts_once(
        events in proptest::collection::vec(event(), 1..30)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let stage = { let _entered = runtime.enter(); Stage::new() };
        let id = TaskId::new(&"0".repeat(32)).unwrap();
        let call = stage.call("work", "ask", Some(TaskWish::default()));
        let mut record = Record::begin(&id, &call, TaskWish::default(), &TaskLimits::default(), 7).unwrap();
        let mut all: Vec<String> = Vec::new();
        let mut open: Vec<String> = Vec::new();
        for event in events {
            let before = record.clone();
            match event {
                Event::Ask(n) => {
                    let requests = (0..n).map(|n| question(&format!("q{n}"), InputKind::ElicitForm)).collect();
                    let asked = record.ask(&Ask { requests, state: Some(json!(n)) }, stage.client);
                    match (&asked, &record.phase) {
                        (Ok(Parked::Waits), Phase::Waiting { .. }) if !before.has_ended() && n > 0 => {
                            let view = record.view().unwrap();
                            let TaskDetail::Asks(requests) = view.detail else { panic!("{view:?}") };
                            open = requests.into_iter().map(|r| r.key).collect();
                            all.extend(open.clone());
                        }
                        _ => prop_assert!(before.has_ended() || n == 0 || asked.is_err()),
                    }
                }
                Event::Answer(positions) => {
                    let mut keys: Vec<&str> = positions.iter().filter_map(|p| all.get(*p)).map(String::as_str).collect();
                    keys.push("never");
                    let answers: Vec<(Box<str>, RawJson)> =
                        keys.iter().map(|key| ((*key).into(), RawJson::encode(&json!({})))).collect();
                    let counted = open.iter().filter(|key| keys.contains(&key.as_str())).count();
                    let waiting = matches!(before.phase, Phase::Waiting { .. });
                    match record.answer(&answers).unwrap() {
                        Taken::Nothing => prop_assert!(counted == 0 || !waiting),
                        Taken::Some => prop_assert!(waiting && counted > 0 && counted < open.len()),
                        Taken::All(again) => {
                            prop_assert!(waiting && counted == open.len());
                            let own: HashSet<&str> = again.answers.iter().map(|(key, _)| &**key).collect();
                            prop_assert_eq!(own.len(), again.answers.len());
                            prop_assert_eq!(again.state, Some(json!(again.answers.len())));
                        }
                    }
                    open.retain(|key| !waiting || !keys.contains(&key.as_str()));
                }
                Event::Cancel => drop(record.end(Phase::Cancelled)),
                Event::Return(failed) => {
                    record.end(Phase::returned(&Content::text("x"), failed).unwrap());
                }
                Event::Fail => drop(record.end(Phase::fault(&Fault::Internal { incident: 1 }))),
            }
            if before.has_ended() {
                prop_assert_eq!(&record, &before);
            }
            let unique: HashSet<&String> = all.iter().collect();
            prop_assert_eq!(unique.len(), all.len());
            prop_assert_eq!(&Record::read(&record.write()).unwrap(), &record);
        }
    }

    #[test]
    fn whatever_happens_at_once_what_was_shown_as_the_end_is_the_end_after_a_crash_too(
        pairs in proptest::collection::vec((0u8..6, 0u8..6), 1..6),
        plan in prop_oneof![Just("hold"), Just("ask"), Just("ask twice"), Just("return")],
        luck in 1u64..1_000_000,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let stage = Stage::new();
            let id = stage.create("work", plan).await.id;
            let mut ended: Option<(TaskStatus, String)> = None;
            for (a, b) in pairs {
                tokio::join!(act(&stage, &id, a), act(&stage, &id, b));
                let shown = stage.view(&id).await.map(|view| (view.status(Form::Extension), text(&view)));
                match (&ended, shown) {
                    (Some(ended), Some(shown)) => assert_eq!(*ended, shown),
                    (Some(_), None) => break,
                    (None, Some(shown)) if shown.0.is_final() => ended = Some(shown),
                    (None, _) => {}
                }
                let after = stage.after_a_crash(luck);
                let there = after.view(&id).await.map(|view| (view.status(Form::Extension), text(&view)));
                match (&ended, there) {
                    (Some(ended), Some(there)) => assert_eq!(*ended, there),
                    (Some(ended), None) => panic!("{ended:?} is lost"),
                    (None, there) => assert_eq!(there.is_some(), stage.view(&id).await.is_some()),
                }
            }
            stage.tasks.stop().await;
        });
    }
}

/// Something that a client, a backend or time may do at any moment.
async fn act(stage: &Stage, id: &TaskId, what: u8) {
    match what {
        0 => drop(stage.ask(TaskRequest::Cancel(id.clone())).await),
        1 => stage.backend.gate.add_permits(1),
        2 => drop(stage.update(id, &[("name-1", json!({})), ("name-2", json!({}))]).await),
        3 => drop(stage.update(id, &[("age-2", json!({}))]).await),
        4 => stage.pass(Duration::from_secs(1)),
        _ => stage.pass(Duration::from_secs(3600)),
    }
}
