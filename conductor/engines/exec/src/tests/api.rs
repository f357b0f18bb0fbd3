//! The call `api`, with real programs.

use magnum_common::ids::OperationId;
use magnum_driver_api::{ApiCall, ApiReply, ApiStatus};
use magnum_drivers::{ApiMethod, ApiRoute, ApiRoutes};

use super::*;

fn with_routes(body: &str) -> Script {
    let mut it = script(body);
    it.driver.info.api = ApiRoutes::new(vec![ApiRoute {
        path: "usage".into(),
        methods: vec![ApiMethod::Get],
        policy: "cluster:get".into(),
        read_only: true,
    }]);
    it
}

async fn ask(it: &Script, cancel: &CancellationToken) -> Result<ApiReply, DriverError> {
    let context = context();
    let body = json!({"text": "hello"}).as_object().unwrap().clone();
    let call = ApiCall {
        path: "usage",
        method: ApiMethod::Put,
        query: &[("a".into(), "1".into()), ("a".into(), "2".into())],
        body: Some(&body),
        cluster: &Cluster::new("c-1".into(), "t-1".into()),
        node_groups: &[],
        template: &ClusterTemplate::new("t-1".into()),
        context: &context,
        operation: Some(&OperationId::new("o-1")),
        time_left: Duration::from_secs(30),
        cancel: cancel.clone(),
    };
    it.driver.api(&call).await
}

#[tokio::test]
async fn a_program_gets_the_route_and_the_users_words_and_its_reply_loses_the_token() {
    let it = with_routes(
        r#"cat > request; env > environment; ls "$MAGNUM_CA_DIR" > certificates
           echo '{"progress": "looking"}'
           echo '{"result": {"status": 200, "body": {"stolen": "tok-of-the-caller"}}}'"#,
    );
    let reply = ask(&it, &CancellationToken::new()).await.unwrap();
    assert_eq!(reply.status, ApiStatus::Ok);
    assert_eq!(reply.body, json!({"stolen": "***"}));
    let request: Value = serde_json::from_str(&it.file("request")).unwrap();
    for (key, value) in [
        ("call", json!("api")),
        ("operation", json!("o-1")),
        ("path", json!("usage")),
        ("method", json!("PUT")),
        ("query", json!([["a", "1"], ["a", "2"]])),
        ("body", json!({"text": "hello"})),
        ("seconds_left", json!(30)),
    ] {
        assert_eq!(request[key], value, "{key}");
    }
    assert_eq!(request["cluster"]["uuid"], "c-1");
    assert_eq!(request["context"]["auth_token"], TOKEN);
    let environment = it.file("environment");
    assert!(environment.contains("MAGNUM_CALL=api") && environment.contains("MAGNUM_OPERATION_ID=o-1"));
    assert!(!environment.contains(TOKEN));
    assert_eq!(it.file("certificates"), "ca.crt\nclient.crt\nclient.key\n");
}

#[tokio::test]
async fn a_driver_without_routes_is_not_started() {
    let it = script("echo started > started; echo '{\"result\": {\"status\": 204}}'");
    let refused = ask(&it, &CancellationToken::new()).await;
    assert!(
        matches!(refused, Err(DriverError::NotSupported(_))),
        "{refused:?}"
    );
    assert!(!it.folder.path().join("started").exists());
}

#[tokio::test]
async fn output_without_a_reply_is_an_error_by_its_kind() {
    for (body, words) in [
        ("echo '{\"result\": {\"cluster\": {}}}'", "broke the protocol"),
        ("echo '{\"result\": {\"status\": 503}}'", "status 503 is none of"),
        (
            "echo '{\"result\": {\"status\": 204}}'; echo '{\"result\": {\"status\": 204}}'",
            "a second result",
        ),
        ("true", "without a line that holds a result"),
        ("exit 3", "exit code 3"),
    ] {
        let failed = ask(&with_routes(body), &CancellationToken::new()).await;
        let Err(DriverError::Permanent(reason)) = failed else {
            panic!("{body}: {failed:?}");
        };
        assert!(reason.whole().contains(words), "{body}: {reason}");
    }
    let away = ask(&with_routes("exit 75"), &CancellationToken::new()).await;
    assert!(matches!(away, Err(DriverError::Transient(_))), "{away:?}");
    let said = ask(
        &with_routes("echo '{\"error\": \"not here\", \"class\": \"not_supported\"}'; exit 1"),
        &CancellationToken::new(),
    )
    .await;
    assert_eq!(said, Err(DriverError::NotSupported("not here".into())));
}

#[tokio::test]
async fn a_call_that_is_cancelled_leaves_no_program() {
    let it = with_routes("echo $$ > pid; while true; do sleep 1; done");
    let cancel = CancellationToken::new();
    let begun = async {
        while !it.folder.path().join("pid").exists() {
            sleep(Duration::from_millis(20)).await;
        }
        cancel.cancel();
    };
    let (reply, ()) = tokio::join!(ask(&it, &cancel), begun);
    assert_eq!(reply, Err(DriverError::Cancelled));
    let pid = it.file("pid");
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "{pid} works on");
}
