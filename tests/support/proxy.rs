//! A proxy between a store and its server that cuts, delays or swallows either direction.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::cluster;

/// What happens to what is sent in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It is passed on.
    Open,
    /// It is passed on so much later.
    Late(Duration),
    /// It is read and lost, and the connection stays: no end, no reset.
    Swallow,
    /// The next bytes are lost and their connection is cut; what comes later is passed on.
    CutOnce,
}

/// A listening proxy; connections end when it is dropped.
pub(crate) struct Proxy {
    folder: TempDir,
    rules: Arc<Rules>,
    _tasks: JoinSet<()>,
}

struct Rules {
    to_server: watch::Sender<Way>,
    to_client: watch::Sender<Way>,
    accepted: AtomicU32,
    /// Connections with a number below this one are silent in both directions.
    muted: AtomicU32,
}

impl Proxy {
    /// A proxy before the server whose socket is in this folder.
    pub(crate) fn before(server: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rules = Arc::new(Rules {
            to_server: watch::Sender::new(Way::Open),
            to_client: watch::Sender::new(Way::Open),
            accepted: AtomicU32::new(0),
            muted: AtomicU32::new(0),
        });
        let listener = UnixListener::bind(folder.path().join(SOCKET)).unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, server.join(SOCKET), Arc::clone(&rules)));
        Self {
            folder,
            rules,
            _tasks: tasks,
        }
    }

    /// The URL that leads through the proxy.
    pub(crate) fn url(&self) -> String {
        cluster::url(self.folder.path())
    }

    /// What happens from now on to what the store sends.
    pub(crate) fn to_server(&self, way: Way) {
        self.rules.to_server.send_replace(way);
    }

    /// What happens from now on to what the server answers.
    pub(crate) fn to_client(&self, way: Way) {
        self.rules.to_client.send_replace(way);
    }

    /// How many connections were made so far.
    pub(crate) fn accepted(&self) -> u32 {
        self.rules.accepted.load(Ordering::Relaxed)
    }

    /// The connections made so far swallow everything from now on; gives their number.
    pub(crate) fn mute_the_open_ones(&self) -> u32 {
        let accepted = self.accepted();
        self.rules.muted.store(accepted, Ordering::Relaxed);
        accepted
    }
}

const SOCKET: &str = ".s.PGSQL.5432";

async fn accept(listener: UnixListener, server: PathBuf, rules: Arc<Rules>) {
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let number = rules.accepted.fetch_add(1, Ordering::Relaxed);
        // Without a server behind it the connection is closed at once.
        let Ok(server) = UnixStream::connect(&server).await else {
            continue;
        };
        connections.spawn(serve((client, server), number, Arc::clone(&rules)));
        while connections.try_join_next().is_some() {}
    }
}

/// Ends, and closes both sides, when either direction ends.
async fn serve((client, server): (UnixStream, UnixStream), number: u32, rules: Arc<Rules>) {
    let (client_reads, client_writes) = client.into_split();
    let (server_reads, server_writes) = server.into_split();
    let way = |rule: &watch::Sender<Way>| {
        if number < rules.muted.load(Ordering::Relaxed) {
            return Way::Swallow;
        }
        let way = *rule.borrow();
        if way == Way::CutOnce {
            rule.send_replace(Way::Open);
        }
        way
    };
    tokio::select! {
        () = pass(client_reads, server_writes, || way(&rules.to_server)) => {}
        () = pass(server_reads, client_writes, || way(&rules.to_client)) => {}
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, way: impl Fn() -> Way) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        match way() {
            Way::Open => {}
            Way::Late(time) => sleep(time).await,
            Way::Swallow => continue,
            Way::CutOnce => return,
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
