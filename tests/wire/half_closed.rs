//! A client that has sent everything and closes its side, but still reads, is not one that left.

use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::app::App;
use crate::peer::Ask;
use crate::peer::raw::{Raw, head};
use crate::rows::until;
use crate::server::{Layered, layer, layered};

/// Whether the server takes the end of what is sent for the end of the connection or not: the
/// message runs once and is recorded. Where it does not, the client reads its answer.
///
/// Field case B83.
#[tokio::test]
async fn a_client_that_only_reads_on_has_its_message_recorded() {
    for reads_on in [true, false] {
        let (app, layer) = (App::default(), layer());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(serve(listener, (app.clone(), layer.clone()), reads_on));
        let message = Ask::new("k", "waits");
        let mut raw = Raw::connect(address).await;
        raw.write(head(&message, "content-length: 5")).await;
        raw.write("hello").await;
        until(|| app.runs() == 1).await;
        raw.io.shutdown().await.unwrap();
        if !reads_on {
            until(|| layer.counts().detached == 1).await;
        }
        app.go.notify_one();
        if reads_on {
            let seen = raw.answer().await.unwrap();
            assert_eq!((seen.status, seen.body), (200, b"at last".to_vec()));
        }
        assert_eq!(layer.drain(Duration::from_secs(10)).await, 0);
        let repeat = Raw::connect(address).await.ask(&message).await;
        assert!(repeat.is_replayed(), "{repeat:?}");
        assert_eq!((repeat.body, app.runs()), (b"at last".to_vec(), 1));
        server.abort();
    }
}

/// A server that reads on behind the end of a request, or takes it for the client's end.
async fn serve(listener: TcpListener, (app, layer): (App, Layered), reads_on: bool) {
    let service = TowerToHyperService::new(layered(app, layer));
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let mut http = http1::Builder::new();
        let http = http.half_close(reads_on);
        // A client that left is no fault here.
        tokio::spawn(http.serve_connection(TokioIo::new(stream), service.clone()));
    }
}
