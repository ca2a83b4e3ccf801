//! Every error reply, with the exact text the peer sends. One named constructor each, so that two commands that
//! refuse the same thing cannot drift apart. Nothing here runs on the success path.
use std::borrow::Cow;
use store::{AddError, WrongType};

/// An error reply, its code included, without the leading `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Cow<'static, [u8]>);

/// How much is quoted of a word that may be of any length, as in the peer.
const QUOTED_BYTES_MAX: usize = 128;

const fn fixed(text: &'static str) -> Error {
    Error(Cow::Borrowed(text.as_bytes()))
}

fn built(text: String) -> Error {
    Error(Cow::Owned(text.into_bytes()))
}

impl Error {
    pub fn text(&self) -> &[u8] {
        &self.0
    }
    /// For texts built where they are needed (`format!`), kept in this file's constructors wherever two places send them.
    pub fn custom(text: impl Into<Cow<'static, str>>) -> Error {
        match text.into() {
            Cow::Borrowed(text) => fixed(text),
            Cow::Owned(text) => built(text),
        }
    }
    /// The parts one after the other, some of them what a client sent. Each ends at a NUL, as it does for Redis.
    pub fn quoting(parts: &[&[u8]]) -> Error {
        let text = parts.iter().flat_map(|part| part.split(|byte| *byte == 0).next());
        Error(Cow::Owned(text.flatten().copied().collect()))
    }
    pub fn wrong_type() -> Error {
        fixed("WRONGTYPE Operation against a key holding the wrong kind of value")
    }
    pub fn syntax() -> Error {
        fixed("ERR syntax error")
    }
    /// `name` as the client's table name, lower case, subcommands as `client|kill`.
    pub fn wrong_arity(name: &str) -> Error {
        built(format!("ERR wrong number of arguments for '{name}' command"))
    }
    pub fn no_such_key() -> Error {
        fixed("ERR no such key")
    }
    /// A key, a field, a member or an element beyond what leaves hold ([`store::Lengths`]): strings alone may be longer.
    pub fn element_too_long() -> Error {
        fixed("ERR key, field, member or element exceeds maximum allowed size (512 MB)")
    }
    /// A command that a setting keeps to some connections, or to none.
    pub fn not_enabled(command: &str, setting: &str) -> Error {
        built(format!(
            "ERR {command} command not allowed. If the {setting} option is set to \"local\", you can run it from a \
             local connection, otherwise you need to set this option in the configuration file, and then restart the \
             server."
        ))
    }

    // Numbers.

    pub fn not_an_integer() -> Error {
        fixed("ERR value is not an integer or out of range")
    }
    pub fn not_a_float() -> Error {
        fixed("ERR value is not a valid float")
    }
    pub fn not_positive() -> Error {
        fixed("ERR value is out of range, must be positive")
    }
    /// An integer that must lie between two bounds and does not.
    pub fn not_between(min: i64, max: i64) -> Error {
        built(format!("ERR value is out of range, value must between {min} and {max}"))
    }
    pub fn add_overflow() -> Error {
        fixed("ERR increment or decrement would overflow")
    }
    /// DECRBY by the one number that has no opposite.
    pub fn decrement_overflow() -> Error {
        fixed("ERR decrement would overflow")
    }
    pub fn nan_or_infinity() -> Error {
        fixed("ERR increment would produce NaN or Infinity")
    }

    // Strings.

    pub fn negative_offset() -> Error {
        fixed("ERR offset is out of range")
    }
    pub fn string_too_long() -> Error {
        fixed("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
    }
    pub fn lcs_len_and_idx() -> Error {
        fixed("ERR If you want both the length and indexes, please just use IDX.")
    }
    pub fn lcs_not_strings() -> Error {
        fixed("ERR The specified keys must contain string values")
    }
    pub fn lcs_too_long() -> Error {
        fixed("ERR String too long for LCS")
    }
    pub fn lcs_too_much_memory() -> Error {
        fixed("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
    }

    // Bits.

    pub fn bit_offset() -> Error {
        fixed("ERR bit offset is not an integer or out of range")
    }
    pub fn bit_value() -> Error {
        fixed("ERR bit is not an integer or out of range")
    }
    pub fn bit_argument() -> Error {
        fixed("ERR The bit argument must be 1 or 0.")
    }
    pub fn bitop_not_of_many() -> Error {
        fixed("ERR BITOP NOT must be called with a single source key.")
    }
    /// `operation` in upper case.
    pub fn bitop_too_few(operation: &str) -> Error {
        built(format!("ERR BITOP {operation} must be called with at least two source keys."))
    }
    pub fn bitfield_type() -> Error {
        fixed(
            "ERR Invalid bitfield type. Use something like i16 u8. \
             Note that u64 is not supported but i64 is.",
        )
    }
    pub fn bitfield_overflow() -> Error {
        fixed("ERR Invalid OVERFLOW type specified")
    }
    pub fn bitfield_read_only() -> Error {
        fixed("ERR BITFIELD_RO only supports the GET subcommand")
    }

    // HyperLogLog.

    pub fn not_a_sketch() -> Error {
        fixed("WRONGTYPE Key is not a valid HyperLogLog string value.")
    }
    pub fn corrupt_sketch() -> Error {
        fixed("INVALIDOBJ Corrupted HLL object detected")
    }
    pub fn unknown_pfdebug(subcommand: &[u8]) -> Error {
        Error::quoting(&[b"ERR Unknown PFDEBUG subcommand '", subcommand, b"'"])
    }
    pub fn pfdebug_no_key() -> Error {
        fixed("ERR The specified key does not exist")
    }
    pub fn simd_on_or_off() -> Error {
        fixed("ERR Argument must be ON or OFF")
    }
    pub fn not_sparse() -> Error {
        fixed("ERR HLL encoding is not sparse")
    }
    pub fn selftest_failed(what: &str) -> Error {
        built(format!("ERR TESTFAILED {what}"))
    }

    // Places.

    pub fn unsupported_unit() -> Error {
        fixed("ERR unsupported unit provided. please use M, KM, FT, MI")
    }
    /// In degrees, as they were given.
    pub fn not_on_the_map(lon: f64, lat: f64) -> Error {
        built(format!("ERR invalid longitude,latitude pair {lon:.6},{lat:.6}"))
    }
    pub fn no_such_member() -> Error {
        fixed("ERR could not decode requested zset member")
    }
    /// `what`: radius, width, height.
    pub fn need_numeric(what: &str) -> Error {
        built(format!("ERR need numeric {what}"))
    }
    pub fn negative_radius() -> Error {
        fixed("ERR radius cannot be negative")
    }
    pub fn negative_box() -> Error {
        fixed("ERR height or width cannot be negative")
    }
    pub fn count_below_one() -> Error {
        fixed("ERR COUNT must be > 0")
    }
    pub fn any_without_count() -> Error {
        fixed("ERR the ANY argument requires COUNT argument")
    }
    pub fn store_with_columns(what: &str) -> Error {
        built(format!("ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"))
    }
    /// `name` as the client wrote it.
    pub fn one_centre(name: &[u8]) -> Error {
        Error::quoting(&[b"ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for ", name])
    }
    pub fn one_shape(name: &[u8]) -> Error {
        Error::quoting(&[b"ERR exactly one of BYRADIUS and BYBOX can be specified for ", name])
    }

    // Deadlines.

    /// `name` in lower case.
    pub fn invalid_expire(name: &str) -> Error {
        built(format!("ERR invalid expire time in '{name}' command"))
    }
    pub fn expire_nx_with_others() -> Error {
        fixed("ERR NX and XX, GT or LT options at the same time are not compatible")
    }
    pub fn expire_gt_with_lt() -> Error {
        fixed("ERR GT and LT options at the same time are not compatible")
    }
    pub fn unsupported_option(option: &[u8]) -> Error {
        Error::quoting(&[b"ERR Unsupported option ", option])
    }

    // Lists.

    pub fn index_out_of_range() -> Error {
        fixed("ERR index out of range")
    }
    pub fn zero_rank() -> Error {
        fixed(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... \
             or use negative to start from the end of the list",
        )
    }
    pub fn negative_count() -> Error {
        fixed("ERR COUNT can't be negative")
    }
    pub fn negative_maxlen() -> Error {
        fixed("ERR MAXLEN can't be negative")
    }
    pub fn numkeys_not_positive() -> Error {
        fixed("ERR numkeys should be greater than 0")
    }
    pub fn count_not_positive() -> Error {
        fixed("ERR count should be greater than 0")
    }

    // Sets.

    pub fn more_keys_than_arguments() -> Error {
        fixed("ERR Number of keys can't be greater than number of args")
    }
    pub fn negative_limit() -> Error {
        fixed("ERR LIMIT can't be negative")
    }

    // Streams.

    pub fn invalid_stream_id() -> Error {
        fixed("ERR Invalid stream ID specified as stream command argument")
    }
    pub fn row_too_long() -> Error {
        fixed("ERR Elements are too large to be stored")
    }
    /// A subcommand whose further arguments make no sense, of which the beginning is quoted; `container` in upper case.
    pub fn unknown_subcommand(subcommand: &[u8], container: &str) -> Error {
        let before = b"ERR unknown subcommand or wrong number of arguments for '";
        let quoted = &subcommand[..subcommand.len().min(QUOTED_BYTES_MAX)];
        Error::quoting(&[before, quoted, b"'. Try ", container.as_bytes(), b" HELP."])
    }

    pub fn interval_start_excludes_all() -> Error {
        fixed("ERR invalid start ID for the interval")
    }
    pub fn interval_end_excludes_all() -> Error {
        fixed("ERR invalid end ID for the interval")
    }
    pub fn xreadgroup_without_group() -> Error {
        fixed("ERR Missing GROUP option for XREADGROUP")
    }
    pub fn timeout_not_an_integer() -> Error {
        fixed("ERR timeout is not an integer or out of range")
    }
    pub fn timeout_negative() -> Error {
        fixed("ERR timeout is negative")
    }
    /// Sardine has no commands that wait for a key yet.
    pub fn block_not_supported() -> Error {
        fixed("ERR BLOCK is not supported yet, and there is nothing to read")
    }
    pub fn new_entries_without_group() -> Error {
        fixed(
            "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
        )
    }
    pub fn maxlen_negative() -> Error {
        fixed("ERR The MAXLEN argument must be >= 0.")
    }
    pub fn limit_negative() -> Error {
        fixed("ERR The LIMIT argument must be >= 0.")
    }
    pub fn maxlen_with_minid() -> Error {
        fixed("ERR syntax error, MAXLEN and MINID options at the same time are not compatible")
    }
    pub fn limit_without_strategy() -> Error {
        fixed("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy")
    }
    pub fn limit_of_exact_trimming() -> Error {
        fixed("ERR syntax error, LIMIT cannot be used without the special ~ option")
    }
    pub fn xtrim_without_strategy() -> Error {
        fixed("ERR syntax error, XTRIM must be called with a trimming strategy")
    }
    pub fn xadd_id_zero() -> Error {
        fixed("ERR The ID specified in XADD must be greater than 0-0")
    }
    pub fn stream_ids_exhausted() -> Error {
        fixed("ERR The stream has exhausted the last possible ID, unable to add more items")
    }
    pub fn xadd_id_not_behind() -> Error {
        fixed("ERR The ID specified in XADD is equal or smaller than the target stream top item")
    }
    pub fn xgroup_without_key() -> Error {
        fixed(
            "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM \
         option to create an empty stream automatically.",
        )
    }
    pub fn entries_read_negative() -> Error {
        fixed("ERR value for ENTRIESREAD must be positive or -1")
    }
    pub fn group_exists() -> Error {
        fixed("BUSYGROUP Consumer Group name already exists")
    }
    pub fn numids_not_positive() -> Error {
        fixed("ERR Number of IDs must be a positive integer")
    }
    pub fn numids_mismatch() -> Error {
        fixed("ERR The `numids` parameter must match the number of arguments")
    }
    pub fn entries_added_negative() -> Error {
        fixed("ERR entries_added must be positive")
    }
    pub fn xsetid_below_given_deleted_id() -> Error {
        fixed("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id")
    }
    pub fn xsetid_below_deleted_id() -> Error {
        fixed("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id")
    }
    pub fn xsetid_below_last_entry() -> Error {
        fixed("ERR The ID specified in XSETID is smaller than the target stream top item")
    }
    pub fn entries_added_below_len() -> Error {
        fixed("ERR The entries_added specified in XSETID is smaller than the target stream length")
    }
    /// `option` is the word before the value that is no number.
    pub fn xclaim_option(option: &str) -> Error {
        built(format!("ERR Invalid {option} option argument for XCLAIM"))
    }
    /// `command` in upper case.
    pub fn min_idle_time(command: &str) -> Error {
        built(format!("ERR Invalid min-idle-time argument for {command}"))
    }
    pub fn unrecognized_xclaim(option: &[u8]) -> Error {
        Error::quoting(&[b"ERR Unrecognized XCLAIM option '", option, b"'"])
    }
    /// There is no such key, or no such group of it. `context` is what follows the names.
    pub fn no_group(key: &[u8], group: &[u8], context: &str) -> Error {
        let before = b"NOGROUP No such key '";
        Error::quoting(&[before, key, b"' or consumer group '", group, b"'", context.as_bytes()])
    }
    /// The key is there, the group is not.
    pub fn no_group_of_key(key: &[u8], group: &[u8]) -> Error {
        Error::quoting(&[b"NOGROUP No such consumer group '", group, b"' for key name '", key, b"'"])
    }
    pub fn unbalanced_xread() -> Error {
        fixed(
            "ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be specified.",
        )
    }
    pub fn unbalanced_xreadgroup() -> Error {
        fixed(
            "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified.",
        )
    }
    /// `option` in upper case.
    pub fn only_xreadgroup(option: &str) -> Error {
        built(format!("ERR The {option} option is only supported by XREADGROUP. You called XREAD instead."))
    }
    /// `$` or `+`, which XREAD takes.
    pub fn meaningless_in_group(id: &[u8]) -> Error {
        let middle =
            b" ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by \
             specifying a proper ID, or use the > ID to get new messages. The ";
        Error::quoting(&[b"ERR The ", id, middle, id, b" ID would just return an empty result set."])
    }

    // Hashes.

    pub fn hash_value_not_an_integer() -> Error {
        fixed("ERR hash value is not an integer")
    }
    pub fn hash_value_not_a_float() -> Error {
        fixed("ERR hash value is not a float")
    }
    pub fn increment_nan_or_infinity() -> Error {
        fixed("ERR value is NaN or Infinity")
    }
    pub fn out_of_range() -> Error {
        fixed("ERR value is out of range")
    }
    pub fn field_expire_negative() -> Error {
        fixed("ERR invalid expire time, must be >= 0")
    }
    pub fn fields_missing() -> Error {
        fixed("ERR Mandatory argument FIELDS is missing or not at the right position")
    }
    pub fn fields_count() -> Error {
        fixed("ERR The `numfields` parameter must match the number of arguments")
    }
    pub fn numfields_zero() -> Error {
        fixed("ERR Parameter `numFields` should be greater than 0")
    }
    pub fn numfields_not_positive() -> Error {
        fixed("ERR Number of fields must be a positive integer")
    }
    pub fn invalid_number_of_fields() -> Error {
        fixed("ERR invalid number of fields")
    }
    pub fn unknown_argument(word: &[u8]) -> Error {
        Error::quoting(&[b"ERR unknown argument: ", word])
    }
    pub fn fnx_and_fxx() -> Error {
        fixed("ERR Only one of FXX or FNX arguments can be specified")
    }
    pub fn field_lifetimes() -> Error {
        fixed("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified")
    }

    // Sorted sets.

    pub fn zadd_nx_with_xx() -> Error {
        fixed("ERR XX and NX options at the same time are not compatible")
    }
    pub fn zadd_gt_lt_nx() -> Error {
        fixed("ERR GT, LT, and/or NX options at the same time are not compatible")
    }
    pub fn zadd_incr_pairs() -> Error {
        fixed("ERR INCR option supports a single increment-element pair")
    }
    pub fn score_not_a_number() -> Error {
        fixed("ERR resulting score is not a number (NaN)")
    }
    pub fn range_not_a_float() -> Error {
        fixed("ERR min or max is not a float")
    }
    pub fn range_not_lexical() -> Error {
        fixed("ERR min or max not valid string range item")
    }
    pub fn limit_of_ranks() -> Error {
        fixed("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
    }
    pub fn scores_by_lex() -> Error {
        fixed("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
    }
    pub fn weight_not_a_float() -> Error {
        fixed("ERR weight value is not a float")
    }
    /// `name` in lower case.
    pub fn no_input_keys(name: &str) -> Error {
        built(format!("ERR at least 1 input key is needed for '{name}' command"))
    }

    // The keyspace.

    pub fn weight_not_a_double() -> Error {
        fixed("ERR One or more scores can't be converted into double")
    }
    pub fn no_such_db() -> Error {
        fixed("ERR DB index is out of range")
    }
    /// SWAPDB's "first" or "second" number is none.
    pub fn invalid_db(which: &str) -> Error {
        built(format!("ERR invalid {which} DB index"))
    }
    /// A key copied or moved onto itself.
    pub fn same_key() -> Error {
        fixed("ERR source and destination objects are the same")
    }
    pub fn novalues_without_hash() -> Error {
        fixed("ERR NOVALUES option can only be used in HSCAN")
    }
    pub fn invalid_cursor() -> Error {
        fixed("ERR invalid cursor")
    }
    pub fn frequency_not_tracked() -> Error {
        fixed(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when \
             switching between policies at runtime LRU and LFU data will take some time to adjust.",
        )
    }
    pub fn idle_time_not_tracked_but_frequency() -> Error {
        fixed(
            "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between \
             policies at runtime LRU and LFU data will take some time to adjust.",
        )
    }
}

impl From<WrongType> for Error {
    fn from(_: WrongType) -> Error {
        Error::wrong_type()
    }
}

impl From<AddError> for Error {
    fn from(error: AddError) -> Error {
        match error {
            AddError::WrongType => Error::wrong_type(),
            AddError::NotAnInteger => Error::not_an_integer(),
            AddError::Overflow => Error::add_overflow(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_subcommand_is_quoted_up_to_its_first_nul_and_128_bytes() {
        let text = |subcommand: &[u8]| {
            let error = Error::unknown_subcommand(subcommand, "DEBUG");
            let middle =
                error.text().strip_prefix(b"ERR unknown subcommand or wrong number of arguments for '");
            middle.and_then(|text| text.strip_suffix(b"'. Try DEBUG HELP.")).map(<[u8]>::to_vec)
        };
        assert_eq!(text(&[b'x'; 200]), Some(vec![b'x'; 128]));
        assert_eq!(text(b"a\xff\0b"), Some(b"a\xff".to_vec()));
    }
}
