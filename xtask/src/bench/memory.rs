//! What data costs in memory: RSS and the server's own count before and after a load, in a fresh process.
use super::chart::Bar;
use super::client::Client;
use super::data_sets::{Load, Setting};
use super::server::{Server, Spec};
use std::time::Duration;

/// What a load costs: bytes of all its elements together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) elements: u64,
    /// Bytes of the values that were sent.
    pub(crate) payload: u64,
    /// How much `used_memory` rose.
    pub(crate) used: u64,
    /// How much RSS rose.
    pub(crate) resident: u64,
}

/// Starts the server, applies the settings, sends the load.
pub(crate) fn measure(
    spec: &Spec,
    settings: &[Setting<'_>],
    depth: usize,
    load: Load<'_>,
) -> Result<Cost, String> {
    let server = Server::start(spec, None)?;
    let mut client = server.client()?;
    configure(&server, &mut client, settings)?;
    std::thread::sleep(Duration::from_millis(300));
    let before = (server.rss_bytes(), used(&mut client)?);
    let mut cost = Cost::default();
    load(&mut |args, count| {
        cost.payload += args[2..].iter().map(|a| a.len() as u64).sum::<u64>();
        cost.elements += count;
        client.pipe(args, depth)
    })?;
    client.flush()?;
    std::thread::sleep(Duration::from_millis(500));
    cost.used = used(&mut client)?.saturating_sub(before.1);
    cost.resident = server.rss_bytes().saturating_sub(before.0);
    Ok(cost)
}

/// A peer may lack a setting (our codecs): its figure is then that of its defaults, and says so.
pub(crate) fn configure(
    server: &Server,
    client: &mut Client,
    settings: &[Setting<'_>],
) -> Result<(), String> {
    for (name, value) in settings {
        if client.call(&[b"CONFIG", b"SET", name.as_bytes(), value.as_bytes()]).is_err() {
            println!("  ({} has no setting {name})", server.name);
            *client = server.client()?;
        }
    }
    Ok(())
}

fn used(client: &mut Client) -> Result<u64, String> {
    let text = client.info("memory", "used_memory")?;
    text.parse().map_err(|_| format!("bench: used_memory is {text}"))
}

impl Cost {
    /// RSS an element.
    pub(crate) fn each(&self) -> f64 {
        self.resident as f64 / self.elements as f64
    }

    /// A bar of RSS an element, that opens into payload, what the server adds to it, and what the allocator
    /// and the system add to that. Packed data can be smaller than its payload: then it is one part.
    pub(crate) fn bar(&self, group: &str, series: &str) -> Bar {
        let each = |bytes: u64| bytes as f64 / self.elements as f64;
        let used = self.used.min(self.resident);
        let inside = if used > self.payload {
            vec![
                ("payload".to_string(), each(self.payload)),
                ("overhead".to_string(), each(used - self.payload)),
            ]
        } else {
            vec![("data, packed below its payload".to_string(), each(used))]
        };
        let outside = ("RSS beyond what the server counts".to_string(), each(self.resident - used));
        Bar {
            group: group.to_string(),
            series: series.to_string(),
            value: self.each(),
            parts: inside.into_iter().chain([outside]).collect(),
            parts_unit: "bytes",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_cost_add_up_whatever_is_the_larger() {
        for (payload, used, resident) in [(100, 150, 200), (100, 50, 60), (100, 300, 200), (100, 0, 0)] {
            let bar = Cost { elements: 10, payload, used, resident }.bar("case", "server");
            let sum: f64 = bar.parts.iter().map(|(_, value)| value).sum();
            assert!((sum - bar.value).abs() < 1e-9, "{bar:?}");
        }
    }
}
