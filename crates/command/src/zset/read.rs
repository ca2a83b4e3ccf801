//! Questions about single members, and the number of them.
use super::Show;
use super::row::{ABOUT, ROW};
use crate::argument::is_word;
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec};
use resp::Reply;
use store::End;

pub(super) const ZCARD: Command = Command {
    name: "ZCARD",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO)],
    doc: Doc {
        since: "1.2.0",
        summary: "Answers how many members a sorted set has.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        ..ABOUT
    },
    run: DataRun::Keys(zcard),
    ..ROW
};

pub(super) const ZSCORE: Command = Command {
    name: "ZSCORE",
    arity: Arity::Exactly(3),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "1.2.0",
        summary: "Answers the score of a member.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0), Arg::str("member")],
        ..ABOUT
    },
    run: DataRun::Keys(zscore),
    ..ROW
};

pub(super) const ZMSCORE: Command = Command {
    name: "ZMSCORE",
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "6.2.0",
        summary: "Answers the scores of several members.",
        complexity: "O(N) where N is the number of members asked for.",
        args: &[Arg::key("key", 0), Arg::str("member").many()],
        ..ABOUT
    },
    run: DataRun::Keys(zmscore),
    ..ROW
};

pub(super) const ZRANK: Command = Command {
    name: "ZRANK",
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.0.0",
        summary: "Answers how many members come before one, from the least score.",
        complexity: "O(log(N)) where N is the number of members in the set.",
        args: &[Arg::key("key", 0), Arg::str("member"), Arg::word("withscore", "WITHSCORE").optional()],
        history: &[("7.2.0", "Takes `WITHSCORE`.")],
        ..ABOUT
    },
    run: DataRun::Keys(zrank),
    ..ROW
};

pub(super) const ZREVRANK: Command = Command {
    name: "ZREVRANK",
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.0.0",
        summary: "Answers how many members come before one, from the greatest score.",
        complexity: "O(log(N)) where N is the number of members in the set.",
        args: &[Arg::key("key", 0), Arg::str("member"), Arg::word("withscore", "WITHSCORE").optional()],
        history: &[("7.2.0", "Takes `WITHSCORE`.")],
        ..ABOUT
    },
    run: DataRun::Keys(zrevrank),
    ..ROW
};

fn zcard(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let len = call.view.zset(key)?.map_or(0, |set| set.len());
    call.reply.int(len as i64);
    Ok(())
}

fn zscore(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let score = call.view.zset(key)?.and_then(|set| set.score(call.args.at(2)));
    reply_score(call.reply, score);
    Ok(())
}

fn zmscore(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let set = call.view.zset(key)?;
    call.reply.array(call.args.len() - 2);
    let members = call.args.iter_from(2);
    match set {
        Some(set) => set.each_score(members, |score| reply_score(call.reply, score)),
        None => members.for_each(|_| call.reply.null()),
    }
    Ok(())
}

fn reply_score(reply: &mut Reply, score: Option<f64>) {
    match score {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
}

fn zrank(call: &mut Call<'_, '_>) -> Done {
    rank(call, End::Tail, "zrank")
}

fn zrevrank(call: &mut Call<'_, '_>) -> Done {
    rank(call, End::Head, "zrevrank")
}

/// Ranks count from the least score upwards, or from the greatest downwards. The table cannot say "three or
/// four arguments".
fn rank(call: &mut Call<'_, '_>, towards: End, name: &str) -> Done {
    let show = match (call.args.len(), call.args.get(3)) {
        (3, _) => Show::Members,
        (4, Some(word)) if is_word(word, "WITHSCORE") => Show::Scores,
        (4, _) => return Err(Error::syntax()),
        _ => return Err(Error::wrong_arity(name)),
    };
    let key = call.key(0);
    let set = call.view.zset(key)?;
    let Some((set, (rank, score))) = set.and_then(|set| Some((set, set.rank(call.args.at(2))?))) else {
        if show == Show::Scores {
            call.reply.null_array()
        } else {
            call.reply.null()
        }
        return Ok(());
    };
    let rank = if towards == End::Tail { rank } else { set.len() - 1 - rank };
    if show == Show::Scores {
        call.reply.array(2);
    }
    call.reply.int(rank as i64);
    if show == Show::Scores {
        call.reply.double(score);
    }
    Ok(())
}
