//! The same requests to the real oslo.middleware, in Python, and to us.

use anyhow::{Context as _, Result, ensure};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use magnum_api_shim::connections::Peers;
use magnum_api_shim::edge::forwarded::Outside;
use magnum_config::HealthBackend;
use magnum_tests::run_dir::run_dir;
use serde_json::{Value, json};

use magnum_tests::api_alone::{World, oslo};

/// Every combination of these header values; `None` leaves the header out.
fn combinations(choices: &[(&str, &[Option<&str>])]) -> Vec<Vec<(String, String)>> {
    let mut all = vec![Vec::new()];
    for (name, values) in choices {
        let with = |headers: &Vec<(String, String)>, value: &Option<&str>| {
            let mut headers = headers.clone();
            headers.extend(value.map(|value| ((*name).to_owned(), value.to_owned())));
            headers
        };
        all = all
            .iter()
            .flat_map(|headers| values.iter().map(move |value| with(headers, value)))
            .collect();
    }
    all
}

fn header_map(headers: &[(String, String)]) -> Result<HeaderMap> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(HeaderName::try_from(name)?, HeaderValue::from_str(value)?);
    }
    Ok(map)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxy_headers_are_read_as_oslo_reads_them() -> Result<()> {
    let mut cases = combinations(&[
        (
            "host",
            &[Some("api:9511"), Some("api:80"), Some("[::1]:9511"), Some("api:")],
        ),
        (
            "x-forwarded-proto",
            &[None, Some("https"), Some("HTTPS"), Some(""), Some("https,http")],
        ),
        (
            "x-forwarded-host",
            &[
                None,
                Some("cloud.example"),
                Some("cloud.example:443"),
                Some("a:80, b"),
                Some(""),
            ],
        ),
        (
            "x-forwarded-prefix",
            &[
                None,
                Some("/magnum"),
                Some("/magnum/"),
                Some("magnum"),
                Some("/a b%/~"),
            ],
        ),
        (
            "x-forwarded-for",
            &[None, Some("203.0.113.9"), Some("1.1.1.1, 203.0.113.9")],
        ),
        (
            "forwarded",
            &[
                None,
                Some("for=192.0.2.60;proto=https;host=f.example:443"),
                Some("For=\"[2001:db8::1]:80\" ; Proto = https, for=b;host=c"),
                Some("host=\"q.example\""),
                Some("proto=https;proto=http"),
                Some("proto=;;=;for"),
            ],
        ),
    ]);
    // A header that came twice.
    for name in ["x-forwarded-for", "x-forwarded-host", "forwarded"] {
        let twice = ["for=1.1.1.1", "for=2.2.2.2"].map(|value| (name.to_owned(), value.to_owned()));
        cases.push([vec![("host".to_owned(), "api".to_owned())], twice.to_vec()].concat());
    }
    let question: Vec<Value> = cases.iter().map(|headers| json!({"headers": headers})).collect();
    let expected = oslo("proxies", &json!(question)).await?;
    ensure!(expected.len() == cases.len() && cases.len() > 3000);
    let world = World::start(|settings| {
        settings.oslo_middleware.enable_proxy_headers_parsing = true;
        settings.api.max_connections = 16;
    })
    .await?;
    let client = reqwest::Client::new();
    let peers = Peers {
        client: "127.0.0.1:40000".parse()?,
        local: "127.0.0.1:9511".parse()?,
        tls: false,
    };
    for (number, (headers, oslo)) in cases.iter().zip(&expected).enumerate() {
        // The one difference: a slash at the end of the prefix is not doubled.
        let base = oslo["base"].as_str().context("a base")?.trim_end_matches('/');
        let map = header_map(headers)?;
        let ours = Outside::new(&map, &peers, true);
        ensure!(ours.base == base, "{headers:?}: {} instead of {base}", ours.base);
        ensure!(
            ours.client == oslo["client"],
            "{headers:?}: {} instead of {}",
            ours.client,
            oslo["client"]
        );
        if number % 29 == 0 {
            let sent = client.get(world.url("/")).headers(map);
            let body: Value = sent.send().await?.json().await?;
            let href = &body["versions"][0]["links"][0]["href"];
            ensure!(
                *href == format!("{base}/v1/"),
                "{headers:?}: {href} instead of {base}"
            );
        }
    }
    world.stop().await;
    Ok(())
}

fn list(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cors_answers_as_oslo_does() -> Result<()> {
    let magnum = json!({
        "allowed_origin": ["https://horizon.example", "http://other:8080"], "allow_credentials": true, "max_age": 3600,
        "allow_methods": ["GET", "PUT", "POST", "DELETE", "PATCH"], "allow_headers": ["X-Auth-Token", "X-Roles"],
        "expose_headers": ["X-Auth-Token", "X-OpenStack-Request-ID"],
    });
    let mut open = magnum.clone();
    open["allowed_origin"] = json!(["*"]);
    open["allow_credentials"] = json!(false);
    open["max_age"] = json!(0);
    open["expose_headers"] = json!([]);
    let mut cases = Vec::new();
    for options in [&magnum, &open] {
        for method in ["OPTIONS", "GET", "POST"] {
            for headers in combinations(&[
                (
                    "Origin",
                    &[
                        None,
                        Some("https://horizon.example"),
                        Some("https://HORIZON.example"),
                        Some("null"),
                    ],
                ),
                (
                    "Access-Control-Request-Method",
                    &[None, Some("POST"), Some("post"), Some("TRACE")],
                ),
                (
                    "Access-Control-Request-Headers",
                    &[
                        None,
                        Some("x-auth-token, Content-Type"),
                        Some("X-Other"),
                        Some(" ,"),
                    ],
                ),
            ]) {
                let headers: serde_json::Map<String, Value> = headers
                    .into_iter()
                    .map(|(name, value)| (name, json!(value)))
                    .collect();
                cases.push(json!({"options": options, "method": method, "headers": headers}));
            }
        }
    }
    let expected = oslo("cors", &json!(cases)).await?;
    let client = reqwest::Client::new();
    let mut allowed = 0;
    for options in [&magnum, &open] {
        let world = World::start(|settings| {
            let cors = &mut settings.cors;
            cors.allowed_origin = list(&options["allowed_origin"]);
            cors.allow_credentials = options["allow_credentials"] == true;
            cors.max_age = options["max_age"].as_i64().unwrap();
            cors.allow_methods = list(&options["allow_methods"]);
            cors.allow_headers = list(&options["allow_headers"]);
            cors.expose_headers = list(&options["expose_headers"]);
        })
        .await?;
        for (case, oslo) in cases
            .iter()
            .zip(&expected)
            .filter(|(case, _)| case["options"] == *options)
        {
            let method = case["method"].as_str().context("a method")?.parse()?;
            let mut request = client.request(method, world.url("/v1"));
            for (name, value) in case["headers"].as_object().context("headers")? {
                request = request.header(name, value.as_str().unwrap_or_default());
            }
            let answer = request.send().await?;
            if case["method"] == "OPTIONS" {
                ensure!(answer.status().as_u16() == 200, "{case}");
            }
            for name in [
                "vary",
                "access-control-allow-origin",
                "access-control-allow-credentials",
                "access-control-allow-methods",
                "access-control-allow-headers",
                "access-control-max-age",
                "access-control-expose-headers",
            ] {
                // A route that does not take the method has no version headers of ours.
                if name == "vary" && case["method"] == "POST" {
                    continue;
                }
                let ours = answer
                    .headers()
                    .get(name)
                    .map(|value| value.to_str())
                    .transpose()?;
                let theirs = oslo["headers"][name].as_str();
                ensure!(
                    ours.map(str::to_ascii_lowercase) == theirs.map(str::to_ascii_lowercase),
                    "{case}: {name} is {ours:?} instead of {theirs:?}"
                );
                allowed += usize::from(name == "access-control-allow-origin" && ours.is_some());
            }
        }
        world.stop().await;
    }
    ensure!(allowed > 20, "next to nothing was allowed: {allowed}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_origin_there_is_no_cors() -> Result<()> {
    let world = World::start(|_| {}).await?;
    let request = reqwest::Client::new()
        .request(reqwest::Method::OPTIONS, world.url("/v1/clusters"))
        .header("Origin", "https://horizon.example")
        .header("Access-Control-Request-Method", "GET");
    let answer = request.send().await?;
    ensure!(answer.status().as_u16() == 405);
    ensure!(answer.headers().get("access-control-allow-origin").is_none());
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_check_responds_like_oslo() -> Result<()> {
    let accepts = [
        None,
        Some(""),
        Some("*/*"),
        Some("text/plain"),
        Some("application/json"),
        Some("text/html"),
        Some("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
        Some("application/json;q=0.5, text/*;q=0.4"),
        Some("text/*;q=0.2, text/html;q=0.9, */*;q=0.1"),
        Some("text/plain;q=0, */*"),
        Some("image/png"),
        Some("application/json;version=1"),
        Some("application/json; q=1.000"),
        Some("application/json; q=7"),
        Some("json"),
        Some("TEXT/HTML"),
    ];
    let mut cases = Vec::new();
    for disabled in [false, true] {
        for backends in [json!(["disable_by_file"]), json!(["enable_by_files"]), json!([])] {
            for method in ["GET", "HEAD", "POST"] {
                for accept in accepts {
                    let case = json!({"disabled": disabled, "backends": backends, "method": method, "accept": accept});
                    cases.push(case);
                }
            }
        }
    }
    let expected = oslo("health", &json!(cases)).await?;
    let file = run_dir()?.folder("health")?.join("disable");
    let client = reqwest::Client::new();
    for (backends, named) in [
        (vec![HealthBackend::DisableByFile], json!(["disable_by_file"])),
        (vec![HealthBackend::EnableByFiles], json!(["enable_by_files"])),
        (Vec::new(), json!([])),
    ] {
        let world = World::start(|settings| {
            settings.healthcheck.backends = backends;
            settings.healthcheck.disable_by_file_path = Some(file.clone());
            settings.healthcheck.enable_by_file_paths = vec![file.clone()];
        })
        .await?;
        for (case, oslo) in cases
            .iter()
            .zip(&expected)
            .filter(|(case, _)| case["backends"] == named)
        {
            if case["disabled"] == true {
                std::fs::write(&file, "")?;
            } else if file.exists() {
                std::fs::remove_file(&file)?;
            }
            let method: reqwest::Method = case["method"].as_str().context("a method")?.parse()?;
            let mut request = client.request(method, world.url("/healthcheck/below"));
            if let Some(accept) = case["accept"].as_str() {
                request = request.header("accept", accept);
            }
            let answer = request.send().await?;
            ensure!(answer.headers().get("x-openstack-request-id").is_none());
            let form = answer.headers().get("content-type");
            let form = form.map(|value| value.to_str()).transpose()?;
            let form = form.and_then(|text| text.split(';').next()).map(str::to_owned);
            ensure!(
                answer.status().as_u16() == oslo["status"],
                "{case}: {} {oslo}",
                answer.status()
            );
            let body = answer.text().await?;
            ensure!(
                oslo["type"].as_str() == form.as_deref(),
                "{case}: {form:?} instead of {}",
                oslo["type"]
            );
            if form.as_deref() == Some("text/html") {
                let (ours, theirs) = (
                    body.contains("DISABLED"),
                    oslo["body"].to_string().contains("DISABLED"),
                );
                ensure!(ours == theirs && body.contains("checks:"), "{case}: {body}");
            } else {
                ensure!(
                    oslo["body"] == body,
                    "{case}: {body:?} instead of {}",
                    oslo["body"]
                );
            }
        }
        world.stop().await;
    }
    Ok(())
}
