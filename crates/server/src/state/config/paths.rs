//! The files that `include` names: stars and the like may stand in any part of the path, as for a shell.
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The files that a pattern means, sorted. None where they, or the folders on the way to them, are more than
/// `count_max`. A path without wildcards is returned whether there is such a file or not; a path with
/// wildcards may match nothing.
pub(super) fn matching(pattern: &[u8], count_max: usize) -> Option<Vec<PathBuf>> {
    let path = Path::new(OsStr::from_bytes(pattern));
    if !has_wildcard(pattern) {
        return Some(vec![path.to_path_buf()]);
    }
    let mut found = vec![PathBuf::new()];
    for part in path.components() {
        let all = found.iter().flat_map(|folder| below(folder, part));
        found = all.take(count_max + 1).collect();
        if found.len() > count_max {
            return None;
        }
    }
    // What only looks like a file of the pattern, as a folder of examples may, has no lines.
    found.retain(|file| file.exists() && !file.is_dir());
    found.sort();
    Some(found)
}

fn has_wildcard(text: &[u8]) -> bool {
    text.iter().any(|b| b"*?[".contains(b))
}

/// What one part of the path stands for in `folder`.
fn below(folder: &Path, part: Component<'_>) -> Vec<PathBuf> {
    let pattern = part.as_os_str().as_bytes();
    let is_pattern = has_wildcard(pattern) || pattern.contains(&b'\\');
    if !matches!(part, Component::Normal(_)) || !is_pattern {
        return vec![folder.join(part)];
    }
    let place = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    // Hidden files are meant only where the pattern says so.
    entries
        .map(|entry| entry.file_name())
        .filter(|name| pattern.starts_with(b".") || !name.as_bytes().starts_with(b"."))
        .filter(|name| base::file_glob::matches(pattern, name.as_bytes()))
        .map(|name| folder.join(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_in_any_part_of_a_path() {
        let root = std::env::temp_dir().join(format!("sardine-paths-{}", std::process::id()));
        for name in ["a/x.conf", "b/x.conf", "b/y.conf", "b/.hidden.conf", "c/z.txt"] {
            let file = root.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        let found = |pattern: &str| -> Vec<String> {
            let whole = root.join(pattern);
            let files = matching(whole.as_os_str().as_bytes(), 3).unwrap();
            files.iter().map(|f| f.strip_prefix(&root).unwrap().display().to_string()).collect()
        };
        // A folder is none of the files that are meant.
        std::fs::create_dir(root.join("b/dir.conf")).unwrap();
        let answers =
            [found("*/x.conf"), found("b/*.conf"), found("b/.h*"), found("[ab]/?.conf"), found("*/no")];
        assert_eq!(found("[!a]/x.conf"), ["b/x.conf"]);
        assert_eq!(found("\\b/[!x].conf"), ["b/y.conf"]);
        let literal = found("b/nothing");
        let too_many = matching(root.join("*/*").as_os_str().as_bytes(), 3);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(answers[0], ["a/x.conf", "b/x.conf"]);
        assert_eq!(answers[1], ["b/x.conf", "b/y.conf"]);
        assert_eq!(answers[2], ["b/.hidden.conf"]);
        assert_eq!(answers[3], ["a/x.conf", "b/x.conf", "b/y.conf"]);
        assert!(answers[4].is_empty());
        assert_eq!(too_many, None);
        assert_eq!(literal, ["b/nothing"]);
    }
}
