use super::shown::ShownArgs;
use crate::interrupts::{catch_interrupts, interrupted};
use crate::output::{Output, print, print_json};
use anyhow::{Context, Result};
use clap::Args;
use latens_explorer::Server;
use serde_json::json;
use std::net::IpAddr;

/// Explore models in the browser
///
/// Serves a page on this machine, prints its address, and opens it in the browser. The page shows the topics, states,
/// clusters, vectors, tags and predictions of models, the topics of documents, and the curves of training runs while they
/// run. Ctrl-C stops the server. Only programs on this machine can connect, unless `--host` is given.
#[derive(Args)]
pub(crate) struct ExploreArgs {
    #[command(flatten)]
    shown: ShownArgs,
    /// Port to listen on; 0 is any free port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Address to listen on, e.g., `0.0.0.0`, so that other machines can connect; the printed address contains a secret
    /// token [default: this machine only]
    #[arg(long, value_name = "ADDRESS")]
    host: Option<IpAddr>,
    /// Do not open the browser
    #[arg(long)]
    no_browser: bool,
}

pub(crate) fn run(args: &ExploreArgs, output: &Output) -> Result<()> {
    let explorer = args.shown.open(output)?;
    let server = Server::bind(explorer, args.host, args.port).with_context(|| {
        let host = args.host.map_or("localhost".to_owned(), |host| host.to_string());
        format!("cannot listen on port {} of `{host}`", args.port)
    })?;
    catch_interrupts();
    let url = server.url();
    if output.is_json() {
        print_json(&json!({ "url": url }))?;
    } else {
        print(|out| writeln!(out, "{url}"))?;
    }
    output.note("press Ctrl-C to stop the explorer");
    if !args.no_browser && open::that_detached(&url).is_err() {
        output.note("cannot open a browser: open the address above");
    }
    server.run(interrupted).context("the server has failed")
}
