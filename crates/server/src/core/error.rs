//! Every error text of the server's own commands, and of requests that are refused before they run: named
//! functions, with the exact words of the peer. Those of data commands, and those that both send, are in
//! `command::Error`.
//!
//! Texts that quote what a client sent are built as bytes, which need not be UTF-8.
use crate::state::acl::{Denied, Reason, User};
use crate::state::scripts::{Kind, Taken};
use command::Error;
use resp::Args;

// Requests that do not run.

/// How many bytes of what the client sent are quoted.
const QUOTED_BYTES_MAX: usize = 128;

pub(crate) const NOT_AUTHENTICATED: &[u8] = b"NOAUTH Authentication required.";
/// What such an error counts as; `resp` has the texts.
pub(crate) const PROTOCOL_ERROR: &[u8] = b"ERR Protocol error";
pub(crate) const OUT_OF_MEMORY: &[u8] = b"OOM command not allowed when used memory > 'maxmemory'.";

pub(crate) const LOADING: &str = "LOADING Redis is loading the dataset in memory";
pub(crate) const UNSAVED: &[u8] = b"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to \
    persist to disk. Commands that may modify the data set are disabled, because this instance is configured to \
    report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the \
    Redis logs for details about the RDB error.";

/// No answer: a request that waited for all gates must not run any more when it has them, and is tried again.
pub(crate) fn put_off() -> Error {
    Error::custom(PUT_OFF)
}

pub(crate) fn is_put_off(error: &Error) -> bool {
    error.text() == PUT_OFF.as_bytes()
}

const PUT_OFF: &str = "PUTOFF";

/// What is left to be done while a script of this kind runs for long.
pub(crate) fn busy(kind: Kind) -> &'static [u8] {
    match kind {
        Kind::Script => {
            b"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
        }
        Kind::Function => {
            b"BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
        }
    }
}

pub(crate) fn unknown_command(args: &Args<'_>) -> Vec<u8> {
    let mut text = b"ERR unknown command '".to_vec();
    text.extend_from_slice(quoted(args.at(0), QUOTED_BYTES_MAX));
    text.extend_from_slice(b"', with args beginning with: ");
    let start = text.len();
    for arg in args.iter_from(1) {
        let room = QUOTED_BYTES_MAX.saturating_sub(text.len() - start);
        if room == 0 {
            break;
        }
        text.push(b'\'');
        text.extend_from_slice(quoted(arg, room));
        text.extend_from_slice(b"' ");
    }
    text
}

/// What a user's rules refused. It names the command, in full, and neither key nor channel.
pub(crate) fn no_permission(user: &User, command: &str, denied: Denied) -> Vec<u8> {
    match denied.reason {
        Reason::Command => [b"NOPERM ", may_not_run(user, command).as_slice()].concat(),
        Reason::Key => b"NOPERM No permissions to access a key".to_vec(),
        Reason::Channel => b"NOPERM No permissions to access a channel".to_vec(),
    }
}

/// What a user's rules would refuse, as ACL DRYRUN answers it: with the key or channel.
pub(crate) fn would_be_refused(user: &User, command: &str, denied: Denied, args: &Args<'_>) -> Vec<u8> {
    let what: &[u8] = match denied.reason {
        Reason::Command => return may_not_run(user, command),
        Reason::Key => b"key",
        Reason::Channel => b"channel",
    };
    let object = args.at(denied.position);
    [b"User ", user.name(), b" has no permissions to access the '", object, b"' ", what].concat()
}

fn may_not_run(user: &User, command: &str) -> Vec<u8> {
    [b"User ", user.name(), b" has no permissions to run the '", command.as_bytes(), b"' command"].concat()
}

/// `called`: what clients call the container.
pub(crate) fn unknown_subcommand(args: &Args<'_>, called: &[u8]) -> Vec<u8> {
    let mut text = b"ERR unknown subcommand '".to_vec();
    text.extend_from_slice(quoted(args.get(1).unwrap_or_default(), QUOTED_BYTES_MAX));
    text.extend_from_slice(b"'. Try ");
    text.extend(called.to_ascii_uppercase());
    text.extend_from_slice(b" HELP.");
    text
}

/// As in Redis a quoted argument ends at its first NUL.
fn quoted(arg: &[u8], bytes_max: usize) -> &[u8] {
    let end = arg.iter().take(bytes_max).position(|b| *b == 0);
    &arg[..end.unwrap_or(arg.len().min(bytes_max))]
}

// Connections that are not let in: whole replies, written before there is a client.

pub(crate) const TOO_MANY_CLIENTS: &str = "-ERR max number of clients reached\r\n";

/// The peer's own words: programs and people search for them.
pub(crate) const PROTECTED: &str = "-DENIED Redis is running in protected mode because protected mode is enabled and \
no password is set for the default user. In this mode connections are only accepted from the loopback interface. If \
you want to connect from external computers to Redis you may adopt one of the following solutions: 1) Just disable \
protected mode sending the command 'CONFIG SET protected-mode no' from the loopback interface by connecting to Redis \
from the same host the server is running, however MAKE SURE Redis is not publicly accessible from internet if you do \
so. Use CONFIG REWRITE to make this change permanent. 2) Alternatively you can just disable the protected mode by \
editing the Redis configuration file, and setting the protected mode option to 'no', and then restarting the server. \
3) If you started the server manually just for testing, restart it with the '--protected-mode no' option. 4) Set up \
an authentication password for the default user. NOTE: You only need to do one of the above things in order for the \
server to start accepting connections from the outside.\r\n";

/// CLIENT UNBLOCK ... ERROR, to the client that waited.
pub(crate) const UNBLOCKED: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";

// Clients.

pub(crate) fn no_such_client() -> Error {
    Error::custom("ERR No such client")
}

pub(crate) fn client_id_not_positive() -> Error {
    Error::custom("ERR client-id should be greater than 0")
}

pub(crate) fn maxage_not_an_integer() -> Error {
    Error::custom("ERR maxage is not an integer or out of range")
}

pub(crate) fn maxage_not_positive() -> Error {
    Error::custom("ERR maxage should be greater than 0")
}

pub(crate) fn no_such_user(name: &[u8]) -> Error {
    Error::quoting(&[b"ERR No such user '", name, b"'"])
}

pub(crate) fn unknown_client_type(word: &[u8]) -> Error {
    Error::quoting(&[b"ERR Unknown client type '", word, b"'"])
}

/// REPLICAOF of another server.
pub(crate) fn no_replication() -> Error {
    Error::custom("ERR there is no replication yet: this server follows no other")
}

pub(crate) fn invalid_primary_port() -> Error {
    Error::custom("ERR Invalid master port")
}

pub(crate) fn invalid_client_id() -> Error {
    Error::custom("ERR Invalid client ID")
}

/// The error of CLIENT SETINFO for an attribute that it does not know.
pub(crate) fn unrecognized_option(option: &[u8]) -> Error {
    Error::quoting(&[b"ERR Unrecognized option '", option, b"'"])
}

/// `what` names the texts that hold no blanks: "Client names".
pub(crate) fn not_a_word(what: &str) -> Error {
    Error::custom(format!("ERR {what} cannot contain spaces, newlines or special characters."))
}

pub(crate) fn one_redirection() -> Error {
    Error::custom("ERR A client can only redirect to a single other client")
}

pub(crate) fn no_client_to_redirect_to() -> Error {
    Error::custom("ERR The client ID you want redirect to does not exist")
}

pub(crate) fn prefix_without_bcast() -> Error {
    Error::custom("ERR PREFIX option requires BCAST mode to be enabled")
}

/// `what`: which mode the client has tried to leave.
pub(crate) fn tracking_mode_switched(what: &str) -> Error {
    Error::custom(format!(
        "ERR You can't switch {what} before disabling tracking for this client, and then re-enabling it with a \
         different mode."
    ))
}

pub(crate) fn bcast_with_options() -> Error {
    Error::custom("ERR OPTIN and OPTOUT are not compatible with BCAST")
}

pub(crate) fn optin_and_optout() -> Error {
    Error::custom("ERR You can't specify both OPTIN mode and OPTOUT mode")
}

/// `which`: what the other prefix is, up to its quote.
pub(crate) fn prefixes_overlap(prefix: &[u8], which: &[u8], other: &[u8]) -> Error {
    let end = b"'. Prefixes for a single client must not overlap.";
    Error::quoting(&[b"ERR Prefix '", prefix, b"' overlaps with ", which, other, end])
}

pub(crate) fn caching_without_tracking() -> Error {
    Error::custom(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
    )
}

pub(crate) fn caching_not_in_mode(word: &str, mode: &str) -> Error {
    Error::custom(format!("ERR CLIENT CACHING {word} is only valid when tracking is enabled in {mode} mode."))
}

/// More than a million at once: Redis knows no such bound.
pub(crate) fn too_many_trackers() -> Error {
    Error::custom("ERR too many clients track keys")
}

pub(crate) fn unblock_reason() -> Error {
    Error::custom("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
}

pub(crate) fn pause_mode() -> Error {
    Error::custom("ERR CLIENT PAUSE mode must be WRITE or ALL")
}

// Listening.

/// The error for a client that listens to channels in RESP2 and asks for anything else.
pub(crate) fn only_listens(name: &str) -> Vec<u8> {
    format!(
        "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this \
         context"
    )
    .into()
}

// Logging in.

pub(crate) fn no_password_is_set() -> Error {
    Error::custom(
        "ERR AUTH <password> called without any password configured for the default user. Are you \
         sure your configuration is correct?",
    )
}

pub(crate) fn wrong_password() -> Error {
    Error::custom("WRONGPASS invalid username-password pair or user is disabled.")
}

pub(crate) fn hello_without_login() -> Error {
    Error::custom(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> \
         AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol \
         version at the same time",
    )
}

pub(crate) fn hello_option(option: &[u8]) -> Error {
    Error::quoting(&[b"ERR Syntax error in HELLO option '", option, b"'"])
}

pub(crate) fn protocol_not_an_integer() -> Error {
    Error::custom("ERR Protocol version is not an integer or out of range")
}

pub(crate) fn unsupported_protocol() -> Error {
    Error::custom("NOPROTO unsupported protocol version")
}

// Transactions.

pub(crate) const NOT_IN_TRANSACTIONS: &[u8] = b"ERR Command not allowed inside a transaction";

/// EXEC itself was refused; `why` is the error without its leading `ERR `.
pub(crate) fn transaction_refused(why: &[u8]) -> Vec<u8> {
    let why = why.strip_prefix(b"ERR ").unwrap_or(why);
    [b"EXECABORT Transaction discarded because of: ", why].concat()
}

pub(crate) fn transaction_broken() -> Error {
    Error::custom("EXECABORT Transaction discarded because of previous errors.")
}

pub(crate) fn exec_without_multi() -> Error {
    Error::custom("ERR EXEC without MULTI")
}

pub(crate) fn discard_without_multi() -> Error {
    Error::custom("ERR DISCARD without MULTI")
}

pub(crate) fn multi_in_multi() -> Error {
    Error::custom("ERR MULTI calls can not be nested")
}

pub(crate) fn watch_in_multi() -> Error {
    Error::custom("ERR WATCH inside MULTI is not allowed")
}

/// The error for MONITOR inside a transaction, where it could not go on sending. SSUBSCRIBE has one of its
/// own, whose text differs in Redis by an article.
pub(crate) fn monitor_denied() -> Error {
    Error::custom("ERR MONITOR isn't allowed for DENY BLOCKING client")
}

pub(crate) fn ssubscribe_denied() -> Error {
    Error::custom("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client")
}

/// A queued request that its user may not send any more.
pub(crate) fn rules_changed(reason: Reason) -> Error {
    let reason = match reason {
        Reason::Command => "no permission to execute the command or subcommand",
        Reason::Key => "no permission to touch the specified keys",
        Reason::Channel => "no permission to access one of the channels used as arguments",
    };
    Error::custom(format!(
        "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This \
         command is no longer allowed for the following reason: {reason}"
    ))
}

// Users.

pub(crate) fn user_name_with_spaces() -> Error {
    Error::custom("ERR Usernames can't contain spaces or null characters")
}

/// `why` in the words of the rule's error.
pub(crate) fn wrong_rule(rule: &[u8], why: &str) -> Error {
    Error::quoting(&[b"ERR Error in ACL SETUSER modifier '", rule, b"': ", why.as_bytes()])
}

pub(crate) fn selector_not_closed(begin: &[u8]) -> Error {
    Error::quoting(&[b"ERR Unmatched parenthesis in acl selector starting at '", begin, b"'."])
}

pub(crate) fn default_user_stays() -> Error {
    Error::custom("ERR The 'default' user cannot be removed")
}

pub(crate) fn unknown_category(name: &[u8]) -> Error {
    Error::quoting(&[b"ERR Unknown category '", quoted(name, QUOTED_BYTES_MAX), b"'"])
}

pub(crate) fn password_bits() -> Error {
    Error::custom(
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096",
    )
}

pub(crate) fn user_not_found(name: &[u8]) -> Error {
    Error::quoting(&[b"ERR User '", name, b"' not found"])
}

pub(crate) fn command_not_found(name: &[u8]) -> Error {
    Error::quoting(&[b"ERR Command '", name, b"' not found"])
}

/// The peer's own words: programs and people search for them.
pub(crate) fn no_acl_file() -> Error {
    Error::custom(
        "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the \
         ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) \
         in order to store users in the Redis configuration.",
    )
}

/// `faults`: all that is wrong with the file.
pub(crate) fn acl_file_refused(faults: &[u8]) -> Error {
    Error::quoting(&[b"ERR ", faults])
}

pub(crate) fn acl_file_not_saved() -> Error {
    Error::custom(
        "ERR There was an error trying to save the ACLs. Please check the server logs for more information",
    )
}

/// `option`: BY or GET.
pub(crate) fn sort_pattern_denied(option: &str) -> Error {
    Error::custom(format!("ERR {option} option of SORT denied due to insufficient ACL permissions."))
}

// Waiting.

pub(crate) fn timeout_out_of_range() -> Error {
    Error::custom("ERR timeout is out of range")
}

/// `why` is the system's reason.
pub(crate) fn unwritten(why: &str) -> Vec<u8> {
    format!("MISCONF Errors writing to the AOF file: {why}").into_bytes()
}

/// A request that runs while the data is loaded, and asks for what has to wait for that.
pub(crate) fn loading() -> Error {
    Error::custom(LOADING)
}

pub(crate) fn rewrite_in_progress() -> Error {
    Error::custom("ERR Background append only file rewriting already in progress")
}

pub(crate) fn rewrite_impossible() -> Error {
    Error::custom(
        "ERR Can't execute an AOF background rewriting. Please check the server logs for more information.",
    )
}

pub(crate) fn no_append_only_file() -> Error {
    Error::custom("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.")
}

// Settings, logs and latency.

pub(crate) fn unknown_setting(name: &[u8]) -> Error {
    Error::quoting(&[b"ERR Unknown option or number of arguments for CONFIG SET - '", name, b"'"])
}

/// `why` in the words of the setting.
pub(crate) fn setting_failed(name: &str, why: &str) -> Error {
    Error::custom(format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"))
}

pub(crate) fn no_config_file() -> Error {
    Error::custom("ERR The server is running without a config file")
}

pub(crate) fn rewriting_failed(why: &str) -> Error {
    Error::custom(format!("ERR Rewriting config file: {why}"))
}

pub(crate) fn count_below_minus_one() -> Error {
    Error::custom("ERR count should be greater than or equal to -1")
}

pub(crate) fn unknown_log_type() -> Error {
    Error::custom("ERR type should be one of the following: slow, large-request, large-reply")
}

pub(crate) fn no_samples(event: &str) -> Error {
    Error::custom(format!("ERR No samples available for event '{event}'"))
}

// Commands and modules.

pub(crate) fn no_key_arguments() -> Error {
    Error::custom("ERR The command has no key arguments")
}

pub(crate) fn wrong_number_of_arguments() -> Error {
    Error::custom("ERR Invalid number of arguments specified for command")
}

pub(crate) fn invalid_arguments() -> Error {
    Error::custom("ERR Invalid arguments specified for command")
}

pub(crate) fn invalid_command() -> Error {
    Error::custom("ERR Invalid command specified")
}

pub(crate) fn module_not_loaded() -> Error {
    Error::custom("ERR Error loading the extension. Please check the server logs.")
}

pub(crate) fn no_such_module() -> Error {
    Error::custom("ERR Error unloading module: no such module with that name")
}

// Snapshots, SHUTDOWN and DEBUG.

pub(crate) fn no_shutdown_in_progress() -> Error {
    Error::custom("ERR No shutdown in progress.")
}

pub(crate) fn save_in_progress() -> Error {
    Error::custom("ERR Background save already in progress")
}

/// What Redis answers where only its log says what went wrong.
pub(crate) fn unspecified() -> Error {
    Error::custom("ERR")
}

pub(crate) fn reload_option() -> Error {
    Error::custom("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.")
}

pub(crate) fn load_append_only_failed() -> Error {
    Error::custom("ERR Error trying to load the AOF files, check server logs.")
}

pub(crate) fn reload_failed() -> Error {
    Error::custom("ERR Error trying to load the RDB dump, check server logs.")
}

pub(crate) fn shutdown_failed() -> Error {
    Error::custom("ERR Errors trying to SHUTDOWN. Check logs.")
}

pub(crate) fn client_memory_is_unlimited() -> Error {
    Error::custom("ERR maxmemory-clients is disabled.")
}

pub(crate) fn no_cluster() -> Error {
    Error::custom("ERR This instance has cluster support disabled")
}

pub(crate) fn not_a_listpack() -> Error {
    Error::custom("ERR Not a listpack encoded object.")
}

pub(crate) fn not_a_quicklist() -> Error {
    Error::custom("ERR Not a quicklist encoded object.")
}

pub(crate) fn database_out_of_range() -> Error {
    Error::custom("ERR Out of range database")
}

pub(crate) fn not_a_hash_table() -> Error {
    Error::custom("ERR The value stored at the specified key is not represented using an hash table")
}

pub(crate) fn restless_argument() -> Error {
    Error::custom("ERR RESTLESS takes a seed or OFF")
}

pub(crate) fn disk_argument() -> Error {
    Error::custom("ERR DISK takes OK, FULL, BROKEN, FORGETFUL, STUCK or SLOW")
}

/// MIGRATE: what it was doing when the other server could not be spoken to.
pub(crate) fn migration_failed(step: &str) -> Error {
    Error::custom(format!("IOERR error or timeout {step}"))
}

pub(crate) fn migration_refused(text: &str) -> Error {
    Error::quoting(&[b"ERR Target instance replied with error: ", text.as_bytes()])
}

/// Not of Redis, where nothing runs meanwhile.
pub(crate) fn migration_overtaken() -> Error {
    Error::custom("IOERR a key was changed while it was sent: it is here and in the target instance")
}

pub(crate) fn migration_in_transaction() -> Error {
    Error::custom("ERR MIGRATE is not allowed in transactions")
}

pub(crate) fn migration_names_two() -> Error {
    Error::custom("ERR When using MIGRATE KEYS option, the key argument must be set to the empty string")
}

pub(crate) fn no_thread(error: &std::io::Error) -> Error {
    Error::custom(format!("ERR no thread: {error}"))
}

pub(crate) fn resp2_has_no_push() -> Error {
    Error::custom("ERR RESP2 is not supported by this command")
}

pub(crate) fn unknown_protocol_type() -> Error {
    Error::custom(
        "ERR Wrong protocol type name. Please use one of the following: \
         string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
    )
}

pub(crate) fn not_a_memory_value() -> Error {
    Error::custom("ERR argument must be a memory value bigger than 1 and smaller than 4gb")
}

// Scripts. Texts of the first group end a command of a script, not the script.

pub(crate) const UNKNOWN_IN_SCRIPT: &str = "ERR Unknown Redis command called from script";
pub(crate) const ARITY_IN_SCRIPT: &str = "ERR Wrong number of args calling Redis command from script";
pub(crate) const NOT_IN_SCRIPTS: &str = "ERR This Redis command is not allowed from script";
pub(crate) const WRITE_IN_READONLY_SCRIPT: &str =
    "ERR Write commands are not allowed from read-only scripts.";

/// What a user's rules refused to a script.
pub(crate) fn no_permission_in_script(user: &User, command: &str, denied: Denied) -> Vec<u8> {
    let text = no_permission(user, command, denied);
    let why = text.strip_prefix(b"NOPERM ").unwrap_or(&text);
    [b"ERR ACL failure in script: ", why].concat()
}

/// The command that ends a script of this kind.
pub(crate) fn kill_command(kind: Kind) -> &'static str {
    match kind {
        Kind::Script => "SCRIPT KILL",
        Kind::Function => "FUNCTION KILL",
    }
}

/// It names SCRIPT KILL, whatever has ended what.
pub(crate) const SCRIPT_KILLED: &str = "ERR Script killed by user with SCRIPT KILL...";

pub(crate) fn no_script() -> Error {
    Error::custom("NOSCRIPT No matching script. Please use EVAL.")
}

pub(crate) fn script_may_write() -> Error {
    Error::custom("ERR Can not execute a script with write flag using *_ro command.")
}

pub(crate) fn out_of_memory() -> Error {
    Error::quoting(&[OUT_OF_MEMORY])
}

pub(crate) fn unsaved() -> Error {
    Error::quoting(&[UNSAVED])
}

pub(crate) fn negative_keys() -> Error {
    Error::custom("ERR Number of keys can't be negative")
}

pub(crate) fn too_many_keys() -> Error {
    Error::custom("ERR Number of keys can't be greater than number of args")
}

pub(crate) fn script_flush_option() -> Error {
    Error::custom("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
}

pub(crate) fn script_debug_mode() -> Error {
    Error::custom("ERR Use SCRIPT DEBUG YES/SYNC/NO")
}

/// This server has no debugger for scripts.
pub(crate) fn no_script_debugger() -> Error {
    Error::custom("ERR SCRIPT DEBUG is not supported by this server")
}

pub(crate) fn no_script_runs() -> Error {
    Error::custom("NOTBUSY No scripts in execution right now.")
}

pub(crate) fn script_has_written() -> Error {
    Error::custom(
        "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the \
         script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
    )
}

// Functions.

pub(crate) const LIBRARY_TAKES_TOO_LONG: &str = "ERR FUNCTION LOAD timeout";

pub(crate) fn no_function() -> Error {
    Error::custom("ERR Function not found")
}

pub(crate) fn no_library() -> Error {
    Error::custom("ERR Library not found")
}

pub(crate) fn bad_key_count() -> Error {
    Error::custom("ERR Bad number of keys provided")
}

pub(crate) fn library_exists(name: &[u8]) -> Error {
    Error::quoting(&[b"ERR Library '", name, b"' already exists"])
}

/// A library is refused because of a name.
pub(crate) fn taken(taken: &Taken) -> Error {
    match taken {
        Taken::Library(name) => library_exists(name),
        Taken::Function(name) => Error::custom(format!("ERR Function {name} already exists")),
    }
}

/// The same for libraries that are restored together.
pub(crate) fn taken_by_restored(name: &Taken) -> Error {
    match name {
        Taken::Library(name) => Error::quoting(&[b"ERR Library ", name, b" already exists"]),
        Taken::Function(_) => taken(name),
    }
}

/// A subcommand with more arguments than it takes.
pub(crate) fn too_many_words(args: &Args<'_>) -> Error {
    let container = args.at(0).to_ascii_uppercase();
    Error::unknown_subcommand(args.at(1), &String::from_utf8_lossy(&container))
}

pub(crate) fn unknown_load_option(word: &[u8]) -> Error {
    Error::quoting(&[b"ERR Unknown option given: ", word])
}

pub(crate) fn unknown_list_option(word: &[u8]) -> Error {
    Error::quoting(&[b"ERR Unknown argument ", &on_one_line(word)])
}

/// DEBUG ERROR.
pub(crate) fn asked_for(text: &[u8]) -> Error {
    Error::custom(String::from_utf8_lossy(&on_one_line(text)).into_owned())
}

/// Line ends as spaces, where Redis does not cut off those at the end as it does elsewhere.
fn on_one_line(text: &[u8]) -> Vec<u8> {
    text.iter().map(|b| if matches!(b, b'\r' | b'\n') { b' ' } else { *b }).collect()
}

pub(crate) fn no_library_pattern() -> Error {
    Error::custom("ERR library name argument was not given")
}

pub(crate) fn function_flush_option() -> Error {
    Error::custom("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
}

pub(crate) fn restore_policy() -> Error {
    Error::custom("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")
}

pub(crate) fn not_a_function() -> Error {
    Error::custom("ERR given type is not a function")
}

pub(crate) fn old_function() -> Error {
    Error::custom("ERR Pre-GA function format not supported")
}

pub(crate) fn broken_library() -> Error {
    Error::custom("ERR Failed loading library payload")
}

/// Why a command of a file is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotRun {
    NotACommand,
    NoMemory,
}

/// What an error says, for the log.
pub(crate) fn without_code(error: &Error) -> String {
    let text = error.text();
    String::from_utf8_lossy(text.strip_prefix(b"ERR ").unwrap_or(text)).into_owned()
}
