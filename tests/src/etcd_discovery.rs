//! A stand-in for the public discovery service of etcd, which a Heat driver asks once for each cluster: it names a place
//! for a cluster of so many members. No member ever comes there.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::routing::get;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::OnceCell;

#[derive(Deserialize)]
struct New {
    size: u32,
}

/// The value of `[cluster] etcd_discovery_service_endpoint_format` for the one that all tests of this process share. It
/// runs on a thread of its own, as tests come and go.
pub async fn endpoint_format() -> Result<String> {
    static SHARED: OnceCell<SocketAddr> = OnceCell::const_new();
    let address = SHARED.get_or_try_init(start).await?;
    Ok(format!("http://{address}/new?size=%(size)d"))
}

async fn start() -> Result<SocketAddr> {
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            let app = Router::new()
                .route("/new", get(place))
                .route("/{token}/_config/size", get(size))
                .with_state(address);
            tell.send(address).ok().context("nobody wants it any more")?;
            Ok(axum::serve(listener, app).await?)
        })
    });
    told.await
        .context("the stand-in for the discovery service did not start")
}

/// The size stands in the token, so that nothing need be remembered.
async fn place(State(own): State<SocketAddr>, Query(new): Query<New>) -> String {
    format!("http://{own}/{}-{}", new.size, uuid::Uuid::new_v4().simple())
}

async fn size(Path(token): Path<String>) -> String {
    let size = token.split('-').next().unwrap_or_default();
    format!("{{\"action\":\"get\",\"node\":{{\"key\":\"/{token}/_config/size\",\"value\":\"{size}\"}}}}")
}
