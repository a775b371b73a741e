//! The file becomes settings, or faults: all of them at once.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use http::Uri;
use http::uri::Authority;
use toml::Spanned;
use tower_idempotency::channel::ByPath;

use crate::channels;
use crate::fault::Faults;
use crate::file::{File, Route};

/// What the gateway does.
pub(crate) struct Settings {
    pub(crate) listen: SocketAddr,
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) drain: Duration,
    pub(crate) routes: Vec<RouteSettings>,
}

pub(crate) struct RouteSettings {
    pub(crate) path: String,
    pub(crate) upstream: Authority,
    /// The route's channel, at its path; none where everything streams through.
    pub(crate) channels: ByPath,
    pub(crate) mode: Mode,
    /// The upstream sends its replies by itself.
    pub(crate) reply_elsewhere: bool,
    pub(crate) keep: Option<Duration>,
    pub(crate) wait: Option<Duration>,
    pub(crate) timeout: Duration,
    pub(crate) max_request: Option<usize>,
}

/// When a route's senders are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    InLine,
    AckFirst,
}

/// Reads a secret by its name.
pub(crate) type Secrets<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Settings {
    /// Reads and checks a file's text.
    pub(crate) fn of<'a>(
        path: &'a str,
        text: &'a str,
        secrets: Secrets<'_>,
    ) -> Result<Self, Faults<'a>> {
        let mut faults = Faults::new(path, text);
        let file: File = match toml::from_str(text) {
            Ok(file) => file,
            Err(error) => {
                faults.add_unread(&error);
                return Err(faults);
            }
        };
        let listen = address(&file.listen, "listen", &mut faults);
        let metrics = file.metrics.as_ref();
        let metrics = metrics.and_then(|it| address(it, "metrics", &mut faults));
        let drain = duration(file.drain.as_ref(), "drain", &mut faults);
        if file.routes.is_empty() {
            faults.add(0..0, "route", "there is none");
        }
        let mut paths = HashSet::new();
        let mut routes = Vec::new();
        for route in &file.routes {
            routes.extend(RouteSettings::of(route, secrets, &mut faults));
            let path = &route.get_ref().path;
            if !paths.insert(path.get_ref()) {
                faults.add(path.span(), "route.path", "another route has it");
            }
        }
        match listen {
            Some(listen) if faults.is_empty() => Ok(Self {
                listen,
                metrics,
                drain: drain.unwrap_or(Duration::from_secs(30)),
                routes,
            }),
            Some(_) | None => Err(faults),
        }
    }
}

impl RouteSettings {
    fn of(route: &Spanned<Route>, secrets: Secrets<'_>, faults: &mut Faults<'_>) -> Option<Self> {
        let file = route.get_ref();
        let path = file.path.get_ref();
        if !path.starts_with('/') {
            faults.add(file.path.span(), "route.path", "must begin with /");
        }
        let mode = mode(file.mode.as_ref(), faults);
        if let (Mode::AckFirst, Some(wait)) = (mode, &file.wait) {
            faults.add(wait.span(), "route.wait", "nobody waits with ack-first");
        }
        if let (Mode::InLine, Some(elsewhere)) = (mode, &file.reply_elsewhere) {
            let what = "has no meaning in line";
            faults.add(elsewhere.span(), "route.reply_elsewhere", what);
        }
        let timeout = duration(file.timeout.as_ref(), "route.timeout", faults);
        Some(Self {
            path: path.clone(),
            channels: channels::of(route, secrets, faults),
            mode,
            reply_elsewhere: file
                .reply_elsewhere
                .as_ref()
                .is_some_and(|it| *it.get_ref()),
            keep: duration(file.keep.as_ref(), "route.keep", faults),
            wait: duration(file.wait.as_ref(), "route.wait", faults),
            timeout: timeout.unwrap_or(Duration::from_mins(1)),
            max_request: file.max_request.as_ref().map(|it| *it.get_ref()),
            upstream: upstream(&file.upstream, faults)?,
        })
    }
}

fn mode(value: Option<&Spanned<String>>, faults: &mut Faults<'_>) -> Mode {
    let Some(value) = value else {
        return Mode::InLine;
    };
    match value.get_ref().as_str() {
        "in-line" => Mode::InLine,
        "ack-first" => Mode::AckFirst,
        other => {
            let what = format!("{other:?} is none; the modes are in-line and ack-first");
            faults.add(value.span(), "route.mode", what);
            Mode::InLine
        }
    }
}

fn address(value: &Spanned<String>, field: &str, faults: &mut Faults<'_>) -> Option<SocketAddr> {
    let address = value.get_ref().parse().ok();
    if address.is_none() {
        faults.add(value.span(), field, "is no address such as 127.0.0.1:8080");
    }
    address
}

fn duration(
    value: Option<&Spanned<String>>,
    field: &str,
    faults: &mut Faults<'_>,
) -> Option<Duration> {
    let value = value?;
    match humantime::parse_duration(value.get_ref()) {
        Ok(duration) => Some(duration),
        Err(error) => {
            let what = format!("is no time such as 30s or 8days: {error}");
            faults.add(value.span(), field, what);
            None
        }
    }
}

fn upstream(value: &Spanned<String>, faults: &mut Faults<'_>) -> Option<Authority> {
    let uri: Option<Uri> = value.get_ref().parse().ok();
    let fault = match uri.as_ref().and_then(Uri::scheme_str) {
        Some("http") => match uri.as_ref().map(Uri::path) {
            Some("/") => return uri.and_then(|uri| uri.authority().cloned()),
            _ => "has a path; requests keep their own",
        },
        Some("https") => "https is not supported; the upstream stands on the same side",
        _ => "is no URL such as http://127.0.0.1:9000",
    };
    faults.add(value.span(), "route.upstream", fault);
    None
}
