//! Values that left the keyspace and are freed later.

/// Something large that left the keyspace. Dropping it takes long, so it is `Send` and a background thread
/// can do that.
pub struct Garbage {
    #[allow(dead_code, reason = "held to be dropped")]
    value: Box<dyn std::any::Any + Send>,
    weight: Weight,
}

/// What dropping some garbage will free. That memory still counts as used, but eviction treats it as free
/// already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// About so many bytes.
    Bytes(u64),
    /// So many keys with all they hold.
    Keys(u64),
}

impl Garbage {
    /// Garbage of `value`, which frees about so many bytes when it is dropped.
    pub fn of_bytes(bytes: u64, value: impl Send + 'static) -> Garbage {
        Garbage { value: Box::new(value), weight: Weight::Bytes(bytes) }
    }

    pub(crate) fn of_keys(keys: u64, value: impl Send + 'static) -> Garbage {
        Garbage { value: Box::new(value), weight: Weight::Keys(keys) }
    }

    /// What dropping it will free.
    pub fn weight(&self) -> Weight {
        self.weight
    }
}
