//! Replies as data. `server::context` writes them in RESP2 or RESP3.

/// What a command answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The simple string `OK`.
    Ok,
    /// A number.
    Integer(i64),
    /// A real number.
    Double(f64),
    /// `true` and `false` in RESP3, 1 and 0 in RESP2.
    Bool(bool),
    /// Nothing.
    Null,
    /// Bytes.
    Bytes(Vec<u8>),
    /// Text that is written as a simple string.
    Text(&'static str),
    /// A list.
    Array(Vec<Reply>),
    /// A list of booleans, as [`Reply::Bool`].
    Bools(Vec<bool>),
    /// A list that says which items were added: `true` and `false` in RESP3, 1 and -1 in RESP2.
    Added(Vec<bool>),
    /// A map in RESP3, and its names and values in turn in RESP2.
    Map(Vec<(&'static str, Reply)>),
}

impl Reply {
    /// A count, or the largest number that a reply can hold.
    #[must_use]
    pub fn count(count: u64) -> Self {
        Self::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }
}
