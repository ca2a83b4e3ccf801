//! Where parts of the bench go: a JSON file each, and one page over all that are there, so that a part that
//! was measured again replaces its own figures only.
use super::chart::Chart;
use super::page;
use super::server::Server;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The charts of one part.
pub(crate) struct Part {
    /// The name of its file, and of the word on the command line.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// How it was measured, for the reader of the page.
    pub(crate) method: String,
    pub(crate) is_quick: bool,
    pub(crate) charts: Vec<Chart>,
}

impl Part {
    fn json(&self) -> Value {
        let command: Vec<String> = std::env::args().skip(1).collect();
        json!({
            "part": self.name,
            "title": self.title,
            "method": self.method,
            "quick": self.is_quick,
            "command": format!("cargo xtask {}", command.join(" ")),
            "made": said(Command::new("date").args(["-u", "+%Y-%m-%d %H:%M UTC"])),
            "machine": machine(),
            "charts": self.charts.iter().map(Chart::json).collect::<Vec<_>>(),
        })
    }

    /// Writes it, and the page anew.
    pub(crate) fn save(&self, folder: &Path) -> Result<(), String> {
        fs::create_dir_all(folder).map_err(|e| format!("bench: {}: {e}", folder.display()))?;
        let path = folder.join(format!("{}.json", self.name));
        fs::write(&path, format!("{:#}", self.json()))
            .map_err(|e| format!("bench: {}: {e}", path.display()))?;
        println!("wrote {}", path.display());
        write_page(folder)
    }
}

/// `index.html` over every part that the folder holds.
pub(crate) fn write_page(folder: &Path) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("bench: {}: {e}", folder.display());
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).map_err(failed)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort_by_key(|path| place(path));
    let parts = paths.iter().map(fs::read_to_string).collect::<Result<Vec<String>, _>>().map_err(failed)?;
    let page = folder.join("index.html");
    fs::write(&page, page::html(&parts)).map_err(failed)?;
    println!("wrote {}", page.display());
    Ok(())
}

/// The order on the page: anysize, load, bytes, curves, the build matrix, then whatever else is there.
fn place(path: &Path) -> (usize, PathBuf) {
    const ORDER: [&str; 5] = ["anysize", "load", "bytes", "curves", "matrix"];
    let stem = path.file_stem().unwrap_or_default();
    (ORDER.iter().position(|name| stem == *name).unwrap_or(ORDER.len()), path.to_path_buf())
}

/// What a program prints, on one line.
fn said(command: &mut Command) -> String {
    let output = command.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).trim().to_string()
}

/// "16 x model, 64 GB, Linux 6.1"
fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map(|(_, value)| value.trim().to_string()).unwrap_or_default()
    };
    let model = field(&read("/proc/cpuinfo"), "model name");
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let kib: f64 = memory.trim_end_matches(" kB").parse().unwrap_or(0.0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{cores} x {model}, {:.0} GB, Linux {}", kib / 1e6, read("/proc/sys/kernel/osrelease").trim())
}

/// "redis 8.0.2": what a server says it is. Sardine is called by its name alone.
pub(crate) fn label(server: &Server) -> String {
    let version = server.client().and_then(|mut client| client.info("server", "redis_version"));
    let valkey = server.client().and_then(|mut client| client.info("server", "valkey_version"));
    match (server.name.as_str(), valkey.or(version)) {
        ("redis" | "valkey", Ok(version)) => format!("{} {version}", server.name),
        (name, _) => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::chart;
    use super::*;

    #[test]
    fn parts_stand_on_the_page_in_their_order() {
        let mut paths = ["zoo.json", "matrix.json", "bytes.json", "load.json"].map(PathBuf::from);
        paths.sort_by_key(|path| place(path));
        assert_eq!(paths, ["load.json", "bytes.json", "matrix.json", "zoo.json"].map(PathBuf::from));
    }

    #[test]
    fn saving_a_part_writes_its_figures_and_a_page_that_holds_them() {
        let folder = std::env::temp_dir().join(format!("sardine-bench-{}", std::process::id()));
        let part = Part {
            name: "load",
            title: "Load",
            method: "by hand".into(),
            is_quick: true,
            charts: vec![chart::example()],
        };
        part.save(&folder).unwrap();
        let figures = fs::read_to_string(folder.join("load.json")).unwrap();
        let page = fs::read_to_string(folder.join("index.html")).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert!(figures.contains("\"quick\": true") && figures.contains("\"title\": \"CPU of the server\""));
        assert!(page.contains(&figures), "the page holds the figures as they are");
    }
}
