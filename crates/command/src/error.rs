//! Every error reply, with the exact text that Redis sends. Each has one named constructor, so that two
//! commands that refuse the same thing answer the same. Nothing here runs on the success path.
use std::borrow::Cow;
use store::{AddError, EditError, WrongType};

/// An error reply, its code included, without the leading `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Cow<'static, [u8]>);

/// How much is quoted of a word that may be of any length, as in the peer.
const QUOTED_BYTES_MAX: usize = 128;

const WOULD_COPY: &str = "WOULDCOPY";

const fn fixed(text: &'static str) -> Error {
    Error(Cow::Borrowed(text.as_bytes()))
}

fn built(text: String) -> Error {
    Error(Cow::Owned(text.into_bytes()))
}

impl Error {
    /// The code and the text, as they stand behind the `-` of the reply.
    pub fn text(&self) -> &[u8] {
        &self.0
    }
    /// For texts built where they are needed (`format!`), kept in this file's constructors wherever two
    /// places send them.
    pub fn custom(text: impl Into<Cow<'static, str>>) -> Error {
        match text.into() {
            Cow::Borrowed(text) => fixed(text),
            Cow::Owned(text) => built(text),
        }
    }
    /// The parts one after the other, some of them what a client sent. Each ends at a NUL, as it does for
    /// Redis.
    pub fn quoting(parts: &[&[u8]]) -> Error {
        let text = parts.iter().flat_map(|part| part.split(|byte| *byte == 0).next());
        Error(Cow::Owned(text.flatten().copied().collect()))
    }
    /// No answer: the command would copy a long text first, and is to run where nobody waits for that.
    fn would_copy() -> Error {
        fixed(WOULD_COPY)
    }
    pub fn is_would_copy(&self) -> bool {
        self.text() == WOULD_COPY.as_bytes()
    }
    /// The key holds a value of another type than the command's.
    pub fn wrong_type() -> Error {
        fixed("WRONGTYPE Operation against a key holding the wrong kind of value")
    }
    /// An option that the command does not know, or that lacks its value or clashes with another.
    pub fn syntax() -> Error {
        fixed("ERR syntax error")
    }
    /// Too few or too many arguments. `name` in lower case, that of a subcommand as `client|kill`.
    pub fn wrong_arity(name: &str) -> Error {
        built(format!("ERR wrong number of arguments for '{name}' command"))
    }
    /// RESTORE where a key is.
    pub fn busy_key() -> Error {
        fixed("BUSYKEY Target key name already exists.")
    }
    /// RESTORE with a time to live below 0.
    pub fn restore_ttl() -> Error {
        fixed("ERR Invalid TTL value, must be >= 0")
    }
    /// RESTORE with an idle time below 0.
    pub fn restore_idle_time() -> Error {
        fixed("ERR Invalid IDLETIME value, must be >= 0")
    }
    /// RESTORE with a frequency that is no byte.
    pub fn restore_frequency() -> Error {
        fixed("ERR Invalid FREQ value, must be >= 0 and <= 255")
    }
    /// RESTORE of what is not the payload of a DUMP, or of one that is too new.
    pub fn dump_footer() -> Error {
        fixed("ERR DUMP payload version or checksum are wrong")
    }
    /// RESTORE of a whole payload that holds no value.
    pub fn dump_broken() -> Error {
        fixed("ERR Bad data format")
    }
    /// The key does not exist, and the command needs its value (RENAME, LSET, OBJECT).
    pub fn no_such_key() -> Error {
        fixed("ERR no such key")
    }
    /// A key, a field, a member or an element beyond what leaves hold ([`store::Lengths`]): strings alone may
    /// be longer.
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

    /// An argument, or the string that a key holds, is no signed number of 64 bits.
    pub fn not_an_integer() -> Error {
        fixed("ERR value is not an integer or out of range")
    }
    /// An argument, or the string that a key holds, is no number.
    pub fn not_a_float() -> Error {
        fixed("ERR value is not a valid float")
    }
    /// A count below 0, or none at all.
    pub fn not_positive() -> Error {
        fixed("ERR value is out of range, must be positive")
    }
    /// An integer that must lie between two bounds and does not.
    pub fn not_between(min: i64, max: i64) -> Error {
        built(format!("ERR value is out of range, value must between {min} and {max}"))
    }
    /// The sum does not fit 64 bits.
    pub fn add_overflow() -> Error {
        fixed("ERR increment or decrement would overflow")
    }
    /// DECRBY by the one number that has no opposite.
    pub fn decrement_overflow() -> Error {
        fixed("ERR decrement would overflow")
    }
    /// INCRBYFLOAT: the sum is no number that can be kept.
    pub fn nan_or_infinity() -> Error {
        fixed("ERR increment would produce NaN or Infinity")
    }

    // Strings.

    /// SETRANGE before the first byte.
    pub fn negative_offset() -> Error {
        fixed("ERR offset is out of range")
    }
    /// A string would become longer than `proto-max-bulk-len`.
    pub fn string_too_long() -> Error {
        fixed("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
    }
    /// LCS with both LEN and IDX, of which the second includes the first.
    pub fn lcs_len_and_idx() -> Error {
        fixed("ERR If you want both the length and indexes, please just use IDX.")
    }
    /// LCS of a key that holds something else.
    pub fn lcs_not_strings() -> Error {
        fixed("ERR The specified keys must contain string values")
    }
    /// LCS of strings whose lengths do not fit its table.
    pub fn lcs_too_long() -> Error {
        fixed("ERR String too long for LCS")
    }
    /// LCS whose table would take more than `proto-max-bulk-len`.
    pub fn lcs_too_much_memory() -> Error {
        fixed("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
    }

    // Bits.

    /// The position of a bit is no number, or beyond the longest string.
    pub fn bit_offset() -> Error {
        fixed("ERR bit offset is not an integer or out of range")
    }
    /// SETBIT of something else than 0 or 1.
    pub fn bit_value() -> Error {
        fixed("ERR bit is not an integer or out of range")
    }
    /// BITPOS of something else than 0 or 1.
    pub fn bit_argument() -> Error {
        fixed("ERR The bit argument must be 1 or 0.")
    }
    /// BITOP NOT of several keys.
    pub fn bitop_not_of_many() -> Error {
        fixed("ERR BITOP NOT must be called with a single source key.")
    }
    /// BITOP DIFF, DIFF1 or ANDOR of fewer than two keys; `operation` in upper case.
    pub fn bitop_too_few(operation: &str) -> Error {
        built(format!("ERR BITOP {operation} must be called with at least two source keys."))
    }
    /// BITFIELD: no width such as `u8` or `i64`.
    pub fn bitfield_type() -> Error {
        fixed(
            "ERR Invalid bitfield type. Use something like i16 u8. \
             Note that u64 is not supported but i64 is.",
        )
    }
    /// BITFIELD: OVERFLOW is neither WRAP nor SAT nor FAIL.
    pub fn bitfield_overflow() -> Error {
        fixed("ERR Invalid OVERFLOW type specified")
    }
    /// BITFIELD_RO that would write.
    pub fn bitfield_read_only() -> Error {
        fixed("ERR BITFIELD_RO only supports the GET subcommand")
    }

    // HyperLogLog.

    /// The string that a key holds is no HyperLogLog.
    pub fn not_a_sketch() -> Error {
        fixed("WRONGTYPE Key is not a valid HyperLogLog string value.")
    }
    /// The string begins like a HyperLogLog, and its registers cannot be read.
    pub fn corrupt_sketch() -> Error {
        fixed("INVALIDOBJ Corrupted HLL object detected")
    }
    /// PFDEBUG: `subcommand` as the client wrote it.
    pub fn unknown_pfdebug(subcommand: &[u8]) -> Error {
        Error::quoting(&[b"ERR Unknown PFDEBUG subcommand '", subcommand, b"'"])
    }
    /// PFDEBUG of a key that does not exist.
    pub fn pfdebug_no_key() -> Error {
        fixed("ERR The specified key does not exist")
    }
    /// PFDEBUG SIMD with another word than ON or OFF.
    pub fn simd_on_or_off() -> Error {
        fixed("ERR Argument must be ON or OFF")
    }
    /// PFDEBUG DECODE of a sketch that is not sparse.
    pub fn not_sparse() -> Error {
        fixed("ERR HLL encoding is not sparse")
    }
    /// PFSELFTEST found a fault; `what` says which.
    pub fn selftest_failed(what: &str) -> Error {
        built(format!("ERR TESTFAILED {what}"))
    }

    // Places.

    /// A distance in another unit than the four.
    pub fn unsupported_unit() -> Error {
        fixed("ERR unsupported unit provided. please use M, KM, FT, MI")
    }
    /// A point outside the map, in degrees as they were given.
    pub fn not_on_the_map(lon: f64, lat: f64) -> Error {
        built(format!("ERR invalid longitude,latitude pair {lon:.6},{lat:.6}"))
    }
    /// A search around a member that is not in the set.
    pub fn no_such_member() -> Error {
        fixed("ERR could not decode requested zset member")
    }
    /// A measure of a search that is no number; `what` is radius, width or height.
    pub fn need_numeric(what: &str) -> Error {
        built(format!("ERR need numeric {what}"))
    }
    /// A circle of less than nothing.
    pub fn negative_radius() -> Error {
        fixed("ERR radius cannot be negative")
    }
    /// A box of less than nothing.
    pub fn negative_box() -> Error {
        fixed("ERR height or width cannot be negative")
    }
    /// COUNT of no element at all (GEOSEARCH and its like, XAUTOCLAIM).
    pub fn count_below_one() -> Error {
        fixed("ERR COUNT must be > 0")
    }
    /// ANY says that the first found will do, of which COUNT must say how many.
    pub fn any_without_count() -> Error {
        fixed("ERR the ANY argument requires COUNT argument")
    }
    /// `what` stores what it found, so nobody is shown distances, hashes or coordinates.
    pub fn store_with_columns(what: &str) -> Error {
        built(format!("ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"))
    }
    /// GEOSEARCH with both kinds of centre, or none; `name` as the client wrote it.
    pub fn one_centre(name: &[u8]) -> Error {
        Error::quoting(&[b"ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for ", name])
    }
    /// GEOSEARCH with both shapes, or none; `name` as the client wrote it.
    pub fn one_shape(name: &[u8]) -> Error {
        Error::quoting(&[b"ERR exactly one of BYRADIUS and BYBOX can be specified for ", name])
    }

    // Deadlines.

    /// A time to live that is 0, negative or too large; `name` in lower case.
    pub fn invalid_expire(name: &str) -> Error {
        built(format!("ERR invalid expire time in '{name}' command"))
    }
    /// EXPIRE and its like: NX sets only what has no deadline, the others compare it.
    pub fn expire_nx_with_others() -> Error {
        fixed("ERR NX and XX, GT or LT options at the same time are not compatible")
    }
    /// EXPIRE and its like: a deadline cannot be both later and earlier.
    pub fn expire_gt_with_lt() -> Error {
        fixed("ERR GT and LT options at the same time are not compatible")
    }
    /// EXPIRE and its like: `option` as the client wrote it.
    pub fn unsupported_option(option: &[u8]) -> Error {
        Error::quoting(&[b"ERR Unsupported option ", option])
    }

    // Lists.

    /// LSET beyond the ends of the list.
    pub fn index_out_of_range() -> Error {
        fixed("ERR index out of range")
    }
    /// LPOS counts matches from 1, or from the end from -1.
    pub fn zero_rank() -> Error {
        fixed(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... \
             or use negative to start from the end of the list",
        )
    }
    /// LPOS: COUNT below 0.
    pub fn negative_count() -> Error {
        fixed("ERR COUNT can't be negative")
    }
    /// LPOS: MAXLEN below 0.
    pub fn negative_maxlen() -> Error {
        fixed("ERR MAXLEN can't be negative")
    }
    /// A count of keys that is no number, or below 1.
    pub fn numkeys_not_positive() -> Error {
        fixed("ERR numkeys should be greater than 0")
    }
    /// A count of elements that is no number, or below 1 (LMPOP, ZMPOP).
    pub fn count_not_positive() -> Error {
        fixed("ERR count should be greater than 0")
    }

    // Sets.

    /// A count of keys beyond the arguments behind it.
    pub fn more_keys_than_arguments() -> Error {
        fixed("ERR Number of keys can't be greater than number of args")
    }
    /// SINTERCARD and ZINTERCARD: LIMIT is no number, or below 0.
    pub fn negative_limit() -> Error {
        fixed("ERR LIMIT can't be negative")
    }

    // Streams.

    /// No id of the form `milliseconds-sequence`.
    pub fn invalid_stream_id() -> Error {
        fixed("ERR Invalid stream ID specified as stream command argument")
    }
    /// A field or value of an entry beyond what a leaf of a stream holds.
    pub fn row_too_long() -> Error {
        fixed("ERR Elements are too large to be stored")
    }
    /// A subcommand whose further arguments make no sense, of which the beginning is quoted; `container` in
    /// upper case.
    pub fn unknown_subcommand(subcommand: &[u8], container: &str) -> Error {
        let before = b"ERR unknown subcommand or wrong number of arguments for '";
        let quoted = &subcommand[..subcommand.len().min(QUOTED_BYTES_MAX)];
        Error::quoting(&[before, quoted, b"'. Try ", container.as_bytes(), b" HELP."])
    }

    /// An interval begins behind the greatest id.
    pub fn interval_start_excludes_all() -> Error {
        fixed("ERR invalid start ID for the interval")
    }
    /// An interval ends before the smallest id.
    pub fn interval_end_excludes_all() -> Error {
        fixed("ERR invalid end ID for the interval")
    }
    /// XREADGROUP without its GROUP.
    pub fn xreadgroup_without_group() -> Error {
        fixed("ERR Missing GROUP option for XREADGROUP")
    }
    /// A time to wait that is no number.
    pub fn timeout_not_an_integer() -> Error {
        fixed("ERR timeout is not an integer or out of range")
    }
    /// A time to wait of less than nothing.
    pub fn timeout_not_a_float() -> Error {
        fixed("ERR timeout is not a float or out of range")
    }

    pub fn timeout_out_of_range() -> Error {
        fixed("ERR timeout is out of range")
    }

    pub fn timeout_negative() -> Error {
        fixed("ERR timeout is negative")
    }
    /// XREAD with `>`, which means what no consumer of a group was given.
    pub fn new_entries_without_group() -> Error {
        fixed(
            "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
        )
    }
    /// A stream of less than no entries.
    pub fn maxlen_negative() -> Error {
        fixed("ERR The MAXLEN argument must be >= 0.")
    }
    /// LIMIT of trimming below 0.
    pub fn limit_negative() -> Error {
        fixed("ERR The LIMIT argument must be >= 0.")
    }
    /// A stream is trimmed by its length or by its smallest id.
    pub fn maxlen_with_minid() -> Error {
        fixed("ERR syntax error, MAXLEN and MINID options at the same time are not compatible")
    }
    /// LIMIT where nothing is trimmed.
    pub fn limit_without_strategy() -> Error {
        fixed("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy")
    }
    /// LIMIT says how many entries are looked at, which only `~` leaves open.
    pub fn limit_of_exact_trimming() -> Error {
        fixed("ERR syntax error, LIMIT cannot be used without the special ~ option")
    }
    /// XTRIM with neither MAXLEN nor MINID.
    pub fn xtrim_without_strategy() -> Error {
        fixed("ERR syntax error, XTRIM must be called with a trimming strategy")
    }
    /// XADD with the id that stands for the beginning.
    pub fn xadd_id_zero() -> Error {
        fixed("ERR The ID specified in XADD must be greater than 0-0")
    }
    /// The last entry has the greatest id that there is.
    pub fn stream_ids_exhausted() -> Error {
        fixed("ERR The stream has exhausted the last possible ID, unable to add more items")
    }
    /// XADD with an id that is not greater than all before it.
    pub fn xadd_id_not_behind() -> Error {
        fixed("ERR The ID specified in XADD is equal or smaller than the target stream top item")
    }
    /// Without the key nothing works but CREATE with MKSTREAM.
    pub fn xgroup_without_key() -> Error {
        fixed(
            "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you \
             may want to use the MKSTREAM option to create an empty stream automatically.",
        )
    }
    /// ENTRIESREAD below -1, which stands for unknown.
    pub fn entries_read_negative() -> Error {
        fixed("ERR value for ENTRIESREAD must be positive or -1")
    }
    /// XGROUP CREATE of a group that is there.
    pub fn group_exists() -> Error {
        fixed("BUSYGROUP Consumer Group name already exists")
    }
    /// XDELEX and XACKDEL: the count of ids is no number, or below 1.
    pub fn numids_not_positive() -> Error {
        fixed("ERR Number of IDs must be a positive integer")
    }
    /// XDELEX and XACKDEL: the count of ids is beyond the arguments behind it.
    pub fn numids_mismatch() -> Error {
        fixed("ERR The `numids` parameter must match the number of arguments")
    }
    /// XSETID: ENTRIESADDED below 0.
    pub fn entries_added_negative() -> Error {
        fixed("ERR entries_added must be positive")
    }
    /// XSETID: the last id would lie below the MAXDELETEDID that comes with it.
    pub fn xsetid_below_given_deleted_id() -> Error {
        fixed("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id")
    }
    /// XSETID: the last id would lie below that of an entry that was deleted.
    pub fn xsetid_below_deleted_id() -> Error {
        fixed("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id")
    }
    /// XSETID: the last id would lie below that of an entry that is there.
    pub fn xsetid_below_last_entry() -> Error {
        fixed("ERR The ID specified in XSETID is smaller than the target stream top item")
    }
    /// XSETID: more entries are there than were ever added.
    pub fn entries_added_below_len() -> Error {
        fixed("ERR The entries_added specified in XSETID is smaller than the target stream length")
    }
    /// XCLAIM with an option whose value is no number; `option` is its word.
    pub fn xclaim_option(option: &str) -> Error {
        built(format!("ERR Invalid {option} option argument for XCLAIM"))
    }
    /// XCLAIM and XAUTOCLAIM: the idle time is no number; `command` in upper case.
    pub fn min_idle_time(command: &str) -> Error {
        built(format!("ERR Invalid min-idle-time argument for {command}"))
    }
    /// XCLAIM with an unknown option, as the client wrote it.
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
    /// XREAD: half of what stands behind STREAMS must be ids.
    pub fn unbalanced_xread() -> Error {
        fixed(
            "ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be specified.",
        )
    }
    /// XREADGROUP: half of what stands behind STREAMS must be ids.
    pub fn unbalanced_xreadgroup() -> Error {
        fixed(
            "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified.",
        )
    }
    /// XREAD with an option that only XREADGROUP has; `option` in upper case.
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

    /// HINCRBY of a field that holds no integer.
    pub fn hash_value_not_an_integer() -> Error {
        fixed("ERR hash value is not an integer")
    }
    /// HINCRBYFLOAT of a field that holds no number.
    pub fn hash_value_not_a_float() -> Error {
        fixed("ERR hash value is not a float")
    }
    /// HINCRBYFLOAT by what is no number that can be kept.
    pub fn increment_nan_or_infinity() -> Error {
        fixed("ERR value is NaN or Infinity")
    }
    /// HRANDFIELD and ZRANDMEMBER with values: a count whose double does not fit 64 bits.
    pub fn out_of_range() -> Error {
        fixed("ERR value is out of range")
    }
    /// HEXPIRE and its like with a time below 0.
    pub fn field_expire_negative() -> Error {
        fixed("ERR invalid expire time, must be >= 0")
    }
    /// A command on fields with deadlines lacks FIELDS, or has it elsewhere.
    pub fn fields_missing() -> Error {
        fixed("ERR Mandatory argument FIELDS is missing or not at the right position")
    }
    /// FIELDS: the count is not that of the fields behind it.
    pub fn fields_count() -> Error {
        fixed("ERR The `numfields` parameter must match the number of arguments")
    }
    /// HEXPIRE and its like: a count of fields that is no number, or below 1.
    pub fn numfields_zero() -> Error {
        fixed("ERR Parameter `numFields` should be greater than 0")
    }
    /// HTTL, HPERSIST, HGETDEL and their like: a count of fields that is no number, or below 1.
    pub fn numfields_not_positive() -> Error {
        fixed("ERR Number of fields must be a positive integer")
    }
    /// HSETEX: a count of fields that is no number, or below 1.
    pub fn invalid_number_of_fields() -> Error {
        fixed("ERR invalid number of fields")
    }
    /// HSETEX: `word` as the client wrote it.
    pub fn unknown_argument(word: &[u8]) -> Error {
        Error::quoting(&[b"ERR unknown argument: ", word])
    }
    /// HSETEX: all fields must be new, or all must be there.
    pub fn fnx_and_fxx() -> Error {
        fixed("ERR Only one of FXX or FNX arguments can be specified")
    }
    /// HSETEX with two deadlines.
    pub fn field_lifetimes() -> Error {
        fixed("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified")
    }

    // Sorted sets.

    /// ZADD: a member cannot be both new and there.
    pub fn zadd_nx_with_xx() -> Error {
        fixed("ERR XX and NX options at the same time are not compatible")
    }
    /// ZADD: NX adds only, so there is no score to compare.
    pub fn zadd_gt_lt_nx() -> Error {
        fixed("ERR GT, LT, and/or NX options at the same time are not compatible")
    }
    /// ZADD INCR answers one score, so it takes one member.
    pub fn zadd_incr_pairs() -> Error {
        fixed("ERR INCR option supports a single increment-element pair")
    }
    /// ZINCRBY: infinity was added to its opposite.
    pub fn score_not_a_number() -> Error {
        fixed("ERR resulting score is not a number (NaN)")
    }
    /// A range of scores whose end is no number.
    pub fn range_not_a_float() -> Error {
        fixed("ERR min or max is not a float")
    }
    /// A range of members whose end begins with neither `[` nor `(`, and is neither `-` nor `+`.
    pub fn range_not_lexical() -> Error {
        fixed("ERR min or max not valid string range item")
    }
    /// ZRANGE by rank with LIMIT: the ranks themselves say how many.
    pub fn limit_of_ranks() -> Error {
        fixed("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
    }
    /// ZRANGE BYLEX with WITHSCORES: there all scores are the same.
    pub fn scores_by_lex() -> Error {
        fixed("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
    }
    /// ZUNION and ZINTER: a weight that is no number.
    pub fn weight_not_a_float() -> Error {
        fixed("ERR weight value is not a float")
    }
    /// A command on several sorted sets that names none; `name` in lower case.
    pub fn no_input_keys(name: &str) -> Error {
        built(format!("ERR at least 1 input key is needed for '{name}' command"))
    }

    // The keyspace.

    /// SORT without ALPHA of an element, or a weight, that is no number.
    pub fn weight_not_a_double() -> Error {
        fixed("ERR One or more scores can't be converted into double")
    }
    /// The number of a database beyond `databases`.
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
    /// NOVALUES of SSCAN or ZSCAN.
    pub fn novalues_without_hash() -> Error {
        fixed("ERR NOVALUES option can only be used in HSCAN")
    }
    /// SCAN and its like: no cursor that an answer has held.
    pub fn invalid_cursor() -> Error {
        fixed("ERR invalid cursor")
    }
    /// OBJECT FREQ while `maxmemory-policy` counts no uses.
    pub fn frequency_not_tracked() -> Error {
        fixed(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when \
             switching between policies at runtime LRU and LFU data will take some time to adjust.",
        )
    }
    /// OBJECT IDLETIME while `maxmemory-policy` counts uses instead.
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

impl From<EditError> for Error {
    fn from(error: EditError) -> Error {
        match error {
            EditError::WrongType => Error::wrong_type(),
            EditError::WouldCopy => Error::would_copy(),
        }
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
