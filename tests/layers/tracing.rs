//! Tracing and request ids on either side: what a run says after its caller left has its spans.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tower::ServiceBuilder;
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::trace::{DefaultMakeSpan, TraceLayer};
use tracing_subscriber::fmt::MakeWriter;

use crate::app::{layer, message, router, send};

/// Keeps what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_caller_left_is_traced_in_the_spans_of_both_sides() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(::tracing::Level::INFO)
        .with_ansi(false)
        .with_writer(log.clone())
        .finish();
    let _guard = ::tracing::subscriber::set_default(subscriber);
    for outside in [true, false] {
        let layer = layer();
        let (router, _) = router();
        let trace = TraceLayer::new_for_http()
            .make_span_with(DefaultMakeSpan::new().level(::tracing::Level::INFO));
        let app = if outside {
            router.layer(layer.clone()).layer(trace)
        } else {
            router.layer(trace).layer(layer.clone())
        };
        let left = send(&app, message(&[("x-slow", "yes")]));
        assert!(
            tokio::time::timeout(Duration::from_secs(1), left)
                .await
                .is_err()
        );
        assert_eq!(layer.drain(Duration::from_mins(2)).await, 0);
        let said = String::from_utf8(std::mem::take(&mut *log.0.lock().unwrap())).unwrap();
        let handled = said
            .lines()
            .find(|line| line.contains("is handled"))
            .unwrap();
        assert!(handled.contains("request{method=POST"), "{handled}");
    }
}

fn ids() -> (SetRequestIdLayer<MakeRequestUuid>, PropagateRequestIdLayer) {
    let make = SetRequestIdLayer::x_request_id(MakeRequestUuid);
    (make, PropagateRequestIdLayer::x_request_id())
}

/// Field case B30.
#[tokio::test]
async fn request_ids_outside_are_each_requests_own_and_inside_the_first_ones() {
    for outside in [true, false] {
        let (router, _) = router();
        let ids = ServiceBuilder::new().layer(ids().0).layer(ids().1);
        let app = if outside {
            router.layer(layer()).layer(ids)
        } else {
            router.layer(ids).layer(layer())
        };
        let first = send(&app, message(&[])).await;
        let second = send(&app, message(&[])).await;
        assert!(second.is_replayed() && !first.header("x-request-id").is_empty());
        let own = first.header("x-request-id") != second.header("x-request-id");
        assert_eq!(own, outside);
    }
}
