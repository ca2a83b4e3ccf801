//! Short histories of concurrent clients, checked: on a server with several workers, and on a restless one.
//! `cargo xtask histories` plays them for longer.
use pack::arena::Arena;
use pack::counted::Counted;
use server::{Clock, Config, Log, Running};
use testkit::histories::{Checked, Size, play};
use testkit::in_process::InProcess;

/// As in the program: only data in the arena can move.
#[global_allocator]
static HEAP: Counted<Arena<std::alloc::System>> = Counted(Arena(std::alloc::System));

const SEEDS: std::ops::Range<u64> = 1..5;
const SIZE: Size = Size { clients: 5, requests: 150 };

#[test]
fn concurrent_histories_have_an_order_that_explains_them() {
    play_all(&sardine());
}

#[test]
fn histories_of_a_restless_server_have_an_order_that_explains_them() {
    let sardine = sardine();
    sardine.make_restless(1);
    play_all(&sardine);
}

/// With shards and workers enough for their mistakes to show.
fn sardine() -> Running {
    let config = Config { shard_bits: 8, worker_threads: 4, ..InProcess::config() };
    server::start(config, Clock::real(), Log::silent()).expect("loopback has a free port")
}

fn play_all(sardine: &Running) {
    let address = sardine.addresses[0].into();
    let mut all = Checked::default();
    for seed in SEEDS {
        let checked =
            play(&address, seed, SIZE).expect("the server answers").unwrap_or_else(|why| panic!("{why}"));
        all.requests += checked.requests;
        all.transactions += checked.transactions;
        all.snapshots += checked.snapshots;
    }
    assert!(all.requests > 5_000, "{all:?}");
    let transacts = testkit::histories::Abilities::of(&address).expect("the server answers").transacts;
    assert!(!transacts || all.transactions > 500 && all.snapshots > 300, "{all:?}");
}
