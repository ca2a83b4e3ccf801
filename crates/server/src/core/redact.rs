//! What others see of a request: its arguments without those that the grammar of its row marks as secret
//! (`command::secrets`). Whatever shows requests to others asks here first.
use crate::core::registry::Row;
use resp::Args;

/// Stands where a secret stood.
const MARK: &[u8] = b"(redacted)";

/// The arguments as anybody may see them, the name first: `(redacted)` stands where a secret stood.
pub(crate) fn public<'a>(row: &Row, args: &Args<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let secrets = row.secrets(args);
    let shown = move |(place, arg)| if secrets.binary_search(&place).is_ok() { MARK } else { arg };
    args.iter_from(0).enumerate().map(shown)
}
