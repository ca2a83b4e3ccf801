//! What ends the encoder and the decoder before their time.
use lua::Written;

/// Why nothing more is written.
pub(super) enum Failure {
    Says(String),
    /// The script is to end.
    Stopped,
}

pub(super) type Done<T = ()> = std::result::Result<T, Failure>;

/// What has been written; the reason takes the place of what there is where it failed.
pub(super) fn written(done: Done, out: &mut Vec<u8>) -> Written {
    match done {
        Ok(()) => Written::Text,
        Err(Failure::Stopped) => Written::Stopped,
        Err(Failure::Says(why)) => {
            out.clear();
            out.extend_from_slice(why.as_bytes());
            Written::Error
        }
    }
}
