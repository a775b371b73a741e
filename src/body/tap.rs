//! Bodies that pass untouched and are copied on the way, for a layer that only looks.

use std::fmt;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use tokio::sync::oneshot::{Receiver, Sender, channel};

use crate::body::read::length;
use crate::record::Whole;

/// What was copied of a body. Where nothing comes, it was not passed on to its end.
#[derive(Debug)]
pub(crate) enum Copied {
    Whole(Whole),
    /// It is over the limit; the trailers tell how it ended, where that was waited for.
    TooLarge(Option<HeaderMap>),
    /// It broke, or is not as long as it says.
    Broken,
}

/// How a body that is over the limit is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beyond {
    /// No further: nothing more is to be known.
    GiveUp,
    /// To its end, for its trailers.
    ToTheEnd,
}

/// Copies what passes, up to a limit.
pub(crate) struct Tap {
    whole: Whole,
    read: u64,
    most: u64,
    beyond: Beyond,
    /// How long the body says that it is.
    declared: Option<u64>,
    /// `None` once all is told.
    to: Option<Sender<Copied>>,
}

impl Tap {
    /// A tap, and where its copy comes out.
    pub(crate) fn new(most: usize, beyond: Beyond) -> (Self, Receiver<Copied>) {
        let (to, copied) = channel();
        let tap = Self {
            whole: Whole::default(),
            read: 0,
            most: u64::try_from(most).unwrap_or(u64::MAX),
            beyond,
            declared: None,
            to: Some(to),
        };
        (tap, copied)
    }

    /// Told before the first frame: how long the body says that it is, and whether it is empty.
    pub(crate) fn begin(&mut self, declared: Option<u64>, has_ended: bool) {
        self.declared = declared;
        self.whole.sized = declared.is_some();
        if has_ended {
            self.end();
        }
    }

    /// Told of each frame, or of the error in its place; `has_ended` says that no more comes.
    pub(crate) fn pass<E>(&mut self, frame: Option<&Result<Frame<Bytes>, E>>, has_ended: bool) {
        match frame {
            Some(Ok(frame)) => self.copy(frame),
            Some(Err(_)) => self.tell(Copied::Broken),
            None => {}
        }
        if frame.is_none() || has_ended {
            self.end();
        }
    }

    fn copy(&mut self, frame: &Frame<Bytes>) {
        if let Some(data) = frame.data_ref() {
            self.read += length(data);
            if self.read <= self.most && self.to.is_some() {
                self.whole.frames.push(data.clone());
            } else {
                self.whole.frames.clear();
            }
            if self.read > self.most && self.beyond == Beyond::GiveUp {
                self.tell(Copied::TooLarge(None));
            }
        }
        if let Some(trailers) = frame.trailers_ref() {
            self.whole.trailers = Some(trailers.clone());
        }
    }

    fn end(&mut self) {
        let whole = std::mem::take(&mut self.whole);
        let copied = if self.declared.is_some_and(|declared| declared != self.read) {
            Copied::Broken
        } else if self.read > self.most {
            Copied::TooLarge(whole.trailers)
        } else {
            Copied::Whole(whole)
        };
        self.tell(copied);
    }

    fn tell(&mut self, copied: Copied) {
        if let Some(to) = self.to.take() {
            // Whoever looked may have gone.
            to.send(copied).ok();
        }
    }
}

/// A body of known length may be dropped after its last byte, without a look for its end.
impl Drop for Tap {
    fn drop(&mut self) {
        if self.declared == Some(self.read) {
            self.end();
        }
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tap").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// What is known of a body of declared length that was dropped after these bytes.
    fn dropped(declared: u64, bytes: &'static str) -> Option<Copied> {
        let (mut tap, mut copied) = Tap::new(8, Beyond::GiveUp);
        tap.begin(Some(declared), false);
        let frame = Ok::<_, Infallible>(Frame::data(Bytes::from(bytes)));
        tap.pass(Some(&frame), false);
        drop(tap);
        copied.try_recv().ok()
    }

    #[test]
    fn a_body_that_is_dropped_after_its_last_byte_was_whole() {
        assert!(matches!(dropped(5, "hello"), Some(Copied::Whole(_))));
        assert!(dropped(6, "hello").is_none());
    }

    #[test]
    fn a_body_over_the_limit_is_not_kept() {
        let copied = dropped(9, "too large");
        assert!(matches!(copied, Some(Copied::TooLarge(None))));
    }
}
