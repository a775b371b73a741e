//! Behind PgBouncer in transaction mode, where each statement may meet another server connection.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tower_idempotency::store::{PostgresStore, Prepared, Store, Verdict};

use crate::cluster::{self, Cluster};
use crate::database::{Schema, client};
use crate::fixture::options;
use crate::hand::{claim_of, done, is_done, key, look, settle, until};

/// A running pooler; stopped when dropped.
struct Pooler {
    process: Child,
    folder: TempDir,
}

impl Pooler {
    /// Transaction mode, two connections to the server.
    async fn before(cluster: &Cluster) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let users = folder.path().join("users");
        let settings = folder.path().join("pgbouncer.ini");
        fs::write(&users, "\"postgres\" \"\"\n").unwrap();
        let text = format!(
            "[databases]\npostgres = host={} user=postgres\n[pgbouncer]\n\
             unix_socket_dir = {}\nlisten_addr =\nauth_type = any\nauth_file = {}\n\
             pool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 200\n\
             ignore_startup_parameters = extra_float_digits\nlisten_port = 5432\n",
            cluster.socket().display(),
            folder.path().display(),
            users.display(),
        );
        fs::write(&settings, text).unwrap();
        if cluster::is_root() {
            let mut owner = Command::new("chown");
            owner.args(["-R", "nobody"]).arg(folder.path());
            assert!(owner.status().unwrap().success());
        }
        let process = cluster::unprivileged(&program())
            .arg(&settings)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let pooler = Self { process, folder };
        let socket = pooler.folder.path().join(".s.PGSQL.5432");
        until("the pooler listens", async || {
            UnixStream::connect(&socket).await.ok()
        })
        .await;
        pooler
    }

    fn url(&self) -> String {
        cluster::url(self.folder.path())
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn program() -> PathBuf {
    let named = std::env::var_os("PGBOUNCER").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("pgbouncer"));
    named
        .into_iter()
        .chain(on_path)
        .chain([Path::new("/usr/sbin/pgbouncer").to_owned()])
        .find(|program| program.exists())
        .expect("pgbouncer is not there: run ./test")
}

/// 500 messages by four stores; one of the server's connections is ended in the middle.
async fn run_through(prepared: Prepared) {
    let cluster = Cluster::start(&[]);
    let pooler = Pooler::before(&cluster).await;
    let schema = Schema::new(&cluster.url());
    let mut stores = Vec::new();
    for _ in 0..4 {
        let options = options(&schema).prepared(prepared);
        let store = PostgresStore::connect_with(&pooler.url(), &options)
            .await
            .unwrap();
        store.migrate().await.unwrap();
        stores.push(store);
    }
    let mut messages = JoinSet::new();
    for number in 0..500 {
        messages.spawn(handle(stores[number % 4].clone(), number));
        if number == 250 {
            end_a_connection(&cluster).await;
        }
    }
    messages.join_all().await;
    for number in 0..500 {
        assert!(is_done(&look(&stores[0], &key(number)).await), "{number}");
    }
}

/// One attempt, again until it is answered. Nobody else has the key, so it is granted.
async fn handle(store: PostgresStore, number: usize) {
    let claim = claim_of(&[key(number)]);
    let verdict = loop {
        if let Ok(mut verdicts) = store.claim(&claim).await {
            break verdicts.pop().unwrap();
        }
        sleep(Duration::from_millis(20)).await;
    };
    let Verdict::Run(lease) = verdict else {
        panic!("{number} is reported taken, and is not: {verdict:?}");
    };
    assert_eq!(lease.attempt(), 1);
    let end = done(lease);
    while settle(&store, &end).await.is_err() {
        sleep(Duration::from_millis(20)).await;
    }
}

async fn end_a_connection(cluster: &Cluster) {
    let client = client(&cluster.url()).await;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE application_name = 'tower-idempotency' LIMIT 1";
    client.batch_execute(end).await.unwrap();
}

/// Field case B75.
#[tokio::test(flavor = "multi_thread")]
async fn statements_are_sent_as_text_through_a_pooler() {
    run_through(Prepared::Never).await;
}

/// Field case B75.
#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_that_loses_prepared_statements_is_noticed_and_served() {
    run_through(Prepared::PerConnection).await;
}
