//! A server in this process: the whole of it, on a port of loopback that the system chooses, silent, ended
//! when it is dropped. Its time stands still until a test moves it.
use crate::resp_client::{Address, RespClient};
use crate::scratch::Scratch;
use crate::socket_peer::SocketPeer;
use base::Millis;
use server::{Allow, Clock, Config, Log, Running, SimulatedTime, Snapshots};
use std::io;

/// Some day in 2026: deadlines that transcripts name as Unix times lie before and behind it.
pub(crate) const BEGINNING: Millis = Millis(1_780_000_000_000);

pub struct InProcess {
    pub server: Running,
    pub time: SimulatedTime,
    /// Its working directory, unless the configuration names another.
    _folder: Scratch,
}

impl InProcess {
    /// The defaults but for the address and DEBUG, which tests may use: the way to begin a configuration for
    /// [`InProcess::start`].
    pub fn config() -> Config {
        Config {
            bind: vec!["127.0.0.1".into()],
            port: 0,
            picks_port: true,
            enable_debug_command: Allow::Local,
            snapshots: Snapshots::never(),
            ..Config::default()
        }
    }

    /// A server in this process, on a port that the system chooses. It ends when it is dropped.
    pub fn start(mut config: Config) -> InProcess {
        let folder = Scratch::new("in-process").expect("a folder can be made");
        if config.dir == Config::default().dir {
            config.dir = folder.path().into();
        }
        let (clock, time) = Clock::simulated(BEGINNING);
        let server = server::start(config, clock, Log::silent()).expect("loopback has a free port");
        InProcess { server, time, _folder: folder }
    }

    /// Where its clients connect.
    pub fn address(&self) -> Address {
        self.server.addresses[0].into()
    }

    /// One more client, in RESP2.
    pub fn client(&self) -> io::Result<RespClient> {
        RespClient::connect(&self.address())
    }

    /// For transcripts.
    pub fn peer(&self) -> io::Result<SocketPeer> {
        Ok(SocketPeer::connect(&self.address())?.with_time(self.time.clone()))
    }
}
