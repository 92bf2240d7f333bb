//! Connections: accepted up to a limit, and closed after a while.

use super::requests::{Shared, answer};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Interval at which the server checks whether it should stop.
const CHECK: Duration = Duration::from_millis(100);
/// Size of the header of a request in bytes.
const MAX_HEADER: usize = 16 << 10;

/// Accepts connections until `stop` returns true.
pub(crate) async fn accept(
    listener: std::net::TcpListener,
    shared: Arc<Shared>,
    stop: &dyn Fn() -> bool,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(shared.limits.max_connections));
    while !stop() {
        let Ok(place) = timeout(CHECK, Arc::clone(&places).acquire_owned()).await else { continue };
        let Ok(place) = place else { break };
        match timeout(CHECK, listener.accept()).await {
            Ok(Ok((stream, _))) => {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    serve(stream, shared).await;
                    drop(place);
                });
            }
            // Too many open files, or a client that has left: the next one may do better.
            Ok(Err(_)) => sleep(CHECK).await,
            Err(_) => {}
        }
    }
    Ok(())
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let limits = shared.limits.clone();
    // Answers are small: do not wait for more.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(request, Arc::clone(&shared)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.header_time).max_buf_size(MAX_HEADER);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    if timeout(limits.connection_time, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(limits.request_time, connection).await;
    }
}
