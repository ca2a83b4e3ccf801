//! A client that asks for units in pipelines until the server is gone, and what it knows then.
use super::unit::{Drawer, Unit};
use super::{Keep, now};
use crate::resp_client::{RespClient, request};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Instant;

/// With `everysec` one batch in so many waits for the disk.
const WAITS_ONE_IN: u64 = 8;

/// What one client has asked for since the data was looked at last.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) units: Vec<Unit>,
    /// The replies to so many units have come.
    pub(super) acknowledged: usize,
    /// So many the disk had to have.
    pub(super) on_disk: usize,
    /// When so many units had been acknowledged.
    pub(super) times: Vec<(usize, Instant)>,
}

/// What others may see of a client meanwhile.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) acknowledged: AtomicU64,
    /// So many the disk had, as WAITAOF or SAVE told.
    pub(super) on_disk: AtomicU64,
    /// It is to ask for no more.
    pub(super) is_over: AtomicBool,
}

/// Asks until the server is gone, or it is told to end. `first` is the number of the first unit.
pub(super) fn ask(
    client: &mut RespClient,
    drawer: &mut Drawer,
    (first, keep): (u64, Keep),
    progress: &Progress,
) -> Asked {
    let mut asked = Asked::default();
    let _ = ask_until_killed(client, drawer, (first, keep), (&mut asked, progress));
    asked
}

fn ask_until_killed(
    client: &mut RespClient,
    drawer: &mut Drawer,
    (first, keep): (u64, Keep),
    (asked, progress): (&mut Asked, &Progress),
) -> io::Result<()> {
    client.call(&["SELECT", &drawer.client.to_string()])?;
    while !progress.is_over.load(SeqCst) {
        let most = if drawer.random.below(8) == 0 { 40 } else { 8 };
        let count = 1 + drawer.random.below(most);
        let begin = asked.units.len();
        let mut wire = Vec::new();
        for index in 0..count {
            let number = first + asked.units.len() as u64;
            let unit = drawer.unit(number, index + 1 == count);
            unit.requests.iter().for_each(|words| wire.extend(request(words)));
            asked.units.push(unit);
        }
        client.send_bytes(&wire)?;
        for unit in &mut asked.units[begin..] {
            for _ in &unit.requests {
                unit.reply = None;
                unit.reply = Some(client.receive()?);
            }
            asked.acknowledged += 1;
        }
        asked.times.push((asked.acknowledged, now()));
        progress.acknowledged.store(asked.acknowledged as u64, SeqCst);
        if keep == Keep::EverySecond && drawer.random.below(WAITS_ONE_IN) == 0 {
            let told = client.call(&["WAITAOF", "1", "0", "0"])?;
            if told.lines().get(1).is_some_and(|line| line.trim() == ":1") {
                progress.on_disk.store(asked.acknowledged as u64, SeqCst);
            }
        }
    }
    Ok(())
}
