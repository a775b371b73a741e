//! A boxed store keeps the contract of the store inside, and a URL chooses the kind.
#![cfg_attr(
    feature = "testing",
    expect(
        clippy::unwrap_used,
        reason = "a panic is how the helpers of a test fail"
    )
)]

use tower_idempotency::store::connect;

#[cfg(feature = "testing")]
mod memory {
    use tower_idempotency::store::{BoxStore, connect};

    async fn fresh() -> BoxStore {
        connect("memory:").await.unwrap()
    }

    tower_idempotency::store_contract!(fresh);
    tower_idempotency::queue_contract!(fresh);
}

#[cfg(all(feature = "sqlite", feature = "testing"))]
mod sqlite {
    use tempfile::TempDir;
    use tower_idempotency::store::{BoxStore, connect};

    async fn open(folder: TempDir) -> (BoxStore, TempDir) {
        let path = folder.path().join("chat.db");
        let url = format!("sqlite:{}", path.display());
        (connect(&url).await.unwrap(), folder)
    }

    async fn fresh() -> (BoxStore, TempDir) {
        open(tempfile::tempdir().unwrap()).await
    }

    async fn reopen((store, folder): (BoxStore, TempDir)) -> (BoxStore, TempDir) {
        drop(store);
        open(folder).await
    }

    tower_idempotency::store_contract!(fresh, reopen);
    tower_idempotency::queue_contract!(fresh, reopen);
}

#[cfg(feature = "sqlite")]
mod files {
    use tower_idempotency::store::connect;

    #[tokio::test]
    async fn two_slashes_may_stand_before_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chat.db");
        let url = format!("sqlite://{}", path.display());
        drop(connect(&url).await.unwrap());
        assert!(path.exists());
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_opened_is_told_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deeper/chat.db");
        let error = connect(&format!("sqlite:{}", path.display())).await;
        assert!(error.unwrap_err().is_misconfigured());
    }
}

#[tokio::test]
async fn a_url_of_no_known_scheme_is_misconfigured() {
    for url in ["", "memory", "chat.db", "redis://localhost", "Memory:"] {
        let error = connect(url).await.unwrap_err();
        assert!(error.is_misconfigured(), "{url}: {error:?}");
    }
}

#[tokio::test]
async fn nothing_stands_behind_memory() {
    let error = connect("memory:chat.db").await.unwrap_err();
    assert!(error.is_misconfigured(), "{error:?}");
}

#[tokio::test]
async fn an_error_does_not_show_the_url() {
    let error = connect("redis://alice:secret@localhost").await.unwrap_err();
    assert!(!format!("{error:?} {error}").contains("secret"));
}
