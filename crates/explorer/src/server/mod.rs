//! The server of the page: HTTP on the loopback address, with limits on everything that a client sends.

mod limits;
mod access;
mod connections;
mod requests;

use crate::explorer::Explorer;
use access::Access;
use connections::accept;
pub use limits::Limits;
use requests::Shared;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

/// A server that is bound to an address, and not yet running.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    access: Access,
    explorer: Arc<Explorer>,
    limits: Limits,
}

impl Server {
    /// Binds to a port; 0 is any free one.
    ///
    /// Without a host, only programs on this machine can connect. With a host, others can, and the URL contains a random
    /// token that they need.
    pub fn bind(explorer: Explorer, host: Option<IpAddr>, port: u16) -> io::Result<Server> {
        let address = SocketAddr::new(host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), port);
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let access = match host {
            None => Access::Local { port: address.port() },
            Some(_) => Access::with_random_token()?,
        };
        let (explorer, limits) = (Arc::new(explorer), Limits::default());
        Ok(Server { listener, address, access, explorer, limits })
    }

    /// Replaces the limits.
    pub fn limits(mut self, limits: Limits) -> Server {
        self.limits = limits;
        self
    }

    /// The URL of the page, with the token if there is one.
    pub fn url(&self) -> String {
        match &self.access {
            Access::Local { port } => format!("http://localhost:{port}/"),
            Access::Token(token) => format!("http://{}/{token}/", self.address),
        }
    }

    /// The address that the server is bound to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `stop` returns true, which is checked several times per second.
    pub fn run(self, stop: impl Fn() -> bool) -> io::Result<()> {
        self.listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            // Work that has run out of time still ends by itself.
            .max_blocking_threads(self.limits.max_work)
            .build()?;
        let prepared = Arc::clone(&self.explorer);
        std::thread::spawn(move || prepared.prepare());
        let shared = Arc::new(Shared::new(self.explorer, self.access, self.limits));
        let served = runtime.block_on(accept(self.listener, shared, &stop));
        runtime.shutdown_background();
        served
    }
}
