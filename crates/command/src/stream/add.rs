//! XADD. On the path of every request: nothing is allocated here but a leaf now and then.
//!
//! Ids only rise. A client may give one, or the millisecond alone (`5-*`), or leave it to the server (`*`):
//! the time that it is, or where the clock stands behind the last id the one that follows it.
use super::id::{self, NewId};
use super::row::{ABOUT, ROW, XTRIM_EVENT};
use super::trim::Options;
use crate::argument::is_word;
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Long};
use base::{Item, Millis};
use resp::Args;
use store::{Event, Id, Lengths, Pairs, Stream};

pub(super) const XADD: Command = Command {
    name: "XADD",
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))
        .note("UPDATE instead of INSERT because of the optional trimming feature")],
    doc: Doc {
        since: "5.0.0",
        summary: "Adds an entry to a stream; creates the key where it is missing.",
        complexity: "O(1), and O(N) for N entries that trimming removes.",
        args: &[
            Arg::key("key", 0),
            Arg::word("nomkstream", "NOMKSTREAM").optional().since("6.2.0"),
            Arg::one_of(
                "condition",
                &[
                    Arg::word("keepref", "KEEPREF"),
                    Arg::word("delref", "DELREF"),
                    Arg::word("acked", "ACKED"),
                ],
            )
            .optional()
            .since("8.2.0"),
            Arg::block(
                "trim",
                &[
                    Arg::one_of(
                        "strategy",
                        &[Arg::word("maxlen", "MAXLEN"), Arg::word("minid", "MINID").since("6.2.0")],
                    ),
                    Arg::one_of("operator", &[Arg::word("equal", "="), Arg::word("approximately", "~")])
                        .optional(),
                    Arg::str("threshold"),
                    Arg::int("count").after("LIMIT").optional().since("6.2.0"),
                ],
            )
            .optional(),
            Arg::one_of("id-selector", &[Arg::word("auto-id", "*"), Arg::str("id")]),
            Arg::block("data", &[Arg::str("field"), Arg::str("value")]).many(),
        ],
        history: &[
            ("6.2.0", "Takes `NOMKSTREAM`, `MINID` and `LIMIT`."),
            ("7.0.0", "Takes ids of which only the milliseconds are given."),
        ],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(trimmed, xadd).with_words(WORDS_MIN).unless(adds_alone)),
    ..ROW
};

/// A request of fewer words trims nothing: XADD, the key, MAXLEN and its number, the id, a field and a value.
const WORDS_MIN: u8 = 7;

/// Whether a request of any length trims nothing, as far as a glance tells: its id stands behind the key.
#[inline]
fn adds_alone(args: &Args<'_>) -> bool {
    args.at(2).first().is_some_and(|byte| *byte == b'*' || byte.is_ascii_digit())
}

/// What is trimmed. A request that is answered with an error takes no time.
fn trimmed(call: &mut Call<'_, '_>) -> Option<u64> {
    if adds_alone(&call.args) {
        return Some(0);
    }
    match request(call) {
        Ok(request) => request.options.steps(call),
        Err(_) => Some(0),
    }
}

/// The field and value arguments, from `first` on.
struct Fields<'a> {
    args: Args<'a>,
    first: usize,
}

impl Fields<'_> {
    /// Whether a stream can hold them. How many bytes there are from the first to the last is known at once,
    /// and nearly always shows that they are short enough. What stands between them may be nothing: the
    /// arguments of scripts lie one behind the other.
    #[inline]
    fn check(&self, lengths: &Lengths) -> Done {
        let is_too_long = |bytes| lengths.is_row_too_long(bytes, self.count());
        if !is_too_long(self.args.framed_bytes_from(self.first)) || !is_too_long(self.text_bytes()) {
            return Ok(());
        }
        Err(Error::row_too_long())
    }
}

impl Pairs for Fields<'_> {
    #[inline]
    fn count(&self) -> usize {
        (self.args.len() - self.first) / 2
    }
    #[inline]
    fn name(&self, index: usize) -> &[u8] {
        self.args.at(self.first + 2 * index)
    }
    #[inline]
    fn value(&self, index: usize) -> Item<'_> {
        Item::classify(self.args.at(self.first + 2 * index + 1))
    }
    #[inline]
    fn text_bytes(&self) -> usize {
        self.args.iter_from(self.first).map(<[u8]>::len).sum()
    }
}

/// What an XADD asks for.
struct Request {
    options: Options,
    creates: bool,
    id: NewId,
    /// The argument that is the first field.
    fields_at: usize,
}

fn request(call: &Call<'_, '_>) -> Result<Request, Error> {
    let args = &call.args;
    let (mut options, mut creates, mut index) = (Options::default(), true, 2);
    let mut id = None;
    while index < args.len() {
        let word = args.at(index);
        if word == b"*" {
            id = Some(NewId::Auto);
            break;
        }
        if let Some(taken) = options.read(args, index)? {
            index += taken;
        } else if is_word(word, "NOMKSTREAM") {
            creates = false;
            index += 1;
        } else {
            id = Some(id::new(word)?);
            break;
        }
    }
    options.check()?;
    options.check_limit(call.view.is_replay())?;
    let fields_at = index + 1;
    let fields = args.len().saturating_sub(fields_at);
    match id {
        Some(NewId::Given(Id::MIN)) if fields >= 2 && fields % 2 == 0 => Err(Error::xadd_id_zero()),
        Some(id) if fields >= 2 && fields % 2 == 0 => Ok(Request { options, creates, id, fields_at }),
        _ => Err(Error::wrong_arity("xadd")),
    }
}

fn xadd(call: &mut Call<'_, '_>) -> Done {
    let request = request(call)?;
    let fields = Fields { args: call.args, first: request.fields_at };
    let (key, now, settings) = (call.key(0), call.view.clock(), call.view.settings());
    let mut stream = if request.creates {
        call.view.stream_or_new(key)?
    } else {
        match call.view.stream_mut(key)? {
            Some(stream) => stream,
            None => {
                call.reply.null();
                return Ok(());
            }
        }
    };
    let id = next_id(&stream, request.id, now);
    let id = match id.and_then(|id| fields.check(&settings.lengths).map(|()| id)) {
        Ok(id) => id,
        Err(error) => {
            if stream.is_new() {
                stream.give_up();
            }
            return Err(error);
        }
    };
    stream.add(id, &fields, &settings.stream);
    let trimmed = match request.options.wants_trimming() {
        true => request.options.apply(&mut stream, settings),
        false => 0,
    };
    let is_as_asked = matches!(request.id, NewId::Given(_)) && !request.options.is_about();
    if let Some(effects) = call.effects.as_deref_mut().filter(|_| !is_as_asked) {
        let mut words: Vec<Vec<u8>> = call.args.iter_from(0).map(<[u8]>::to_vec).collect();
        if !matches!(request.id, NewId::Given(_)) {
            words[request.fields_at - 1] = id::text(id);
        }
        request.options.exact_words(&stream, &mut words, request.fields_at - 1);
        effects.say_all(words.iter().map(Vec::as_slice));
    }
    drop(stream);
    id::reply(call.reply, id);
    call.view.changed(key, 1, Event::stream("xadd"));
    if trimmed > 0 {
        call.view.touched(key, XTRIM_EVENT);
    }
    Ok(())
}

/// The id that the entry gets.
#[inline]
fn next_id(stream: &Stream, id: NewId, now: Millis) -> Result<Id, Error> {
    let last = stream.last_id();
    let Some(following) = last.next() else {
        return Err(Error::stream_ids_exhausted());
    };
    let now_ms = now.0.max(0) as u64;
    let id = match id {
        NewId::Auto if now_ms > last.ms => Id { ms: now_ms, seq: 0 },
        NewId::Auto => following,
        NewId::InMs(ms) if ms == last.ms && last.seq < u64::MAX => following,
        NewId::InMs(ms) => Id { ms, seq: 0 },
        NewId::Given(id) => id,
    };
    if id > last {
        return Ok(id);
    }
    Err(Error::xadd_id_not_behind())
}
