//! Tasks across crashes, restarts, full disks and other processes.

use std::io::ErrorKind;

use super::*;
use crate::core::store::model::Fault;

#[tokio::test]
async fn a_task_is_on_the_disk_before_anyone_hears_of_it_and_so_is_its_end() {
    for luck in 1..40 {
        let mut stage = Stage::new();
        let id = stage.create("work", "hold").await.id;
        let restarted = stage.after_a_crash(luck);
        let view = restarted.view(&id).await.expect("an acknowledged task is lost");
        assert_eq!(view.status(Form::Extension), TaskStatus::Failed);
        assert!(text(&view).contains("the server was restarted while this task ran"), "{view:?}");
        assert_eq!(view.message, Some(text(&view)));

        stage.backend.gate.add_permits(1);
        stage.until(&id, TaskStatus::Completed).await;
        let restarted = stage.after_a_crash(luck);
        assert_eq!(text(&restarted.view(&id).await.unwrap()), "released");
    }
}

#[tokio::test]
async fn a_task_that_waits_goes_on_after_a_restart_if_its_tool_is_what_it_was() {
    let mut stage = Stage::new();
    let id = stage.create("work", "ask").await.id;
    stage.until(&id, TaskStatus::InputRequired).await;
    stage.update(&id, &[("age-2", json!({"n": 0.1}))]).await;

    let mut restarted = stage.after_a_crash(5);
    assert_eq!(text(&restarted.view(&id).await.unwrap()), "name-1");
    // What the client that made it could be asked is known still; this one says nothing of it.
    restarted.client = ClientCapabilities::default();
    restarted.update(&id, &[("name-1", json!({}))]).await;
    let answers = vec![("age".to_owned(), json!({"n": 0.1})), ("name".to_owned(), json!({}))];
    assert_eq!(restarted.report().await, Report::Began { answers, state: Some(json!({"round": 1})) });
    restarted.until(&id, TaskStatus::Completed).await;

    let changed = stage.after(stage.disk.crash(6), catalog_with("Works in another way."));
    let view = changed.view(&id).await.unwrap();
    assert_eq!(view.status(Form::Extension), TaskStatus::Failed);
    assert!(text(&view).contains("another definition of this tool"), "{view:?}");
}

#[tokio::test]
async fn what_has_expired_does_not_come_back_and_a_clock_set_back_keeps_nothing_for_ever() {
    let mut stage = Stage::new();
    let id = stage.end("work", "return").await.id;
    let at = |now: u64| Stage::on(stage.disk.crash(3), now, Arc::clone(&stage.catalog), TaskLimits::default());
    let now = stage.now.load(Ordering::SeqCst);
    assert!(at(now + 3_599_999).view(&id).await.is_some());
    assert!(at(now + 3_600_000).view(&id).await.is_none());
    let early = at(5);
    assert!(early.view(&id).await.is_some());
    early.pass(Duration::from_secs(3600));
    assert!(early.view(&id).await.is_none());
}

#[tokio::test]
async fn where_no_task_can_be_stored_none_is_made_and_nothing_is_done() {
    for kind in [ErrorKind::StorageFull, ErrorKind::ReadOnlyFilesystem] {
        // Each step of a write: the file, its sync, its name, the folder's sync.
        for step in 0..4 {
            let mut stage = Stage::new();
            stage.disk.fail(step, Fault::Once(kind));
            let refused = stage.create_for("work", "return", TaskWish::default()).await.unwrap_err();
            assert!(refused.contains("nothing was done"), "{refused}");
            assert!(!refused.contains("/state"), "{refused}");
            assert!(stage.reports.try_recv().is_err(), "the tool was called");
            let listed = stage.ask(TaskRequest::List { from: 0 }).await;
            assert!(matches!(listed, Outcome::Task(TaskAnswer::List(views, None)) if views.is_empty()));
            if kind == ErrorKind::StorageFull {
                stage.end("work", "return").await;
            }
        }
    }
}

#[tokio::test]
async fn an_end_that_cannot_be_stored_is_not_shown_until_it_can() {
    let mut stage = Stage::new();
    let id = stage.create("work", "hold").await.id;
    stage.report().await;
    stage.disk.fail(0, Fault::Forever(ErrorKind::StorageFull));
    stage.backend.gate.add_permits(1);
    let refused = stage.ask(TaskRequest::Cancel(id.clone())).await;
    assert!(matches!(&refused, Outcome::Failed(content) if content.plain_text().contains("nothing was changed")));
    assert_eq!(stage.view(&id).await.unwrap().status(Form::Extension), TaskStatus::Working);
    let failed = stage.after_a_crash(9);
    assert_eq!(failed.view(&id).await.unwrap().status(Form::Extension), TaskStatus::Failed);
    stage.disk.mend();
    assert_eq!(text(&stage.until(&id, TaskStatus::Completed).await), "released");
}

#[tokio::test]
async fn after_a_sync_that_failed_a_task_ends_as_it_would_after_a_restart() {
    let mut stage = Stage::new();
    let id = stage.create("work", "hold").await.id;
    stage.report().await;
    stage.disk.fail(1, Fault::Once(ErrorKind::Other));
    stage.backend.gate.add_permits(1);
    stage.until(&id, TaskStatus::Failed).await;
    assert_eq!(stage.view(&id).await.unwrap().status(Form::Extension), TaskStatus::Failed);
    assert_eq!(stage.after_a_crash(2).view(&id).await.unwrap().status(Form::Extension), TaskStatus::Failed);
    let refused = stage.create_for("work", "return", TaskWish::default()).await.unwrap_err();
    assert!(refused.contains("cannot store tasks"), "{refused}");
}

#[tokio::test]
async fn what_is_kept_is_bounded_in_number_and_in_bytes() {
    let mut stage = Stage::limited(TaskLimits { kept: 2, ..TaskLimits::default() });
    stage.end("work", "return").await;
    stage.end("work", "return").await;
    let refused = stage.create_for("work", "return", TaskWish::default()).await.unwrap_err();
    assert!(refused.contains("2 tasks are kept, which is the limit"), "{refused}");
    stage.principal = Principal::named("another");
    stage.end("work", "return").await;
    stage.principal = Principal::LOCAL;
    stage.pass(Duration::from_secs(3600));
    stage.end("work", "return").await;

    for (bytes, kept) in [(100_000, false), (101_000, true)] {
        let mut stage = Stage::limited(TaskLimits { bytes, all_bytes: 50_000, ..TaskLimits::default() });
        let view = stage.end("work", "large").await;
        let view = stage.view(&view.id).await.unwrap();
        match kept {
            true => assert_eq!(text(&view).len(), 100_000),
            false => assert!(text(&view).contains("too large to be kept"), "{view:?}"),
        }
        let refused = stage.create_for("work", "return", TaskWish::default()).await;
        assert_eq!(refused.is_err(), kept, "{refused:?}");
    }
}

#[tokio::test]
async fn a_server_that_stops_ends_what_runs_and_keeps_what_waits() {
    let mut stage = Stage::new();
    let waits = stage.create("work", "ask").await.id;
    stage.until(&waits, TaskStatus::InputRequired).await;
    let runs = stage.create("work", "hold").await.id;
    assert_eq!(stage.report().await, began());
    stage.tasks.stop().await;
    let view = stage.view(&runs).await.unwrap();
    assert!(text(&view).contains("the server was stopped while this task ran"), "{view:?}");
    let refused = stage.create_for("work", "return", TaskWish::default()).await.unwrap_err();
    assert!(refused.contains("about to stop"), "{refused}");
    let restarted = stage.after_a_crash(4);
    assert_eq!(text(&restarted.view(&runs).await.unwrap()), text(&view));
    assert_eq!(text(&restarted.view(&waits).await.unwrap()), "name-1 age-2");
}

#[tokio::test]
async fn two_processes_share_a_folder_and_the_dead_ones_tasks_go_to_the_living() {
    let mut one = Stage::new();
    let two = one.after(one.disk.clone(), Arc::clone(&one.catalog));
    let ended = one.end("work", "return").await.id;
    let waits = one.create("work", "ask").await.id;
    one.until(&waits, TaskStatus::InputRequired).await;
    let runs = one.create("work", "hold").await.id;

    assert_eq!(text(&two.view(&ended).await.unwrap()), "returned");
    assert_eq!(two.view(&runs).await.unwrap().status(Form::Extension), TaskStatus::Working);
    for request in [TaskRequest::Cancel(runs.clone()), TaskRequest::Update(waits.clone(), Vec::new())] {
        let refused = two.ask(request).await;
        assert!(matches!(&refused, Outcome::Refused(why) if why.contains("another process")), "{refused:?}");
    }
    assert!(matches!(two.ask(TaskRequest::Cancel(ended.clone())).await, Outcome::Task(TaskAnswer::Done)));
    assert_eq!(one.view(&runs).await.unwrap().status(Form::Extension), TaskStatus::Working);

    // The death of the first is that of its lock.
    let disk = one.disk.crash(1);
    let two = one.after(disk.clone(), Arc::clone(&one.catalog));
    assert_eq!(text(&two.view(&ended).await.unwrap()), "returned");
    assert_eq!(two.view(&runs).await.unwrap().status(Form::Extension), TaskStatus::Failed);
    assert_eq!(two.view(&waits).await.unwrap().status(Form::Extension), TaskStatus::InputRequired);
}

#[tokio::test]
async fn a_damaged_a_newer_or_a_strangers_record_is_refused() {
    let mut stage = Stage::new();
    let id = stage.end("work", "return").await.id;
    let files = stage.disk.files();
    let (path, bytes) = files.iter().find(|(path, _)| path.extension().is_some()).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let read = |name: &str, bytes: &[u8]| keeper::adopt(name, bytes, &stage.catalog, 1_000_000);
    assert!(read(name, bytes).unwrap().is_some());
    for cut in 0..bytes.len() {
        assert!(read(name, &bytes[..cut]).is_err(), "cut at {cut}");
    }
    let changed = |from: &str, to: &str| String::from_utf8(bytes.clone()).unwrap().replace(from, to).into_bytes();
    use crate::core::store::Unreadable;
    assert_eq!(read(name, &changed(r#""v":1"#, r#""v":2"#)), Err(Unreadable::Newer(2, 1)));
    for (from, to) in [
        (r#""v":1"#, r#""v":0"#),
        (r#""rounds":0"#, r#""rounds":0,"more":1"#),
        (id.as_str(), "../x"),
        (id.as_str(), &"0".repeat(32)),
        (r#""local""#, r#""bob""#),
        (r#""{\"plan"#, r#""[{\"plan"#),
    ] {
        let bytes = changed(from, to);
        assert!(matches!(read(name, &bytes), Err(Unreadable::Corrupt(_))), "{from} {to}");
    }
}
