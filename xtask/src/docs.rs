//! `cargo xtask docs`: the documents that are derived from the program's own tables, so that they cannot go
//! stale. Each is what `sardine` prints when it is given the document's option; tidy compares, this writes.
use crate::shell::{Outcome, cargo, root};
use std::fs;

struct Document {
    path: &'static str,
    /// The server prints it and exits when it is run as `sardine --dump-docs NAME`.
    name: &'static str,
}

const DOCUMENTS: [Document; 4] = [
    Document { path: "docs/commands.md", name: "commands" },
    Document { path: "docs/metrics.md", name: "metrics" },
    Document { path: "docs/settings.md", name: "settings" },
    Document { path: "sardine.conf", name: "sample" },
];

impl Document {
    fn generate(&self) -> Result<Vec<u8>, String> {
        let arguments =
            ["run", "--quiet", "--package", "tools", "--bin", "sardine", "--", "--dump-docs", self.name];
        let output = cargo().args(arguments).output().map_err(|e| format!("cargo run: {e}"))?;
        if !output.status.success() || output.stdout.is_empty() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(format!(
                "{}: sardine --dump-docs {} printed no document: {}",
                self.path,
                self.name,
                stderr.trim()
            ));
        }
        Ok(output.stdout)
    }
}

pub(crate) fn run() -> Outcome {
    for document in &DOCUMENTS {
        let text = document.generate()?;
        let path = root().join(document.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        println!("wrote {}", document.path);
    }
    Ok(())
}

/// The documents that are in the repository and differ from what the program prints, with the reason.
pub(crate) fn stale() -> Vec<(&'static str, String)> {
    let complaint = |document: &Document| {
        let present = fs::read(root().join(document.path)).ok()?;
        match document.generate() {
            Ok(text) if text == present => None,
            Ok(_) => Some((document.path, "is generated and out of date; run cargo xtask docs".to_string())),
            Err(message) => Some((document.path, message)),
        }
    };
    DOCUMENTS.iter().filter_map(complaint).collect()
}
