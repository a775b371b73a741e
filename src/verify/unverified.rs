//! A channel that believes every request, and says so by its name.

/// A channel for a sender of one's own that believes every request: whoever can reach the endpoint
/// and guesses an id suppresses the message.
///
/// Right where the request was verified in front of the layer, or where nobody else can reach the
/// endpoint. Made by the `unverified` of [`JsonPath`](crate::channel::JsonPath),
/// [`FormField`](crate::channel::FormField), [`HeaderId`](crate::channel::HeaderId) and
/// [`XmlPath`](crate::channel::XmlPath), which are no channels before they say this or are
/// [`verified_by`](crate::channel::JsonPath::verified_by) a verifier:
///
/// ```compile_fail,E0277
/// use tower_idempotency::IdempotencyLayer;
/// use tower_idempotency::channel::HeaderId;
/// use tower_idempotency::store::MemoryStore;
///
/// IdempotencyLayer::new(MemoryStore::new(), HeaderId::new("shop", "x-shop-delivery"));
/// ```
///
/// ```
/// # use tower_idempotency::IdempotencyLayer;
/// # use tower_idempotency::channel::HeaderId;
/// # use tower_idempotency::store::MemoryStore;
/// let shop = HeaderId::new("shop", "x-shop-delivery").unverified();
/// let layer = IdempotencyLayer::new(MemoryStore::new(), shop);
/// ```
#[derive(Clone, Debug)]
pub struct Unverified<C> {
    channel: C,
}

impl<C> Unverified<C> {
    /// `channel`, for which somebody said that it is not verified.
    pub(crate) fn new(channel: C) -> Self {
        Self { channel }
    }

    /// The channel itself.
    pub(crate) fn channel(&self) -> &C {
        &self.channel
    }
}
