//! What the journal says, compared with the append-only file of a real server, and replayed.
use server::{Clock, Config, Log, Running};
use testkit::differ::journal::{Journals, replay};
use testkit::in_process::InProcess;
use testkit::journal::AofFile;
use testkit::journal_storm::Storm;
use testkit::redis_server::RedisServer;

/// Some seconds. `cargo xtask differ --journal` plays more, with other seeds.
const STREAM_COUNT: u64 = 60;
const FIRST_SEED: u64 = 2_000_000;

fn sardine(workers: usize) -> Running {
    let config = Config { worker_threads: workers, ..InProcess::config() };
    server::start(config, Clock::real(), Log::silent()).expect("loopback has a free port")
}

#[test]
fn random_streams_are_recorded_as_the_unpacked_redis_server_records_them() {
    // Not every machine has it, and none must.
    let Some(redis) = RedisServer::unpacked_with(&AofFile::ARGUMENTS).unwrap() else { return };
    let sardine = sardine(2);
    let file = AofFile::of(&redis).unwrap();
    let mut journals = Journals::new(&sardine, (redis.address(), file), &[]).unwrap();
    let mut effect_count = 0;
    for seed in FIRST_SEED..FIRST_SEED + STREAM_COUNT {
        let played = journals.play(seed).unwrap();
        effect_count += played.effect_count;
        if let Some((name, told)) = played.difference {
            panic!("seed {seed}: {name} is recorded otherwise\n{told}");
        }
        let copy = self::sardine(1);
        let errors = replay(&copy.addresses[0].into(), &played.journal).unwrap();
        assert_eq!(errors, [] as [String; 0], "seed {seed}");
        let missing = journals.missing_in(&copy).unwrap();
        assert!(missing.is_empty() || played.has_settings, "seed {seed}: {missing:?}");
    }
    assert!(effect_count > 1000, "{effect_count}");
}

#[test]
fn what_many_clients_do_at_once_is_recorded_in_the_order_in_which_it_was_done() {
    for (seed, workers, evicts) in [(1, 1, false), (2, 4, false), (3, 3, true), (4, 2, false)] {
        let storm = Storm { seed, workers, clients: 8, requests: 3_000, evicts };
        let weathered = storm.weather().unwrap();
        assert_eq!(weathered.errors, [] as [String; 0], "{storm:?}");
        assert_eq!(weathered.differences, [] as [(String, String); 0], "{storm:?}");
        assert!(weathered.journal_bytes > 100_000, "{storm:?}: {}", weathered.journal_bytes);
    }
}
