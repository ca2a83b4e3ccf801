//! Metrics of the program and the process.
use super::{NO_CLUSTER, NO_IO_THREADS};
use crate::commands::info::metric::{
    Cell, Kind, Line, Metric, Unit, Value, cell, counter, each, gauge, text, zero,
};
use crate::commands::info::reading::Reading;
use crate::core::server::Server;
use crate::state::REDIS_VERSION;
use crate::state::system;
use nix::sys::resource::UsageWho;
use std::borrow::Cow;
use std::net::SocketAddr;

pub(in super::super) const SERVER: &[Metric] = &[
    text("redis_version", "The version of Redis that the server behaves like.", |_| REDIS_VERSION.into()),
    text("sardine_version", "The version of Sardine.", |_| env!("CARGO_PKG_VERSION").into()),
    text("redis_git_sha1", "The commit that the program was built from.", |_| "00000000".into())
        .constant(NOT_TOLD),
    zero(Kind::Gauge, "redis_git_dirty", "Whether that commit was changed.", NOT_TOLD),
    text("redis_build_id", "The build.", |_| "0000000000000000".into()).constant(NOT_TOLD),
    text("redis_mode", "`standalone`, `sentinel` or `cluster`.", |_| "standalone".into())
        .constant(NO_CLUSTER),
    text("os", "The operating system.", |_| system::name().into()),
    gauge("arch_bits", "Width of a pointer in bits.", |_| usize::BITS.into()),
    text("monotonic_clock", "The clock by which commands are timed.", |_| net::Meter::new().name().into()),
    text(
        "multiplexing_api",
        "The system interface by which sockets are waited for: `epoll` or `io_uring`.",
        |r| r.server.engine_name.into(),
    ),
    gauge("process_id", "The number of the process.", |_| std::process::id().into()),
    text(
        "process_supervised",
        "The service manager that is told of the start: `systemd`, `upstart` or `no`.",
        |r| r.config.supervisor.name().into(),
    ),
    text("run_id", "A random identifier of this run of the server; it is another after each start.", |r| {
        r.server.run_id.clone().into()
    }),
    gauge("tcp_port", "The port of the first address that is listened on, 0 without one.", |r| {
        u32::from(tcp_port(r.server)).into()
    }),
    gauge("server_time_usec", "The present time, since 1970.", |r| r.server.clock.now_us().into())
        .unit(Unit::Microseconds),
    counter("uptime_in_seconds", "How long the server has been running.", |r| r.server.uptime_s().into())
        .unit(Unit::Seconds),
    counter("uptime_in_days", "`uptime_in_seconds` in whole days.", |r| {
        (r.server.uptime_s() / 86_400).into()
    })
    .unit(Unit::Days),
    gauge("hz", "The setting `hz`, which has no effect.", |r| r.config.hz.into()).unit(Unit::PerSecond),
    gauge("configured_hz", "The same as `hz`.", |r| r.config.hz.into()).unit(Unit::PerSecond),
    gauge("lru_clock", "The lowest 24 bits of the present time in seconds.", |r| {
        ((r.now.0 / 1000) & 0xFF_FFFF).into()
    }),
    text("executable", "The path of the program.", |_| {
        std::env::current_exe().unwrap_or_default().display().to_string().into()
    }),
    text("config_file", "The path of the configuration file, empty without one.", |r| {
        r.config.file.clone().unwrap_or_default().display().to_string().into()
    }),
    zero(Kind::Gauge, "io_threads_active", "Whether threads for input and output run.", NO_IO_THREADS),
    gauge("worker_threads", "How many workers serve clients.", |r| r.server.mailboxes.len().into()),
    each("listener", "number", "What the server listens on.", LISTENER, listeners),
];

const NOT_TOLD: &str = "Builds do not record it.";

const LISTENER: &[Cell] = &[
    cell("name", Kind::Text, Unit::None, "`tcp` or `unix`."),
    cell("bind", Kind::Text, Unit::None, "An address as it is configured, or the path of the socket."),
    cell("port", Kind::Gauge, Unit::None, "The port; only of `tcp`."),
];

pub(in super::super) const CPU: &[Metric] = &[
    counter("used_cpu_sys", "Processor time that the kernel spent on this process.", |_| {
        cpu(UsageWho::RUSAGE_SELF).system.into()
    })
    .unit(Unit::Seconds),
    counter("used_cpu_user", "Processor time that the process spent in its own code.", |_| {
        cpu(UsageWho::RUSAGE_SELF).user.into()
    })
    .unit(Unit::Seconds),
    counter(
        "used_cpu_sys_children",
        "Processor time that the kernel spent on finished child processes.",
        |_| cpu(UsageWho::RUSAGE_CHILDREN).system.into(),
    )
    .unit(Unit::Seconds),
    counter(
        "used_cpu_user_children",
        "Processor time that finished child processes spent in their own code.",
        |_| cpu(UsageWho::RUSAGE_CHILDREN).user.into(),
    )
    .unit(Unit::Seconds),
];

fn cpu(who: UsageWho) -> system::CpuTime {
    system::cpu_time(who)
}

fn tcp_port(server: &Server) -> u16 {
    let (plain, secure) = (server.listening.addresses(), server.listening.tls_addresses());
    plain.first().or(secure.first()).map_or(0, SocketAddr::port)
}

/// One line for TCP, with the addresses as they are configured, one for the Unix socket, and one for TLS,
/// each with the number of its kind.
fn listeners(reading: &Reading<'_>) -> Vec<Line> {
    let named = |name: &'static str, text: Value| (Cow::Borrowed(name), text);
    let on_addresses = |kind: &'static str, addresses: &[SocketAddr]| {
        let port = addresses.first()?.port();
        let mut cells = vec![named("name", kind.into())];
        cells.extend(reading.config.bind.iter().map(|address| named("bind", address.to_string().into())));
        cells.push(named("port", u32::from(port).into()));
        Some(cells)
    };
    let on_path = reading
        .config
        .unixsocket
        .as_ref()
        .map(|path| vec![named("name", "unix".into()), named("bind", path.display().to_string().into())]);
    let listening = &reading.server.listening;
    let kinds = [
        on_addresses("tcp", &listening.addresses()),
        on_path,
        on_addresses("tls", &listening.tls_addresses()),
    ];
    let numbered = kinds.into_iter().enumerate();
    numbered.filter_map(|(number, cells)| Some(Line { label: number.to_string(), cells: cells? })).collect()
}
