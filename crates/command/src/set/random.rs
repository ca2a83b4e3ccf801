//! Members chosen at random, every one with the same chance, removed or not.
//!
//! A count is read before the key is looked at, so a wrong one is an error even where there is no set. A key
//! that is missing is a null where no count is given, and nothing where one is.
use super::ask::{leave_members, reply_first};
use super::row::{ABOUT, ROW, SPOP_EVENT};
use crate::argument::{self, int};
use crate::walk::Share;
use crate::{
    Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Effects, Error, Flags, KeySpec, Long, draws, work,
};
use base::Item;
use base::random::Random;
use resp::Reply;
use store::Set;

pub(super) const SPOP: Command = Command {
    name: "SPOP",
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::DELETE))],
    doc: Doc {
        since: "1.0.0",
        summary: "Removes members of a set chosen at random and answers them.",
        complexity: "O(log N) for each member popped.",
        args: &[Arg::key("key", 0), Arg::int("count").optional().since("3.2.0")],
        history: &[("3.2.0", "Takes a count.")],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(work::popped, spop).with_words(3)),
    ..ROW
};

pub(super) const SRANDMEMBER: Command = Command {
    name: "SRANDMEMBER",
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "1.0.0",
        summary: "Answers members of a set chosen at random.",
        complexity: "O(log N) for each member answered.",
        args: &[Arg::key("key", 0), Arg::int("count").optional().since("2.6.0")],
        history: &[("2.6.0", "Takes a count.")],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    at_once: Some(&Long::reading(work::drawn_at_once, srandmember).with_words(3)),
    run: DataRun::Long(&Long::reading(work::drawn, srandmember)),
    ..ROW
};

fn spop(call: &mut Call<'_, '_>) -> Done {
    match call.args.len() {
        2 => pop_one(call),
        3 => pop_some(call),
        _ => Err(Error::syntax()),
    }
}

fn pop_one(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let Some(mut set) = call.view.set_mut(key)? else {
        call.reply.null();
        return Ok(());
    };
    let mut popped = Vec::new();
    let is_told = call.effects.is_some();
    set.pop(1, &mut |member| {
        if is_told {
            member.append_to(&mut popped);
        }
        call.reply.item(member);
    });
    drop(set);
    call.view.reduced(key, 1, SPOP_EVENT);
    call.effect(&[b"SREM", key.bytes(), &popped]);
    Ok(())
}

fn pop_some(call: &mut Call<'_, '_>) -> Done {
    let count = argument::count(call.args.at(2))?;
    let key = call.key(0);
    let Some(mut set) = call.view.set_mut(key)? else {
        call.reply.set(0);
        return Ok(());
    };
    let len = set.len();
    let popped = count.min(len);
    call.reply.set(popped as usize);
    if popped > 0 {
        // All that was there reads as a removal of the key.
        let mut told = Told::new(key.bytes(), call.effects.as_deref_mut().filter(|_| popped < len));
        set.pop(popped, &mut |member| {
            told.add(member);
            call.reply.item(member);
        });
        told.end();
    }
    drop(set);
    if popped == len {
        call.deletion_effect(key.bytes());
        // Redis looks the key up a second time to answer all of the set.
        call.view.note_lookup(key, true);
    }
    call.view.reduced(key, popped, SPOP_EVENT);
    Ok(())
}

/// Members that have been removed, as SREM names them: so many at a time.
struct Told<'c> {
    key: &'c [u8],
    effects: Option<&'c mut Effects>,
    /// Texts of members, one behind the other, and where each ends.
    texts: Vec<u8>,
    ends: Vec<usize>,
}

const TOLD_AT_ONCE: usize = 1024;

impl<'c> Told<'c> {
    fn new(key: &'c [u8], effects: Option<&'c mut Effects>) -> Told<'c> {
        Told { key, effects, texts: Vec::new(), ends: Vec::new() }
    }

    fn add(&mut self, member: Item<'_>) {
        if self.effects.is_some() {
            member.append_to(&mut self.texts);
            self.ends.push(self.texts.len());
            if self.ends.len() == TOLD_AT_ONCE {
                self.end();
            }
        }
    }

    fn end(&mut self) {
        let Some(effects) = self.effects.as_deref_mut().filter(|_| !self.ends.is_empty()) else { return };
        effects.begin_words(2 + self.ends.len());
        effects.word(b"SREM");
        effects.word(self.key);
        let mut start = 0;
        for end in self.ends.drain(..) {
            effects.word(&self.texts[start..end]);
            start = end;
        }
        effects.end_words();
        self.texts.clear();
    }
}

fn srandmember(call: &mut Call<'_, '_>) -> Done {
    match call.args.len() {
        2 => random_one(call),
        3 => random_some(call),
        _ => Err(Error::syntax()),
    }
}

fn random_one(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let mut random = call.view.random(key);
    match call.view.set(key)? {
        Some(set) => set.random(&mut random, |member| call.reply.item(member)),
        None => call.reply.null(),
    }
    Ok(())
}

/// SRANDMEMBER with a count. A negative one makes so many draws, in which a member may be repeated.
fn random_some(call: &mut Call<'_, '_>) -> Done {
    let count = int(call.args.at(2))?;
    if count == i64::MIN {
        return Err(Error::not_between(-i64::MAX, i64::MAX));
    }
    let key = call.key(0);
    let mut random = call.view.random(key);
    let set = call.view.set(key)?;
    let Some(set) = set.filter(|_| count != 0) else {
        call.reply.array(0);
        return Ok(());
    };
    if let Ok(count) = u64::try_from(count) {
        let len = set.len();
        call.reply.array(count.min(len) as usize);
        if count >= len {
            let mut share = Share::first(len, call.reply);
            reply_first(call.reply, &set, &mut share);
            leave_members(call, key, (len, share.written()));
            return Ok(());
        }
        set.sample(count, &mut random, &mut |member| {
            call.reply.item(member);
            call.reply.flow()
        });
        return Ok(());
    }
    let count = count.unsigned_abs();
    call.reply.array(count as usize);
    let left = draws::begin(count, call.reply, |reply| draw(&set, &mut random, reply));
    draws::leave(call, key, (left, random), 0, |value, random, reply| {
        if let Some(set) = value.set() {
            draw(&set, random, reply);
        }
    });
    Ok(())
}

fn draw(set: &Set<'_>, random: &mut Random, reply: &mut Reply) {
    set.random(random, |member| reply.item(member));
}
