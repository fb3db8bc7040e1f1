//! What becomes of a task, as its client sees it.

use super::*;

#[tokio::test]
async fn a_call_becomes_a_task_that_ends_with_what_the_tool_returned() {
    let mut stage = Stage::new();
    let created = stage.create("work", "hold").await;
    assert_eq!(created.id.as_str().len(), 32);
    assert_eq!(created.status(Form::Extension), TaskStatus::Working);
    assert_eq!((created.ttl_ms, created.poll_ms), (Some(3_600_000), Some(1000)));
    assert_eq!(created.created, "1970-01-01T00:16:40Z");
    assert_eq!(stage.view(&created.id).await.unwrap().status(Form::Extension), TaskStatus::Working);
    stage.pass(Duration::from_secs(1));
    stage.backend.gate.add_permits(1);
    let told = stage.until(&created.id, TaskStatus::Completed).await;
    assert_eq!((text(&told).as_str(), told.updated.as_str()), ("released", "1970-01-01T00:16:41Z"));
    assert_eq!(text(&stage.view(&created.id).await.unwrap()), "released");

    let view = stage.end("shape", "structured").await;
    let view = stage.view(&view.id).await.unwrap();
    let TaskDetail::Returned { content, failed: false } = view.detail else { panic!("{view:?}") };
    assert_eq!(content, Content::structured(json!({"a": 0.1, "b": [1, null]})));
}

#[tokio::test]
async fn whatever_is_no_call_that_becomes_a_task_passes_through() {
    let stage = Stage::new();
    for operation in
        [stage.call("work", "return", None).operation, Operation::Prompt { name: "p".into(), arguments: Vec::new() }]
    {
        assert!(matches!(stage.invoke(stage.invocation(operation)).await, Outcome::Complete(_)));
    }
    assert!(stage.disk.files().keys().all(|path| !path.to_string_lossy().ends_with("json")));
}

#[tokio::test]
async fn each_way_for_a_call_to_go_wrong_is_told_without_internals() {
    let mut stage = Stage::new();
    let failed = stage.end("work", "fail").await;
    assert_eq!(text(&failed), "failed");
    // A tool's own failure is a failed task in the older form alone.
    let statuses = (failed.status(Form::Extension), failed.status(Form::Experimental));
    assert_eq!(statuses, (TaskStatus::Completed, TaskStatus::Failed));
    for (tool, plan, expected, contains) in [
        ("work", "refuse", -32602, "no such row"),
        ("work", "miss", -32602, "invalid params"),
        ("work", "defect", -32603, "internal error, incident 0000000000000abc"),
        ("work", "other", -32603, "internal error, incident"),
        ("work", "ask nothing", -32603, "internal error, incident"),
        ("work", "panic", -32603, "internal error, incident"),
        ("shape", "return", -32603, "internal error, incident"),
    ] {
        let view = stage.end(tool, plan).await;
        let view = stage.view(&view.id).await.unwrap();
        assert_eq!(view.status(Form::Extension), TaskStatus::Failed, "{plan}");
        let TaskDetail::Error { code, message, .. } = &view.detail else { panic!("{plan}: {view:?}") };
        assert_eq!(*code, expected, "{plan}");
        assert!(message.contains(contains) && !message.contains("secret"), "{plan}: {message}");
        assert_eq!(view.message.as_ref(), Some(message));
    }
}

#[tokio::test]
async fn a_cancelled_task_stays_cancelled_and_its_call_is_told_to_end() {
    for revision in [Revision::MODERN, Revision::NEWEST_LEGACY] {
        let mut stage = Stage::new();
        stage.revision = revision;
        let id = stage.create("work", "hold").await.id;
        assert_eq!(stage.report().await, began());
        let cancelled = stage.ask(TaskRequest::Cancel(id.clone())).await;
        match (revision, cancelled) {
            (Revision::MODERN, Outcome::Task(TaskAnswer::Done)) => {}
            (Revision::NEWEST_LEGACY, Outcome::Task(TaskAnswer::Is(view))) => {
                assert_eq!(view.status(Form::Experimental), TaskStatus::Cancelled);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(stage.report().await, Report::Gone);
        assert_eq!(stage.view(&id).await.unwrap().status(Form::Extension), TaskStatus::Cancelled);
        match (revision, stage.ask(TaskRequest::Cancel(id.clone())).await) {
            (Revision::MODERN, Outcome::Task(TaskAnswer::Done)) => {}
            (Revision::NEWEST_LEGACY, Outcome::Refused(why)) => assert!(why.contains("cancelled"), "{why}"),
            other => panic!("{other:?}"),
        }
        // Its call returned after that, which changed nothing.
        stage.tasks.stop().await;
        assert_eq!(stage.view(&id).await.unwrap().status(Form::Extension), TaskStatus::Cancelled);
    }
}

#[tokio::test]
async fn a_task_waits_for_every_answer_and_goes_on_under_the_backends_own_keys() {
    let mut stage = Stage::new();
    let id = stage.create("work", "ask").await.id;
    assert_eq!(stage.report().await, began());
    let waiting = stage.until(&id, TaskStatus::InputRequired).await;
    assert_eq!(text(&waiting), "name-1 age-2");
    let answer = |name: &str| json!({"action": "accept", "content": {"name": name}});
    let done = |outcome: Outcome| assert!(matches!(outcome, Outcome::Task(TaskAnswer::Done)), "{outcome:?}");
    done(stage.update(&id, &[("name", answer("x")), ("zzz", answer("x"))]).await);
    assert_eq!(text(&stage.view(&id).await.unwrap()), "name-1 age-2");
    done(stage.update(&id, &[("age-2", answer("first"))]).await);
    assert_eq!(text(&stage.view(&id).await.unwrap()), "name-1");
    // An answer counts once.
    done(stage.update(&id, &[("age-2", answer("second")), ("name-1", answer("Ada"))]).await);
    let expected = vec![("age".to_owned(), answer("first")), ("name".to_owned(), answer("Ada"))];
    assert_eq!(stage.report().await, Report::Began { answers: expected, state: Some(json!({"round": 1})) });
    assert_eq!(text(&stage.until(&id, TaskStatus::Completed).await), "answered");
    done(stage.update(&id, &[("name-1", answer("late"))]).await);
}

#[tokio::test]
async fn a_key_is_never_asked_under_twice() {
    let mut stage = Stage::new();
    let id = stage.create("work", "ask twice").await.id;
    let answer = json!({"action": "decline"});
    assert_eq!(text(&stage.until(&id, TaskStatus::InputRequired).await), "name-1");
    stage.update(&id, &[("name-1", answer.clone())]).await;
    assert_eq!(text(&stage.until(&id, TaskStatus::InputRequired).await), "name-2");
    stage.update(&id, &[("name-1", answer.clone())]).await;
    assert_eq!(text(&stage.view(&id).await.unwrap()), "name-2");
    stage.update(&id, &[("name-2", answer)]).await;
    assert_eq!(text(&stage.until(&id, TaskStatus::Completed).await), "answered twice");
}

#[tokio::test]
async fn a_task_that_waits_takes_no_place_of_those_that_run() {
    let mut stage = Stage::limited(TaskLimits { running: 1, ..TaskLimits::default() });
    let waiting = stage.create("work", "ask").await.id;
    stage.until(&waiting, TaskStatus::InputRequired).await;
    let holding = loop {
        // The place is free a moment after the task is told to wait.
        match stage.create_for("work", "hold", TaskWish::default()).await {
            Ok(view) => break view.id,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    let refused = stage.create_for("work", "return", TaskWish::default()).await.unwrap_err();
    assert!(refused.contains("1 tasks are running, which is the limit"), "{refused}");
    // It goes on once there is a place.
    stage.update(&waiting, &[("name-1", json!({})), ("age-2", json!({}))]).await;
    assert_eq!(stage.view(&waiting).await.unwrap().status(Form::Extension), TaskStatus::Working);
    stage.backend.gate.add_permits(1);
    stage.until(&holding, TaskStatus::Completed).await;
    stage.until(&waiting, TaskStatus::Completed).await;
}

#[tokio::test]
async fn a_task_that_waits_keeps_nothing_of_the_message_that_made_it() {
    struct Body(&'static [u8], #[allow(dead_code, reason = "it is counted")] Arc<()>);
    impl AsRef<[u8]> for Body {
        fn as_ref(&self) -> &[u8] {
            self.0
        }
    }
    let mut stage = Stage::new();
    let room = Arc::new(());
    let body = bytes::Bytes::from_owner(Body(br#"{"plan":"ask"}"#, Arc::clone(&room)));
    let arguments = Arguments::new(RawJson::new(body, &Default::default()).unwrap()).unwrap();
    let task = Some(TaskWish::default());
    let call = Operation::Call { tool: ToolName::new("work").unwrap(), arguments, task };
    let Outcome::Task(TaskAnswer::Created(created)) = stage.invoke(stage.invocation(call)).await else { panic!() };
    stage.until(&created.id, TaskStatus::InputRequired).await;
    assert_eq!(Arc::strong_count(&room), 1, "the room that a body takes is given back");
    stage.update(&created.id, &[("name-1", json!({})), ("age-2", json!({}))]).await;
    assert_eq!(text(&stage.until(&created.id, TaskStatus::Completed).await), "answered");
}

#[tokio::test]
async fn what_the_client_cannot_be_asked_and_asking_without_end_fail_the_tool() {
    let mut stage = Stage::new();
    for (plan, expected) in
        [("sample", "did not declare that it can be asked (sampling)"), ("ask for ever", "asked 8 times")]
    {
        let view = stage.end("work", plan).await;
        assert!(matches!(view.detail, TaskDetail::Returned { failed: true, .. }), "{view:?}");
        assert!(text(&view).contains(expected), "{view:?}");
    }
    stage.client = can(&json!({"sampling": {}}));
    let id = stage.create("work", "sample").await.id;
    stage.until(&id, TaskStatus::InputRequired).await;
}

#[tokio::test]
async fn the_result_is_waited_for_and_the_questions_are_asked_on_the_way() {
    let mut stage = Stage::new();
    stage.revision = Revision::NEWEST_LEGACY;
    let id = stage.create("work", "ask").await.id;
    let asked = stage.ask(TaskRequest::Result(id.clone())).await;
    let Outcome::InputRequired(Ask { requests, state: None }) = asked else { panic!("{asked:?}") };
    let mut again = stage.invocation(Operation::Task(TaskRequest::Result(id.clone())));
    again.answers = requests.iter().map(|r| (r.key.as_str().into(), RawJson::encode(&json!({})))).collect();
    let ended = stage.invoke(again).await;
    let Outcome::Task(TaskAnswer::Ended(view)) = ended else { panic!("{ended:?}") };
    assert_eq!(text(&view), "answered");

    let held = stage.create("work", "hold").await.id;
    let waiting = stage.ask(TaskRequest::Result(held.clone()));
    let cancelling = stage.ask(TaskRequest::Cancel(held));
    let (waited, _) = tokio::join!(waiting, cancelling);
    let Outcome::Task(TaskAnswer::Ended(view)) = waited else { panic!("{waited:?}") };
    assert_eq!(view.status(Form::Experimental), TaskStatus::Cancelled);
}

#[tokio::test]
async fn whoever_waits_for_a_result_may_go_and_the_task_goes_on() {
    struct Gone;
    impl Caller for Gone {
        fn notify(&self, _: Notice) {}
        fn is_gone(&self) -> bool {
            true
        }
        fn gone(&self) -> BoxFuture<'_, ()> {
            Box::pin(async {})
        }
    }
    let mut stage = Stage::new();
    let call = stage.call("work", "hold", Some(TaskWish::default()));
    let created = stage.tasks.invoke(Arc::new(call), Arc::new(Gone)).await;
    let Outcome::Task(TaskAnswer::Created(view)) = created else { panic!("{created:?}") };
    let result = stage.invocation(Operation::Task(TaskRequest::Result(view.id.clone())));
    assert!(matches!(stage.tasks.invoke(Arc::new(result), Arc::new(Gone)).await, Outcome::Failed(_)));
    stage.backend.gate.add_permits(1);
    stage.until(&view.id, TaskStatus::Completed).await;
}

#[tokio::test]
async fn a_strangers_task_is_not_there() {
    let mut stage = Stage::new();
    stage.principal = Principal::named("ada");
    let hers = stage.create("work", "ask").await.id;
    stage.until(&hers, TaskStatus::InputRequired).await;
    stage.principal = Principal::named("bob");
    let his = stage.create("work", "hold").await.id;
    for (request, known) in [
        (TaskRequest::Get(hers.clone()), false),
        (TaskRequest::Cancel(hers.clone()), false),
        (TaskRequest::Result(hers.clone()), false),
        (TaskRequest::Update(hers.clone(), vec![("name-1".into(), RawJson::empty_object())]), false),
        (TaskRequest::Get(TaskId::new("../../etc/passwd").unwrap()), false),
        (TaskRequest::Get(TaskId::new(&"f".repeat(32)).unwrap()), false),
        (TaskRequest::Get(his.clone()), true),
    ] {
        let outcome = stage.ask(request.clone()).await;
        assert_eq!(matches!(outcome, Outcome::Task(_)), known, "{request:?}");
        assert_eq!(matches!(outcome, Outcome::NotFound), !known, "{request:?}");
    }
    let listed = stage.ask(TaskRequest::List { from: 0 }).await;
    let Outcome::Task(TaskAnswer::List(views, None)) = listed else { panic!("{listed:?}") };
    assert_eq!(views.iter().map(|view| view.id.clone()).collect::<Vec<_>>(), [his]);
    stage.principal = Principal::named("ada");
    assert_eq!(text(&stage.view(&hers).await.unwrap()), "name-1 age-2");
}

#[tokio::test]
async fn a_list_comes_in_pages_that_skip_nothing_when_some_expire() {
    let stage = Stage::new();
    for n in 0..TASK_PAGE + 2 {
        let ttl_ms = Some(if n < 10 { 60_000 } else { 600_000 });
        stage.create_for("work", "ask", TaskWish { ttl_ms }).await.unwrap();
    }
    let page = |outcome: Outcome| match outcome {
        Outcome::Task(TaskAnswer::List(views, next)) => (views.len(), next),
        other => panic!("{other:?}"),
    };
    let (first, next) = page(stage.ask(TaskRequest::List { from: 0 }).await);
    assert_eq!(first, TASK_PAGE);
    stage.pass(Duration::from_secs(61));
    assert_eq!(page(stage.ask(TaskRequest::List { from: next.unwrap() }).await), (2, None));
    assert_eq!(page(stage.ask(TaskRequest::List { from: 0 }).await), (TASK_PAGE + 2 - 10, None));
}

#[tokio::test]
async fn a_time_to_live_is_chosen_within_bounds_and_then_the_task_is_gone() {
    let mut stage = Stage::new();
    for (wish, given) in [(None, 3_600_000), (Some(0), 60_000), (Some(90_000), 90_000), (Some(u64::MAX), 86_400_000)] {
        let view = stage.create_for("work", "hold", TaskWish { ttl_ms: wish }).await.unwrap();
        assert_eq!(view.ttl_ms, Some(given));
        assert_eq!(stage.report().await, began());
        stage.pass(Duration::from_millis(given - 1));
        assert!(stage.view(&view.id).await.is_some());
        stage.pass(Duration::from_millis(1));
        assert!(stage.view(&view.id).await.is_none());
        // Its call is ended, and nothing of it is left.
        let keeper = Arc::clone(&stage.tasks.0);
        blocking(move || keeper.sweep()).await.unwrap();
        assert_eq!(stage.report().await, Report::Gone);
        let kept = stage.disk.files().into_keys().filter(|path| path.extension().is_some());
        assert_eq!(kept.collect::<Vec<_>>(), Vec::<std::path::PathBuf>::new());
    }
}

#[tokio::test]
async fn whoever_waits_for_a_task_that_expires_is_told() {
    let stage = Stage::new();
    let id = stage.create("work", "hold").await.id;
    let expiring = async {
        tokio::task::yield_now().await;
        stage.pass(Duration::from_secs(3600));
        let keeper = Arc::clone(&stage.tasks.0);
        blocking(move || keeper.sweep()).await.unwrap();
    };
    let (waited, ()) = tokio::join!(stage.ask(TaskRequest::Result(id)), expiring);
    assert!(matches!(waited, Outcome::NotFound), "{waited:?}");
}

#[tokio::test]
async fn the_last_words_of_a_running_task_are_its_message() {
    let mut stage = Stage::new();
    let id = stage.create("work", "tell").await.id;
    let (_, first) = stage.told.recv().await.unwrap();
    assert_eq!(first.message.as_deref(), Some("step 1"));
    assert_eq!(stage.view(&id).await.unwrap().message.as_deref(), Some("step 20"));
    stage.backend.gate.add_permits(1);
    // Within one second only one of twenty was told.
    let (_, ended) = stage.told.recv().await.unwrap();
    assert_eq!((ended.status(Form::Extension), ended.message), (TaskStatus::Completed, None));
    assert_eq!(*stage.updated.lock().unwrap(), ["a:b"]);
}

#[tokio::test]
async fn a_tools_own_deadline_is_its_tasks() {
    let mut stage = Stage::new();
    let view = stage.end("brief", "hold").await;
    assert!(text(&view).contains("tool brief did not end within 0.05 s and was stopped"), "{view:?}");
    assert_eq!((stage.report().await, stage.report().await), (began(), Report::Gone));
}
