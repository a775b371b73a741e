//! Frames joined into one text of bytes.

use bytes::{Bytes, BytesMut};

/// Frames joined into one; a single frame stays as it is.
pub(crate) enum Joined {
    Nothing,
    One(Bytes),
    Many(BytesMut),
}

impl Joined {
    pub(crate) fn len(&self) -> usize {
        self.as_bytes().len()
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Nothing => &[],
            Self::One(data) => data,
            Self::Many(data) => data,
        }
    }

    pub(crate) fn push(&mut self, data: Bytes) {
        match self {
            Self::Nothing => *self = Self::One(data),
            Self::One(_) | Self::Many(_) if data.is_empty() => {}
            Self::One(first) => {
                let mut many = BytesMut::with_capacity(2 * (first.len() + data.len()));
                many.extend_from_slice(first);
                many.extend_from_slice(&data);
                *self = Self::Many(many);
            }
            Self::Many(many) => many.extend_from_slice(&data),
        }
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        match self {
            Self::Nothing => Bytes::new(),
            Self::One(data) => data,
            Self::Many(data) => data.freeze(),
        }
    }
}
